"""Any byte stream of anyio as a transport: one task reads it, one writes it."""

from typing import TYPE_CHECKING, Any, Final

from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    EndOfStream,
    current_time,
)
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSAttribute

from ...._core.loop import Task, wait_settled
from ..ending import CLOSE_TIMEOUT
from .buffered import HIGH_WATER, TaskTransport

if TYPE_CHECKING:
    from anyio.abc import ByteStream

    from ..driver import Driver

_END_ERRORS: Final = (EndOfStream, BrokenResourceError, ClosedResourceError, OSError)


class StreamTransport(TaskTransport):
    """Moves the bytes of *driver* over *stream*, and closes *stream* at the end."""

    def __init__(self, driver: "Driver", stream: "ByteStream") -> None:
        super().__init__(driver)
        self._stream = stream
        create_task = driver.loop_handle.create_task
        self._tasks: list[Task[Any]] = [
            create_task(self._read(), "rsocket: reads a byte stream"),
            create_task(self._write(), "rsocket: writes a byte stream"),
        ]
        self._closing = CancelScope()
        self._closing_task = create_task(self._close_stream(), "rsocket: closes a byte stream")
        driver.attach(self)

    def get_extra_info(self, name: str) -> Any:
        """The attribute of the stream that asyncio calls *name*."""
        if name == "peername":
            return self._stream.extra(SocketAttribute.remote_address, None)
        tls = self._stream.extra(TLSAttribute.ssl_object, None)
        if name == "peercert":
            return None if tls is None else tls.getpeercert()
        return tls if name == "ssl_object" else None

    def abort(self) -> None:
        self._closing.cancel()
        self._end_tasks()

    def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    # -- tasks -------------------------------------------------------------------------------------
    async def _read(self) -> None:
        """Read until the stream ends, which ends writing as well."""
        try:
            while True:
                data = await self._stream.receive(HIGH_WATER)
                await self._wait_until_reading()
                self.driver.data_received(data)
        except _END_ERRORS:
            self._end_tasks()

    async def _write(self) -> None:
        try:
            while pieces := await self._next_output():
                await self._stream.send(b"".join(pieces))
                self._output_sent()
        except _END_ERRORS:
            pass
        finally:
            self._end_tasks()

    async def _close_stream(self) -> None:
        """When both tasks have ended, close the stream and notify the driver.

        A stream of TLS waits until its peer has confirmed the end, which a peer that is frozen
        never does. Cancelled after a while, or by an abort, it is closed without that.
        """
        await wait_settled(*self._tasks)
        self._closing.deadline = current_time() + CLOSE_TIMEOUT
        try:
            with self._closing:
                await self._stream.aclose()
        except _END_ERRORS:
            pass
        finally:
            self.driver.connection_lost(None)
