"""The rows of a partition as the source of a flow, on the loop of the worker."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import AlreadySubscribed
from ...stage import Demand, Downstream, FlowSubscription, from_push, push_next

if TYPE_CHECKING:
    from ...flow import Flow

Convert = Callable[[Any], Iterator[Any]]
"""Makes the rows of a record batch."""

NAME: Final = "the rows of a partition"
_AT_A_TIME: Final = 256
"""Rows that are handed over at a time."""
_PART: Final = 1024
_PART_VALUES: Final = 1 << 18
"""Rows, and values, that are made at a time at most, which delays other work on the loop."""


class InputRows:
    """The source of a partition's flow: it has one subscription, for the rows are read once.

    *holds* is how many rows of a record batch wait for demand at most.
    """

    def __init__(self, convert: Convert, *, has_batches: bool, holds: int | None) -> None:
        self.convert = convert
        self.has_batches = has_batches
        self.on_wanted: Callable[[], object] = _ignore
        """Called when a row of the next record batch is requested; `feed` is the answer."""
        self._subscription: _InputSubscription | None = None
        self.flow: Flow[Any] = from_push(self._open, name=NAME, holds=holds, checked=True)

    def _open(self, downstream: Downstream[Any]) -> FlowSubscription:
        if self._subscription is not None:
            raise AlreadySubscribed(
                "rule 1.11: the rows of a partition can be read once, and are read already. "
                "Instead of the whole flow, retry the work on an element: map_async(…, retry=…). "
                "To use the rows twice, share() them."
            )
        self._subscription = _InputSubscription(downstream, self)
        return self._subscription

    def feed(self, batch: Any) -> None:
        """Take the next record batch; None at the end of the partition."""
        if self._subscription is not None:
            self._subscription.feed(batch)

    def parts(self, batch: Any) -> Iterator[Any]:
        """Cut a batch into parts whose rows are made together."""
        if self.has_batches:
            return iter((batch,) if batch.num_rows else ())
        rows = max(1, min(_PART, _PART_VALUES // max(1, batch.num_columns)))
        return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _ignore() -> None:
    """The flow is not run on the loop."""


class _InputSubscription(FlowSubscription):
    """Hands over the rows of one record batch after another, under demand."""

    def __init__(self, downstream: Downstream[Any], source: InputRows) -> None:
        self._downstream: Downstream[Any] | None = downstream
        self._source = source
        self._demand = Demand()
        self._parts: Iterator[Any] = iter(())
        self._rows: Iterator[Any] = iter(())
        self._remaining = 0  # rows of the part that were not handed over
        self._held = 0  # rows of the parts after it
        self._is_processed = True
        self._is_waiting = False  # for a record batch
        self._is_advancing = False

    # -- what the island calls --------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        self._demand.add(n)
        self.processed()

    def processed(self) -> None:
        self._is_processed = True
        self._advance()

    def cancel(self) -> None:
        self._downstream = None
        self._parts = self._rows = iter(())
        self._remaining = self._held = 0

    @property
    def held(self) -> int:
        """How many rows of the record batch have not been handed over."""
        return self._remaining + self._held

    # -- what the main thread answers -------------------------------------------------------------
    def feed(self, batch: Any) -> None:
        """Take a record batch, which was requested; None at the end."""
        downstream, self._is_waiting = self._downstream, False
        if downstream is None:
            return
        if batch is None:
            self.cancel()
            downstream.complete()
            return
        self._parts = self._source.parts(batch)
        self._held = 1 if self._source.has_batches and batch.num_rows else batch.num_rows
        self._advance()

    def _advance(self) -> None:
        """Hand over rows while there are some, and demand; this leads to requests, and here."""
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._is_processed and self._demand and self._act():
                pass
        except Exception as error:
            downstream = cast("Downstream[Any]", self._downstream)
            self.cancel()
            downstream.fail(error)
        finally:
            self._is_advancing = False

    def _act(self) -> bool:
        """Take one step; return whether another one may follow."""
        downstream = self._downstream
        if downstream is None or self._is_waiting:
            return False
        if not self._remaining and not self._next_part():
            self._is_waiting = True
            self._source.on_wanted()
            return False
        count = self._demand.take(min(self._remaining, _AT_A_TIME))
        self._remaining -= count
        self._is_processed = False
        push_next(downstream, self._rows, count)
        return True

    def _next_part(self) -> bool:
        """Make the rows of the next part of the record batch; return False if there is none."""
        part = next(self._parts, None)
        if part is None:
            return False
        self._remaining = 1 if self._source.has_batches else part.num_rows
        self._held -= self._remaining
        self._rows = self._source.convert(part)
        return True
