"""Intake: where an island takes pushed elements in, and turns its demand into requests upstream."""

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...errors import RuleViolation
from ..demand import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...spec import Subscription

__all__ = ("InputQueue", "UpstreamFailed")

T = TypeVar("T")


class UpstreamFailed(Exception):
    """Carries upstream's error through the loop unchanged, be it a StopIteration."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class LazyChunk(Generic[T]):
    """Elements that do not exist before they are iterated over: the next *count* of an iterator.

    One that is dropped behind its stages at once is made where the one before it was, in memory
    that is still at hand, and no list ever holds it.
    """

    __slots__ = ("_count", "_elements")

    def __init__(self, elements: "Iterator[T]", count: int) -> None:
        self._elements = elements
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> "Iterator[T]":
        return islice(self._elements, self._count)

    def cut(self, at_most: int) -> "LazyChunk[T]":
        """Take the first of them off; the rest must not be iterated over before."""
        self._count -= at_most
        return LazyChunk(self._elements, at_most)


class InputQueue(Generic[T]):
    """The `Downstream` of one island.

    It asks upstream only when the island has run dry, for what the island still has to deliver
    less what is on its way; so what a filter drops is asked for again without any accounting per
    element. *window* caps what is on its way.
    """

    __slots__ = (
        "_error",
        "_waiting",
        "_wake",
        "_window",
        "_wrong",
        "ended",
        "outstanding",
        "upstream",
    )

    def __init__(self, wake: "Callable[[], None]", window: int) -> None:
        self._wake = wake
        self._window = window
        self._waiting: deque[list[T] | LazyChunk[T]] = deque()
        self._error: BaseException | None = None
        self.outstanding = 0
        self._wrong = False  # upstream broke a rule, and must be cancelled at the end
        self.ended = False
        self.upstream: Subscription | None = None

    # -- for the source -------------------------------------------------------------------------
    def push(self, elements: list[T], /) -> None:
        """Take *elements* in; more than were requested fail the flow (rule 1.1)."""
        if not elements or not self._takes(len(elements)):
            return
        waiting = self._waiting
        if waiting and isinstance(last := waiting[-1], list):
            last += elements
        else:
            waiting.append([*elements])
        self._wake()

    def push_from(self, elements: "Iterator[T]", count: int, /) -> None:
        """Take in the next *count* of *elements*, each of which is made when its turn comes."""
        if count and self._takes(count):
            self._waiting.append(LazyChunk(elements, count))
            self._wake()

    def _takes(self, count: int) -> bool:
        """Whether *count* more are taken in."""
        if self.ended:
            return False
        self.outstanding -= count
        if self.outstanding < 0:
            excess, self.outstanding = -self.outstanding, 0
            upstream, self.upstream = self.upstream, None
            if upstream is None:
                self._wrong = True  # it is still being opened
            else:
                upstream.cancel()
            what = f"the source sent {excess} more than were requested; it has been cancelled"
            self.fail(RuleViolation("1.1", what))
            return False
        return True

    def complete(self) -> None:
        """Let the flow complete behind what is here."""
        if not self.ended:
            self.ended = True
            self._wake()

    def fail(self, error: BaseException, /) -> None:
        """Let the flow fail behind what is here."""
        if not self.ended:
            self.ended = True
            self._error = error
            self._wake()

    # -- for the island -------------------------------------------------------------------------
    @property
    def news(self) -> bool:
        """Whether `take` has something to tell."""
        return bool(self._waiting) or self.ended

    def take(self, at_most: int) -> "list[T] | LazyChunk[T] | None":
        """Return elements, or none yet (``[]``), or that there are no more (``None``).

        What was taken is to be iterated over, once, before more is taken.
        """
        waiting = self._waiting
        if waiting:
            chunk = waiting[0]
            if len(chunk) <= at_most:
                return waiting.popleft()
            if not isinstance(chunk, list):
                return chunk.cut(at_most)
            first = chunk[:at_most]
            del chunk[:at_most]
            return first
        if not self.ended:
            return []
        if self._error is not None:
            raise UpstreamFailed(self._error)
        return None

    def ask(self, need: float) -> None:
        """Request what is missing of *need*; called when there is nothing to take."""
        upstream = self.upstream
        if upstream is None or self.ended:
            return
        wanted = int(min(max(need, 0), self._window, UNBOUNDED))
        missing = wanted - self.outstanding
        # Topping up an unbounded demand would be a request for every few elements.
        if missing > 0 and self.outstanding < UNBOUNDED // 2:
            self.outstanding += missing
            try:
                upstream.request(missing)
            except Exception as error:  # a user's source may raise (3.16)
                self._wrong = True
                self.fail(error)
        elif (processed := getattr(upstream, "processed", None)) is not None:
            processed()

    def close(self) -> Any:
        """Cancel what is upstream and return it; whatever it still pushes is ignored."""
        live = not self.ended or self._wrong
        self.ended = True
        self._wake = _nobody
        self._waiting.clear()
        upstream, self.upstream = self.upstream, None
        if upstream is not None and live:
            upstream.cancel()
        return upstream


def _nobody() -> None:
    """Wake no one: the island has closed."""
