"""Progress of a subscription: counted where it happens, and reported at most ten times a second.

Nothing is polled. Each event of a subscription changes a counter and, unless a report is scheduled
already, schedules one: at once, or as soon as the last one is a tenth of a second old.
`ProgressBar`, which needs the extra ``progress``, shows the reports on a terminal.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

from .._core.arguments import require_sync_callable, require_text
from .._core.compiler.inline import describe
from .._core.demand import Demand
from .._core.loop import LoopHandle, TimerHandle
from .._shared.progress_bars import REPORT_EVERY, bars_on, numbers

if TYPE_CHECKING:
    from rich.console import Console

State = Literal["planning", "running", "waiting", "completed", "failed", "cancelled"]
Counter = Literal["partitions", "resumed", "launched", "computed", "bytes", "done"]

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of one subscription to a DataFrame."""

    number: int = 0
    """The number of the subscription, unique in the process."""
    state: State = "planning"
    """``"planning"`` until Spark has planned the query and run its shuffles; then ``"running"``
    with demand outstanding and ``"waiting"`` without; ``"completed"``, ``"failed"`` or
    ``"cancelled"`` at the end. A ``take`` that has enough, and a ``break``, cancel."""
    partitions: int | None = None
    """Partitions of the result that are to be computed; None until that is known."""
    resumed: int = 0
    """Partitions besides that are not computed, as the *checkpoint* has them."""
    launched: int = 0
    """Partitions given to Spark, in jobs."""
    computed: int = 0
    """Partitions that Spark has computed; what has not been read of them waits in the JVM."""
    done: int = 0
    """Partitions that were read to their end, of which Spark has sent everything."""
    rows: int = 0
    """Rows handed over to the flow. With ``rows="batch"``, the rows in the batches."""
    bytes: int = 0
    """Bytes read from Spark, as it sent them."""
    demand: float = 0
    """Elements requested and not delivered yet; infinite if unbounded."""
    seconds: float = 0.0
    """Since the first request."""

    @property
    def rows_per_second(self) -> float:
        """The average since the first request."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def is_done(self) -> bool:
        """Whether this is the last report of its subscription."""
        return self.state in ("completed", "failed", "cancelled")


OnProgress = Callable[[Progress], object]
RowsOf = Callable[[Any], int]


def require_on_progress(progress: bool | OnProgress) -> OnProgress | None:
    """Return the function that receives the reports, or None; raise if it cannot be called."""
    if progress is False:
        return None
    if progress is True:
        return ProgressBar()
    untyped: Any = progress
    if not callable(untyped):
        kind = type(untyped).__name__
        raise TypeError(
            "from_dataframe: progress must be True, for a bar, or a function that is given a "
            f"Progress, not {describe(untyped)} ({kind})."
        )
    remedy = "a plain function may start a task, or put what it is given into a queue"
    require_sync_callable("from_dataframe", "progress", progress, remedy)
    return progress


class ProgressMeter:
    """Counts for one subscription, and reports on its loop's thread."""

    __slots__ = ("_counters", "_demand", "_is_posted", "_loop_handle", "_number", "_on_progress",
                 "_reported_at", "_rows", "_rows_of", "_started_at", "_state",
                 "_timer")  # fmt: skip

    def __init__(
        self, on_progress: OnProgress, loop_handle: LoopHandle, rows_of: RowsOf | None = None
    ) -> None:
        """*rows_of* counts the rows of an element, where it may have several."""
        self._rows_of = rows_of
        self._on_progress: OnProgress | None = on_progress
        self._loop_handle = loop_handle
        self._number = next(numbers)
        self._state: State = "planning"
        self._counters: dict[Counter, int] = defaultdict(int)
        self._is_posted = False  # to the loop, by a thread that counts
        self._rows = 0
        self._demand = Demand()
        self._started_at: float | None = None
        self._reported_at = -inf
        self._timer: TimerHandle | None = None

    # -- counting ---------------------------------------------------------------------------------
    def add(self, counter: Counter, number: int) -> None:
        """Count, on the loop's thread."""
        self._counters[counter] += number
        self._schedule_report()

    def add_from_thread(self, counter: Counter, number: int) -> None:
        """Count, on the one thread that reads; the same counters are always counted there.

        It counts at once, not in a callback of the loop: the terminal signal that this thread sends
        next may overtake the callback, and the last report must be complete.
        """
        self._counters[counter] += number
        if not self._is_posted:
            self._is_posted = True
            self._loop_handle.call_soon_threadsafe(self._on_posted)

    def _on_posted(self) -> None:
        self._is_posted = False  # before the report: a later count is posted again
        self._schedule_report()

    def on_request(self, n: int) -> None:
        """*n* more elements have been requested."""
        if self._started_at is None:
            self._started_at = self._loop_handle.time()
        self._demand.add(n)
        self._schedule_report()

    def on_delivery(self, elements: "list[Any]") -> None:
        """Elements are handed over."""
        self._demand.take(len(elements))
        rows_of = self._rows_of
        self._rows += len(elements) if rows_of is None else sum(map(rows_of, elements))
        self._schedule_report()

    def finish(self, state: State) -> None:
        """Send the last report now: the terminal signal follows."""
        if self._on_progress is None:
            return
        self._state = state
        if self._timer is not None:
            self._timer.cancel()
        if self._started_at is not None:  # else nothing was requested
            self._report()
        self._on_progress = None

    # -- reporting --------------------------------------------------------------------------------
    def _schedule_report(self) -> None:
        if self._timer is None and self._on_progress is not None:
            # In a callback of its own: the function may do anything, such as cancel.
            delay = self._reported_at + REPORT_EVERY - self._loop_handle.time()
            self._timer = self._loop_handle.call_later(max(0.0, delay), self._report)

    def _report(self) -> None:
        self._timer = None
        on_progress = self._on_progress
        if on_progress is None:
            return
        self._reported_at = self._loop_handle.time()
        try:
            on_progress(self._snapshot())
        except Exception as error:
            self._on_progress = None
            what = "the function given to from_dataframe(progress=...)"
            self._loop_handle.report(f"{what} raised, and is not called again", error)

    def _snapshot(self) -> Progress:
        state = self._state
        if state == "planning" and ("partitions" in self._counters or self._rows):
            state = "running" if self._demand else "waiting"
        return Progress(
            number=self._number,
            state=state,
            rows=self._rows,
            demand=inf if self._demand.unbounded else self._demand.outstanding,
            seconds=0.0 if self._started_at is None else self._reported_at - self._started_at,
            **self._counters,
        )


