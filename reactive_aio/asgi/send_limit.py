"""SendLimit: how long a client may take to read what it is sent, before it loses its place."""

from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, Self

from .._core.loop import LoopHandle, timeout
from ..rsocket.link.tasks import DeadlineTimer
from .http import Send


class SendLimit:
    """Ends a block with TimeoutError when one send of it takes longer than *seconds*.

    The `send` of an ASGI server waits for a client that does not read, without a limit. A client
    would keep its stream for ever. Waiting for elements does not count: only time in `send` does.
    """

    def __init__(self, loop_handle: LoopHandle, send: Send, seconds: float | None) -> None:
        self._loop_handle = loop_handle
        self._send = send
        self._seconds = seconds
        self._block = timeout(None)
        self._began: float | None = None  # the send that runs
        # One timer for many sends: a timer for each would cost more than most of them.
        self._timer = DeadlineTimer(loop_handle, self._deadline, lambda _: self.end_within(0))

    async def __aenter__(self) -> Self:
        await self._block.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        await self._block.__aexit__(kind, error, traceback)

    @property
    def has_expired(self) -> bool:
        """Whether the client has lost its place."""
        return self._block.expired()

    async def send(self, event: MutableMapping[str, Any]) -> None:
        """Send *event* to the client, within the limit."""
        if self._seconds is not None:
            self._began = self._loop_handle.time()
            self._timer.update()
        try:
            await self._send(event)
        finally:
            self._began = None

    def end_within(self, seconds: float) -> None:
        """Limit the rest of the block to *seconds*: the client has disconnected."""
        if not self._block.expired():
            self._block.reschedule(self._loop_handle.time() + seconds)

    def lift(self) -> None:
        """Let the rest of the block take as long as it needs."""
        if not self._block.expired():
            self._block.reschedule(None)

    def _deadline(self) -> float | None:
        """When the send that runs has taken too long."""
        if self._began is None or self._seconds is None:
            return None
        return self._began + self._seconds
