"""Any byte stream of anyio as a transport: one task reads it, one writes it."""

from typing import TYPE_CHECKING, Any, Final

from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSAttribute

from ...._core.loop import Task, wait_settled
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
            self.abort()

    async def _write(self) -> None:
        try:
            while pieces := await self._next_output():
                await self._stream.send(b"".join(pieces))
                self._output_sent()
        except _END_ERRORS:
            pass
        finally:
            self.abort()

    async def _close_stream(self) -> None:
        """When both tasks have ended, close the stream and notify the driver."""
        await wait_settled(*self._tasks)
        try:
            await self._stream.aclose()
        except _END_ERRORS:
            pass
        finally:
            self.driver.connection_lost(None)
