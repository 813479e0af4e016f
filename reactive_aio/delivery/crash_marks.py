"""CrashMarks: which element ends its processes, known by marks and not by a count of deliveries.

An orderly end, an outage, or a read that a client repeats adds to the deliveries of an element, and
says nothing about it. So an element that comes again is a suspect, and no more. It is tried alone,
and a mark is kept outside of the process from the beginning of its work until that is over. A mark
that a process finds is one of a process that has ended while it worked on this element alone.
"""

from collections.abc import Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Any, Final, Protocol, TypeVar

import anyio

from .errors import Unfinished
from .outages import Outage

T = TypeVar("T")

CRASHES: Final = 3
"""As many processes have to end while they work on an element alone, until it is a dead letter."""
SUSPECT: Final = 2
"""An element that was delivered so often before is a suspect."""
DIED: Final = "{} processes have ended while they worked on this entry alone"


class MarkStore(Protocol):
    """Where the marks are, on the server that the elements come from."""

    async def read(self, ids: Sequence[str], /) -> Sequence[int]:
        """How many processes have ended of each."""
        ...

    async def write(self, id: str, crashes: int, /) -> object:
        """The work on an element begins: that is a crash, unless the mark is cleared."""
        ...

    async def clear(self, ids: Sequence[str], /) -> object:
        """The work is over."""
        ...


class CrashMarks:
    """The elements that are in work, and the marks of those that are tried alone."""

    def __init__(self, store: MarkStore, outage: Outage, patience: float) -> None:
        self.working: Final[dict[str, Any]] = {}
        """What is in work, by its id."""
        self._store = store
        self._outage = outage
        self._patience = patience
        self._alone: set[str] = set()
        self._is_idle = anyio.Event()
        """Set when nothing is in work any more."""

    async def crashes_of(self, suspects: Sequence[str]) -> list[tuple[str, int]]:
        """The suspects with their crashes: others pass before one of many comes again."""
        crashes = await self._outage.call(self._store.read, suspects)
        return sorted(zip(suspects, crashes, strict=True), key=lambda each: each[1])

    async def begin(self, id: str, crashes: int) -> None:
        """The work on a suspect begins, while nothing else is in work."""
        self._alone.add(id)
        await self._outage.call(self._store.write, id, crashes + 1)

    async def bury(
        self, element: T, id: str, crashes: int, on_dead_letter: Callable[[T, Exception], object]
    ) -> None:
        """Do not try again what processes have ended of."""
        result = on_dead_letter(element, Unfinished(DIED.format(crashes)))
        if isawaitable(result):
            await result
        self._alone.add(id)  # whose mark is cleared when it is acknowledged

    async def worked(self, ids: Iterable[str] | None = None) -> None:
        """The work on *ids* (None: on all) has not ended this process, whatever its outcome is."""
        marked = [*self._alone] if ids is None else [*self._alone.intersection(ids)]
        if marked:
            await self._outage.call(self._store.clear, marked)
            self._alone.difference_update(marked)

    async def over(self, ids: Iterable[str]) -> None:
        """The work on *ids* is over."""
        ids = [*ids]
        await self.worked(ids)
        for id in ids:
            self.working.pop(id, None)
        if not self.working:
            self._is_idle.set()

    async def done_alone(self) -> None:
        """Wait until what is tried alone is over, before anything else is read."""
        if self._alone:
            await self.all_done()

    async def all_done(self) -> bool:
        """Wait until nothing is in work; not for ever, as a buffer may wait for more elements.

        With an outage, what waits for its end is never done: what follows is not alone then.
        """
        if self.working:
            self._is_idle = anyio.Event()
            with anyio.move_on_after(self._patience):
                await self._is_idle.wait()
        return not self.working
