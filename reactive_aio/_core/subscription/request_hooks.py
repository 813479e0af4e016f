"""Islands whose stages observe requests: classes of their own, so that all others pay nothing."""

from typing import Final

from ..demand import require_demand
from .island import Island
from .sync_island import SyncIsland
from .task_island import TaskIsland

__all__ = ("WITH_REQUEST_HOOKS",)


class _RequestHooks(Island):
    """Calls the chain's request hooks on the loop's thread, before a request takes effect."""

    __slots__ = ()

    def request(self, n: int, /) -> None:
        if not self.loop_handle.is_current_thread:
            self.loop_handle.call_soon_threadsafe(self.request, n)
        elif self.is_stopped or self._call_hooks(n):
            super().request(n)

    def _call_hooks(self, n: int) -> bool:
        """Return whether the request is to take effect."""
        try:
            require_demand(n)
        except ValueError:
            return True  # it fails the flow (3.9), and is not a request to observe
        for position, hook in self.chain.request_hooks:
            try:
                self.loop_handle.run(hook, n)
            except Exception as error:
                hooks = self.end_hooks
                self._fail(error if hooks is None else hooks.fail_at(position, error))
                return False
        return not self.is_stopped


class _SyncIslandWithHooks(_RequestHooks, SyncIsland):
    __slots__ = ()


class _TaskIslandWithHooks(_RequestHooks, TaskIsland):
    __slots__ = ()


WITH_REQUEST_HOOKS: Final[dict[type[Island], type[SyncIsland | TaskIsland]]] = {
    SyncIsland: _SyncIslandWithHooks,
    TaskIsland: _TaskIslandWithHooks,
}
"""The class with request hooks for each kind of island."""
