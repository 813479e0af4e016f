"""The loop's side of a streaming query: one micro-batch at a time, under demand."""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakMethod, finalize

from ..._core.demand import Demand
from ..._core.flow_subscription import FlowSubscription
from ..._core.loop import LoopHandle
from ...stage import Downstream
from ..call_threads import CallThreads
from .micro_batch import MicroBatch, StreamStopped
from .query import QueryPlan, QueryRun

__all__ = ("StreamSubscription",)


class StreamSubscription(FlowSubscription):
    """One subscription. Every method runs on the loop's thread."""

    __slots__ = ("__weakref__", "_arrived", "_demand", "_downstream", "_finalizer", "_is_processed",
                 "_is_running", "_is_started", "_loop_handle", "_name", "_run",
                 "_threads")  # fmt: skip

    def __init__(self, downstream: Downstream[MicroBatch[Any]], plan: QueryPlan) -> None:
        self._downstream: Downstream[MicroBatch[Any]] | None = downstream
        self._name = plan.name
        self._loop_handle = LoopHandle(f"{plan.name}()")
        on_batch = partial(self._loop_handle.call_soon_threadsafe, _weakly(self._on_batch))
        self._run = QueryRun(plan, on_batch, self._loop_handle.event_loop.is_closed)
        self._threads = CallThreads(self._loop_handle, plan.name, size=1, interrupt=self._run.stop)
        self._demand = Demand()
        self._is_started = False
        self._is_processed = True  # downstream has processed the micro-batch handed over
        self._is_running = False  # a micro-batch was handed over, and the query waits for its end
        self._arrived: MicroBatch[Any] | None = None  # it has not been handed over
        # When it is dropped without a signal, for example because its loop was closed, the query
        # must end as well.
        self._finalizer = finalize(self, _release, self._run, self._threads)
        self._finalizer.atexit = False

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        self._demand.add(n)
        self._is_processed = True
        if not self._is_started:
            self._is_started = True
            # A thread that waits for the query must not keep the subscription alive.
            self._threads.call(self._run.run, _weakly(self._on_end))
        self._advance()

    def processed(self) -> None:
        self._is_processed = True
        self._advance()

    def cancel(self) -> None:
        """End the wait for demand first: stopping the query would wait for it."""
        self._downstream = self._arrived = None
        self._run.cancel()
        self._threads.interrupt()
        self._finalizer()

    async def aclose(self) -> None:
        """Wait, after a cancellation, until the query has stopped."""
        await self._threads.wait_done()

    # -- results of the threads -------------------------------------------------------------------
    def _on_batch(self, batch: MicroBatch[Any]) -> None:
        if self._downstream is not None:
            self._arrived = batch
            self._advance()

    def _on_end(self, _: None, error: Exception | None) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return
        self._finalizer()
        if error is None and (self._is_running or self._arrived is not None):
            error = StreamStopped(self._name)
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    # -- handing over ----------------------------------------------------------------------------
    def _advance(self) -> None:
        downstream = self._downstream
        if downstream is None or not self._is_processed or not self._demand:
            return
        batch, self._arrived = self._arrived, None
        if batch is not None:
            self._demand.take(1)
            self._is_running, self._is_processed = True, False
            downstream.push([batch])
        elif self._is_running:
            self._is_running = False
            self._run.release()
        waits = self._demand and self._downstream is not None
        self._run.keepalive = self if waits else None


def _weakly(method: Callable[..., object]) -> Callable[..., None]:
    """Return a function that calls *method* if its object is still alive."""
    weak = WeakMethod(method)

    def call(*args: object) -> None:
        if (alive := weak()) is not None:
            alive(*args)

    return call


def _release(run: QueryRun, threads: CallThreads) -> None:
    """Safe inside the garbage collector: it starts no thread and does not touch the loop."""
    run.cancel()
    threads.stop()
