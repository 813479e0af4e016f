"""A blocking iterable, pulled on its own thread while there is demand.

`_PullState` is all that the loop and the thread share; it decides. `_PullThread` acts for the
thread and `_ThreadSubscription` for the loop. The loop wakes the thread with a `ReentrantEvent`;
the thread wakes the loop with one callback at a time. So a slow iterable hands over each element
at once and a fast one hands over chunks, without any tuning.

The window of `from_push` bounds the elements between the two threads: unbounded demand arrives here
as one chunk at a time, so a slow subscriber slows the thread down instead of having its elements
pile up.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import isasyncgenfunction
from itertools import count, islice
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, Generic, TypeGuard, TypeVar, cast
from weakref import ref

from .._core.arguments import refuse_awaitable
from .._core.cleanup import CleanupErrors, add_cleanup_error
from .._core.compiler.discards import OnDiscard, discard
from .._core.failures import as_failure, not_an_end
from .._core.loop import wait_first, yield_to_loop
from .._core.observation.awaited import Wait
from .._core.observation.waiting import line_of_thread
from ..stage import (
    UNBOUNDED,
    Downstream,
    FlowSubscription,
    LoopHandle,
    describe,
    from_push,
    require_int,
    require_sync_callable,
)

if TYPE_CHECKING:
    from .._core.loop import Future
    from ..flow import Flow

__all__ = ("Interruptible", "from_interruptible", "from_thread")

T = TypeVar("T")

Interruptible = tuple[Iterable[T], Callable[[], object] | None]
"""An iterable, and a function that makes a blocked call of it return early, if there is one."""

_INTERRUPT_INTERVAL: Final = 0.05  # seconds between two interruptions of one blocked call
_thread_numbers = count(1)


def from_thread(
    source: Iterable[T] | Callable[[], Iterable[T]],
    *,
    chunk: int = 1024,
    interrupt: Callable[[Iterable[T]], object] | None = None,
) -> "Flow[T]":
    """Emit the elements of a blocking iterable, which is iterated on its own thread.

    Each subscription iterates *source*; an iterable that can be iterated only once is given as a
    function that makes it, such as ``lambda: open(path)``. What a function has made is closed at
    the end, if it has a ``close``. All of that happens on the thread, in the subscriber's context,
    so none of it may use the loop. With *interrupt*, cancelling also ends a call that blocks:
    *interrupt* is called with the iterable, on another thread, repeatedly until the call has
    returned; an error of the call is then dropped.

    ::

        from_thread("abc")
        a--b--c--|

    Demand: passed through, at most *chunk* elements at a time. At demand 0 the iterable is not
        touched, and its thread, started by the first request, sleeps; to let it work ahead of its
        subscriber, add a ``boundary``.
    Completes: when the iterable ends, which shows only when one more element is requested.
    Fails: when making or iterating it raises.
    Cancels: returns at once; the thread ends when its current call returns, and closes there what
        a function has made, and a generator. A terminal operator and ``aclose`` wait for that.
        Where nothing waits, the end of the event loop does, for at most 5 seconds; the program
        then ends without the thread.
    Holds: *chunk* elements, which were requested and wait for the loop or a slow subscriber.
    Rules: 1.1, 3.4, 3.5, 3.13
    """

    if _is_factory(source):
        remedy = "use from_awaitable."
        if isasyncgenfunction(source):
            raise TypeError(
                f"from_thread: {describe(source)} is iterated with async for; use from_aiter"
            )
        require_sync_callable("from_thread", "source", source, remedy, takes=0, may_generate=True)
    else:
        _require_iterable(source, "")
    if interrupt is not None:
        remedy = "it is called on a thread, without an event loop."
        require_sync_callable("from_thread", "interrupt", interrupt, remedy, takes=1)

    def open() -> Interruptible[T]:
        iterable = cast("Iterable[T]", source)
        if _is_factory(source):
            iterable = source()
            refuse_awaitable("from_thread", source, iterable)
            _require_iterable(iterable, f"{describe(source)} returned ")
        return iterable, None if interrupt is None else partial(interrupt, iterable)

    return from_interruptible(open, name="from_thread", chunk=chunk, closes=_is_factory(source))


def _is_factory(
    source: Iterable[T] | Callable[[], Iterable[T]],
) -> TypeGuard[Callable[[], Iterable[T]]]:
    """Whether it is a function to call; an iterable that is also callable is iterated."""
    return callable(source) and not isinstance(source, Iterable)


def _require_iterable(value: object, origin: str) -> None:
    if not isinstance(value, Iterable) and not hasattr(value, "__getitem__"):
        raise TypeError(
            f"from_thread: {origin}{describe(value)} ({type(value).__name__}), which is not an "
            "iterable; use from_aiter for an asynchronous one"
        )


def from_interruptible(
    open: Callable[[], Interruptible[T]],
    *,
    name: str,
    chunk: int,
    holds: int | None = 0,
    closes: bool = False,
) -> "Flow[T]":
    """`from_thread` for an iterable with its own way to be interrupted; *open* runs on the thread.

    With *closes*, the iterable is closed at the end, if it has a ``close``. *holds* is how many
    elements the iterable itself keeps at most, None if that is unknown; *chunk* more wait between
    the threads.
    """
    require_int(name, "chunk", chunk, least=1)

    def subscription(downstream: Downstream[T]) -> _ThreadSubscription[T]:
        return _ThreadSubscription(
            downstream, _PullThread(open, LoopHandle(name), name, closes, downstream)
        )

    held = None if holds is None else holds + chunk
    return from_push(subscription, name=name, holds=held, window=chunk)


class ReentrantEvent:
    """An event for one waiting thread. `set` takes no lock, so a finalizer may call it anywhere.

    The thread calls `clear`, looks at the state it waits for, and then calls `wait`: a `set` after
    `clear` is never missed, and `wait` may return early.
    """

    __slots__ = ("_lock", "_seen", "_sets", "is_waiting")

    def __init__(self) -> None:
        self._lock = Lock()  # held, except between `set` and the return of `wait`
        self._lock.acquire(blocking=False)
        self._sets = self._seen = 0
        self.is_waiting = False

    def set(self) -> None:
        self._sets += 1
        if self._lock.locked():
            with suppress(RuntimeError):  # another thread released it first
                self._lock.release()

    def clear(self) -> None:
        self._seen = self._sets

    def wait(self) -> None:
        self.is_waiting = True
        self._lock.acquire()
        self.is_waiting = False

    def is_parked(self) -> bool:
        """Whether the thread waits for another thread: `reactive_aio.testing.Parkable`.

        `is_waiting` alone would be true for a moment after `set`.
        """
        return self.is_waiting and self._seen == self._sets


@dataclass(slots=True, eq=False)
class _PullState(Generic[T]):
    """The state of one subscription that the loop and the thread share. It calls nothing.

    There is no lock: each store and each operation of the list is atomic, and both sides keep to
    these orders:

    * The loop changes `requested` or `is_cancelled`, then sets the event. The thread clears the
      event, then looks at both (`demand`). So the thread never sleeps while there is demand.
    * The thread appends to `ready`, then looks at `is_posted`. The loop resets `is_posted`, then
      takes from `ready` (`take`). So an element is never left without a callback.
    * The thread sets `error`, then `is_finished`, after its last append. The loop looks at
      `is_finished` before it takes from `ready` (`take`). So the end never overtakes an element.
    """

    requested: int = 0
    pulled: int = 0
    ready: list[T] = field(default_factory=list[T])
    is_posted: bool = False
    """A callback that takes from `ready` is scheduled on the loop."""
    is_cancelled: bool = False
    is_finished: bool = False
    error: BaseException | None = None

    # -- decisions of the thread ------------------------------------------------------------------
    def demand(self) -> int | None:
        """How many elements to pull: 0 to wait for more demand, None to stop."""
        return None if self.is_cancelled else self.requested - self.pulled

    def finish(self, error: BaseException | None) -> None:
        """The thread ends and adds no more. After a cancellation, *error* is dropped."""
        if error is not None and not self.is_cancelled:
            self.error = as_failure(not_an_end(error, "the iterable"))
        self.is_finished = True

    # -- decisions of the loop --------------------------------------------------------------------
    def request(self, n: int) -> None:
        self.requested = min(self.requested + n, UNBOUNDED)

    def cancel(self) -> None:
        self.is_cancelled = True

    def take(self) -> tuple[list[T], bool]:
        """The elements to deliver, and whether they are the last ones."""
        self.is_posted = False
        is_finished = self.is_finished
        ready = self.ready
        elements = ready[:]
        del ready[: len(elements)]  # the thread may have appended more
        return elements, is_finished


class _PullThread(Generic[T]):
    """The thread of one subscription: it pulls elements and posts them to the loop."""

    __slots__ = (
        "_cleanup",
        "_closes",
        "_on_discard",
        "_open",
        "event",
        "interrupt",
        "is_interrupting",
        "loop_handle",
        "owner",
        "owners",
        "state",
        "thread",
    )

    def __init__(
        self,
        open: Callable[[], Interruptible[T]],
        loop_handle: LoopHandle,
        name: str,
        closes: bool,
        downstream: Downstream[T],
    ) -> None:
        self._open = open
        self._closes = closes
        self._cleanup: CleanupErrors | None = downstream.cleanup
        self._on_discard: OnDiscard | None = downstream.on_discard
        self.loop_handle = loop_handle
        self.state: _PullState[T] = _PullState()
        self.event = ReentrantEvent()
        self.interrupt: Callable[[], object] | None = None
        self.is_interrupting = False
        # Weak, so that a subscription without other references ends its thread (its `__del__`).
        self.owner: Callable[[], _ThreadSubscription[T] | None] = lambda: None
        # But demand keeps it alive: each request adds a reference, after `requested`. The thread
        # drops those it saw before it looked at the demand, all but one while it has work. A
        # scheduled callback keeps it alive as well.
        self.owners: deque[_ThreadSubscription[T]] = deque()
        self.thread = Thread(
            # A context can be entered by one thread at a time, and the loop's thread uses ours.
            target=loop_handle.context.copy().run,
            args=(self._run,),
            name=f"reactive_aio-{name}-{next(_thread_numbers)}",
            # A call that blocks for ever must not keep the interpreter from ending. The end of the
            # loop waits for some time.
            daemon=True,
        )

    def _run(self) -> None:
        error: BaseException | None = None
        closing: list[object] = []
        try:
            self._pull(closing)
        except BaseException as raised:
            error = raised
        for each in closing:
            error = self._close(each, error)
        closing.clear()
        self.state.finish(error)
        del error  # with its traceback
        self._post()
        self.owners.clear()
        self.loop_handle.need_not_join(self)

    def _pull(self, closing: list[object]) -> None:
        """Pull the elements. *closing* receives what is to be closed afterwards."""
        if not self._wait_for_demand():
            return
        source, self.interrupt = self._open()
        if self._closes:
            closing.append(source)
        elements = iter(source)
        if isinstance(cast("object", elements), Generator):
            closing.insert(0, elements)
        del source
        state = self.state
        add = state.ready.append
        while wanted := self._wait_for_demand():
            pulled = 0
            for element in islice(elements, wanted):
                pulled += 1
                add(element)
                if not state.is_posted:
                    self._post()
                if state.is_cancelled:
                    return
            state.pulled += pulled
            if pulled < wanted:
                return  # the iterable has ended

    def _wait_for_demand(self) -> int:
        """Sleep until there is demand, and return it; 0 after a cancellation."""
        while True:
            self.event.clear()
            seen = len(self.owners)
            demand = self.state.demand()
            if demand is None:
                return 0
            for _ in range(seen - 1 if demand else seen):
                self.owners.popleft()
            if demand:
                return demand
            self.event.wait()

    def _close(self, iterable: object, error: BaseException | None) -> BaseException | None:
        """Close *iterable* if it can be closed; return the error of the flow, the first one."""
        close = getattr(iterable, "close", None)
        try:
            if callable(close):
                close()
        except BaseException as raised:
            if error is None and not self.state.is_cancelled:
                return raised
            self._report("closing the iterable raised after the end of the flow", raised)
        return error

    def _post(self) -> None:
        """Schedule, on the loop, the delivery of the ready elements."""
        owner = self.owner()
        if owner is None:
            if self.state.is_cancelled and self._on_discard is not None:
                self.loop_handle.call_soon_threadsafe(self.discard_ready)
            return
        self.state.is_posted = True
        if not self.loop_handle.call_soon_threadsafe(owner.deliver):
            self.state.cancel()

    def _report(self, what: str, error: BaseException) -> None:
        report = partial(self.loop_handle.report, f"{self.thread.name}: {what}", error)
        self.loop_handle.call_soon_threadsafe(add_cleanup_error, self._cleanup, error, report)

    def discard_ready(self) -> None:
        """On the loop: discard the elements that were pulled and not delivered."""
        elements, _ = self.state.take()
        self.discard(elements)

    def discard(self, elements: list[T]) -> None:
        discard(self._on_discard, elements)

    # -- called by the loop -----------------------------------------------------------------------
    def start(self) -> None:
        self.loop_handle.join_at_end(self)
        self.thread.start()

    def stop_threads(self) -> None:
        self.interrupt_and_stop()

    def join_threads(self, seconds: float) -> str:
        self.thread.join(seconds)
        return self.thread.name if self.thread.is_alive() else ""

    def interrupt_and_stop(self) -> None:
        """`stop`, and interrupt the current call if that is possible."""
        is_sleeping = self.event.is_waiting
        self.stop()
        is_calling = self.thread.ident is not None and not is_sleeping
        if is_calling and not self.state.is_finished and not self.is_interrupting:
            self.is_interrupting = True  # a drain stops it, and when its time is over a cancel
            self.start_interrupting()

    def stop(self) -> None:
        """End the thread: at once if it sleeps, else when its current call returns."""
        self.state.cancel()
        self.event.set()

    def start_interrupting(self) -> None:
        helper = Thread(
            target=self.loop_handle.context.copy().run,
            args=(self._keep_interrupting,),
            name=f"{self.thread.name}-interrupt",
            daemon=True,
        )
        with suppress(RuntimeError):  # the system has no thread left: the call ends by itself
            helper.start()

    def _keep_interrupting(self) -> None:
        """Interrupt repeatedly: the first time, the call may not block yet."""
        while self.thread.is_alive():
            interrupt = self.interrupt
            if interrupt is not None:
                try:
                    interrupt()
                except Exception as error:
                    self._report("interrupting the iterable raised", error)
                    return
            self.thread.join(_INTERRUPT_INTERVAL)


class _ThreadSubscription(FlowSubscription, Generic[T]):
    """The loop's side of one subscription."""

    __slots__ = ("__weakref__", "_closing", "_downstream", "_is_started", "_worker")

    def __init__(self, downstream: Downstream[T], worker: _PullThread[T]) -> None:
        self._downstream: Downstream[T] | None = downstream
        self._worker = worker
        self._is_started = False
        self._closing: Future[None] | None = None
        worker.owner = ref(self)

    def request(self, n: int) -> None:
        worker = self._worker
        worker.state.request(n)
        worker.owners.append(self)
        if self._is_started:
            worker.event.set()
            return
        self._is_started = True
        try:
            worker.start()
        except RuntimeError as error:  # the system has no thread left
            worker.owners.clear()
            worker.loop_handle.need_not_join(worker)
            self._end(error)

    @property
    def own_wait(self) -> Wait | None:
        worker = self._worker
        if not self._is_started or worker.state.is_finished or worker.event.is_parked():
            return None  # it waits for demand, if for anything
        line = line_of_thread(worker.thread.ident or 0)
        return None if line is None else Wait("function", line)

    def deliver(self) -> None:
        """Deliver the ready elements."""
        state, downstream = self._worker.state, self._downstream
        elements, is_finished = state.take()
        if downstream is None:
            self._worker.discard(elements)
        if is_finished and self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        if downstream is None:
            return
        if elements:
            downstream.push(elements)
        if is_finished:
            error, state.error = state.error, None
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return  # cancelled while the last elements were delivered
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    def cancel(self) -> None:
        self._downstream = None
        self._worker.interrupt_and_stop()
        self._worker.discard_ready()

    def stop_source(self) -> bool:
        """Complete when the call that runs has returned, with its element."""
        self._worker.interrupt_and_stop()
        return self._is_started

    @property
    def is_clean(self) -> bool:
        state = self._worker.state
        return not (self._is_started and not state.is_finished) and not state.is_cancelled

    async def aclose(self) -> None:
        """Wait, after a cancellation, until the thread has closed the iterable and ends."""
        if self._is_started and not self._worker.state.is_finished:
            self._closing = self._closing or self._worker.loop_handle.create_future()
            await wait_first(self._closing)
        elif self._worker.state.is_cancelled:
            await yield_to_loop()  # what the closing raised is still on its way to the loop

    def __del__(self) -> None:
        # Collected without a signal, for example after its loop was closed. Only what is safe
        # inside the garbage collector: no thread is started and no lock is taken.
        if self._downstream is not None:
            self._worker.stop()
