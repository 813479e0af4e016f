"""Any byte stream of anyio as a transport: one task reads it, one writes it."""

from typing import TYPE_CHECKING, Any, Final

from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSAttribute

from ..._core.loop import Future, Task, wait_settled

if TYPE_CHECKING:
    from anyio.abc import ByteStream

    from ..driver import Driver

__all__ = ("StreamTransport",)

HIGH: Final = 64 * 1024
_ENDS: Final = (EndOfStream, BrokenResourceError, ClosedResourceError, OSError)


class StreamTransport:
    """Moves the bytes of *driver* over *stream*, and closes it at the end."""

    def __init__(self, driver: "Driver", stream: "ByteStream") -> None:
        self._driver = driver
        self._stream = stream
        self._written: list[bytes] = []
        self._size = 0
        self._paused = False
        self._reading = True
        self._closing = False
        self._read_on: Future[None] | None = None
        self._write_on: Future[None] | None = None
        loop_handle = driver.loop_handle
        self._tasks: list[Task[Any]] = [
            loop_handle.create_task(self._read(), "rsocket: reads a byte stream"),
            loop_handle.create_task(self._write(), "rsocket: writes a byte stream"),
        ]
        self._end_task = loop_handle.create_task(self._last(), "rsocket: closes a byte stream")
        driver.attach(self)

    # -- for the driver ----------------------------------------------------------------------------
    def rebind(self, driver: "Driver") -> None:
        self._driver = driver

    def get_extra_info(self, name: str) -> Any:
        """What the stream says of itself, by the names of asyncio."""
        if name == "peername":
            return self._stream.extra(SocketAttribute.remote_address, None)
        tls = self._stream.extra(TLSAttribute.ssl_object, None)
        if name == "peercert":
            return None if tls is None else tls.getpeercert()
        return tls if name == "ssl_object" else None

    def write(self, data: bytes, /) -> None:
        self._written.append(data)
        self._size += len(data)
        if self._size >= HIGH and not self._paused:
            self._paused = True
            self._driver.pause_writing()
        _wake(self._write_on)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        _wake(self._read_on)

    def close(self) -> None:
        self._closing = True
        _wake(self._write_on)

    def abort(self) -> None:
        for task in self._tasks:
            task.cancel()

    # -- tasks -------------------------------------------------------------------------------------
    async def _read(self) -> None:
        """Read until the stream ends; then nothing is left to be written either."""
        try:
            while True:
                data = await self._stream.receive(HIGH)
                while not self._reading:
                    self._read_on = self._driver.loop_handle.create_future()
                    await self._read_on
                self._driver.data_received(data)
        except _ENDS:
            self.abort()

    async def _write(self) -> None:
        try:
            while self._written or not self._closing:
                if not self._written:
                    self._write_on = self._driver.loop_handle.create_future()
                    await self._write_on
                    continue
                data = b"".join(self._written)
                self._written.clear()
                await self._stream.send(data)
                self._size = sum(map(len, self._written))
                if self._paused and self._size < HIGH:
                    self._paused = False
                    self._driver.resume_writing()
        except _ENDS:
            pass
        finally:
            self.abort()

    async def _last(self) -> None:
        """When both have ended, the stream is closed, and the driver told."""
        await wait_settled(*self._tasks)
        try:
            await self._stream.aclose()
        except _ENDS:
            pass
        finally:
            self._driver.connection_lost(None)


def _wake(waiter: Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
