"""A WebSocket of an ASGI server as a transport: the server hands over whole messages."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from ...._core.loop import Task, wait_settled
from ...protocol.codec import join_messages, split_messages
from ...protocol.frames import ErrorCode
from ..driver import Driver
from ..ending import CLOSE_TIMEOUT
from .buffered import TaskTransport

if TYPE_CHECKING:
    from ...._core.loop import TimerHandle

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

NORMAL: Final = 1000
UNSUPPORTED: Final = 1003
TOO_BIG: Final = 1009


class AsgiTransport(TaskTransport):
    """Moves the messages of *driver*: one task receives, one sends, while `run` is awaited."""

    def __init__(self, driver: Driver, receive: Receive, send: Send, client: object = None) -> None:
        super().__init__(driver)
        self.is_aborted: bool = False
        self._client = client
        self._asgi_receive = receive
        self._asgi_send = send
        self._max_message = driver.connection.limits.max_frame
        self._code = NORMAL
        self._reason = ""
        self._tasks: list[Task[Any]] = []
        self._close_timer: TimerHandle | None = None

    # -- for the driver ----------------------------------------------------------------------------
    def close(self) -> None:
        if not self._is_closing:
            self._close_timer = self.driver.loop_handle.call_later(CLOSE_TIMEOUT, self.abort)
        super().close()

    def abort(self) -> None:
        self.is_aborted = self._is_closing = True
        for task in self._tasks:
            task.cancel()

    def get_extra_info(self, name: str) -> Any:
        """The address of the client, if the ASGI server reports it."""
        return self._client if name == "peername" else None

    def _split(self, data: bytes) -> list[bytes]:
        return split_messages(data)

    # -- for the application -----------------------------------------------------------------------
    async def run(self, accept: MutableMapping[str, Any]) -> None:
        """Run the connection until it ends; the driver is then notified and the tasks are done."""
        error: BaseException | None = None
        create_task = self.driver.loop_handle.create_task
        try:
            await self._asgi_send(accept)
            if not self.is_aborted:
                self._tasks = [
                    create_task(self._receive(), "rsocket: receives from an ASGI server"),
                    create_task(self._send(), "rsocket: sends to an ASGI server"),
                ]
                await wait_settled(*self._tasks)
            for task in self._tasks:
                if not task.cancelled() and (error := task.exception()):
                    break
        except OSError as failure:
            error = failure
        finally:
            self.abort()
            await wait_settled(*self._tasks)
            if self._close_timer is not None:
                self._close_timer.cancel()
            self.driver.connection_lost(error)
        if error is not None and not isinstance(error, OSError):
            raise error

    async def _receive(self) -> None:
        """Receive messages until the client disconnects, which ends sending as well."""
        try:
            while (message := await self._asgi_receive())["type"] == "websocket.receive":
                await self._wait_until_reading()
                data = message.get("bytes")
                if data is None:
                    self._fail(UNSUPPORTED, "RSocket is spoken in binary messages")
                elif len(data) > self._max_message:
                    self._fail(TOO_BIG, "the message is too long")
                elif not self._is_closing:
                    self.driver.data_received(join_messages([data]))
        finally:
            self._cancel_other_tasks()

    def _fail(self, code: int, reason: str) -> None:
        if not self._is_closing:
            self._code, self._reason = code, reason
            self._output.clear()
            self.close()
            self.driver.connection.fail(ErrorCode.CONNECTION_ERROR, f"{reason} ({code})")
            self.driver.schedule_turn()

    async def _send(self) -> None:
        """Send messages as fast as the server accepts them."""
        try:
            while messages := await self._next_output():
                for message in messages:
                    await self._asgi_send({"type": "websocket.send", "bytes": message})
                    self._output_size -= len(message)
                self._output_sent()
            await self._asgi_send(
                {"type": "websocket.close", "code": self._code, "reason": self._reason}
            )
        finally:
            self._cancel_other_tasks()

    def _cancel_other_tasks(self) -> None:
        for task in self._tasks:
            if not self.driver.loop_handle.is_current_task(task):
                task.cancel()
