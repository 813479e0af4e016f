"""Connection: one of the package websockets that waits for no server without end."""

from typing import Any

from anyio import CancelScope
from websockets.asyncio.client import ClientConnection

from .._core.loop import Task, TimerHandle, wait_settled


class Connection(ClientConnection):
    """Leaves a server that breaks the protocol, and one that does not read.

    The former would be waited for to close as well. For the latter, `send`, `ping` and `close` of
    websockets all wait until their bytes have left: without a limit, so a server that reads nothing
    is noticed by no ping, and keeps the program from closing the socket.
    """

    _is_leaving = False
    _timer: TimerHandle | None = None
    """Runs while the transport takes no more output."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.protocol.handshake_exc is not None or self.protocol.parser_exc is not None:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self._leave()
        await super().close(code, reason)

    async def end_sending(self, sending: Task[Any]) -> None:
        """Cancel *sending*, a task that sends, and wait until it has ended.

        A send that has begun is waited for as long as a close: it is not cancelled, since
        websockets waits for it in a place where tasks of flows clean up.
        """
        self._leave()
        sending.cancel()
        with CancelScope(shield=True):
            await wait_settled(sending)

    def _leave(self) -> None:
        """From now on, the server is waited for only as long as for the answer to a close."""
        if not self._is_leaving:
            self._is_leaving = True
            if self.paused:
                self._start_timer()

    def _start_timer(self) -> None:
        """Limit how long the server may not read: it cannot answer a ping in time either."""
        self._stop_timer()
        seconds = self.close_timeout if self._is_leaving else self.ping_timeout
        if seconds is not None:
            self._timer = self.loop.call_later(seconds, self._lose, seconds)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lose(self, seconds: float) -> None:
        """End the transport, and with it whoever waits until the server reads."""
        self.set_connection_exc(TimeoutError(f"the server has read nothing for {seconds:g} s"))
        self.transport.abort()
