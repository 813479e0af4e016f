"""A WebSocket that somebody else holds: a server of ASGI, which hands over whole messages."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from ..._core.loop import Future, Task, wait_settled
from ..driver import CLOSE_TIMEOUT, Driver
from ..protocol.frames import ErrorCode
from .message_framing import join_messages, split_messages

if TYPE_CHECKING:
    from ..._core.loop import TimerHandle

__all__ = ("AsgiTransport", "Receive", "Send")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HIGH: Final = 64 * 1024
NORMAL: Final = 1000
UNSUPPORTED: Final = 1003
TOO_BIG: Final = 1009


class AsgiTransport:
    """Moves the messages of *driver*: one task receives, one sends, while `run` is awaited."""

    def __init__(self, driver: Driver, receive: Receive, send: Send, client: object = None) -> None:
        self.driver: Driver = driver
        self.aborted: bool = False
        self._client = client
        self._receive_next = receive
        self._send_on = send
        self._limit = driver.connection.limits.max_frame
        self._written: list[bytes] = []
        self._size = 0
        self._paused = False
        self._reading = True
        self._closing = False
        self._code = NORMAL
        self._reason = ""
        self._read_on: Future[None] | None = None
        self._write_on: Future[None] | None = None
        self._tasks: list[Task[Any]] = []
        self._late: TimerHandle | None = None

    # -- for the driver ----------------------------------------------------------------------------
    def write(self, data: bytes, /) -> None:
        if self._closing or self.aborted:
            return
        messages = split_messages(data)
        self._written += messages
        self._size += len(data)
        if self._size >= HIGH and not self._paused:
            self._paused = True
            self.driver.pause_writing()
        _wake(self._write_on)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        _wake(self._read_on)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._late = self.driver.loop_handle.call_later(CLOSE_TIMEOUT, self.abort)
        _wake(self._write_on)

    def abort(self) -> None:
        self.aborted = True
        for task in self._tasks:
            task.cancel()

    def rebind(self, driver: Driver) -> None:
        """Pass it on to *driver* from now on: a session goes on here."""
        self.driver = driver

    def get_extra_info(self, name: str) -> Any:
        """Who calls, as far as the server of ASGI tells."""
        return self._client if name == "peername" else None

    # -- for the application -----------------------------------------------------------------------
    async def run(self, accept: MutableMapping[str, Any]) -> None:
        """Be the connection until it ends; then the driver has been told, and nothing is left."""
        error: BaseException | None = None
        loop_handle = self.driver.loop_handle
        try:
            await self._send_on(accept)
            if not self.aborted:
                self._tasks = [
                    loop_handle.create_task(
                        self._receive(), "rsocket: receives from an ASGI server"
                    ),
                    loop_handle.create_task(self._send(), "rsocket: sends to an ASGI server"),
                ]
                await wait_settled(*self._tasks)
            for task in self._tasks:
                if not task.cancelled() and (error := task.exception()):
                    break
        except OSError as gone:
            error = gone
        finally:
            self.abort()
            await wait_settled(*self._tasks)
            if self._late is not None:
                self._late.cancel()
            self.driver.connection_lost(error)
        if error is not None and not isinstance(error, OSError):
            raise error

    async def _receive(self) -> None:
        """Take in messages until there are no more; then nobody is left to be sent anything."""
        try:
            while (message := await self._receive_next())["type"] == "websocket.receive":
                while not self._reading:
                    self._read_on = self.driver.loop_handle.create_future()
                    await self._read_on
                data = message.get("bytes")
                if data is None:
                    self._fail(UNSUPPORTED, "RSocket is spoken in binary messages")
                elif len(data) > self._limit:
                    self._fail(TOO_BIG, "the message is too long")
                elif not self._closing:
                    self.driver.data_received(join_messages([data]))
        finally:
            self._leave()

    def _fail(self, code: int, reason: str) -> None:
        if not self._closing:
            self._code, self._reason = code, reason
            self._written.clear()
            self.close()
            self.driver.connection.fail(ErrorCode.CONNECTION_ERROR, f"{reason} ({code})")
            self.driver.schedule_turn()

    async def _send(self) -> None:
        """Send what is written, as fast as the server takes it."""
        try:
            while self._written or not self._closing:
                if not self._written:
                    self._write_on = self.driver.loop_handle.create_future()
                    await self._write_on
                    continue
                messages, self._written = self._written, []
                for message in messages:
                    await self._send_on({"type": "websocket.send", "bytes": message})
                self._size = sum(map(len, self._written))
                if self._paused and self._size < HIGH:
                    self._paused = False
                    self.driver.resume_writing()
            await self._send_on(
                {"type": "websocket.close", "code": self._code, "reason": self._reason}
            )
        finally:
            self._leave()

    def _leave(self) -> None:
        for task in self._tasks:
            if not self.driver.loop_handle.is_current_task(task):
                task.cancel()


def _wake(waiter: Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
