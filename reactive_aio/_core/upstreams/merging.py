"""MergingCoordinator: several upstreams at once, merged in the order of arrival."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...spec import Publisher
from ..queues.merge_accounting import MergeAccounting
from ..run_control import UpstreamKind, Work
from .coordinator import Coordinator
from .inner_subscriber import InnerSubscriber

T = TypeVar("T")


def combine_errors(errors: Sequence[BaseException]) -> BaseException:
    """Return a single error unchanged, several as a group."""
    if len(errors) == 1:
        return errors[0]
    return BaseExceptionGroup(f"{len(errors)} sources failed", errors)


@dataclass(eq=False, repr=False)
class MergingCoordinator(Coordinator[T]):
    """Lets each upstream run *prefetch* elements ahead of what downstream has processed.

    The first failure stops all upstreams; the elements they have sent are delivered, then the flow
    fails.
    """

    prefetch: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.accounting: MergeAccounting[InnerSubscriber[Any]] = MergeAccounting(self.prefetch)
        self._arrived: list[InnerSubscriber[Any]] = []
        self.live_count: int = 0
        """How many upstreams have not ended."""
        self.errors: list[BaseException] = []

    # -- acts -------------------------------------------------------------------------------------
    def join(
        self,
        publisher: Publisher[Any],
        *,
        kind: UpstreamKind = "source",
        work: Work | None = None,
    ) -> None:
        """Subscribe to one more upstream. Its tag counts the elements recorded in `accounting`."""
        self.live_count += 1
        self.subscribe_to(publisher, request=self.prefetch, tag=0, kind=kind, work=work)

    def record(self, inner: InnerSubscriber[Any]) -> None:
        """Record the elements that *inner* has received since the last call."""
        if (new := len(inner.elements) - inner.tag) > 0:
            inner.tag += new
            self.accounting.add(inner, new)

    def stop_all(self, error: BaseException) -> None:
        """An upstream failed: stop all of them; the flow fails after the elements they sent."""
        self.errors.append(error)
        self.stop_inners(self.errors)
        for inner in self.inners:
            self.record(inner)

    def take_waiting(self, at_most: int) -> list[T]:
        """Take up to *at_most* of the elements that wait."""
        chunk: list[T] = []
        for inner, count in self.accounting.take(at_most):
            inner.tag -= count
            chunk += inner.take(count)
            self._finish_work(inner)
        return chunk

    def _finish_work(self, inner: InnerSubscriber[Any]) -> None:
        if inner.is_done and inner.is_work and not inner.elements:
            inner.finish()

    def emit_waiting(self) -> None:
        """Emit what waits, within demand, and end if nothing more can arrive."""
        self.emit(self.take_waiting(self.demand.outstanding))
        self.finish()

    def finish(self) -> None:
        """End, if no element waits and none can arrive."""
        if self.is_closed or self.accounting.waiting:
            return
        if self.errors:
            self.fail(combine_errors(self.errors))
        elif not self.live_count:
            self.complete()

    def refill(self) -> None:
        """Request more from the upstreams whose elements have been processed."""
        for inner in self.accounting.mark_processed(self.processed_count):
            if inner.is_done:
                self.release_if_empty(inner)
            elif n := self.accounting.refill(inner):
                inner.request(n)

    def release_if_empty(self, inner: InnerSubscriber[Any]) -> None:
        """Release an upstream that is done, once none of its elements is held."""
        # Its last elements may not be recorded yet.
        if not inner.elements and not self.accounting.held_by(inner):
            self.accounting.forget(inner)
            self.release(inner)
            inner.finish()

    def waiting_failure(self) -> BaseException | None:
        return combine_errors(self.errors) if self.errors else None

    # -- decisions --------------------------------------------------------------------------------
    def on_demand(self) -> None:
        self.refill()
        self.emit_waiting()

    def on_processed(self) -> None:
        self.on_demand()

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        """Wait for the end of this turn of the loop: more elements may arrive in it."""
        inner.is_notified = True
        if not self._arrived:
            self.loop_handle.call_soon(self.submit, self._on_turn)
        self._arrived.append(inner)

    def _on_turn(self) -> None:
        arrived, self._arrived = self._arrived, []
        for inner in arrived:
            inner.is_notified = False
            self.record(inner)
        self.emit_waiting()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.live_count -= 1
        self.record(inner)
        self.release_if_empty(inner)
        self._finish_work(inner)
        self.emit_waiting()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if not self.is_closed and error not in self.errors:
            self.stop_all(error)
        self.emit_waiting()
