"""How far a reading has got: counted where it happens, and told now and then.

Nobody polls. What happens to a subscription changes a counter and, unless a report is due already,
makes one due: at once, or as soon as the last one is a tenth of a second old.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import iscoroutinefunction
from itertools import count, islice
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

from .._core.compiler.chain_sources import PushSource
from .._core.compiler.inline import describe
from .._core.demand import Demand
from .._core.loop import LoopHandle, TimerHandle

if TYPE_CHECKING:
    from ..spec import Subscription
    from ..stage import Downstream

__all__ = ("NOBODY", "Meter", "Progress", "Tell", "metered", "teller")

State = Literal["planning", "running", "waiting", "completed", "failed", "cancelled"]
Field = Literal["partitions", "launched", "computed", "bytes", "done"]

EVERY: Final = 0.1
"""Seconds between two reports of one subscription, at least; the last one comes at once."""
_numbers = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one subscription to a DataFrame has got, and what it waits for."""

    number: int = 0
    """Which subscription this is about: they are numbered through in a process."""
    state: State = "planning"
    """``"planning"`` until Spark has planned the query and run its shuffles; then ``"running"``
    with demand outstanding and ``"waiting"`` without; how it ended at last. A ``take`` that has
    enough, and a ``break``, cancel."""
    partitions: int | None = None
    """Of the result; None as long as that is not known."""
    launched: int = 0
    """Partitions given to Spark, in jobs."""
    computed: int = 0
    """Partitions that Spark has computed; what is not read yet of them waits in the JVM."""
    done: int = 0
    """Partitions that were read to their end, which Spark has confirmed."""
    rows: int = 0
    """Rows handed over to the flow. With ``rows="batch"``, all those in the batches."""
    bytes: int = 0
    """Bytes read from Spark, as it sent them."""
    demand: float = 0
    """What was requested and is not delivered, in elements of the flow; infinite if unbounded."""
    seconds: float = 0.0
    """Since the first request."""

    @property
    def rows_per_second(self) -> float:
        """On the average since the first request."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def ended(self) -> bool:
        """Whether this is the last report of its subscription."""
        return self.state in ("completed", "failed", "cancelled")


Tell = Callable[[Progress], object]


def teller(name: str, progress: bool | Tell) -> Tell | None:
    """What is to be told, or None. Raises for what cannot be."""
    if progress is False:
        return None
    if progress is True:
        from .progress_bar import ProgressBar

        return ProgressBar()
    untyped: Any = progress
    if not callable(untyped):
        kind = type(untyped).__name__
        raise TypeError(
            f"{name}: progress must be True, for a bar, or a function that is given a Progress, "
            f"not {describe(untyped)} ({kind})."
        )
    if iscoroutinefunction(progress) or iscoroutinefunction(getattr(progress, "__call__", None)):  # noqa: B004
        raise TypeError(
            f"{name}: progress must be a plain function, which nobody waits for, and "
            f"{describe(progress)} is a coroutine function. It may start a task, or put what it "
            "is given into a queue."
        )
    return progress


class Meter:
    """Counts for one subscription, and tells on its loop's thread."""

    __slots__ = (
        "_began",
        "_demand",
        "_fields",
        "_loop_handle",
        "_number",
        "_posted",
        "_rows",
        "_state",
        "_tell",
        "_timer",
        "_told",
    )  # fmt: skip

    def __init__(self, tell: Tell | None, loop_handle: LoopHandle) -> None:
        self._tell = tell
        self._loop_handle = loop_handle
        self._number = next(_numbers)
        self._state: State = "planning"
        self._fields: dict[Field, int] = {}  # of Progress, as far as it is not 0
        self._posted = False  # to the loop, by a thread that counts
        self._rows = 0
        self._demand = Demand()
        self._began: float | None = None
        self._told = -inf
        self._timer: TimerHandle | None = None

    # -- what the source tells ------------------------------------------------------------------
    def planned(self, partitions: int) -> None:
        """Spark has planned the query: that many partitions."""
        self._add("partitions", partitions)

    def launched(self, partitions: int) -> None:
        """A job of so many more partitions has begun."""
        self._add("launched", partitions)

    def computed(self, partitions: int) -> None:
        """Such a job is done."""
        self._add("computed", partitions)

    def read(self, size: int) -> None:
        """So many more bytes have come."""
        self._add("bytes", size)

    def done(self, partitions: int) -> None:
        """So many more partitions have been read to their end."""
        self._add("done", partitions)

    def _add(self, field: Field, more: int) -> None:
        self._count(field, more)
        self._changed()

    def _count(self, field: Field, more: int) -> None:
        self._fields[field] = self._fields.get(field, 0) + more

    # -- what passes by -------------------------------------------------------------------------
    def requested(self, n: int) -> None:
        """So many more elements are wanted."""
        if self._began is None:
            self._began = self._loop_handle.time()
        self._demand.add(n)
        self._changed()

    def delivered(self, elements: int, rows: int) -> None:
        """So many elements have been handed over, which are so many rows."""
        self._demand.take(elements)
        self._rows += rows
        self._changed()

    def ended(self, state: State) -> None:
        """Tell the last there is to tell, now: the signal of the end comes behind it."""
        if self._tell is None:
            return
        self._state = state
        if self._timer is not None:
            self._timer.cancel()
        if self._began is not None:  # else nothing was ever asked for
            self._report()
        self._tell = None

    # -- telling --------------------------------------------------------------------------------
    def _changed(self) -> None:
        if self._timer is None and self._tell is not None:
            # In a turn of its own: who is told may do anything, such as cancel.
            wait = self._told + EVERY - self._loop_handle.time()
            self._timer = self._loop_handle.call_later(max(0.0, wait), self._report)

    def _report(self) -> None:
        self._timer = None
        tell = self._tell
        if tell is None:
            return
        self._told = self._loop_handle.time()
        try:
            tell(self._snapshot())
        except Exception as error:
            self._tell = None
            self._loop_handle.report(f"{_WHAT} raised, and is not called again", error)

    def _snapshot(self) -> Progress:
        state = self._state
        if state == "planning" and ("partitions" in self._fields or self._rows):
            state = "running" if self._demand else "waiting"
        return Progress(
            number=self._number,
            state=state,
            rows=self._rows,
            demand=inf if self._demand.unbounded else self._demand.outstanding,
            seconds=0.0 if self._began is None else self._told - self._began,
            **self._fields,
        )

    # -- where a thread reads -------------------------------------------------------------------
    def add_by_thread(self, field: Field, more: int) -> None:
        """Count, on the one thread that reads, and count all of these fields there.

        At once, not in a turn of the loop: the end that this thread tells behind it may overtake
        such a turn, and the last report has all there is.
        """
        self._count(field, more)
        if not self._posted:
            self._posted = True
            self._loop_handle.call_soon_threadsafe(self._counted)

    def _counted(self) -> None:
        self._posted = False  # before the report: what is counted from now on is posted anew
        self._changed()


