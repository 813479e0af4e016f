"""Chain: the description of an island: what feeds it, then its stages."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol, TypeVar, cast

from ..cleanup import CleanupErrors
from ..demand import UNBOUNDED
from ..flow_subscription import FlowSubscription
from ..run_control import RunControl, RunDiscards
from . import error_notes
from .discards import Discards, OnDiscard
from .inline import AppliedStage, InlineStage, describe
from .loop_runtime import UntilStopped, length_hint_of
from .loops import CompiledLoop, LoopShape, compile_loop
from .places import Place, call_place

T = TypeVar("T")


def is_spent(iterator: Any) -> bool:
    """Whether *iterator* is known to have no more elements."""
    left = length_hint_of(iterator)
    return left is not None and not left()


class Downstream(Protocol[T]):
    """The island below a pushing source. Its methods may be called on the loop's thread only."""

    def push(self, elements: list[T], /) -> None:
        """Push *elements*, at most as many as are requested and not yet pushed (rule 1.1)."""
        ...

    def try_push(self, element: T, /) -> bool | None:
        """Push one element if it can be processed now: the island waits for it, and awaits nothing.

        Return true if it has been processed, so that ``processed()`` is not called for it; None if
        the caller keeps it.
        """
        ...

    @property
    def outstanding(self) -> int:
        """How many elements are requested and not yet pushed."""
        ...

    @property
    def awaits(self) -> bool:
        """Whether the island awaits something for each element, so that those pushed after it wait
        for as long as that takes."""
        ...

    def lend(self, elements: Iterator[T], count: int, /) -> None:
        """Push the next *count* of *elements*; the caller keeps each until it is delivered.

        The iterator must have *count* elements left whenever it is advanced, and must not block.
        Elements that are cancelled before their delivery stay with the caller.
        """
        ...

    @property
    def cleanup(self) -> CleanupErrors | None:
        """Where the errors of the source's cleanup go, if a consumer awaits it."""
        ...

    @property
    def on_discard(self) -> OnDiscard | None:
        """What receives each element that is held and will not be delivered; None if nothing
        does. It may be called on the loop's thread only."""
        ...

    def complete(self) -> None:
        """Complete after the elements pushed so far."""
        ...

    def fail(self, error: BaseException, /) -> None:
        """Fail after the elements pushed so far."""
        ...


def push_next(downstream: Downstream[T], elements: Iterator[T], count: int) -> None:
    """Push the next *count* of *elements*; of an iterator that raises, those before the error."""
    taken: list[T] = []
    try:
        taken.extend(islice(elements, count))
    finally:
        downstream.push(taken)


Name = str | Callable[[], str]
"""The name of a source, or a function that makes it when it is shown."""


# Not frozen: setting the attributes of a frozen one takes longer than the rest of `map`.
@dataclass(slots=True, eq=False)
class PullSource:
    """An iterator per subscription: pulled, and fused with the stages."""

    name: Name
    open: Callable[..., Iterator[Any]]
    checked: bool = False
    """Whether its elements are known not to be None."""
    holds: int | None = 0
    upstreams: tuple[Any, ...] = ()
    """The flows it reads from, for `bound` and `explain`."""
    one_by_one: bool = False
    """Whether reading takes elements away from other readers, so that none may be read ahead."""
    contents: int | None = None
    """How many elements one of its elements contains; None: as many as one of an upstream does."""
    gives_back: bool = False
    """Whether `open` accepts a function that receives the elements that the iterator discards."""
    continues: bool = False
    """Whether it only goes on with an iterator that was opened before."""

    @property
    def is_leaf(self) -> bool:
        """Whether a drain stops it, and not the flows that it reads from."""
        return not self.continues and not (self.upstreams and self.gives_back)

    @property
    def is_live(self) -> bool:
        """Whether it has no end of its own."""
        return False


