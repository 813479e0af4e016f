"""The loop's side of a streaming query: one micro-batch at a time, each under demand."""

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod, finalize

from ..._core.demand import Demand
from ..._core.loop import LoopHandle
from ...stage import Downstream
from ..crew import Crew
from .microbatch import MicroBatch, StreamStopped
from .query import Plan, Query

__all__ = ("StreamSubscription",)


class StreamSubscription:
    """One subscription. Everything here runs on the loop's thread."""

    __slots__ = (
        "__weakref__",
        "_clear",
        "_crew",
        "_demand",
        "_downstream",
        "_forgotten",
        "_here",
        "_loop_handle",
        "_name",
        "_query",
        "_started",
        "_under_way",
    )  # fmt: skip

    def __init__(self, downstream: Downstream[MicroBatch[Any]], plan: Plan) -> None:
        self._downstream: Downstream[MicroBatch[Any]] | None = downstream
        self._name = plan.name
        self._loop_handle = LoopHandle(f"{plan.name}()")
        arrived = _calling(self._loop_handle, WeakMethod(self._arrived))
        self._query = Query(plan, arrived, self._loop_handle.loop.is_closed)
        self._crew = Crew(self._loop_handle, plan.name, size=1, interrupt=self._query.stop)
        self._demand = Demand()
        self._started = False
        self._here: MicroBatch[Any] | None = None
        self._under_way = False  # a batch was handed over, and the query waits for its end
        self._clear = True  # what was handed over has been processed
        # With a loop that was closed under it, for example: the query must not go on alone.
        self._forgotten = finalize(self, _let_go, self._query, self._crew)
        self._forgotten.atexit = False

    # -- what the island tells --------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        self._demand.add(n)
        self._clear = True
        if not self._started:
            self._started = True
            # A thread that waits for the query must not keep the subscription alive.
            self._crew.call(self._query.run, _telling(WeakMethod(self._ended)))
        self._go()

    def processed(self) -> None:
        self._clear = True
        self._go()

    def cancel(self) -> None:
        """Let go: the wait ends first, or stopping the query would wait for it."""
        self._downstream = self._here = None
        self._query.leave()
        self._crew.interrupt()
        self._forgotten()

    async def aclose(self) -> None:
        """Wait, after a cancellation, until the query has stopped."""
        await self._crew.closed()

    # -- what the threads tell --------------------------------------------------------------------
    def _arrived(self, batch: MicroBatch[Any]) -> None:
        if self._downstream is not None:
            self._here = batch
            self._go()

    def _ended(self, _: None, error: Exception | None) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return
        self._forgotten()  # and lets go of what the query keeps
        if error is None and (self._under_way or self._here is not None):
            error = StreamStopped(self._name)
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    # -- what is done about it --------------------------------------------------------------------
    def _go(self) -> None:
        downstream = self._downstream
        if downstream is None or not self._clear or not self._demand:
            return
        batch, self._here = self._here, None
        if batch is not None:
            self._demand.take(1)
            self._under_way, self._clear = True, False
            downstream.push([batch])
        elif self._under_way:
            self._under_way = False
            self._query.release()
        self._query.keeps = self if self._demand and self._downstream is not None else None


Arrived = Callable[[MicroBatch[Any]], object]
Ended = Callable[[None, Exception | None], None]


def _calling(loop_handle: LoopHandle, arrived: "WeakMethod[Arrived]") -> Arrived:
    """Make what a thread calls with a batch."""

    def call(batch: MicroBatch[Any]) -> None:
        if (method := arrived()) is not None:
            method(batch)

    return lambda batch: loop_handle.call_soon_threadsafe(call, batch)


def _telling(ended: "WeakMethod[Ended]") -> Ended:
    def tell(result: None, error: Exception | None) -> None:
        if (method := ended()) is not None:
            method(result, error)

    return tell


def _let_go(query: Query, crew: Crew) -> None:
    """Only what is safe inside the garbage collector: no thread is started, no loop is asked."""
    query.leave()
    crew.dismiss()
