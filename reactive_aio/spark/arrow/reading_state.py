"""What a subscription in mode ``"arrow"`` does next. No I/O: `subscription` carries it out.

The life of a window::

    LAUNCHED ──served──▶ READABLE ──ended──▶ ENDED ──confirming──▶ CONFIRMING ──confirmed──▶ gone
        └──failed──▶ FAILED

Several windows may be launched; one at a time is read. Windows are read in their order,
or in the order in which their jobs end.

A window has as many partitions as demand covers. A job takes some 14 ms however little it computes,
so several partitions share one; but a job must not compute much that is never requested, and its
rows wait in the driver's JVM until they are read. So the first jobs have one partition each. They
show how many elements a partition has, and how many bytes; from then on a job is as large as
demand, *largest* and the memory allow, and at most twice as large as the one before. Besides, while
there is demand, as many elements as have been read are expected to be requested: `async for` and
workers request few at a time, and Spark would be idle while they process them. Under unbounded
demand it is at most half of the remaining partitions, since Spark has nothing to compute while the
last rows are read. Record batches are small until the size of a row is known, and have few rows
where rows are large.

What was read may say nothing of what follows: empty partitions, and then large ones. Spark refuses
a job whose results are larger together than its driver accepts. Its partitions are computed again,
by jobs of half as many, and no later job has more.
"""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from math import ceil, inf
from operator import attrgetter
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from ..._core.demand import Demand

T = TypeVar("T")

AT_A_TIME: Final = 256
"""Elements that are made and handed over at a time: few, so that the memory of one list is used
again for the next, and other work on the loop is not delayed."""
AHEAD: Final = 2
"""How many windows may be in flight beside the one that is read, if demand covers them."""
MEMORY_LIMIT: Final = 32 << 20
"""Bytes that a job of more than one partition may leave waiting in the JVM, approximately."""
_BATCH_BYTES: Final = 1 << 20  # of a record batch that has more rows than the least, about
_LARGE_BATCH_BYTES: Final = 8 << 20  # of a record batch, about, however few rows that are
_SINGLE_JOBS: Final = 2  # jobs of one partition, before they grow
_SMALLEST_LAST: Final = 4  # partitions: near the end, smaller jobs cost more than they save
_UNMEASURED_JOBS: Final = 2  # jobs beside another one, before the size of a partition is known


class BatchSizes(NamedTuple):
    """How many rows a record batch has, at least and at most; fewer where rows are very large."""

    least: int
    most: int


# -- windows of partitions ------------------------------------------------------------------------
class Phase(Enum):
    """The progress of one window."""

    LAUNCHED = auto()  # its job runs
    READABLE = auto()  # the JVM serves its rows
    FAILED = auto()  # its job has failed
    ENDED = auto()  # its connection has ended
    CONFIRMING = auto()  # Spark is asked whether that was the end of its rows


@dataclass(eq=False, slots=True)
class Window:
    """The partitions of one job, the rows of its record batches, and its progress."""

    start: int
    stop: int
    batch: int
    elements: int = 0
    rows: int = 0
    bytes: int = 0
    whole_partitions: int = 0
    """Partitions that were read to their end, if their ends are marked."""
    phase: Phase = Phase.LAUNCHED
    error: Exception | None = None
    """What its job, or its connection, has failed with."""

    @property
    def partitions(self) -> int:
        return self.stop - self.start

    @property
    def current(self) -> int:
        """The partition that is read now, if the ends of partitions are marked."""
        return self.start + self.whole_partitions