@dataclass(slots=True, eq=False)
class AsyncSource:
    """An asynchronous iterator per subscription, advanced in the subscription's task."""

    name: Name
    open: Callable[[], AsyncIterator[Any]]
    checked: bool = False
    holds: int | None = 0
    upstreams: tuple[Any, ...] = ()
    one_by_one: bool = False
    """Whether reading takes elements away from other readers, so that none may be read ahead."""

    @property
    def is_leaf(self) -> bool:
        """Whether a drain stops it, and not the flows that it reads from."""
        return True

    @property
    def is_live(self) -> bool:
        """Whether it has no end of its own."""
        return self.one_by_one


@dataclass(slots=True, eq=False)
class Flattening:
    """How a synchronous island reads a source that makes an iterable of each of its elements.

    It iterates over the elements of ``open()``, and over what *function* makes of each, as long as
    that is of one of the *plain* types, which have a length. The first other result ends this:
    ``push(downstream, elements, element, result)`` pushes what is left, beginning with *result*.
    """

    open: Callable[..., Iterator[Any]]
    """Its argument, if there is one, is a function that receives discarded elements."""
    function: Callable[[Any], Any]
    plain: frozenset[type]
    push: Callable[[Downstream[Any], Iterator[Any], Any, Any], FlowSubscription]


@dataclass(slots=True, eq=False)
class PushSource:
    """A source that pushes elements to a `Downstream` as it receives demand."""

    name: Name
    open: Callable[[Downstream[Any]], FlowSubscription]
    holds: int | None = 0
    checked: bool = False
    upstreams: tuple[Any, ...] = ()
    window: int = 0
    """The largest request that an island makes; 0 if demand is passed through."""
    details: Callable[[], str] | None = None
    """More lines about it for `explain`."""
    one_by_one: bool = False
    """Whether elements go stale while they wait, or reading takes them away from other readers: so
    that none may be read ahead."""
    lossy: bool | None = False
    """Whether what waits for it is dropped or replaced by what is newer, so that it may wait
    nowhere else; None if that is known only when it runs."""
    contents: int | None = None
    """How many elements one of its elements contains; None: as many as one of an upstream does."""
    flattening: Flattening | None = None
    """The faster way to read it, for as long as that is possible."""
    may_hand_over: Callable[[], bool] | None = None
    """Of a source whose subscribers receive the same elements: whether there is only one now, and
    will be no other, so that it may hand over what it discards."""
    pushes_lists: bool = False
    """Whether it pushes lists, to one subscriber, and never more elements than were requested: a
    subscriber that takes lists needs no island then."""
    shown_as: "PushSource | None" = None
    """The source of the flow in whose place this one runs, for reports."""

    @property
    def is_leaf(self) -> bool:
        """Whether a drain stops it, and not the flows that it reads from."""
        return self.may_hand_over is not None or not self.upstreams

    @property
    def is_live(self) -> bool:
        """Whether it has no end of its own."""
        if self.upstreams:
            return self.may_hand_over is not None and any(
                each.chain.is_live for each in self.upstreams
            )
        return self.may_hand_over is not None or self.one_by_one


@dataclass(slots=True, eq=False)
class _NotOpened:
    """The iterator, synchronous or not, of a source that could not be opened."""

    error: BaseException

    def __iter__(self) -> "_NotOpened":
        return self

    def __next__(self) -> Any:
        raise self.error

    def __aiter__(self) -> "_NotOpened":
        return self

    async def __anext__(self) -> Any:
        raise self.error


ChainSource = PullSource | AsyncSource | PushSource

Report = Callable[[str, BaseException], None]


class Reader(Protocol):
    """What iterates over a generated loop, which finds it under the name S."""

    def failure_of(self, error: BaseException, /) -> BaseException:
        """What it raises for *error*: that itself, unless it would mean something else there."""
        ...


_DEEPEST_PULL: Final = 100
"""How many iterators may be nested; deeper, there is an island for each."""
# The text of a stage that emits contains the stages that follow, so that many take quadratic time.
_MANY_STAGES, _MANY_ENDINGS = 128, 8
_MOST_STAGES, _MOST_ENDINGS = 1000, 32

