"""How operators and sources are written, by this package and by its users.

An operator is a function of a flow that returns a flow. It takes the simplest of three shapes:

* an **inline stage** (`InlineStage`, attached with ``flow.via``): a few lines about one synchronous
  element, written into the island's loop; ``await`` in them makes the island a task;
* a **coordinator** (`_core.coordinator.Coordinator`, attached with `from_push`): several upstreams,
  a timer or a queue, with an `Downstream` to hand elements to;
* a **composition** of other operators.

A source is an iterator (`from_pull`), an asynchronous iterator (`from_async`) or something that
pushes (`from_push`). None of them holds a guard of the contract of signals: those live in the
island that they feed.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from ._core.compiler.chain import Chain
from ._core.compiler.chain_sources import (
    AsyncSource,
    ChainSource,
    Downstream,
    PullSource,
    PushSource,
)
from ._core.compiler.inline import AppliedStage, InlineStage
from ._core.loop import report
from ._core.subscription.subscribing import subscribe
from .spec import Subscriber, Subscription

if TYPE_CHECKING:
    from .flow import Flow

__all__ = ("Downstream", "Fluent", "InlineStage", "from_async", "from_pull", "from_push", "pull")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Fluent(Generic[T_co]):
    """What every flow is, before it has its vocabulary: a chain that can be subscribed to."""

    __slots__ = ("__weakref__", "chain")
    made_of: ClassVar[type[Any]]
    """The class of all flows; `flow` sets it, so that operators need not import it."""

    def __init__(self, chain: Chain) -> None:
        self.chain: Chain = chain

    def __repr__(self) -> str:
        return f"<Flow {self.chain.trail()}>"

    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """Begin a subscription: ``subscriber.on_subscribe`` is the first signal.

        The subscription belongs to the running event loop. A flow is cold: each subscription
        starts its source anew, unless the source says that it is hot.

        Rules: 1.9, 1.10, 1.11
        """
        subscribe(self.chain, subscriber)

    def via(self, stage: InlineStage, *arguments: object, holds: int | None = 0) -> "Flow[Any]":
        """Attach an inline stage, with a value for each of its parameters.

        *holds* is how many elements the stage keeps at most, None when nothing limits it.
        """
        if len(arguments) != len(stage.params):
            raise TypeError(f"{stage.name} takes {stage.params}, got {arguments!r}")
        flow = self.made_of(self.chain.then(AppliedStage(stage, arguments, holds)))
        return cast("Flow[Any]", flow)


def _flow(head: ChainSource) -> "Flow[Any]":
    return cast("Flow[Any]", Fluent.made_of(Chain(head)))


def from_pull(
    open: Callable[[], Iterator[T]],
    *,
    name: str,
    checked: bool = False,
    holds: int | None = 0,
    upstreams: tuple[Fluent[Any], ...] = (),
) -> "Flow[T]":
    """Make a flow of a synchronous iterator, opened for each subscription and pulled by demand.

    The iterator must not block. *checked* promises that it never yields None. *upstreams* are the
    flows it draws from, if any.
    """
    return _flow(PullSource(name, open, checked, holds, upstreams))


def pull(flow: Fluent[T]) -> Iterator[T]:
    """Iterate a flow whose chain `is_pullable`, in the caller's own frame.

    An error raised by a callback when the iterator is closed goes to the exception handler of the
    running loop.
    """
    return flow.chain.iterate(report)


def from_async(
    open: Callable[[], AsyncIterator[T]],
    *,
    name: str,
    checked: bool = False,
    holds: int | None = 0,
    upstreams: tuple[Fluent[Any], ...] = (),
) -> "Flow[T]":
    """Make a flow of an asynchronous iterator, opened for each subscription inside its task.

    It is advanced only while there is demand; its ``aclose`` is awaited at the end.
    """
    return _flow(AsyncSource(name, open, checked, holds, upstreams))


def from_push(
    open: Callable[[Downstream[T]], Subscription],
    *,
    name: str,
    holds: int | None = 0,
    checked: bool = False,
    upstreams: tuple[Fluent[Any], ...] = (),
    window: int = 0,
) -> "Flow[T]":
    """Make a flow of something that pushes elements when it is asked for them.

    ``open(inlet)`` is called for each subscription, on the loop, in the subscriber's context. What
    it returns is told ``request(n)`` (n ≥ 1, additive) and ``cancel()`` (at most once), on the
    loop's thread; it may have an ``aclose()`` coroutine method to wait for its cleanup. It hands
    elements to the inlet on the loop's thread, as a list (``push``) or as so many of an iterator
    (``push_from``), never more than were requested, and nothing after ``cancel()`` matters. A
    ``processed()`` method, if it has one, is called when all that was handed over has been
    processed and no more is asked for with it.

    *holds* is how many elements it keeps at most, None when nothing limits that. *upstreams* are
    the flows it draws from. With a *window* it is asked for at most that many elements at a time,
    and again only when those have been processed.
    """
    return _flow(PushSource(name, open, holds, checked, upstreams, window))