@dataclass(eq=False, slots=True)
class PartitionWindows:
    """Cuts *partitions* into windows, in their order."""

    partitions: int
    largest: int
    batch_sizes: BatchSizes
    _next: int = field(default=0, init=False)  # the first partition that was in no window yet
    _again: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]], init=False)
    _launched: int = field(default=0, init=False)  # windows
    _in_flight: dict[Window, None] = field(default_factory=dict[Window, None], init=False)
    # The largest averages of a window that was read; estimates that are too low would launch
    # windows without demand.
    _elements_per_partition: float | None = field(default=None, init=False)
    _bytes_per_partition: float = field(default=0.0, init=False)
    _bytes_per_row: float = field(default=0.0, init=False)

    @property
    def is_exhausted(self) -> bool:
        """Whether every partition is in a window."""
        return self._next >= self.partitions and not self._again

    def launch(self, outstanding: float, ahead: int, delivered: int = 0) -> Window | None:
        """Return the next window, or None if demand does not reach it yet.

        *outstanding* is the undelivered demand, infinite if unbounded; *ahead* is the number of
        windows that may be in flight beside this one. A reader of *delivered* elements is expected
        to read as many again, unless a window may have one partition only. Before a quarter of that
        is left in flight, no window is launched for it: windows would be small.
        """
        if self._again:
            return self._launch_again(ahead)
        others = ahead if self._bytes_per_partition else min(ahead, _UNMEASURED_JOBS)
        if self.is_exhausted or len(self._in_flight) > others:
            return None
        further = delivered if self.largest > 1 else 0
        uncovered = outstanding if outstanding == inf else outstanding - self._expected_elements()
        if uncovered <= -further / 4:
            return None
        uncovered += further
        stop = min(self.partitions, self._next + self._size(uncovered))
        waiting = stop - self._next + sum(other.partitions for other in self._in_flight)
        if self._in_flight and waiting * self._bytes_per_partition > (1 + ahead) * MEMORY_LIMIT:
            return None
        window = self._begin(self._next, stop)
        self._next = stop
        return window

    def _begin(self, start: int, stop: int) -> Window:
        window = Window(start, stop, self._batch())
        self._launched += 1
        self._in_flight[window] = None
        return window

    def _launch_again(self, ahead: int) -> Window | None:
        """Launch a part of a window that was split; beside all others, if it is to be read next."""
        start, stop = self._again[0]
        if len(self._in_flight) > ahead and not self.is_behind_a_split(
            min(self._in_flight, key=_START)
        ):
            return None
        end = min(stop, start + self.largest)
        self._again[:1] = [(end, stop)] if end < stop else []
        return self._begin(start, end)

    def is_behind_a_split(self, window: Window) -> bool:
        """Whether partitions before *window* have to be computed again."""
        return bool(self._again) and self._again[0][0] < window.start

    def split(self, window: Window) -> None:
        """The results of *window* are too large for one job: compute them by smaller ones."""
        del self._in_flight[window]
        self.largest = max(1, min(self.largest, window.partitions // 2))
        insort(self._again, (window.start, window.stop))

    def finish(self, window: Window) -> None:
        """Record that *window* has been read to its end, and measure it."""
        del self._in_flight[window]
        elements = window.elements / window.partitions
        self._elements_per_partition = max(self._elements_per_partition or 0.0, elements)
        self._bytes_per_partition = max(self._bytes_per_partition, window.bytes / window.partitions)
        if window.rows:
            self._bytes_per_row = max(self._bytes_per_row, window.bytes / window.rows)

    def _expected_elements(self) -> float:
        """Estimate how many elements the windows in flight will still bring."""
        each = self._elements_per_partition
        if each is None:
            return inf if self._in_flight else 0.0
        return sum(
            max(0.0, window.partitions * each - window.elements) for window in self._in_flight
        )

    def _batch(self) -> int:
        """Return the number of rows of a record batch of the next window."""
        least, most = self.batch_sizes
        if not self._bytes_per_row:
            return least
        rows = min(most, max(least, int(_BATCH_BYTES / self._bytes_per_row)))
        return max(1, min(rows, int(_LARGE_BATCH_BYTES / self._bytes_per_row)))

    def _size(self, uncovered: float) -> int:
        """Return the number of partitions of the next window."""
        grown = 1 << max(0, self._launched + 1 - _SINGLE_JOBS)
        size = min(grown, self.largest)
        if self._elements_per_partition:
            size = ceil(min(uncovered / self._elements_per_partition, size))
        if self._bytes_per_partition:
            size = min(size, int(MEMORY_LIMIT / self._bytes_per_partition))
        if uncovered == inf:
            size = min(size, max(_SMALLEST_LAST, ceil((self.partitions - self._next) / 2)))
        return max(1, size)


_START: Final = attrgetter("start")


# -- the elements of a batch ----------------------------------------------------------------------
class Receiver(Protocol[T]):
    """What elements are handed over to."""

    def push(self, elements: list[T], /) -> None:
        """Take *elements*, which were requested."""


class HeldElements(Generic[T]):
    """The elements of a record batch that wait for demand, of which a part is made when due."""

    __slots__ = ("_elements", "_made", "_parts", "remaining")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop them, and what they are made of."""
        self._parts: Iterator[tuple[Iterator[T], int]] = iter(())
        self._elements: Iterator[T] = iter(())
        self._made = 0  # of a part, and not handed over
        self.remaining: int = 0
        """How many have not been handed over."""

    def put(self, parts: Iterator[tuple[Iterator[T], int]], count: int) -> None:
        """Take those of the next batch, in parts; the ones before have been handed over."""
        self._parts, self.remaining = parts, count

    def push(self, receiver: "Receiver[T]", demand: Demand) -> int:
        """Hand over as many as *demand* allows, and return their number.

        Of elements of which one cannot be made, those before it are handed over.
        """
        if not self._made:
            self._elements, self._made = next(self._parts)
        count = demand.take(min(self._made, AT_A_TIME))
        elements = self._elements
        self._made -= count
        self.remaining -= count
        if not self.remaining:
            self.clear()  # the parts hold their batch
        made = list[T]()
        try:
            made.extend(islice(elements, count))
        finally:
            receiver.push(made)
        return count


# -- the subscription -----------------------------------------------------------------------------
class Action(Enum):
    """What the subscription does now."""

    WAIT = auto()  # nothing, until something happens
    LAUNCH = auto()  # start the job of `window`
    PUSH = auto()  # hand elements downstream
    READ = auto()  # read the connection of `window`
    CONFIRM = auto()  # ask Spark whether it sent all of `window`
    COMPLETE = auto()  # every window has been read
    FAIL = auto()  # with the error of `window`


class ReadingState(Generic[T]):
    """The windows, the demand and the batch of one subscription."""

    __slots__ = ("_current", "_delivered", "_in_flight", "_is_ordered", "_is_planned", "_windows",
                 "demand", "held", "is_prepared", "is_processed", "window")  # fmt: skip

    def __init__(self, *, largest: int, batch_sizes: BatchSizes, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self._is_planned = False
        self._windows = PartitionWindows(0, largest, batch_sizes)
        self._in_flight: list[Window] = []  # launched, and not taken for reading
        self._current: Window | None = None  # is read or confirmed, or has failed
        self.window: Window
        """The window that the last action is about; set by the actions that name it."""
        self.is_prepared: bool = False
        """Whether jobs can be run, once there is a plan."""
        self.demand: Demand = Demand()
        self.is_processed: bool = True
        """Whether downstream has processed all elements that were handed over."""
        self.held: HeldElements[T] = HeldElements()
        """The elements of the batch that have not been handed over."""
        self._delivered = 0

    # -- the batch that waits for demand ----------------------------------------------------------
    def request(self, n: int) -> None:
        """Add demand. A request also reports that everything was processed."""
        self.demand.add(n)
        self.is_processed = True

    def push(self, receiver: "Receiver[T]") -> None:
        """Hand over as many elements as demand allows."""
        self.is_processed = False
        self._delivered += self.held.push(receiver, self.demand)

    # -- events -----------------------------------------------------------------------------------
    def on_planned(self, partitions: int) -> None:
        """Spark has planned the query."""
        self._windows.partitions, self._is_planned = partitions, True

    def on_served(self, window: Window) -> None:
        """The job of *window* is done, and its rows can be read."""
        window.phase = Phase.READABLE

    def on_failed(self, window: Window, error: Exception) -> None:
        """The job of *window* has failed."""
        window.phase, window.error = Phase.FAILED, error

    def split(self, window: Window) -> bool:
        """The results of *window* are too large for one job; return whether it had several."""
        if window.partitions == 1:
            return False
        self._in_flight.remove(window)
        self._windows.split(window)
        return True

    def on_end(self, window: Window, error: Exception | None = None) -> None:
        """The connection of *window* has ended, or broken with *error*."""
        window.phase, window.error = Phase.ENDED, error
        if error is None:
            self._windows.finish(window)

    def on_confirmed(self) -> None:
        """Spark has sent all rows of the window that was read."""
        self._current = None

    def close(self) -> None:
        """The subscription has ended: drop everything."""
        self._in_flight, self._current = [], None
        self.held.clear()

    # -- the decision -----------------------------------------------------------------------------
    def next_action(self) -> Action:
        """Return what to do now, given all that has happened."""
        if not self._is_planned or not self.is_prepared or not self.is_processed:
            return Action.WAIT
        current = self._current
        if current is not None and current.phase is Phase.ENDED:
            # Before the next launch, which waits for the same threads.
            self.window, current.phase = current, Phase.CONFIRMING
            return Action.CONFIRM
        if self._launch():
            return Action.LAUNCH
        if self.held.remaining:
            return Action.PUSH if self.demand else Action.WAIT
        if current is None:
            current = self._current = self._next_window()
            if current is None:
                is_complete = self._windows.is_exhausted and not self._in_flight
                return Action.COMPLETE if is_complete else Action.WAIT
        self.window = current
        if current.phase is Phase.READABLE:
            return Action.READ
        return Action.FAIL if current.phase is Phase.FAILED else Action.WAIT

    def _launch(self) -> bool:
        """Launch a window if demand, and what is expected of it, reaches beyond those in flight."""
        demand, current = self.demand, self._current
        if not demand or (current is not None and current.error is not None):
            return False  # in the second case, the flow is about to fail
        outstanding = inf if demand.unbounded else demand.outstanding - self.held.remaining
        window = self._windows.launch(outstanding, AHEAD, self._delivered)
        if window is None:
            return False
        self.window = window
        insort(self._in_flight, window, key=_START)
        return True

    def _next_window(self) -> Window | None:
        """Take the window to read next, if its job has ended."""
        candidates = self._in_flight[:1] if self._is_ordered else self._in_flight
        for window in candidates:
            is_next = not self._is_ordered or not self._windows.is_behind_a_split(window)
            if window.phase is not Phase.LAUNCHED and is_next:
                self._in_flight.remove(window)
                return window
        return None
