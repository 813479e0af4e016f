"""InputQueue: elements that an upstream pushed to an island, and the island's requests to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import length_hint
from typing import Final, Generic, Protocol, TypeVar

from ..arguments import require_error
from ..cleanup import CleanupErrors
from ..compiler.discards import OnDiscard, discard
from ..compiler.loop_runtime import UpstreamFailed
from ..demand import UNBOUNDED, too_many
from ..flow_subscription import FlowSubscription
from ..run_control import RunControl, is_drained
from .bulk_subscriber import BulkSubscriber

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _LentChunk(Generic[T]):
    """The next *count* elements of an iterator: each stays at its source until it is taken."""

    _elements: Iterator[T]
    _count: int

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return islice(self._elements, self._count)

    def split(self, at_most: int) -> "_LentChunk[T]":
        """Split off the first *at_most* elements; iterate over them before the rest."""
        self._count -= at_most
        return _LentChunk(self._elements, at_most)


class Island(Protocol):
    """What an input queue needs of its island."""

    def wake(self) -> None:
        """There are elements, or the end."""
        ...

    def resume(self, elements: tuple[object, ...], /) -> bool | None:
        """Process *elements* now, if the island waits for some.

        Return whether it has processed them, and waits again; None if it did not take them.
        """
        ...


class _Closed:
    """In place of an island that has closed."""

    def wake(self) -> None: ...

    def resume(self, _: tuple[object, ...], /) -> None: ...


_CLOSED: Final = _Closed()


@dataclass(slots=True, eq=False, repr=False)
class InputQueue(Generic[T]):
    """The `Downstream` of one island.

    It requests from upstream only when the island has no elements left: what the island still has
    to deliver, less what is in flight. So an element that a filter drops is replaced without any
    accounting per element. *window* limits what is in flight.
    """

    _island: Island
    _window: int
    awaits: bool = False
    waiting: list[list[T] | _LentChunk[T]] = field(default_factory=list["list[T] | _LentChunk[T]"])
    """The elements that were pushed and not taken yet; no list is empty. (Several lists become one,
    so it is short, and an empty deque takes 760 bytes.)"""
    lent: Iterator[T] | None = None
    """The elements that the loop has taken, and iterates over: those left have not been processed.
    (Of a list or a tuple, so that it tells how many these are.)"""
    _error: BaseException | None = None
    outstanding: int = 0
    """What was requested and has not arrived; `UNBOUNDED` stays as it is (3.17)."""
    is_lent: bool = False
    """Whether `lend` was called since upstream was last told what is needed: it may have more
    elements, and waits to be told."""
    _is_upstream_faulty: bool = False  # it broke a rule, so that `close` must cancel it
    is_ended: bool = False
    upstream: FlowSubscription | None = None
    cleanup: CleanupErrors | None = None
    on_discard: OnDiscard | None = None
    puller: BulkSubscriber | None = None
    """The subscriber, if it pulls."""
    control: RunControl | None = None
    """What stops upstream, if that is a source of a run."""

    # -- called by the source ---------------------------------------------------------------------
    def push(self, elements: list[T], /) -> None:
        """Take *elements*; more than were requested fail the flow (rule 1.1)."""
        count = len(elements)
        if not count or not self._accepts(count):
            discard(self.on_discard, elements)
            return
        waiting = self.waiting
        if waiting and isinstance(last := waiting[-1], list):
            last += elements  # and those before them have woken the island
        else:
            waiting.append([*elements])
            self._island.wake()

    def try_push(self, element: T, /) -> bool | None:
        """Process *element*, if the island waits for one; None if it has not taken it."""
        outstanding = self.outstanding
        if (
            not outstanding
            or self.waiting
            or self.is_ended
            or (self.puller is not None and self.puller.is_notified)
        ):
            return None
        if outstanding is not UNBOUNDED:
            self.outstanding = outstanding - 1
        done = self._island.resume((element,))
        if done is None:
            self.outstanding = outstanding
        return done

    def process(self) -> None:
        """Process the elements that wait, if there is demand for them."""
        if self.waiting:
            self._island.wake()

    def lend(self, elements: Iterator[T], count: int, /) -> None:
        """Let the loop take the next *count* of *elements*: each stays at its source until then.

        The island is not woken for a subscriber that is going to pull.
        """
        if count and self._accepts(count):
            self.waiting.append(_LentChunk(elements, count))
            self.is_lent = True
            if self.puller is None or not self.puller.is_notified:
                self._island.wake()

    def _accepts(self, count: int) -> bool:
        """Whether *count* more elements are accepted."""
        if self.is_ended:
            return False
        if self.outstanding is UNBOUNDED:
            return True
        self.outstanding -= count
        if self.outstanding < 0:
            excess, self.outstanding = -self.outstanding, 0
            upstream, self.upstream = self.upstream, None
            if upstream is None:
                self._is_upstream_faulty = True  # it pushes while it is being opened
            else:
                upstream.cancel()
            self.fail(too_many(excess))
            return False
        return True

    def complete(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self._island.wake()

    def fail(self, error: BaseException, /) -> None:
        require_error("fail()", error)
        if not self.is_ended:
            self.is_ended = True
            self._error = error
            self._island.wake()

    # -- called by the run ------------------------------------------------------------------------
    def stop_source(self) -> None:
        """Complete upstream, after the elements that it has read."""
        upstream = self.upstream
        if upstream is None or self.is_ended:
            return
        try:
            if not upstream.stop_source():
                upstream.cancel()
                self.complete()
        except Exception as error:  # 3.15: it is released when the island closes
            self.fail(error)

    @property
    def reader(self) -> Island:
        """What takes its elements, for reports."""
        return self._island

    # -- called by the island ---------------------------------------------------------------------
    @property
    def has_news(self) -> bool:
        """Whether `take` would return elements or the end."""
        return bool(self.waiting) or self.is_ended

    @property
    def is_over(self) -> bool:
        """Whether the loop has processed all elements, and none will follow."""
        return self.is_ended and not self.waiting and not length_hint(self.lent or ())

    @property
    def untold_failure(self) -> BaseException | None:
        """The failure that the loop has not reached, if the run was drained."""
        if not is_drained(self.on_discard):
            return None
        if self.upstream is None or self.is_ended:
            return self._error
        return self.upstream.waiting_failure()

    @property
    def held(self) -> int:
        """How many elements wait here: those that were lent are still at the source."""
        return sum(len(chunk) for chunk in self.waiting if isinstance(chunk, list))

    def take(self, at_most: int) -> "list[T] | _LentChunk[T] | None":
        """Return elements, or None at the end; called when there are some, or it has ended.

        The caller iterates over the elements once, before it takes more.
        """
        waiting = self.waiting
        if waiting:
            chunk = waiting[0]
            if len(chunk) <= at_most:
                return waiting.pop(0)
            if not isinstance(chunk, list):
                return chunk.split(at_most)
            first = chunk[:at_most]
            del chunk[:at_most]
            return first
        error, self._error = self._error, None
        if error is not None:
            raise UpstreamFailed(error)
        return None

    def request_needed(self, needed: float) -> None:
        """Request what is missing of *needed*; called when there is nothing to take."""
        upstream = self.upstream
        if upstream is None or self.is_ended:
            return
        self.is_lent = False
        wanted = self._window if needed > self._window else int(needed) if needed > 0 else 0
        missing = wanted - self.outstanding
        # Refilling an unbounded demand would cost a request every few elements.
        if missing > 0 and self.outstanding < UNBOUNDED // 2:
            # The same object, which is compared by its identity where each element matters.
            outstanding = self.outstanding + missing
            self.outstanding = UNBOUNDED if outstanding == UNBOUNDED else outstanding
            upstream.request(missing)
        else:
            upstream.processed()

    def upstream_raised(self, error: BaseException) -> None:
        """A user's source raised in ``request`` (3.16): it is cancelled when the island closes."""
        self._is_upstream_faulty = True
        self.fail(error)

    def close(self, keeps_flows: bool = False) -> FlowSubscription | None:
        """Cancel upstream, or leave it, and return it; anything it still pushes is discarded."""
        if self.control is not None:
            self.control.remove(self)
        is_live = not self.is_ended or self._is_upstream_faulty
        self.is_ended = True
        self._island = _CLOSED
        self.puller = None
        left = [self.lent or (), *self.waiting]
        self.lent = None
        self.waiting.clear()  # the loop refers to it
        upstream, self.upstream = self.upstream, None
        if upstream is not None and is_live:
            upstream.leave() if keeps_flows else upstream.cancel()
        if self.on_discard is not None:
            discard(self.on_discard, chain.from_iterable(left))
        return upstream
