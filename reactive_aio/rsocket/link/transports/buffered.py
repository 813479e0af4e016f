"""What transports without a socket share: the output buffer, and tasks that receive and send."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ...._core.loop import Future
    from ..driver import Driver

HIGH_WATER: Final = 64 * 1024
"""The number of buffered bytes at which the driver pauses writing."""


class BufferedTransport(ABC):
    """Buffers what the driver writes until a subclass sends it."""

    def __init__(self, driver: "Driver") -> None:
        self.driver: Driver = driver
        self._output: list[bytes] = []
        self._output_size = 0
        self._is_writing_paused = False
        self._is_reading = True
        self._is_closing = False

    # -- for the driver ----------------------------------------------------------------------------
    def rebind(self, driver: "Driver") -> None:
        """Serve *driver* from now on: its session continues on this transport."""
        self.driver = driver

    def write(self, data: bytes, /) -> None:
        if self._is_closing:
            return
        self._output += self._split(data)
        self._output_size += len(data)
        if self._output_size >= HIGH_WATER and not self._is_writing_paused:
            self._is_writing_paused = True
            self.driver.pause_writing()
        self._output_changed()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._reading_resumed()

    def close(self) -> None:
        self._is_closing = True
        self._output_changed()

    def get_write_buffer_size(self) -> int:
        """How many bytes were written and have not left yet."""
        return self._output_size

    def get_extra_info(self, name: str) -> Any:
        """The information that asyncio calls *name*; None if it is not available."""
        del name
        return None

    # -- for the subclass --------------------------------------------------------------------------
    def _split(self, data: bytes) -> list[bytes]:
        """The pieces of *data* that are sent separately."""
        return [data]

    @abstractmethod
    def _output_changed(self) -> None:
        """There is output to send, or the transport is closing."""

    @abstractmethod
    def _reading_resumed(self) -> None:
        """The driver accepts input again."""

    def _take_output(self) -> list[bytes]:
        output, self._output = self._output, []
        return output

    def _output_sent(self) -> None:
        """Resume writing, now that what was taken is sent."""
        self._output_size = sum(map(len, self._output))
        if self._is_writing_paused and self._output_size < HIGH_WATER:
            self._is_writing_paused = False
            self.driver.resume_writing()


class TaskTransport(BufferedTransport):
    """A transport of two tasks, one of which receives and one sends."""

    def __init__(self, driver: "Driver") -> None:
        super().__init__(driver)
        self._reading_waiter: Future[None] | None = None
        self._output_waiter: Future[None] | None = None

    def _output_changed(self) -> None:
        _wake(self._output_waiter)

    def _reading_resumed(self) -> None:
        _wake(self._reading_waiter)

    async def _wait_until_reading(self) -> None:
        while not self._is_reading:
            self._reading_waiter = self.driver.loop_handle.create_future()
            await self._reading_waiter

    async def _next_output(self) -> list[bytes]:
        """Wait for output; an empty list if all is sent and the transport is closing."""
        while not self._output and not self._is_closing:
            self._output_waiter = self.driver.loop_handle.create_future()
            await self._output_waiter
        return self._take_output()


def _wake(waiter: "Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
