"""Chain: the description of an island: what feeds it, then its stages."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

from ..demand import UNBOUNDED
from .chain_sources import AsyncSource, ChainSource, PullSource, PushSource
from .inline import AppliedStage
from .loop_compiler import CompiledLoop, LoopShape, compile_loop

Report = Callable[[str, BaseException], None]

_FEEDS: dict[type, Any] = {PullSource: "pull", PushSource: "push", AsyncSource: "aiter"}


class Chain:
    """Immutable. One chain serves any number of subscriptions and caches its loops."""

    __slots__ = ("_loops", "arguments", "awaits", "request_hooks", "source", "stages")

    def __init__(self, source: ChainSource, stages: tuple[AppliedStage, ...] = ()) -> None:
        self.source: ChainSource = source
        self.stages: tuple[AppliedStage, ...] = stages
        self.arguments: tuple[object, ...] = tuple(
            value for each in stages for value in each.arguments
        )
        self.awaits: bool = isinstance(source, AsyncSource) or any(
            each.stage.awaits for each in stages
        )
        self.request_hooks: tuple[tuple[int, Any], ...] = tuple(_request_hooks(stages))
        """Positions of stages with a request hook, and the hooks: last first, as demand travels."""
        self._loops: dict[tuple[str, str], CompiledLoop] = {}

    def then(self, stage: AppliedStage) -> "Chain":
        """Return the chain with one more stage."""
        return Chain(self.source, (*self.stages, stage))

    @property
    def is_pullable(self) -> bool:
        """Whether it can be iterated without awaiting anything."""
        return isinstance(self.source, PullSource) and not self.awaits and not self.request_hooks

    @property
    def is_bare(self) -> bool:
        """Whether its elements need no processing, so that they can be taken in batches."""
        return isinstance(self.source, PullSource) and self.source.checked and not self.stages

    def compiled_loop(self, mode: str, delivery: str) -> CompiledLoop:
        """The generated loop for one mode and one kind of delivery."""
        found = self._loops.get((mode, delivery))
        if found is None:
            stages = tuple(each.stage for each in self.stages)
            feed = _FEEDS[type(self.source)]
            shape = LoopShape(
                feed, cast("Any", mode), cast("Any", delivery), self.source.checked, stages
            )
            found = self._loops[mode, delivery] = compile_loop(shape)
        return found

    def iterate(self, report: Report) -> Iterator[Any]:
        """Iterate a pullable chain once. *report* receives errors raised during a cancellation."""
        source = cast("PullSource", self.source)
        if source.checked and not self.stages:
            return source.open()
        return cast("Iterator[Any]", self.run("generator", None, report))

    def run(self, mode: str, time_slice: object, report: Report) -> Any:
        """Run the loop that makes a pullable chain an iterator of the given kind."""
        loop = self.compiled_loop(mode, "yield")
        source = cast("PullSource", self.source)
        # End hooks also observe a source that fails to open.
        src = source.open if loop.end_hooks else source.open()
        return loop.run(time_slice, src, report, *self.arguments)

    # -- properties of the whole -------------------------------------------------------------------
    def window(self, mode: str) -> int:
        """How many elements may be in flight from upstream."""
        if any(each.stage.emits_many for each in self.stages):
            return 1  # one element can become any number
        window = self.source.window if isinstance(self.source, PushSource) else 0
        if not window:
            return UNBOUNDED
        # A task takes long over a chunk: smaller chunks let upstream work at the same time.
        return window if mode == "sync" else max(1, window // 4)

    def island_text(self) -> str:
        """Its source and its stages in one line."""
        return " → ".join([self.source.name, *map(str, self.stages)])

    def trail(self) -> str:
        """All operators from the sources to this island on one line, for messages."""
        above = [upstream.chain.trail() for upstream in self.source.upstreams]
        if not above:
            return self.island_text()
        joined = above[0] if len(above) == 1 else f"({' | '.join(above)})"
        return f"{joined} → {self.island_text()}"

    def annotate(self, error: BaseException) -> None:
        """Add a note to *error* that names this flow, unless an upstream has added one."""
        trail = self.trail()
        notes: list[str] = getattr(error, "__notes__", [])
        if not any(note.startswith(_NOTE) and note[len(_NOTE) :] in trail for note in notes):
            with suppress(Exception):  # an exception may be frozen
                error.add_note(_NOTE + trail)


_NOTE: Final = "in the flow: "


def _request_hooks(stages: tuple[AppliedStage, ...]) -> Iterator[tuple[int, Any]]:
    for place in range(len(stages), 0, -1):
        stage = stages[place - 1].stage
        if stage.on_request:
            yield place, stages[place - 1].arguments[stage.params.index(stage.on_request)]