class _NoProgress(ProgressMeter):
    """Counts nothing."""

    __slots__ = ()

    def __init__(self) -> None: ...

    def add(self, counter: Counter, number: int) -> None: ...

    def add_from_thread(self, counter: Counter, number: int) -> None: ...

    def on_request(self, n: int) -> None: ...

    def on_delivery(self, elements: "list[Any]") -> None: ...

    def finish(self, state: State) -> None: ...


NO_PROGRESS: Final = _NoProgress()
MakeMeter = Callable[[LoopHandle], ProgressMeter]
"""Makes the meter of a subscription."""


def no_meter(_: LoopHandle) -> ProgressMeter:
    return NO_PROGRESS


# -- a bar on the terminal -----------------------------------------------------------------------
class ProgressBar:
    """Shows the progress of Spark flows; pass it to ``from_dataframe(progress=...)``.

    It has one bar for each subscription: the partitions done, and how many a *checkpoint* had
    besides (resumed), followed by the rows, their rate, the bytes, the demand and the state. It is
    drawn when it is called, so it needs neither a thread nor a timer; other output appears above
    it. Where *console* (by default standard error) is not a terminal, or a dumb one, it prints a
    line every five seconds, and one at the end.

    One object may serve several flows; their bars are drawn below each other.
    """

    def __init__(self, title: str = "Spark", *, console: "Console | None" = None) -> None:
        self.title: str = require_text("ProgressBar", "title", title)
        self._bars = bars_on(console, "reactive_aio.spark.ProgressBar")

    def __call__(self, progress: Progress) -> None:
        """Show *progress*."""
        self._bars.show(
            progress.number,
            self.title,
            summary(progress),
            completed=progress.done,
            total=progress.partitions,
            seconds=progress.seconds,
            is_done=progress.is_done,
        )


def summary(progress: Progress) -> str:
    """Return a progress in one line."""
    partitions = "?" if progress.partitions is None else progress.partitions
    demand = "unbounded" if progress.demand == inf else f"{progress.demand:,.0f}"
    resumed = (f"{progress.resumed} resumed",) if progress.resumed else ()
    parts = (
        f"{progress.done}/{partitions} partitions",
        *resumed,
        f"{progress.rows:,} rows",
        f"{progress.rows_per_second:,.0f} rows/s",
        format_bytes(progress.bytes),
        f"demand {demand}",
        progress.state,
    )
    return "  ".join(parts)


def format_bytes(count: float) -> str:
    """Return a number of bytes in a suitable unit."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:,.0f} {_UNITS[unit]}" if not unit else f"{count:,.1f} {_UNITS[unit]}"
