"""Islands whose requests somebody looks at: kept apart, so that all others pay nothing for it."""

from typing import Final

from ..demand import require_demand
from .island import Island
from .sync_island import SyncIsland
from .task_island import TaskIsland

__all__ = ("WITH_REQUEST_HOOKS",)


class _Asked(Island):
    """Tells the chain's listeners of each request, on the loop's thread, before it takes effect."""

    __slots__ = ()

    def request(self, n: int, /) -> None:
        if not self.loop_handle.is_current_thread:
            self.loop_handle.call_soon_threadsafe(self.request, n)
        elif self.dead or self._told(n):
            super().request(n)

    def _told(self, n: int) -> bool:
        try:
            require_demand(n)
        except ValueError:
            return True  # which fails the flow (3.9), and is no request
        for place, callback in self.chain.request_hooks:
            try:
                self.loop_handle.run(callback, n)
            except Exception as error:
                self._fail(error if self.ending is None else self.ending.failed(error, place))
                return False
        return not self.dead


class _AskedSync(_Asked, SyncIsland):
    __slots__ = ()


class _AskedTask(_Asked, TaskIsland):
    __slots__ = ()


WITH_REQUEST_HOOKS: Final[dict[type[Island], type[SyncIsland | TaskIsland]]] = {
    SyncIsland: _AskedSync,
    TaskIsland: _AskedTask,
}
