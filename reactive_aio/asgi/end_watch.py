"""EndWatch: waits for what ends a response early, its client's disconnect or its server's stop."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._core.loop import LoopHandle, Task, timeout, wait_settled
from .http import Receive

T = TypeVar("T")


class EndWatch:
    """Calls a function when the response must end; discards the body of the request."""

    def __init__(self, loop_handle: LoopHandle, receive: Receive) -> None:
        self.is_disconnected: bool = False
        """Whether the client has disconnected: nothing can be sent to it any more."""
        self.is_stopped: bool = False
        """Whether the server stops: what is sent to the client must end now."""
        self._loop_handle = loop_handle
        self._receive = receive
        self._on_end: Callable[[], object] | None = None
        self._task: Task[None] | None = None

    def start(self, on_end: Callable[[], object], *, reads: bool = True) -> None:
        """Call *on_end* from now on, in place of an earlier function.

        Without *reads*, nothing is received, and so no disconnect is noticed.
        """
        self._on_end = on_end
        if reads and self._task is None:
            self._task = self._loop_handle.create_task(
                self._watch(), "asgi: waits for a disconnect"
            )

    def stop(self) -> None:
        """End the response, since the server stops."""
        self.is_stopped = True
        self._end()

    async def aclose(self) -> None:
        self._on_end = None
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await wait_settled(task)

    async def cancel_at_end(self, work: Awaitable[T], *, reads: bool = True) -> T | None:
        """Await *work*; cancel it, and return None, when the response must end."""
        waiting = timeout(None)

        def end() -> None:
            if not waiting.expired():  # the server stops while a client that has left is cleaned up
                waiting.reschedule(self._loop_handle.time())

        try:
            async with waiting:
                self.start(end, reads=reads)
                return await work
        except TimeoutError:
            if not waiting.expired():
                raise
            return None
        finally:
            self._on_end = None

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_disconnected = True
        self._end()

    def _end(self) -> None:
        if self._on_end is not None:
            self._on_end()
