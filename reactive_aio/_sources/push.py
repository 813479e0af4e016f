"""A source that emits when it pleases: listeners, callbacks, timers, coroutines."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .._core.compiler.inline import describe
from .._core.loop import CancelledError, LoopHandle, Task, wait_settled
from .._core.queues.bounded_queue import (
    BoundedQueue,
    Emission,
    OverflowPolicy,
    require_capacity,
    require_policy,
)
from .._core.queues.hot_emitter import HotEmitter
from .._core.queues.output_buffer import OutputBuffer
from ..errors import Interrupted, NotAnElement
from ..stage import Downstream, from_push

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("Emitter", "create")

T = TypeVar("T")


def create(
    emitter: Callable[["Emitter[T]"], object],
    *,
    overflow: OverflowPolicy = "fail",
    bound: int = 256,
) -> "Flow[T]":
    """Emit what a function hands to its `Emitter`, as it pleases.

    ::

        create(lambda to: (to.try_emit("a"), to.complete()))
        a|

    The function is called for each subscription, with its first request. A plain function
    registers its listeners and returns; a coroutine function emits until it returns, which
    completes the flow, and is cancelled when its elements are not wanted any more.

    Elements without demand wait, *bound* of them at most. When there is no room, *overflow* says
    what happens: ``"fail"`` (the flow fails with `Overflow`), ``"buffer"`` (the element is refused:
    look at what ``try_emit`` returns), ``"drop_newest"``, ``"drop_oldest"``, ``"latest"`` (only the
    latest is held). ``await to.emit(element)`` waits for room instead of overflowing.

    Demand: bounded by the queue; ``Emitter.requested`` tells it.
    Completes: by ``complete()``, or when the coroutine function returns; behind the elements held.
    Fails: by ``fail(error)``, or when the function raises; behind the elements held.
    Cancels: the callbacks of ``on_cancel`` are called, the coroutine function is cancelled, and
        ``aclose`` waits for it.
    Holds: *bound* elements, and as many again that other threads have left for the loop.
    Rules: 1.1, 1.3, 1.7, 3.13
    """
    if not callable(emitter):
        raise TypeError(f"create: emitter must be a function of an Emitter, not {emitter!r}")
    overflow, bound = require_policy(overflow, "create"), require_capacity(bound, "create")
    name = f"create({describe(emitter)})"

    def open(downstream: Downstream[T]) -> "_Created[T]":
        return _Created(downstream, emitter, name, bound, overflow)

    latest = overflow == "latest"
    holds = bound + (2 if latest else bound)
    return from_push(open, name=name, holds=holds, checked=True, window=int(latest))


class Emitter(Generic[T]):
    """What the function given to `create` emits with; it belongs to one subscription."""

    __slots__ = ("_gate", "_made")

    def __init__(self, made: "_Created[T]", gate: HotEmitter[T]) -> None:
        self._made = made
        self._gate = gate

    def __repr__(self) -> str:
        state = "ended" if self.ended else f"{self.requested} requested"
        return f"<Emitter {state}>"

    @property
    def requested(self) -> int:
        """How many elements can be handed over at once; 0 means that the next one must wait."""
        return self._made.outlet.demand.outstanding

    @property
    def ended(self) -> bool:
        """Whether nothing more is taken: it was completed, failed or cancelled."""
        return self._gate.ended

    def try_emit(self, element: T) -> Emission:
        """Emit *element* now, if there is demand or room; true if it was accepted."""
        return self._gate.try_emit(element)

    async def emit(self, element: T) -> Emission:
        """Emit *element* as soon as there is demand or room."""
        return await self._gate.emit(element)

    def emit_threadsafe(self, element: T) -> Emission:
        """Emit from any thread: REFUSED when *bound* elements wait for the loop already."""
        return self._gate.emit_threadsafe(element)

    def complete(self) -> None:
        """Complete, behind what was accepted. From any thread."""
        self._gate.end()

    def fail(self, error: BaseException) -> None:
        """Fail, behind what was accepted. From any thread."""
        if cast("object", error) is None:
            raise NotAnElement("fail(None): an exception is needed")
        self._gate.end(error)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call back, once, when elements are not wanted any more.

        That is when the subscriber has cancelled, or the flow has failed by overflow; at once, if
        that has happened already.
        """
        self._made.on_cancel(callback)


class _Created(Generic[T]):
    """One subscription of a created flow."""

    __slots__ = ("_callbacks", "_emitter", "_gone", "_task", "gate", "loop_handle", "outlet")

    def __init__(
        self,
        downstream: Downstream[T],
        emitter: Callable[[Emitter[T]], object],
        name: str,
        bound: int,
        overflow: OverflowPolicy,
    ) -> None:
        self.loop_handle: LoopHandle = LoopHandle(name)
        queue: BoundedQueue[T] = BoundedQueue(bound, overflow)
        self.outlet: OutputBuffer[T] = OutputBuffer(
            downstream, queue, name, room=self._room, gone=self._left
        )
        self.gate: HotEmitter[T] = HotEmitter(
            name, bound, self._deliver, self._full, self._finish, self.loop_handle
        )
        self._emitter: Callable[[Emitter[T]], object] | None = emitter
        self._callbacks: list[Callable[[], object]] = []
        self._gone = False
        self._task: Task[None] | None = None

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        self.outlet.request(n)
        emitter, self._emitter = self._emitter, None
        if emitter is not None:
            self._start(emitter)

    def processed(self) -> None:
        self.outlet.processed()

    def cancel(self) -> None:
        self.outlet.cancel()

    async def aclose(self) -> None:
        self.cancel()
        if self._task is not None and not self.loop_handle.is_current_task(self._task):
            await wait_settled(self._task)

    # -- the function of the user -----------------------------------------------------------------
    def _start(self, emitter: Callable[[Emitter[T]], object]) -> None:
        try:
            work = emitter(Emitter(self, self.gate))
        except Exception as error:
            self._failed(error)
            return
        if isawaitable(work):
            self._task = self.loop_handle.create_task(self._await(work), self.outlet.name)
            self._task.add_done_callback(lambda _: work.close() if iscoroutine(work) else None)
            if self.gate.ended:
                self._stop()

    async def _await(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except CancelledError:
            self.gate.end(Interrupted("the task of an emitter was cancelled from outside"))
            raise
        except Exception as error:
            self._failed(error)
        else:
            self.gate.end()

    def _failed(self, error: Exception) -> None:
        if self.gate.ended:
            self.loop_handle.report("an error of an emitter after the end of its flow", error)
        else:
            self.gate.end(error)

    # -- between gate and outlet ------------------------------------------------------------------
    def _deliver(self, element: T) -> Emission:
        return self.outlet.offer(element).outcome

    def _full(self) -> bool:
        queue = self.outlet.queue
        return queue.full and queue.policy in ("buffer", "fail")

    def _room(self) -> None:
        self.gate.room()

    def _finish(self, error: BaseException | None) -> None:
        self.outlet.end(error)
        self._stop()

    def _stop(self) -> None:
        """The coroutine of the user is not needed any more, not even by itself."""
        if self._task is not None:
            self._task.cancel()

    # -- nobody wants elements any more -----------------------------------------------------------
    def _left(self, _: OutputBuffer[T]) -> None:
        self._gone = True
        self._emitter = None
        self.gate.shut()
        self._stop()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._call(callback)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        if self._gone:
            self._call(callback)
        elif not self.gate.ended:
            self._callbacks.append(callback)

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception as error:
            self.loop_handle.report(f"on_cancel({describe(callback)}) raised", error)
