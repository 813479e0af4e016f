"""Islands whose requests somebody looks at: kept apart, so that all others pay nothing for it."""

from typing import Final

from .demand import positive
from .island import Island
from .sync_island import SyncIsland
from .task_island import TaskIsland

__all__ = ("ASKED",)


class _Asked(Island):
    """Tells the chain's listeners of each request, on the loop's thread, before it takes effect."""

    __slots__ = ()

    def request(self, n: int, /) -> None:
        if not self.door.here:
            self.door.soon_threadsafe(self.request, n)
        elif self.dead or self._told(n):
            super().request(n)

    def _told(self, n: int) -> bool:
        try:
            positive(n)
        except ValueError:
            return True  # which fails the flow (3.9), and is no request
        for place, callback in self.chain.asked:
            try:
                self.door.enter(callback, n)
            except Exception as error:
                self._fail(error if self.ending is None else self.ending.failed(error, place))
                return False
        return not self.dead


class _AskedSync(_Asked, SyncIsland):
    __slots__ = ()


class _AskedTask(_Asked, TaskIsland):
    __slots__ = ()


ASKED: Final[dict[type[Island], type[SyncIsland | TaskIsland]]] = {
    SyncIsland: _AskedSync,
    TaskIsland: _AskedTask,
}
