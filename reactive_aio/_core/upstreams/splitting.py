"""SplittingCoordinator: one upstream, split into branches, each of which is a flow of its own."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ...errors import AlreadySubscribed, Interrupted, WrongLoop
from ..compiler.chain import Downstream, PushSource
from ..compiler.discards import discard
from ..demand import UNBOUNDED, Demand
from ..flow_subscription import FlowSubscription
from ..loop import LoopHandle, yield_to_loop
from .coordinator import Coordinator

T = TypeVar("T")


class BranchOwner(Protocol):
    """What owns branches, and is notified by them."""

    loop_handle: LoopHandle
    submit: Callable[..., object]

    @property
    def needs_room(self) -> bool:
        """Whether an element waits for room in a branch, so that `on_branch_demand` matters."""
        ...

    def on_branch_demand(self, branch: "Branch[Any]", /) -> None:
        """Everything that *branch* has delivered is processed: it may have room."""
        ...

    def on_branch_cancel(self, branch: "Branch[Any]", /) -> None:
        """The subscriber of *branch* has cancelled, or there will never be one."""
        ...

    def on_branch_finished(self, branch: "Branch[Any]", /) -> None:
        """*branch* has ended, and everything made of its elements has been processed."""
        ...

    def discard(self, elements: Iterable[object], /) -> None:
        """*elements* of a branch will not be delivered, and it has no subscriber for them."""
        ...


class Branch(FlowSubscription, Generic[T]):
    """A queue, and its only subscriber, which may come later. Its owner bounds what it holds."""

    __slots__ = ("_downstream", "_error", "_is_ended", "_is_read", "_owner", "demand",
                 "elements", "held_by", "is_closed", "is_finished", "is_freed", "lent", "name",
                 "tag")  # fmt: skip

    def __init__(self, owner: BranchOwner, name: str, tag: Any = None) -> None:
        self._owner = owner
        self._downstream: Downstream[T] | None = None
        self._is_ended = False
        self._is_read = False  # everything made of its elements is processed, but a call goes on
        self._error: BaseException | None = None
        self.name: str = name
        self.tag: Any = tag
        """A note of the owner about this branch."""
        self.demand: Demand = Demand()
        self.elements: list[T] = []
        """What waits for demand, or for a subscriber."""
        self.lent: int = 0
        """How many elements were delivered and are not processed yet, as far as is known."""
        self.is_closed: bool = False
        """It has delivered its end, or was cancelled."""
        self.is_finished: bool = False
        """And everything made of its elements has been processed, and no call runs with it."""
        self.held_by: int = 0
        """How many calls of a function run with its flow."""
        self.is_freed: bool = False
        """Nobody can subscribe to it any more."""

    @property
    def held(self) -> int:
        return len(self.elements) + self.lent

    @property
    def is_subscribed(self) -> bool:
        return self._downstream is not None

    @property
    def downstream(self) -> "Downstream[T] | None":
        """What takes its elements, if it has a subscriber."""
        return self._downstream

    @property
    def shared_source(self) -> FlowSubscription | None:
        return self._owner if isinstance(self._owner, FlowSubscription) else None

    @property
    def is_hungry(self) -> bool:
        """Whether its subscriber has processed everything, and has demand."""
        return self.is_subscribed and bool(self.demand) and not self.held and not self.is_closed

    # -- called by the owner ----------------------------------------------------------------------
    def put(self, elements: list[T]) -> None:
        """Deliver *elements*, as far as they are requested; the others wait."""
        if self.is_closed:
            self._discard(elements)
            return
        count, demand = len(elements), self.demand
        if self.elements or demand.outstanding < count or not count:
            self.elements += elements
            self._deliver()
            return
        assert self._downstream is not None, "there is demand"
        if demand.outstanding != UNBOUNDED:
            demand.outstanding -= count
        self.lent += count
        self._downstream.push(elements)

    def _discard(self, elements: list[T]) -> None:
        on_discard = None if self._downstream is None else self._downstream.on_discard
        if on_discard is None:
            self._owner.discard(elements)
        else:
            discard(on_discard, elements)

    def end(self, error: BaseException | None = None) -> None:
        """Complete, or fail, after the elements that wait."""
        if not self._is_ended:
            self._is_ended, self._error = True, error
            self._deliver()

    def _deliver(self) -> None:
        downstream = self._downstream
        if downstream is None or self.is_closed:
            return
        if self.elements and self.demand:
            count = self.demand.take(len(self.elements))
            chunk = self.elements[:count]
            del self.elements[:count]
            self.lent += count
            downstream.push(chunk)
        if self._is_ended and not self.elements and not self.is_closed:
            self.is_closed = True
            if self._error is None:
                downstream.complete()
            else:
                downstream.fail(self._error)

    # -- the subscription that an island holds ----------------------------------------------------
    def open(self, downstream: Downstream[T]) -> "Branch[T]":
        """Accept the subscriber."""
        loop_handle = self._owner.loop_handle
        if not loop_handle.is_running_here:
            remedy = "subscribe where the flow that it is part of runs"
            raise WrongLoop(f"{self.name}: subscribe()", remedy, is_closed=loop_handle.is_closed)
        if self.is_subscribed:
            raise AlreadySubscribed(
                f"rule 1.11: {self.name} serves one subscriber, and has one or had one; for "
                "several, subscribe a MulticastProcessor to it"
            )
        if self.is_closed:
            raise Interrupted(
                f"{self.name}: the flow that it is part of has failed or was cancelled before this "
                "one was subscribed to; subscribe to it before you leave that flow, or leave it by "
                "take() or first()"
            )
        self._downstream = downstream
        self._owner.submit(self._deliver)
        return self

    def request(self, n: int, /) -> None:
        self.lent = 0
        self.demand.add(n)
        self._owner.submit(self._on_demand)

    def processed(self) -> None:
        if self.lent:
            self.lent = 0
            if self._owner.needs_room:
                self._owner.submit(self._owner.on_branch_demand, self)

    def note_finished(self) -> Sequence[FlowSubscription]:
        self._is_read, self.lent = True, 0
        self._finish()
        return ()

    def end_call(self) -> None:
        """A call with its flow has returned."""
        self.held_by -= 1
        self._finish()

    def _finish(self) -> None:
        if self._is_read and not self.held_by and not self.is_finished:
            self.is_finished = True
            self._owner.submit(self._owner.on_branch_finished, self)

    def _on_demand(self) -> None:
        self._deliver()
        self._owner.on_branch_demand(self)

    def cancel(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.lent = 0
            discarded, self.elements = self.elements, []
            self._owner.submit(self._owner.on_branch_cancel, self)
            self._discard(discarded)

    @property
    def closing(self) -> Sequence[FlowSubscription]:
        owner = self._owner
        return (owner,) if isinstance(owner, FlowSubscription) else ()


class BranchSource(Generic[T]):
    """Opens the flow of a branch; one whose flow is freed without a subscriber is cancelled."""

    __slots__ = ("_loop_handle", "branch")

    def __init__(self, branch: Branch[T], loop_handle: LoopHandle) -> None:
        self.branch: Branch[T] = branch
        self._loop_handle = loop_handle

    def __call__(self, downstream: Downstream[T]) -> Branch[T]:
        return self.branch.open(downstream)

    def __del__(self) -> None:
        # In any thread, and inside the garbage collector: the loop decides later.
        if not self.branch.is_subscribed and not self.branch.is_closed:
            self.branch.is_freed = True
            self._loop_handle.call_soon_threadsafe(partial(_abandon, self.branch))


def branch_of(flow: Any) -> Branch[Any] | None:
    """The branch whose flow *flow* is."""
    source = flow.chain.source
    opened: object = source.open if isinstance(source, PushSource) else None
    if not isinstance(opened, BranchSource):
        return None
    return opened.branch  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


async def call_with(flow: Any, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Await ``function(*arguments)``; if *flow* is that of a branch, it is not finished before."""
    branch = branch_of(flow)
    if branch is None:
        return await function(*arguments)
    branch.held_by += 1
    try:
        return await function(*arguments)
    finally:
        branch.end_call()


