"""Joining: several upstreams at once, into one way down, in the order of arrival."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ...spec import Publisher
from ..compiler.chain_sources import Downstream
from ..queues.merge_accounting import MergeAccounting
from .coordinator import Coordinator, InnerSubscriber

__all__ = ("MergingCoordinator", "combine_errors")

T = TypeVar("T")


def combine_errors(errors: Sequence[BaseException]) -> BaseException:
    """One error as it is, several as a group."""
    if len(errors) == 1:
        return errors[0]
    return BaseExceptionGroup(f"{len(errors)} sources failed", errors)


class MergingCoordinator(Coordinator[T]):
    """Lets each upstream be *prefetch* elements ahead of what downstream has processed.

    The first failure stops all upstreams; what they had sent is delivered, then the flow fails.
    """

    def __init__(self, downstream: Downstream[T], prefetch: int) -> None:
        super().__init__(downstream)
        self.prefetch = prefetch
        self.ledger: MergeAccounting[InnerSubscriber[Any]] = MergeAccounting(prefetch)
        self._fresh: list[InnerSubscriber[Any]] = []
        self.live = 0
        """How many upstreams have not ended."""
        self.errors: list[BaseException] = []

    # -- acts -------------------------------------------------------------------------------------
    def join(self, publisher: Publisher[Any]) -> None:
        """Take one more upstream in. Its tag counts what the ledger knows of its elements."""
        self.live += 1
        self.subscribe_to(publisher, request=self.prefetch, tag=0)

    def account(self, inner: InnerSubscriber[Any]) -> None:
        """Enter into the ledger what *arm* has sent."""
        if (new := len(inner.elements) - inner.tag) > 0:
            inner.tag += new
            self.ledger.add(inner, new)

    def halt(self, error: BaseException) -> None:
        """Something failed: stop all upstreams; `finish` fails behind what they have sent."""
        self.errors.append(error)
        for inner in self.inners:
            if inner.error is not None and inner.error not in self.errors:
                self.errors.append(inner.error)  # it has failed as well, and waits to be heard
            inner.stop()
            self.account(inner)

    def waiting(self, at_most: int) -> list[T]:
        """Take up to *at_most* of the elements that wait."""
        chunk: list[T] = []
        for inner, count in self.ledger.take(at_most):
            inner.tag -= count
            chunk += inner.take(count)
        return chunk

    def send(self) -> None:
        """Hand over what waits, as far as there is demand; end if that was all."""
        self.emit(self.waiting(self.demand.outstanding))
        self.finish()

    def finish(self) -> None:
        """End, if nothing waits and nothing can come."""
        if self.is_closed or self.ledger.waiting:
            return
        if self.errors:
            self.fail(combine_errors(self.errors))
        elif not self.live:
            self.complete()

    def settle(self) -> None:
        """Ask those upstreams for more whose elements have been processed."""
        for inner in self.ledger.settle(self.processed_count):
            if inner.is_done:
                self.reap(inner)
            elif refill := self.ledger.refill(inner):
                inner.request(refill)

    def reap(self, inner: InnerSubscriber[Any]) -> None:
        """Forget an upstream that has ended, once nothing of it is held."""
        # It may have ended without having been heard: then it has elements that are not accounted.
        if not inner.elements and not self.ledger.holds(inner):
            self.ledger.forget(inner)
            self.release(inner)

    # -- decisions --------------------------------------------------------------------------------
    def on_demand(self) -> None:
        self.settle()
        self.send()

    def on_processed(self) -> None:
        self.on_demand()

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        """Wait for the end of this turn of the loop: more may come, also from the others."""
        inner.is_notified = True
        if not self._fresh:
            self.loop_handle.call_soon(self.submit, self._arrived)
        self._fresh.append(inner)

    def _arrived(self) -> None:
        fresh, self._fresh = self._fresh, []
        for inner in fresh:
            inner.is_notified = False
            self.account(inner)
        self.send()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.live -= 1
        self.account(inner)
        self.reap(inner)
        self.send()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if not self.is_closed and error not in self.errors:
            self.halt(error)
        self.send()
