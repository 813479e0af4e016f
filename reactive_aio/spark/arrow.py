"""The loop's side of reading Arrow batches: windows of partitions, one batch at a time.

Threads only make calls (a job, its confirmation); the batches themselves are read on the loop,
when there is demand for a row that is not here yet and what was handed over has been processed.
Otherwise the socket is left alone, and the rows of a job that is done wait in the JVM, where they
hold up nobody: the job's tasks are over, and serving its rows has a thread of its own there.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, Final, Generic, TypeVar
from weakref import finalize

from .._core.demand import Demand
from .._core.loop import LoopHandle
from ..stage import Downstream
from .batches import Batches
from .crew import Crew
from .frames import END, Frames
from .launches import Launches, Sizes, Window
from .progress import Meter

__all__ = ("ArrowSubscription", "Decode")

T = TypeVar("T")
Decode = Callable[[Any], tuple[Iterator[T], int]]
"""Makes elements of the bytes of a record batch, and says how many there are."""

AHEAD: Final = 2
"""Windows under way besides the one that is being read, if demand covers them."""

_TURN: Final = 0.0005
"""Seconds of work, then others have their turns: two of them, because who sleeps needs a timer and
then a turn of its task. Less than a drain may take: rows are seldom alone on their loop."""


class _Flight:
    """A window that was launched: its rows on their way, or why there are none."""

    __slots__ = ("error", "frames", "window")

    def __init__(self, window: Window) -> None:
        self.window = window
        self.frames: Frames | None = None
        self.error: Exception | None = None


class ArrowSubscription(Generic[T]):
    """One subscription. Everything here runs on the loop's thread."""

    __slots__ = (
        "__weakref__",
        "_at_work",
        "_batches",
        "_clear",
        "_crew",
        "_decode",
        "_demand",
        "_downstream",
        "_elements",
        "_flights",
        "_forgotten",
        "_largest",
        "_launches",
        "_left",
        "_loop_handle",
        "_meter",
        "_open",
        "_ordered",
        "_reading",
        "_ready",
        "_sizes",
        "_started",
        "_watched",
    )  # fmt: skip

    def __init__(
        self,
        downstream: Downstream[T],
        batches: Batches,
        decode: Decode[T],
        *,
        window: int,
        sizes: Sizes,
        ordered: bool,
        meter: Meter,
    ) -> None:
        self._downstream: Downstream[T] | None = downstream
        self._batches = batches
        self._decode = decode
        self._largest = window
        self._sizes = sizes
        self._ordered = ordered
        self._meter = meter
        self._loop_handle = LoopHandle("from_dataframe()")
        self._crew = Crew(
            self._loop_handle, "from_dataframe", size=1 + AHEAD, interrupt=batches.cancel
        )
        self._demand = Demand()
        self._launches: Launches | None = None
        self._flights: list[_Flight] = []
        self._reading: _Flight | None = None
        self._watched: Frames | None = None
        self._elements: Iterator[T] = iter(())
        self._left = 0  # in `_elements`
        self._clear = True  # what was handed over has been processed
        self._at_work = False
        self._started = False
        self._ready = False  # for a job, once there is a plan
        self._open: set[Frames] = set()
        # Not __del__: in a cycle, the sockets could be collected before it is called.
        self._forgotten = finalize(self, _let_go, self._open, batches, self._crew)
        self._forgotten.atexit = False
        self._crew.lost = self._forgotten

    # -- what the island tells --------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        self._demand.add(n)
        self._clear = True
        if self._started:
            self._go()
        else:
            self._started = True
            self._crew.call(self._batches.plan, self._planned)
            self._crew.call(self._batches.prepare, self._prepared)

    def processed(self) -> None:
        """What was handed over has been processed, and there is no new demand."""
        self._clear = True
        self._go()

    def cancel(self) -> None:
        """Let go: of the sockets now, of the jobs as soon as Spark does."""
        self._downstream = None
        self._drop()

    async def aclose(self) -> None:
        """Wait, after a cancellation, until Spark has let go."""
        await self._crew.closed()

    # -- what the threads tell --------------------------------------------------------------------
    def _planned(self, partitions: int | None, error: Exception | None) -> None:
        if error is not None or partitions is None:
            self._end(error)
        else:
            self._launches = Launches(partitions, largest=self._largest, batches=self._sizes)
            self._meter.planned(partitions)
            self._go()

    def _prepared(self, _: None, error: Exception | None) -> None:
        if error is not None:
            self._end(error)
        else:
            self._ready = True
            self._go()

    def _served(self, flight: _Flight, frames: Frames | None, error: Exception | None) -> None:
        if self._downstream is None:
            if frames is not None:
                frames.close()
            return
        flight.frames, flight.error = frames, error
        if frames is not None:
            self._open.add(frames)
            self._meter.computed(flight.window.partitions)
        self._go()

    def _confirmed(self, flight: _Flight, _: None, error: Exception | None) -> None:
        if self._downstream is None:
            return
        if error is not None:
            self._end(error)
            return
        self._meter.done(flight.window.partitions)
        self._reading = None
        self._go()

    # -- what is done about it --------------------------------------------------------------------
    def _go(self) -> None:
        """Do all there is to do. Handing rows over leads to requests, which lead here again."""
        if self._at_work:
            return
        self._at_work = True
        until = perf_counter() + _TURN
        try:
            while self._step():
                if perf_counter() >= until:
                    self._loop_handle.call_soon(self._loop_handle.call_later, 0.0, self._rested)
                    return  # still at work: whoever calls before its next turn is too early
        except BaseException:
            self._at_work = False
            raise
        self._at_work = False

    def _rested(self) -> None:
        self._at_work = False
        self._go()

    def _step(self) -> bool:
        """Do one thing; return whether there may be another one to do at once."""
        downstream, launches = self._downstream, self._launches
        if downstream is None or launches is None or not self._ready or not self._clear:
            self._unwatch()
            return False
        self._launch(launches)
        if self._left:
            return self._hand_over(downstream)
        reading = self._reading or self._next_flight()
        if reading is None:
            if launches.exhausted and not self._flights:
                self._end(None)
            return False
        if reading.frames is None:  # and there was an error; or it is being confirmed
            if reading.error is not None:
                self._end(reading.error)
            return False
        return self._read(reading, reading.frames)

    def _launch(self, launches: Launches) -> None:
        demand = self._demand
        outstanding = inf if demand.unbounded else demand.outstanding - self._left
        while (window := launches.launch(outstanding, AHEAD)) is not None:
            flight = _Flight(window)
            self._flights.append(flight)
            self._meter.launched(window.partitions)
            work = partial(self._batches.run, window.start, window.stop, window.batch)
            self._crew.call(work, partial(self._served, flight))

    def _next_flight(self) -> _Flight | None:
        """Take up the window that is to be read next, if it is there."""
        among: Sequence[_Flight] = self._flights[:1] if self._ordered else self._flights
        for flight in among:
            if flight.frames is not None or flight.error is not None:
                self._flights.remove(flight)
                self._reading = flight
                return flight
        return None

    def _hand_over(self, downstream: Downstream[T]) -> bool:
        """Hand over what is here, as far as it is wanted."""
        if not self._demand:
            return False
        count = self._demand.take(self._left)
        self._left -= count
        self._clear = False
        downstream.push_from(self._elements, count)
        return True

    def _read(self, reading: _Flight, frames: Frames) -> bool:
        """Read a batch, if anything of it is wanted; or at least see whether the end is there."""
        try:
            frame = frames.read(body=bool(self._demand))
            if frame is not None and frame is not END:
                self._take_in(reading.window, frame)
                return True
        except (OSError, EOFError) as error:
            self._finish(reading, error)
            return False
        except Exception as error:
            self._end(error)
            return False
        if frame is END:
            self._finish(reading)
        elif self._demand or frames.at_head:
            self._watch(frames)
        else:
            self._unwatch()
        return False

    def _take_in(self, window: Window, frame: Any) -> None:
        self._elements, self._left = self._decode(frame)
        window.elements += self._left
        window.size += len(frame)
        self._meter.read(len(frame))

    def _finish(self, reading: _Flight, error: Exception | None = None) -> None:
        """The connection has ended: ask Spark whether that was the end of the rows."""
        self._unwatch()
        if reading.frames is not None:
            self._open.discard(reading.frames)
            reading.frames.close()
            reading.frames = None
        confirm = partial(self._batches.confirm, reading.window.start, error)
        self._crew.call(confirm, partial(self._confirmed, reading))
        if error is None and self._launches is not None:
            self._launches.finish(reading.window)
            self._launch(self._launches)  # behind the confirmation, on the same threads

    def _end(self, error: Exception | None) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return
        self._drop()
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    # -- sockets ----------------------------------------------------------------------------------
    def _watch(self, frames: Frames) -> None:
        if self._watched is not frames:
            self._unwatch()
            self._watched = frames
            self._loop_handle.add_reader(frames.connection, self._go)

    def _unwatch(self) -> None:
        watched, self._watched = self._watched, None
        if watched is not None:
            self._loop_handle.remove_reader(watched.connection)

    def _drop(self) -> None:
        """Close every connection, forget what was read, and let the jobs and the threads end."""
        self._unwatch()
        self._batches.cancelled = True
        self._flights, self._reading = [], None
        self._elements, self._left = iter(()), 0
        self._crew.interrupt()  # after an error too, other windows may be under way
        self._forgotten()


def _let_go(open_frames: set[Frames], batches: Batches, crew: Crew) -> None:
    """Forgotten without a signal, or with a loop that was closed under it.

    Only what is safe inside the garbage collector: no thread is started, no loop is asked.
    """
    batches.cancelled = True
    for frames in [*open_frames]:
        frames.close()
    crew.dismiss(batches.forget)
