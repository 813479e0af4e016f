"""The subscription to what Spark writes: one chunk of rows at a time, when there is demand."""

from typing import TYPE_CHECKING, Any

from ..._core.flow_subscription import FlowSubscription
from ..delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...stage import Downstream

__all__ = ("WriteSubscription",)


class WriteSubscription(FlowSubscription):
    """One subscription. Every method runs on the loop's thread."""

    def __init__(
        self,
        downstream: "Downstream[Any]",
        *,
        on_demand: "Callable[[], object]",
        on_end: "Callable[[], object]",
    ) -> None:
        self._downstream: Downstream[Any] | None = downstream
        self._on_demand = on_demand
        self._on_end = on_end
        self._delivery = Delivery[Any]()

    @property
    def is_active(self) -> bool:
        """Whether it has neither ended nor been cancelled."""
        return self._downstream is not None

    @property
    def needs_rows(self) -> bool:
        """Whether all rows so far have been processed, and one more is requested."""
        return self._delivery.needs_elements

    # -- the connections --------------------------------------------------------------------------
    def put(self, rows: "Iterator[Any]", count: int) -> None:
        """Take a chunk of rows; only while it `needs_rows`."""
        self._delivery.put(rows, count)
        self._advance()

    def end(self, error: BaseException | None = None) -> None:
        """Complete, or fail with *error*."""
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return
        self._on_end()
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        self._delivery.request(n)
        self._advance()

    def processed(self) -> None:
        self._delivery.is_processed = True
        self._advance()

    def cancel(self) -> None:
        if self._downstream is not None:
            self._downstream = None
            self._delivery.clear()
            self._on_end()

    def _advance(self) -> None:
        if self._downstream is None:
            return
        if self._delivery.is_ready:
            self._delivery.push(self._downstream)
        elif self._delivery.needs_elements:
            self._on_demand()
