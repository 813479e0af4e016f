"""Coordinators: operators with several upstreams, a queue or a timer.

A coordinator is the upstream of one island: it receives the island's demand and cancellation, and
pushes elements to its `Downstream`. Each of its own upstreams is an `InnerSubscriber`, which holds
the guards of a subscriber and a buffer of the elements not yet passed on. An operator overrides the
methods under "decisions"; they run one at a time, on the loop, in the subscriber's context, through
one `SerialExecutor`.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...spec import Publisher
from ..compiler.chain_sources import Downstream
from ..demand import Demand
from ..flow_subscription import FlowSubscription
from ..loop import LoopHandle
from ..serial_executor import SerialExecutor
from .inner_subscriber import InnerSubscriber

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Coordinator", "InnerSubscriber")

T = TypeVar("T")
R = TypeVar("R")


class Coordinator(FlowSubscription, Generic[R]):
    """The base of all coordinators; a subclass overrides the methods under "decisions"."""

    def __init__(self, downstream: Downstream[R]) -> None:
        self.downstream = downstream
        self.loop_handle = LoopHandle()
        self.demand = Demand()
        """Downstream's demand that has not been met yet."""
        self.inners: dict[InnerSubscriber[Any], None] = {}
        self.serial = SerialExecutor(
            capacity=None, loop_handle=self.loop_handle, on_error=self._broken
        )
        self.submit: Callable[..., object] = self.serial.submit
        self.is_closed = False
        self.emitted = 0
        """How many elements were handed over since the beginning."""
        self.processed_count = 0
        """How many of those have been processed downstream, as far as it has told."""
        self._started = False
        self._leaving: list[InnerSubscriber[Any]] = []  # whose cleanup may not be over

    # -- decisions: what a subclass says ----------------------------------------------------------
    def on_start(self) -> None:
        """The first demand has come: subscribe to what must be subscribed to."""

    def on_demand(self) -> None:
        """`demand` has grown; all that was handed over has been processed."""

    def on_processed(self) -> None:
        """`settled` has grown to all that was handed over, without new demand."""

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        """*arm* holds elements."""

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        """*arm* has completed; it may still hold elements."""

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        """*arm* has failed. By default so does the whole."""
        self.fail(error)

    def on_stop(self) -> None:
        """The whole has ended or was cancelled: let timers and the like go."""

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        """*arm* got elements, right now: by default, decide at once.

        One that would rather wait for more of them sets ``arm.told`` and looks at it soon.
        """
        self.submit(self.on_elements, inner)

    # -- acts: what a subclass does ---------------------------------------------------------------
    def subscribe_to(
        self, publisher: Publisher[T], *, request: int = 0, tag: Any = None
    ) -> InnerSubscriber[T]:
        """Subscribe to one more upstream, requesting *request* elements of it."""
        inner: InnerSubscriber[T] = InnerSubscriber(self, tag)
        if self.is_closed:  # by an upstream subscribed to a moment ago
            inner.is_done = True
            return inner
        self.inners[inner] = None
        if request:
            inner.request(request)
        return inner.subscribe(publisher)

    def release(self, inner: InnerSubscriber[Any]) -> None:
        """Forget an arm, cancelling it unless it has ended."""
        self.inners.pop(inner, None)
        inner.cancel()
        if not inner.is_clean:
            self._leaving = [*(each for each in self._leaving if not each.is_clean), inner]

    def emit(self, elements: list[R]) -> None:
        """Hand *elements* over; no more than `demand` allows."""
        if elements and not self.is_closed:
            self.demand.take(len(elements))
            self.emitted += len(elements)
            self.downstream.push(elements)

    def complete(self) -> None:
        """Complete downstream, and cancel every arm."""
        if not self.is_closed:
            self._close()
            self.downstream.complete()

    def fail(self, error: BaseException) -> None:
        """Fail downstream, and cancel every arm."""
        if self.is_closed:
            self.loop_handle.report("an error after the end of a flow", error)
        else:
            self._close()
            self.downstream.fail(error)

    def end_with(self, inner: InnerSubscriber[Any]) -> None:
        """End as *arm* did, if it has ended and holds nothing any more."""
        if inner.is_done and not inner.elements and not self.is_closed:
            if inner.error is None:
                self.complete()
            else:
                self.fail(inner.error)

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        if not self.is_closed:
            self.processed_count = self.emitted
            self.demand.add(n)
            self.submit(self._on_demand)

    def processed(self) -> None:
        """All that was handed over has been processed; the demand stays as it is."""
        if self.processed_count < self.emitted and not self.is_closed:
            self.processed_count = self.emitted
            self.submit(self.on_processed)

    def _on_demand(self) -> None:
        if not self._started:
            self._started = True
            self.on_start()
        if not self.is_closed:
            self.on_demand()

    def cancel(self) -> None:
        self._close()

    async def aclose(self) -> None:
        """Cancel, and wait until every upstream has cleaned up."""
        self._close()
        while self._leaving:
            await self._leaving.pop().aclose()

    def _close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        inners = list(self.inners)
        self.inners.clear()
        self._leaving += inners
        for inner in inners:
            inner.cancel()
        self.on_stop()

    def _broken(self, error: Exception) -> None:
        """A decision raised, mostly because a function of the user did: the flow fails (1.4)."""
        self.fail(error)
