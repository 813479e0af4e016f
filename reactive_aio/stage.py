"""How operators and sources are written, by this package and by its users.

An operator is a function that takes a flow and returns a flow. It has the simplest of three shapes:

* an **inline stage** (`InlineStage`, attached with ``flow.via``): a few lines about one synchronous
  element, compiled into the island's loop; ``await`` in them makes the island run in a task;
* a **coordinator** (a subclass of `Coordinator`, attached with `from_push`): several upstreams, a
  queue or a timer. `ForwardingCoordinator` has one upstream, `SequentialCoordinator` one after
  another, `MergingCoordinator` several at once, `WorkerPool` several tasks;
  `SplittingCoordinator` makes several flows of one;
* a **composition** of other operators.

A source is an iterator (`from_pull`), an asynchronous iterator (`from_async`) or a
`FlowSubscription` that pushes (`from_push`). None of them contains a guard of the contract of
signals: the guards are in the island that they feed and in `InnerSubscriber`.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, TypeVar, cast

from ._core.arguments import (
    Duration,
    describe_given,
    require_callable,
    require_int,
    require_sync_callable,
    to_seconds,
)
from ._core.compiler.chain import (
    AsyncSource,
    Chain,
    Downstream,
    Flattening,
    Name,
    PullSource,
    PushSource,
    push_next,
)
from ._core.compiler.discards import OnDiscard
from ._core.compiler.inline import AppliedStage, InlineStage, describe
from ._core.compiler.places import call_place
from ._core.demand import UNBOUNDED, Demand
from ._core.failures import PLAIN_READER
from ._core.flow_subscription import FlowSubscription
from ._core.loop import LoopHandle, report
from ._core.run_control import (
    NestedFlow,
)
from ._core.subscription.subscribing import subscribe
from ._core.upstreams.coordinator import Coordinator
from ._core.upstreams.inner_subscriber import InnerSubscriber
from ._core.upstreams.merging import MergingCoordinator
from ._core.upstreams.sequential import ForwardingCoordinator, SequentialCoordinator
from ._core.upstreams.splitting import Branch, BranchSource, SplittingCoordinator
from ._core.upstreams.timer import Timer
from ._core.upstreams.worker_pool import WorkerPool
from .spec import Subscriber

if TYPE_CHECKING:
    from datetime import datetime
    from types import EllipsisType

    from .flow import Flow, GroupedFlow, WindowFlow

__all__ = (
    "UNBOUNDED",
    "Branch",
    "BranchSource",
    "Coordinator",
    "Demand",
    "Downstream",
    "Duration",
    "FlowSubscription",
    "Fluent",
    "ForwardingCoordinator",
    "InlineStage",
    "InnerSubscriber",
    "LoopHandle",
    "MergingCoordinator",
    "OnDiscard",
    "SequentialCoordinator",
    "SplittingCoordinator",
    "Timer",
    "WorkerPool",
    "describe",
    "from_async",
    "from_pull",
    "from_push",
    "pull",
    "push_next",
    "require_callable",
    "require_int",
    "require_sync_callable",
    "to_seconds",
)

T = TypeVar("T")
K = TypeVar("K")
T_co = TypeVar("T_co", covariant=True)


def _undeclared(*_: object) -> Any:
    raise RuntimeError("no class of flows is declared yet; import reactive_aio.flow first")


_NONE_GIVEN: Any = None
"""In place of a subscriber, so that `subscribe(on_next=f)` is told what to write."""


class Fluent(NestedFlow, Generic[T_co]):
    """A chain that can be subscribed to: what every flow is, before it has operators.

    The one subclass that declares ``class Flow(Fluent[T], is_vocabulary=True)`` is the class of
    every flow that a source or an operator returns; the one with ``is_grouped=True`` is that of
    flows that have a key, and the one with ``is_timed=True`` that of windows of time.
    """

    __slots__ = ("__weakref__", "chain")
    _vocabulary: ClassVar[Callable[..., Any]] = _undeclared
    _grouped: ClassVar[Callable[..., Any]] = _undeclared
    _timed: ClassVar[Callable[..., Any]] = _undeclared

    def __init_subclass__(
        cls, *, is_vocabulary: bool = False, is_grouped: bool = False, is_timed: bool = False
    ) -> None:
        super().__init_subclass__()
        if is_vocabulary:
            Fluent._vocabulary = cls
        if is_grouped:
            Fluent._grouped = cls
        if is_timed:
            Fluent._timed = cls

    def __init__(self, chain: Chain) -> None:
        if not isinstance(cast("object", chain), Chain):
            kind = type(chain).__name__
            raise TypeError(
                f"{type(self).__name__}({kind}) makes no flow; call a source: just(...) for given "
                "elements, from_iterable(...), from_aiter(...), create(...) for callbacks"
            )
        self.chain: Chain = chain

    def __repr__(self) -> str:
        return f"<Flow {self.chain.trail()}>"

    def subscribe(
        self,
        subscriber: Subscriber[T_co] = _NONE_GIVEN,
        /,
        *callbacks: Never,
        **named: Never,
    ) -> None:
        """Start a subscription: ``subscriber.on_subscribe`` is the first signal.

        The subscription belongs to the running event loop. A flow is cold: each subscription opens
        its source again, unless the source is documented as hot.

        Demand: what the subscriber requests.
        Completes: ``on_complete`` is signalled, after the elements.
        Fails: ``on_error`` is signalled, at once with `NoRunningLoop` where no loop runs. A
            subscriber that raises is cancelled, and its error is reported (rule 2.13).
        Cancels: ``subscription.cancel()``, from any thread.
        Holds: nothing besides what the operators hold (``bound()``).
        Rules: 1.9, 1.10, 1.11
        """
        if callbacks or named:
            raise TypeError(
                "rule 1.9: subscribe() takes one subscriber, an object with on_subscribe, on_next, "
                "on_error and on_complete; functions are given to operators: "
                "await flow.do_on_error(g).do_on_complete(h).for_each(f)"
            )
        subscribe(self.chain, subscriber)

    def via(
        self, stage: InlineStage, *arguments: object, holds: int | None = 0, contents: int = 1
    ) -> "Flow[Any]":
        """Attach an inline stage, with a value for each of its parameters.

        *holds* is how many elements the stage holds at most, None if unlimited; *contents* is how
        many of them each list contains that it delivers, if these are lists.
        """
        try:
            params = stage.params
        except AttributeError:
            raise TypeError(
                f"via: stage must be an InlineStage, not {describe_given(stage)}; to apply a "
                "function of a flow: transform(function)"
            ) from None
        if len(arguments) != len(params):
            raise TypeError(
                f"via: {stage.name} takes a value for each of its params, "
                f"({', '.join(params)}), not {len(arguments)} values"
            )
        chain = _continued(self) if self.chain.is_full() else self.chain
        return flow_of(chain.then(AppliedStage(stage, arguments, holds, contents, call_place(3))))


def _continued(flow: Fluent[Any]) -> Chain:
    """A chain that iterates *flow*, for more stages than one loop can have."""
    open = partial(flow.chain.iterate, PLAIN_READER, report)
    source = PullSource("(continued)", open, checked=True, upstreams=(flow,), gives_back=True)
    return Chain(source)


def flow_of(chain: Chain) -> "Flow[Any]":
    """Make a flow of *chain*."""
    flow: Flow[Any] = Fluent._vocabulary(chain)
    return flow


def from_pull(
    open: Callable[..., Iterator[T]],
    *,
    name: Name,
    checked: bool = False,
    holds: int | None = 0,
    upstreams: tuple[Fluent[Any], ...] = (),
    one_by_one: bool = False,
    contents: int | None = None,
    gives_back: bool = False,
    continues: bool = False,
) -> "Flow[T]":
    """Make a flow of a synchronous iterator, opened once per subscription and pulled by demand.

    The iterator must not block. *name* may be a function that makes it, for a source that is made
    for each element of another flow. *checked* promises that the iterator never yields None.
    *upstreams* are the flows that it reads from. *one_by_one* is that of `from_async`,
    *contents* that of `from_push`. *gives_back* says that *open* accepts one argument, a function
    that receives discarded elements: it passes this function to `pull`, and calls it with each
    element that the iterator has taken and will not yield. *continues* says that it goes on with an
    iterator of a flow, which a drain stops itself.
    """
    source = PullSource(
        name,
        open,
        checked,
        holds,
        upstreams,
        one_by_one,
        contents,
        gives_back=gives_back,
        continues=continues,
    )
    return flow_of(Chain(source))


def pull(flow: Fluent[T], on_discard: OnDiscard | None = None) -> Iterator[T]:
    """Iterate a flow whose ``chain.is_pullable`` is true, in the caller's frame.

    What an end hook raises when the iterator is closed goes to the loop's exception handler.
    *on_discard* receives each element that the flow discards.
    """
    return flow.chain.iterate(PLAIN_READER, report, on_discard)


def from_async(
    open: Callable[[], AsyncIterator[T]],
    *,
    name: Name,
    checked: bool = False,
    holds: int | None = 0,
    upstreams: tuple[Fluent[Any], ...] = (),
    one_by_one: bool = False,
) -> "Flow[T]":
    """Make a flow of an asynchronous iterator, opened once per subscription, inside its task.

    The iterator advances only while there is demand; its ``aclose`` is awaited at the end. Say
    *one_by_one* where reading takes elements away from other readers: ``async for`` then reads
    none ahead.
    """
    return flow_of(Chain(AsyncSource(name, open, checked, holds, upstreams, one_by_one)))


def from_push(
    open: Callable[[Downstream[T]], FlowSubscription],
    *,
    name: Name,
    holds: int | None = 0,
    checked: bool = False,
    upstreams: tuple[Fluent[Any], ...] = (),
    window: int = 0,
    one_by_one: bool | None = None,
    lossy: "bool | EllipsisType | None" = ...,
    contents: int | None = None,
    flattening: Flattening | None = None,
    may_hand_over: Callable[[], bool] | None = None,
    pushes_lists: bool = False,
) -> "Flow[T]":
    """Make a flow of a source that pushes elements as it receives demand.

    ``open(downstream)`` is called once per subscription, on the loop, in the subscriber's context.
    The subscription that it returns receives ``request(n)`` (n ≥ 1, additive) and ``cancel()`` (at
    most once) on the loop's thread. It pushes lists of elements (``downstream.push``) on the loop's
    thread, never more than were requested; what it pushes after ``cancel()`` is ignored.
    `push_next` pushes the next elements of an iterator.

    *holds* is how many elements the source holds at most, None if unlimited. *upstreams* are the
    flows that it reads from. With a *window*, each request is at most that large, and the next one
    follows when those elements have been processed. With *one_by_one*, ``async for`` reads no
    element ahead: elements go stale while they wait, or reading takes them away from other readers.
    By default it is true if it is for an upstream; say False for an operator that reads ahead
    itself. *lossy* is for a source where what waits is dropped, or replaced by what is newer: a
    clock, or an overflow policy. What passes its elements on then asks for the next one when the
    last has been processed. By default it is true if it is for an upstream, unless *one_by_one* is
    False; say False for an operator whose elements wait in a queue of its own, and None where the
    upstream is known only when the flow runs. *contents* is how many elements one of its elements
    contains, if these are lists; by default as many as an element of an upstream does. A
    *flattening* is a faster way to read it, for a source that makes an iterable of each of its
    elements. *may_hand_over* is for a source whose subscribers receive the same elements: it
    returns whether there is only one now and will be no other, so that its ``do_on_discard`` may
    receive those that wait for it. With *pushes_lists*, it only calls ``push``, and an operator
    that reads it takes whole lists.
    """
    if lossy is ...:
        passed_on = () if one_by_one is False else upstreams
        known = {upstream.chain.is_lossy for upstream in passed_on}
        lossy = True if True in known else None if None in known else False
    if one_by_one is None:
        one_by_one = any(upstream.chain.is_one_by_one for upstream in upstreams)
    source = PushSource(
        name,
        open,
        holds,
        checked,
        upstreams,
        window,
        None,
        one_by_one,
        lossy,
        contents,
        flattening,
        may_hand_over=may_hand_over,
        pushes_lists=pushes_lists,
    )
    return flow_of(Chain(source))


def grouped_from_push(
    open: Callable[[Downstream[T]], FlowSubscription],
    key: K,
    *,
    name: Name,
    holds: int,
    pushes_lists: bool = False,
) -> "GroupedFlow[K, T]":
    """Like `from_push`, for the flow of the elements with *key*, none of which is None."""
    chain = Chain(PushSource(name, open, holds, checked=True, pushes_lists=pushes_lists))
    flow: GroupedFlow[K, T] = Fluent._grouped(chain, key)
    return flow


def timed_from_push(
    open: Callable[[Downstream[T]], FlowSubscription],
    start: "datetime",
    end: "datetime",
    *,
    name: Name,
    holds: int,
    pushes_lists: bool = False,
) -> "WindowFlow[T]":
    """Like `from_push`, for the flow of the elements of a time, none of which is None."""
    chain = Chain(PushSource(name, open, holds, checked=True, pushes_lists=pushes_lists))
    flow: WindowFlow[T] = Fluent._timed(chain, start, end)
    return flow
