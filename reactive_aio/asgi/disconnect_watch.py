"""DisconnectWatch: waits for the disconnect of the client of a response."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._core.loop import LoopHandle, Task, timeout, wait_settled
from .http import Receive

T = TypeVar("T")


class DisconnectWatch:
    """Calls a function when the client disconnects; discards the body of the request."""

    def __init__(self, loop_handle: LoopHandle, receive: Receive) -> None:
        self.is_disconnected: bool = False
        self._loop_handle = loop_handle
        self._receive = receive
        self._on_disconnect: Callable[[], object] | None = None
        self._task: Task[None] | None = None

    def start(self, on_disconnect: Callable[[], object]) -> None:
        """Call *on_disconnect* from now on, in place of an earlier function."""
        self._on_disconnect = on_disconnect
        if self._task is None:
            self._task = self._loop_handle.create_task(
                self._watch(), "asgi: waits for a disconnect"
            )

    async def aclose(self) -> None:
        self._on_disconnect = None
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await wait_settled(task)

    async def cancel_on_disconnect(self, work: Awaitable[T]) -> T | None:
        """Await *work*; cancel it, and return None, when the client disconnects."""
        waiting = timeout(None)
        try:
            async with waiting:
                self.start(lambda: waiting.reschedule(self._loop_handle.time()))
                return await work
        except TimeoutError:
            if not waiting.expired():
                raise
            return None
        finally:
            self._on_disconnect = None

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_disconnected = True
        if self._on_disconnect is not None:
            self._on_disconnect()