_FEEDS: Final[dict[type, Any]] = {PullSource: "pull", PushSource: "push", AsyncSource: "aiter"}


_FED: Final[dict[type, str]] = {
    PullSource: "pulled",
    PushSource: "pushed",
    AsyncSource: "awaited",
}


def control_of_source(source: ChainSource, on_discard: object) -> RunControl | None:
    """The control that stops *source*, if it is opened for a run whose drain stops it."""
    if not isinstance(on_discard, RunDiscards) or not source.is_leaf:
        return None
    return None if on_discard.is_work and not source.is_live else on_discard.control


def _opened(source: Any, on_discard: OnDiscard | None) -> Any:
    """Open an iterator that gives back the elements that it discards, if it can."""
    if isinstance(source, Flattening):
        return source.open(on_discard)
    if not isinstance(source, PullSource):
        return source.open()
    control = control_of_source(source, on_discard)
    if control is not None and control.is_stopped:
        return iter(())
    opened = source.open(on_discard) if source.gives_back else source.open()
    return opened if control is None else UntilStopped(opened, control)


class Chain:
    """Immutable. One chain serves any number of subscriptions and caches its loops."""

    __slots__ = ("_kinds", "_loops", "_trail", "arguments", "awaits", "depth", "discard_hooks",
                 "input_weight", "is_live", "label", "place", "request_hooks", "source", "stages",
                 "weight")  # fmt: skip

    def __init__(self, source: ChainSource, place: Place | None = None) -> None:
        self.source: ChainSource = source
        self.place: Place | None = call_place(4) if place is None else place
        """Where the source is written."""
        self.stages: tuple[AppliedStage, ...] = ()
        self.arguments: tuple[object, ...] = ()
        self.awaits: bool = source.__class__ is AsyncSource
        self.request_hooks: tuple[tuple[int, Any], ...] = ()
        """Positions of stages with a request hook, and the hooks: last first, as demand travels."""
        self.discard_hooks: tuple[tuple[int, OnDiscard], ...] = ()
        """Positions of stages with a discard hook, and the hooks."""
        self.label: str | None = None
        """The last name that was given to it."""
        upstreams = source.upstreams
        self.depth: int = 1 + max([each.chain.depth for each in upstreams]) if upstreams else 1
        """How many chains deep the flow is nested at most."""
        self.input_weight: int = max([each.chain.weight for each in upstreams]) if upstreams else 1
        """The most elements that one element of an upstream of the source contains."""
        self.is_live: bool = (
            any(each.chain.is_live for each in upstreams) if upstreams else source.is_live
        )
        """Whether a source of the flow has no end of its own."""
        self.weight: int = self.source_weight
        """The same for one element that the last stage delivers."""
        self._kinds: tuple[InlineStage, ...] = ()
        self._loops: dict[tuple[str, str, bool], CompiledLoop] = {}
        self._trail: str = ""

    def then(self, stage: AppliedStage) -> "Chain":
        """Return the chain with one more stage."""
        # Without `__init__`, which would derive again what the source determines.
        kind, chain = stage.stage, Chain.__new__(Chain)
        chain.source, chain._loops, chain._trail = self.source, {}, ""
        chain.place = self.place
        chain.depth, chain.input_weight = self.depth, self.input_weight
        chain.is_live = self.is_live
        chain.stages = (*self.stages, stage)
        chain.arguments = self.arguments + stage.arguments
        chain.awaits = self.awaits or kind.awaits
        chain.request_hooks = self.request_hooks
        chain.discard_hooks, chain.label = self.discard_hooks, self.label
        if kind.role:
            hook: Any = stage.arguments[0]
            if kind.role == "on_request":
                chain.request_hooks = ((len(chain.stages), hook), *self.request_hooks)
            elif kind.role == "on_discard":
                chain.discard_hooks = (*self.discard_hooks, (len(chain.stages), hook))
            else:
                chain.label = hook
        chain._kinds = (*self._kinds, kind)
        chain.weight = stage.weight_after(self.weight)
        return chain

    @property
    def source_weight(self) -> int:
        """The most elements that one element of the source contains, as a list does."""
        contents = None if isinstance(self.source, AsyncSource) else self.source.contents
        return self.input_weight if contents is None else contents

    def without_name(self) -> "tuple[Chain, AppliedStage | None]":
        """The chain without its name, and the stage that names it, for a part that follows."""
        names = [stage for stage in self.stages if stage.stage.is_only_label]
        if not names:
            return self, None
        chain = Chain(self.source)
        chain.place = self.place
        for stage in self.stages:
            if not stage.stage.is_only_label:
                chain = chain.then(stage)
        return chain, names[-1]

    def is_full(self) -> bool:
        """Whether another stage would make one loop too long for the Python compiler.

        Raises ValueError where the stages cannot be divided among several loops.
        """
        count = len(self.stages)
        if count < _MANY_ENDINGS:
            return False
        endings = sum(bool(kind.before or kind.after or kind.emits_many) for kind in self._kinds)
        if self.is_pullable:
            return count >= _MANY_STAGES or endings >= _MANY_ENDINGS
        if count >= _MOST_STAGES or endings >= _MOST_ENDINGS:
            raise ValueError(
                f"a flow has at most {_MOST_STAGES} operators between two boundaries, "
                f"{_MOST_ENDINGS} of which may emit several elements or emit at the end; add "
                "boundary() between them"
            )
        return False

    @property
    def name(self) -> str:
        """The name of the source."""
        name = self.source.name
        return name if isinstance(name, str) else name()

    @property
    def shown_source(self) -> ChainSource:
        """The source that reports on it have: one that is made for a subscription has a model."""
        source = self.source
        return (isinstance(source, PushSource) and source.shown_as) or source

    @property
    def is_pullable(self) -> bool:
        """Whether it can be iterated without awaiting anything, within the depth of the stack.

        A flow with a name is subscribed to, so that it has figures.
        """
        return (
            isinstance(self.source, PullSource)
            and not self.awaits
            and not self.request_hooks
            and self.label is None
            and self.depth <= _DEEPEST_PULL
        )

    @property
    def awaitable(self) -> Callable[[], Awaitable[Any]] | None:
        """Makes the awaitable of a flow that only awaits one, so that no island is needed."""
        return None

    @property
    def is_one_by_one(self) -> bool:
        """Whether a consumer must not read ahead."""
        return self.source.one_by_one

    @property
    def is_lossy(self) -> bool | None:
        """Whether what waits for it is dropped or replaced; None: that is known when it runs."""
        return self.source.lossy if isinstance(self.source, PushSource) else False

    @property
    def is_bare(self) -> bool:
        """Whether its elements are pulled and need no processing: they can be taken in batches."""
        source = self.source
        return isinstance(source, PullSource) and source.checked and not self._kinds

    def compiled_loop(self, mode: str, delivery: str, discards: bool = False) -> CompiledLoop:
        """The generated loop for one mode and one kind of delivery."""
        found = self._loops.get((mode, delivery, discards))
        if found is None:
            feed = _FEEDS[type(self.source)]
            if isinstance(self.source, PushSource) and self.source.flattening and mode == "sync":
                feed = "flatten"
            checked = self.source.checked
            shape = LoopShape(
                feed, cast("Any", mode), cast("Any", delivery), checked, self._kinds, discards
            )
            found = self._loops[mode, delivery, discards] = compile_loop(shape)
        return found

    def discards(self, below: OnDiscard | None) -> Discards:
        """The discard hooks of a subscription; *below* is for those downstream of this chain."""
        last = len(self._kinds)
        while last and (self._kinds[last - 1].passes_all or self._kinds[last - 1].result):
            last -= 1
        source = self.source
        may_hand_over = source.may_hand_over if isinstance(source, PushSource) else None
        delivery = len(self._kinds) + 1
        return Discards(self.discard_hooks, last, below, may_hand_over, self.contents_of, delivery)

    @property
    def on_discard_at_end(self) -> OnDiscard | None:
        """What receives the elements that a consumer of the chain has requested and discards."""
        return self.discards(None).of_consumer if self.discard_hooks else None

    def contents_of(self, result: Any) -> Iterable[object]:
        """The elements of the source in *result*, which is what the last stage has emitted."""
        contents = self._kinds[-1].result if self._kinds else None
        return (result,) if contents is None else contents(result)

    def iterate(
        self, reader: Reader, report: Report, on_discard: OnDiscard | None = None
    ) -> Iterator[Any]:
        """Iterate a pullable chain once. *report* receives errors raised during a cancellation."""
        source = cast("PullSource", self.source)
        if source.checked and not self.stages:
            return cast("Iterator[Any]", _opened(source, on_discard))
        return cast("Iterator[Any]", self.run("generator", reader, report, on_discard))

    def run(
        self, mode: str, reader: Reader, report: Report, on_discard: OnDiscard | None = None
    ) -> Any:
        """Run the loop that makes a pullable chain an iterator of the given kind."""
        if on_discard is not None or self.discard_hooks:
            return self._run_discarding(mode, reader, report, self.discards(on_discard))
        loop = self.compiled_loop(mode, "yield")
        return loop.run(reader, self._opened_for(reader, loop), report, self.arguments)

    def _run_discarding(self, mode: str, reader: Reader, report: Report, discards: Discards) -> Any:
        loop = self.compiled_loop(mode, "yield", True)
        src = self._opened_for(reader, loop, discards)
        return loop.run(reader, src, report, self.arguments, discards)

    def _opened_for(
        self, reader: Reader, loop: CompiledLoop, discards: Discards | None = None
    ) -> Any:
        """The iterator; with end hooks, which also observe that it fails to open, what opens it."""
        if loop.end_hooks:
            return partial(self.open_source, loop, discards)
        try:
            return self.open_source(loop, discards)
        except BaseException as error:
            raise reader.failure_of(error)  # noqa: B904 - usually it is the same error

    def open_source(self, loop: CompiledLoop, discards: Discards | None = None) -> Any:
        """Open the iterator; one that fails does so after the elements that stages emit first."""
        source: Any = self.source
        if isinstance(source, PushSource):
            source = source.flattening
        try:
            return source.open() if discards is None else _opened(source, discards.of_source)
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if not loop.emits_first:
                raise
            return _NotOpened(error)

    def open_push(self, loop: CompiledLoop, downstream: Downstream[Any]) -> FlowSubscription | None:
        """Open the source; None if it fails after the elements that stages emit first."""
        source = cast("PushSource", self.source)
        try:
            upstream = source.open(downstream)
        except Exception as error:
            if not loop.emits_first:
                raise
            downstream.fail(error)
            return None
        if not isinstance(cast("object", upstream), FlowSubscription):
            raise TypeError(
                f"{self.name}: the function given to from_push returned {describe(upstream)},"
                " which is not a FlowSubscription; derive its class from stage.FlowSubscription"
            )
        return upstream

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

    @property
    def mode_text(self) -> str:
        """How its island runs."""
        if self.awaits:
            return "one task"
        if isinstance(self.source, PushSource) and self.source.flattening is not None:
            return "one loop, pulled as long as it flattens iterables, then pushed"
        return f"one loop, {_FED[type(self.source)]}"

    def island_text(self) -> str:
        """Its source and its stages in one line."""
        return error_notes.island_text(self)

    def trail(self) -> str:
        """All operators from the sources to this island on one line, for messages."""
        if not self._trail:
            self._trail = error_notes.trail(self)
        return self._trail

    def annotate(self, error: BaseException) -> str:
        """Note in *error* that this flow passed it on, and which stage failed; return the note."""
        return error_notes.annotate(self, error)

    def trail_of(self, error: BaseException) -> str:
        """The operators, and where *error* was raised if a flow upstream has noted that."""
        return error_notes.trail_of(self, error)

    def loops(self) -> Iterable[CompiledLoop]:
        """The loops that have been compiled for it."""
        return self._loops.values()
