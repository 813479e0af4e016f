"""The elements of one subscription that wait for demand, and the demand that waits for elements."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from .._core.demand import Demand

if TYPE_CHECKING:
    from ..stage import Downstream

__all__ = ("Delivery",)

T = TypeVar("T")


class Delivery(Generic[T]):
    """Hands a batch of elements downstream as far as demand reaches. It makes no other decision."""

    __slots__ = ("_elements", "demand", "is_processed", "remaining")

    def __init__(self) -> None:
        self.demand: Demand = Demand()
        self.is_processed: bool = True
        """Whether downstream has processed all elements that were handed over."""
        self.remaining: int = 0
        """How many elements of the batch have not been handed over."""
        self._elements: Iterator[T] = iter(())

    @property
    def is_ready(self) -> bool:
        """Whether elements can be handed over now."""
        return self.remaining > 0 and self.is_processed and bool(self.demand)

    @property
    def needs_elements(self) -> bool:
        """Whether there is demand, and the batch has been processed to its end."""
        return not self.remaining and self.is_processed and bool(self.demand)

    def request(self, n: int) -> None:
        """Add demand. A request also reports that everything was processed."""
        self.demand.add(n)
        self.is_processed = True

    def put(self, elements: Iterator[T], count: int) -> None:
        """Take the next batch; the one before has been handed over."""
        self._elements, self.remaining = elements, count

    def push(self, downstream: "Downstream[T]") -> None:
        """Hand over as many elements as demand allows; only when `is_ready`."""
        count = self.demand.take(self.remaining)
        self.remaining -= count
        self.is_processed = False
        downstream.push_from(self._elements, count)

    def clear(self) -> None:
        """Drop the elements."""
        self._elements, self.remaining = iter(()), 0