def _abandon(branch: Branch[Any]) -> None:
    if not branch.is_subscribed:
        branch.cancel()
        branch.finished()


@dataclass(eq=False, repr=False)
class SplittingCoordinator(Coordinator[T]):
    """Emits a flow for each branch; an element of the upstream goes to one of them.

    When the subscriber of these flows cancels, the branches that have subscribers go on: no other
    one is opened, and the upstream is cancelled with the last of them. A branch without a
    subscriber is over then. But if the subscriber has completed, as `take` does, it goes on as well
    for as long as somebody refers to its flow.
    """

    branches: dict[Branch[Any], None] = field(default_factory=dict["Branch[Any]", None], init=False)
    """Those that are open: they take elements of the upstream."""
    is_left: bool = field(default=False, init=False)
    """Whether the subscriber of the flows has cancelled."""
    _is_leaving: bool = field(default=False, init=False)
    """Whether that was in this turn of the loop: those that it calls may still refer to flows."""

    @property
    def is_busy(self) -> bool:
        """Whether flows wait in front of the island, which awaits something for each of them.

        Any other island holds as many flows as it requests.
        """
        return self.downstream.awaits and self.processed_count < self.emitted

    # -- decisions: overridden by a subclass ------------------------------------------------------
    @property
    def needs_room(self) -> bool:
        """Whether an element may wait for room in a branch; if not, `on_branch_demand` is only
        called for new demand."""
        return True

    def on_branch_demand(self, branch: Branch[Any]) -> None:
        """Everything that *branch* has delivered is processed: it may have room."""

    def on_branch_cancel(self, branch: Branch[Any]) -> None:
        """The subscriber of *branch* has cancelled, or there will never be one."""
        self.close_branch(branch)

    def on_branch_finished(self, branch: Branch[Any]) -> None:
        """*branch* has ended, and everything made of its elements has been processed."""

    def on_left(self) -> None:
        """The subscriber of the flows has cancelled, and branches are open."""

    # -- acts -------------------------------------------------------------------------------------
    def close_branch(self, branch: Branch[Any], error: BaseException | None = None) -> None:
        """End *branch* after the elements that it holds; it takes no more."""
        self.branches.pop(branch, None)
        branch.end(error)
        if self.is_left and not self.branches:
            super().cancel()

    def complete(self) -> None:
        self._end_branches(None)
        super().complete()

    def fail(self, error: BaseException) -> None:
        """Fail the branches as well, after the elements that they hold."""
        if self.is_closed or not self._end_branches(error):
            super().fail(error)
        # Otherwise what follows has received the error from a branch, and has cancelled.

    def _end_branches(self, error: BaseException | None) -> bool:
        """End all branches; return whether what follows has cancelled everything meanwhile."""
        branches, self.branches = self.branches, {}
        for branch in branches:
            branch.end(error)
        return self.is_closed

    def cancel(self) -> None:
        self.is_left = True
        for branch in () if self.keeps_flows else list(self.branches):
            _abandon(branch)
        if self.branches:
            self._is_leaving = self.loop_handle.call_soon_threadsafe(self._has_left)
            self.submit(self.on_left)
        else:
            super().cancel()

    def _has_left(self) -> None:
        self._is_leaving = False

    # -- reports ----------------------------------------------------------------------------------
    @property
    def held_back_by(self) -> Downstream[Any] | None:
        full = next((each.downstream for each in self.branches if each.held), None)
        return full or super().held_back_by

    # -- its cleanup ------------------------------------------------------------------------------
    @property
    def _is_about_to_close(self) -> bool:
        """Whether all branches are over, so that a decision that waits cancels the upstream."""
        if self.is_closed or not self.is_left:
            return False
        return self._is_leaving or all(each.is_closed or each.is_freed for each in self.branches)

    @property
    def is_settled(self) -> bool:
        return not self._is_about_to_close and super().is_settled

    async def settle(self) -> None:
        while self._is_about_to_close:
            await yield_to_loop()
        await super().settle()
