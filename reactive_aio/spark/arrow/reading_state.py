"""What a subscription in mode ``"arrow"`` does next. No I/O: `subscription` carries it out.

The life of a window::

    LAUNCHED ──served──▶ READABLE ──ended──▶ ENDED ──confirming──▶ CONFIRMING ──confirmed──▶ gone
        └──failed──▶ FAILED

Several windows may be launched; one at a time is read. Windows are read in their order,
or in the order in which their jobs end.
"""

from enum import Enum, auto
from math import inf
from typing import Final, Generic, TypeVar

from ..delivery import Delivery
from .partition_windows import BatchSizes, PartitionWindows, Window

__all__ = ("AHEAD", "Action", "Flight", "Phase", "ReadingState")

T = TypeVar("T")

AHEAD: Final = 2
"""How many windows may be in flight beside the one that is read, if demand covers them."""


class Phase(Enum):
    """The progress of one window."""

    LAUNCHED = auto()  # its job runs
    READABLE = auto()  # the JVM serves its rows
    FAILED = auto()  # its job has failed
    ENDED = auto()  # its connection has ended
    CONFIRMING = auto()  # Spark is asked whether that was the end of its rows


class Action(Enum):
    """What the subscription does now."""

    WAIT = auto()  # nothing, until something happens
    LAUNCH = auto()  # start the job of `flight`
    PUSH = auto()  # hand elements downstream
    READ = auto()  # read the connection of `flight`
    CONFIRM = auto()  # ask Spark whether it sent all of `flight`
    COMPLETE = auto()  # every window has been read
    FAIL = auto()  # with the error of `flight`


class Flight:
    """A window that was launched."""

    __slots__ = ("error", "phase", "window")

    def __init__(self, window: Window) -> None:
        self.window: Window = window
        self.phase: Phase = Phase.LAUNCHED
        self.error: Exception | None = None
        """What its job, or its connection, has failed with."""


class ReadingState(Generic[T]):
    """The windows and the demand of one subscription."""

    __slots__ = ("_batch_sizes", "_current", "_in_flight", "_is_ordered", "_largest", "_windows",
                 "delivery", "flight", "is_prepared")  # fmt: skip

    def __init__(self, *, largest: int, batch_sizes: BatchSizes, is_ordered: bool) -> None:
        self._largest = largest
        self._batch_sizes = batch_sizes
        self._is_ordered = is_ordered
        self._windows: PartitionWindows | None = None  # None until Spark has planned the query
        self._in_flight: list[Flight] = []  # launched, and not taken for reading
        self._current: Flight | None = None  # is read or confirmed, or has failed
        self.flight: Flight
        """The window that the last action is about; set by the actions that name it."""
        self.is_prepared: bool = False
        """Whether jobs can be run, once there is a plan."""
        self.delivery: Delivery[T] = Delivery()

    # -- events -----------------------------------------------------------------------------------
    def on_planned(self, partitions: int) -> None:
        """Spark has planned the query."""
        self._windows = PartitionWindows(
            partitions, largest=self._largest, batch_sizes=self._batch_sizes
        )

    def on_served(self, flight: Flight) -> None:
        """The job of *flight* is done, and its rows can be read."""
        flight.phase = Phase.READABLE

    def on_failed(self, flight: Flight, error: Exception) -> None:
        """The job of *flight* has failed."""
        flight.phase, flight.error = Phase.FAILED, error

    def on_end(self, flight: Flight, error: Exception | None = None) -> None:
        """The connection of *flight* has ended, or broken with *error*."""
        flight.phase, flight.error = Phase.ENDED, error
        if error is None and self._windows is not None:
            self._windows.finish(flight.window)

    def on_confirmed(self) -> None:
        """Spark has sent all rows of the window that was read."""
        self._current = None

    def close(self) -> None:
        """The subscription has ended: drop everything."""
        self._in_flight, self._current = [], None
        self.delivery.clear()

    # -- the decision -----------------------------------------------------------------------------
    def next_action(self) -> Action:
        """Return what to do now, given all that has happened."""
        windows, delivery = self._windows, self.delivery
        if windows is None or not self.is_prepared or not delivery.is_processed:
            return Action.WAIT
        current = self._current
        if current is not None and current.phase is Phase.ENDED:
            # Before the next launch, which waits for the same threads.
            self.flight, current.phase = current, Phase.CONFIRMING
            return Action.CONFIRM
        if self._launch(windows):
            return Action.LAUNCH
        if delivery.remaining:
            return Action.PUSH if delivery.demand else Action.WAIT
        if current is None:
            current = self._current = self._next_flight()
            if current is None:
                is_complete = windows.is_exhausted and not self._in_flight
                return Action.COMPLETE if is_complete else Action.WAIT
        self.flight = current
        if current.phase is Phase.READABLE:
            return Action.READ
        return Action.FAIL if current.phase is Phase.FAILED else Action.WAIT

    def _launch(self, windows: PartitionWindows) -> bool:
        """Launch a window if demand reaches beyond those in flight."""
        demand, current = self.delivery.demand, self._current
        if current is not None and current.error is not None:
            return False  # the flow is about to fail
        outstanding = inf if demand.unbounded else demand.outstanding - self.delivery.remaining
        if outstanding <= 0 or (window := windows.launch(outstanding, AHEAD)) is None:
            return False
        self.flight = Flight(window)
        self._in_flight.append(self.flight)
        return True

    def _next_flight(self) -> Flight | None:
        """Take the window to read next, if its job has ended."""
        candidates = self._in_flight[:1] if self._is_ordered else self._in_flight
        for flight in candidates:
            if flight.phase is not Phase.LAUNCHED:
                self._in_flight.remove(flight)
                return flight
        return None
