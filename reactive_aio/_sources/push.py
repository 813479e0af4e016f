"""A source that emits without regard to demand: listeners, callbacks, timers, coroutines."""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._core.arguments import OWN_TASK, refuse_awaitable
from .._core.cleanup import add_cleanup_error
from .._core.failures import STOPS_PROGRAM, as_failure, is_cancelled
from .._core.loop import Task, cancel_task, wait_for_others
from .._core.losses import DropCounter
from .._core.queues.bounded_queue import (
    LOSSY,
    BoundedQueue,
    Emission,
    OverflowPolicy,
    require_capacity,
    require_policy,
)
from .._core.queues.hot_emitter import HotEmitter
from .._core.queues.output_buffer import OutputBuffer
from ..errors import Interrupted
from ..stage import (
    Downstream,
    FlowSubscription,
    LoopHandle,
    describe,
    from_push,
    require_callable,
    require_sync_callable,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("Emitter", "create")

T = TypeVar("T")


def create(
    emitter: Callable[["Emitter[T]"], object],
    *,
    overflow: OverflowPolicy = "fail",
    capacity: int = 256,
) -> "Flow[T]":
    """Emit the elements that a function passes to its `Emitter`.

    ::

        create(lambda to: (to.try_emit("a"), to.complete()))
        a|

    The function is called for each subscription, with its first request. A plain function
    registers its listeners and returns; a coroutine function emits until it returns, which
    completes the flow, and is cancelled with the subscription.

    Up to *capacity* elements wait for a reader that is busy, or has not requested them. When the
    queue is full, *overflow* decides what happens: ``"fail"`` (the flow fails with `Overflow`),
    ``"wait"`` (the element is refused: check the result of ``try_emit``), ``"drop_newest"``,
    ``"drop_oldest"``, ``"latest"`` (only the latest is held). ``await to.emit(element)`` waits for
    room instead of overflowing.

    What other threads emit (``emit_threadsafe``) waits for the loop in another queue, of the same
    capacity and with the same policy. A thread that should wait for room lets the loop emit:
    ``asyncio.run_coroutine_threadsafe(to.emit(element), loop).result()``.

    Demand: bounded by the queue; ``Emitter.requested`` reports it.
    Completes: by ``complete()``, or when the coroutine function returns; after the elements held.
    Fails: by ``fail(error)``, or when the function raises; after the elements held.
    Cancels: the callbacks of ``on_cancel`` are called, the coroutine function is cancelled, and
        ``aclose`` waits for it.
    Holds: *capacity* elements, and as many again that other threads have emitted for the loop.
    Rules: 1.1, 1.3, 1.7, 3.13
    """
    require_callable("create", "emitter", emitter, takes=1)
    overflow, capacity = require_policy(overflow, "create"), require_capacity(capacity, "create")
    name = f"create({describe(emitter)})"

    def open(downstream: Downstream[T]) -> "_EmitterSubscription[T]":
        return _EmitterSubscription(downstream, emitter, name, capacity, overflow)

    holds, is_lossy = 2 if overflow == "latest" else 2 * capacity, overflow in LOSSY
    return from_push(
        open, name=name, holds=holds, checked=True, one_by_one=is_lossy, lossy=is_lossy
    )


class Emitter(Generic[T]):
    """The producer's end of one subscription of a flow made by `create`."""

    __slots__ = ("_producer", "_subscription")

    def __init__(self, subscription: "_EmitterSubscription[T]", producer: HotEmitter[T]) -> None:
        self._subscription = subscription
        self._producer = producer

    def __repr__(self) -> str:
        state = "done" if self.is_done else f"{self.requested} requested"
        return f"<Emitter {state}>"

    @property
    def requested(self) -> int:
        """How many elements can be delivered at once; at 0 the next one waits in the queue."""
        return self._subscription.output.requested

    @property
    def is_done(self) -> bool:
        """Whether the flow was completed, failed or cancelled, and accepts no more elements."""
        return self._producer.is_ended

    def try_emit(self, element: T) -> Emission:
        """Emit *element* now, if there is demand or room; true if it was accepted."""
        return self._producer.try_emit(element)

    async def emit(self, element: T) -> Emission:
        """Emit *element* as soon as there is demand or room."""
        outcome = self._producer.emit(element)
        return outcome if isinstance(outcome, Emission) else await outcome

    def emit_threadsafe(self, element: T) -> Emission:
        """Emit from any thread: the element waits for the loop, or *overflow* decides about it."""
        return self._producer.emit_threadsafe(element)

    def complete(self) -> None:
        """Complete after the elements accepted. From any thread."""
        self._producer.end()

    def fail(self, error: BaseException) -> None:
        """Fail after the elements accepted. From any thread.

        *error* is an instance, not a class; anything else raises ``TypeError``.
        """
        self._producer.fail(error)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call *callback* once when the subscriber has cancelled, or the queue has overflowed.

        If that has already happened, it is called at once. It is a plain function: nothing would
        await its result.
        """
        require_sync_callable("on_cancel", "callback", callback, OWN_TASK, takes=0)
        self._subscription.on_cancel(callback)


class _EmitterSubscription(FlowSubscription, Generic[T]):
    """One subscription of a created flow."""

    __slots__ = (
        "_callbacks",
        "_emitter",
        "_is_cancelled",
        "_task",
        "loop_handle",
        "output",
        "producer",
    )

    def __init__(
        self,
        downstream: Downstream[T],
        emitter: Callable[[Emitter[T]], object],
        name: str,
        capacity: int,
        overflow: OverflowPolicy,
    ) -> None:
        self.loop_handle: LoopHandle = LoopHandle(name)
        self.producer: HotEmitter[T] = HotEmitter(
            name, capacity, overflow, self._deliver, self._is_full, self._finish, self.loop_handle
        )
        self.output: OutputBuffer[T] = OutputBuffer(
            downstream,
            BoundedQueue(capacity, overflow, DropCounter(name)),
            name,
            on_room=self.producer.on_room,
            on_cancel=self._on_cancel,
        )
        self._emitter: Callable[[Emitter[T]], object] | None = emitter
        self._callbacks: list[Callable[[], object]] = []
        self._is_cancelled = False
        self._task: Task[None] | None = None

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        self.output.request(n)
        emitter, self._emitter = self._emitter, None
        if emitter is not None:
            self._start(emitter)

    def processed(self) -> None:
        self.output.processed()

    def cancel(self) -> None:
        self.output.cancel()

    def stop_source(self) -> bool:
        return self.output.stop_source()

    @property
    def held(self) -> int:
        return self.output.held

    @property
    def is_lossy(self) -> bool:
        return self.output.is_lossy

    def oldest(self, now: float, waiting: int) -> float | None:
        return self.output.oldest(now, waiting)

    @property
    def is_settled(self) -> bool:
        return self._task is None or self._task.done()

    async def settle(self) -> None:
        if self._task is not None:
            await wait_for_others((self._task,))

    # -- the user's function ----------------------------------------------------------------------
    def _start(self, emitter: Callable[[Emitter[T]], object]) -> None:
        try:
            work = emitter(Emitter(self, self.producer))
        except BaseException as error:
            self._failed(as_failure(error))
            if isinstance(error, STOPS_PROGRAM):
                raise
            return
        if isawaitable(work):
            self._task = self.loop_handle.create_task(
                self._run(work),
                self.output.name,
                lambda _: work.close() if iscoroutine(work) else None,
            )
            if self.producer.is_ended:
                self._stop()

    async def _run(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except BaseException as error:
            if is_cancelled(self._task, error):
                self.producer.end(Interrupted("the task of an emitter was cancelled from outside"))
                raise
            if self._is_cancelled and isinstance(error, GeneratorExit):
                raise  # its event loop is closed, so that it can never continue
            if isinstance(error, STOPS_PROGRAM):
                self._failed(as_failure(error))
                raise
            self._task = None  # it ends with the following
            self._failed(as_failure(error))
        else:
            self._task = None
            self.producer.end()

    def _failed(self, error: BaseException) -> None:
        if self.producer.is_ended:
            message = "an error of an emitter after the end of its flow"
            report = partial(self.loop_handle.report, message, error)
            add_cleanup_error(self.output.downstream.cleanup, error, report)
        else:
            self.producer.end(error)

    # -- from the producer to the output ----------------------------------------------------------
    def _deliver(self, element: T) -> Emission:
        return self.output.offer(element).outcome

    def _is_full(self) -> bool:
        queue = self.output.queue
        return queue.is_full and queue.policy in ("wait", "fail")

    def _finish(self, error: BaseException | None) -> None:
        self.output.end(error)
        self._stop()

    def _stop(self) -> None:
        """Cancel the user's coroutine, even when it is the caller."""
        if self._task is not None:
            cancel_task(self._task)

    # -- cancellation -----------------------------------------------------------------------------
    def _on_cancel(self, _: OutputBuffer[T]) -> None:
        self._is_cancelled = True
        self._emitter = None
        discarded = self.producer.shut_down()
        self._stop()
        callbacks, self._callbacks = self._callbacks, []
        try:
            for callback in callbacks:
                self._call(callback)
        finally:
            self.output.discard(discarded)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        if self._is_cancelled:
            self._call(callback)
        elif not self.producer.is_ended:
            self._callbacks.append(callback)

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            refuse_awaitable("on_cancel", callback, callback(), OWN_TASK)
        except STOPS_PROGRAM:
            raise
        except BaseException as error:
            self.loop_handle.report(f"on_cancel({describe(callback)}) raised", error)
