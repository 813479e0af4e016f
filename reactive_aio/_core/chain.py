"""Chain: an island as described in a flow: what feeds it, then its stages."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, cast

from .demand import UNBOUNDED
from .fusion import Loop, Shape, fused
from .heads import AsyncHead, Head, PullHead, PushHead
from .inline import Applied

__all__ = ("Chain",)

_FEEDS: dict[type, Any] = {PullHead: "pull", PushHead: "push", AsyncHead: "aiter"}


class Chain:
    """Immutable. One chain serves any number of subscriptions, and remembers its loops."""

    __slots__ = ("_loops", "applied", "arguments", "asked", "awaits", "head")

    def __init__(self, head: Head, applied: tuple[Applied, ...] = ()) -> None:
        self.head: Head = head
        self.applied: tuple[Applied, ...] = applied
        self.arguments: tuple[object, ...] = tuple(
            value for each in applied for value in each.arguments
        )
        self.awaits: bool = isinstance(head, AsyncHead) or any(
            each.stage.awaits for each in applied
        )
        self.asked: tuple[tuple[int, Any], ...] = tuple(_asked(applied))
        """Places that are told of each request, and whom to call: last first, as it travels."""
        self._loops: dict[tuple[str, str], Loop] = {}

    def then(self, stage: Applied) -> "Chain":
        """The chain with one more stage."""
        return Chain(self.head, (*self.applied, stage))

    @property
    def pulled(self) -> bool:
        """Whether it can be iterated without waiting for anything."""
        return isinstance(self.head, PullHead) and not self.awaits and not self.asked

    @property
    def bare(self) -> bool:
        """Whether nothing need be done to its elements: they may be taken by the batch."""
        return isinstance(self.head, PullHead) and self.head.checked and not self.applied

    def loop(self, mode: str, delivery: str) -> Loop:
        """The generated loop for one way of running it."""
        found = self._loops.get((mode, delivery))
        if found is None:
            stages = tuple(each.stage for each in self.applied)
            feed = _FEEDS[type(self.head)]
            shape = Shape(feed, cast("Any", mode), cast("Any", delivery), self.head.checked, stages)
            found = self._loops[mode, delivery] = fused(shape)
        return found

    def iterate(self) -> Iterator[Any]:
        """One pass over a pulled chain, as a plain iterator."""
        head = cast("PullHead", self.head)
        if head.checked and not self.applied:
            return head.open()
        return cast("Iterator[Any]", self.run("gen", None))

    def run(self, mode: str, pace: object) -> Any:
        """Run the loop that makes a pulled chain an iterator of the given kind."""
        loop = self.loop(mode, "yield")
        head = cast("PullHead", self.head)
        # Who wants to know how it ended also wants to know that it could not be opened.
        src = head.open if loop.hooks else head.open()
        return loop.run(pace, src, None, *self.arguments)

    # -- what is known of it ----------------------------------------------------------------------
    def window(self, mode: str) -> int:
        """How much may be on its way from upstream."""
        if any(each.stage.many for each in self.applied):
            return 1  # one element may become any number
        window = self.head.window if isinstance(self.head, PushHead) else 0
        if not window:
            return UNBOUNDED
        # A task takes long over its chunk: smaller ones let upstream work meanwhile.
        return window if mode == "sync" else max(1, window // 4)

    def stretch(self) -> str:
        """Its head and its stages in one line."""
        return " → ".join([self.head.name, *map(str, self.applied)])

    def trail(self) -> str:
        """All operators from the sources to here in one line, for messages."""
        above = [upstream.chain.trail() for upstream in self.head.upstreams]
        if not above:
            return self.stretch()
        joined = above[0] if len(above) == 1 else f"({' | '.join(above)})"
        return f"{joined} → {self.stretch()}"

    def annotate(self, error: BaseException) -> None:
        """Note on *error* in which flow it was raised, unless one upstream has done so."""
        trail = self.trail()
        notes: list[str] = getattr(error, "__notes__", [])
        if not any(note.startswith(_NOTE) and note[len(_NOTE) :] in trail for note in notes):
            with suppress(Exception):  # an exception may be frozen
                error.add_note(_NOTE + trail)


_NOTE: Final = "in the flow: "


def _asked(applied: tuple[Applied, ...]) -> Iterator[tuple[int, Any]]:
    for place in range(len(applied), 0, -1):
        stage = applied[place - 1].stage
        if stage.asked:
            yield place, applied[place - 1].arguments[stage.params.index(stage.asked)]