class _Nobody(Meter):
    """Where nobody wants to know."""

    __slots__ = ()

    def __init__(self) -> None: ...

    def _add(self, field: Field, more: int) -> None: ...

    def add_by_thread(self, field: Field, more: int) -> None: ...


NOBODY: Final = _Nobody()
_WHAT: Final = "the function given to from_dataframe(progress=...)"


class _Counted:
    """An inlet that counts what is handed in."""

    __slots__ = ("_downstream", "_meter", "_rows")

    def __init__(
        self, downstream: "Downstream[Any]", meter: Meter, rows: Callable[[list[Any]], int]
    ) -> None:
        self._downstream = downstream
        self._meter = meter
        self._rows = rows

    def push(self, elements: list[Any], /) -> None:
        self._meter.delivered(len(elements), self._rows(elements))
        self._downstream.push(elements)

    def push_from(self, elements: Iterator[Any], count: int, /) -> None:
        if self._rows is not len:
            self.push(list(islice(elements, count)))  # what is counted is inside of them
            return
        self._meter.delivered(count, count)
        self._downstream.push_from(elements, count)

    def complete(self) -> None:
        self._meter.ended("completed")
        self._downstream.complete()

    def fail(self, error: BaseException, /) -> None:
        self._meter.ended("failed")
        self._downstream.fail(error)


class _Asked:
    """A subscription that counts what is requested; all else is the affair of the one inside."""

    __slots__ = ("_inside", "_meter")

    def __init__(self, inside: "Subscription", meter: Meter) -> None:
        self._inside = inside
        self._meter = meter

    def request(self, n: int, /) -> None:
        self._meter.requested(n)
        self._inside.request(n)

    def cancel(self) -> None:
        self._meter.ended("cancelled")
        self._inside.cancel()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)  # processed, aclose: where it has them


def metered(
    make: Callable[[Meter], PushSource], tell: Tell, rows: Callable[[list[Any]], int] = len
) -> "Callable[[Downstream[Any]], Subscription]":
    """Open heads that are made with a meter for each subscription; *rows* counts elements."""

    def open(downstream: "Downstream[Any]") -> "Subscription":
        meter = Meter(tell, LoopHandle("from_dataframe()"))
        return _Asked(make(meter).open(_Counted(downstream, meter, rows)), meter)

    return open
