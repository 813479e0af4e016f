"""running: a flow that runs beside the block of an ``async with``, and can be drained."""

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from .._core.cleanup import CleanupErrors
from .._core.loop import CancelledError, Future, current_task, timeout as time_limit, wait_first
from .._core.observation.waiting import what_run_waits_for
from .._core.run_control import DrainTimes, OnDiscard, RunControl, RunDiscards, current_run
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .._shared.element_work import OnError
from ..errors import Interrupted, WrongLoop
from ..limits import Limits
from ..retry import RetryPolicy
from ..stage import UNBOUNDED, Duration, FlowSubscription, LoopHandle, to_seconds
from .for_each import after_calls

if TYPE_CHECKING:
    from types import TracebackType

    from .._core.loop import Task
    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("DrainReport", "Run", "running")

T = TypeVar("T")

DRAIN_TIME: Final = 10.0
"""The seconds that a drain may take by default."""


def running(
    source: "Fluent[T]",
    function: Callable[[T], object] | None = None,
    *,
    concurrency: int = 1,
    ordered: bool = False,
    key: Callable[[T], Hashable] | None = None,
    retry: RetryPolicy | int | None = None,
    timeout: Duration | None = None,
    on_error: OnError[T] = "fail",
    limiter: Limits | None = None,
) -> "Run[T]":
    """Run the flow beside the block of an ``async with``, and stop it without losing elements.

    ::

        async with orders.running(save, concurrency=8) as run:
            await stopped.wait()
            report = await run.drain(timeout=10)

    *function* is called with each element; without one, the elements are discarded at the end of
    the flow. *concurrency*, *ordered*, *key*, *retry*, *timeout*, *on_error* and *limiter* are
    those of `for_each`. The flow starts when the block is entered.
    Leaving the block cancels the flow and waits for its cleanup, unless it has ended. A flow that
    fails cancels the block, as a task of a task group does, and the block raises its error, unless
    ``wait`` or ``drain`` has raised it.

    Demand: unbounded; with *function*, elements come one at a time, or *concurrency* at a time.
    Completes: ``wait`` returns when the flow has ended, ``drain`` when it was drained; whether all
        of it was done, ``is_complete`` says.
    Fails: ``wait``, ``drain`` or the end of the block raises the error of the flow.
    Cancels: at the end of the block, waiting for the cleanup.
    Holds: what `for_each` holds.
    Rules: 1.3, 2.1
    """
    if function is not None:
        source = after_calls(
            "running",
            source,
            function,
            concurrency=concurrency,
            ordered=ordered,
            key=key,
            retry=retry,
            timeout=timeout,
            on_error=on_error,
            limiter=limiter,
        )
    elif (concurrency, ordered, key, retry, timeout, on_error, limiter) != _NO_OPTIONS:
        raise TypeError("running: options such as concurrency are for a function; give one")
    return Run(source)


_NO_OPTIONS: Final = (1, False, None, None, None, "fail", None)


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What a drain has done with the elements of a run.

    - delivered: elements that have passed the whole flow, from the start of the run on; with a
      function, those for which it has returned.
    - drained: how many of those were delivered since the drain began.
    - in_flight: elements whose processing had begun, and had not ended when the time was over. It
      is cancelled; a call that is in a cleanup then runs to its end.
    - discarded: elements that were held and not processed when the time was over; a list counts
      once.
    - unacknowledged: deliveries that were read, and neither acknowledged nor given back: their
      source delivers them again. Each is also one of those above, or of those before `deliveries`.
      0 where there are no deliveries.
    - is_complete: whether the flow completed within the time. It did not if it has failed, or was
      cancelled by something else: the time of another drain, or the end of the block. What a queue
      of asyncio still holds was not read, and is not counted anywhere.
    - seconds: how long it took.
    - is_clean: whether its cleanups and acknowledgements have ended as well. Otherwise they go on,
      and nothing waits for them.
    - waits_for: what it waited for when it was cut, since its time was over or by something else:
      each flow, operator and call, and your line. Empty if it is complete and clean.
    """

    delivered: int
    drained: int
    in_flight: int
    discarded: int
    unacknowledged: int
    is_complete: bool
    seconds: float
    is_clean: bool = True
    waits_for: str = ""

    def __str__(self) -> str:
        how = "drained" if self.is_complete else "not drained"
        when = "when it was cut, it waited for" if self.is_clean else "still waiting"
        return (
            f"{how} in {self.seconds:.3g} s: {self.delivered} delivered ({self.drained} of them "
            f"since the drain began), {self.in_flight} in flight, {self.discarded} discarded, "
            f"{self.unacknowledged} unacknowledged"
        ) + (f"; {when}: {self.waits_for}" if self.waits_for else "")


class Run(Generic[T]):
    """A flow that runs beside a block: the context manager that `running` returns. It runs once.

    `wait` waits for the end of the flow; `drain` ends its input and waits until what was read is
    delivered. Leaving the block cancels the flow, unless it has ended, and waits for its cleanup. A
    flow that fails cancels the block, which raises its error.
    """

    __slots__ = (
        "_cancelled_before",
        "_error",
        "_has_left",
        "_is_block_cancelled",
        "_source",
        "_subscriber",
        "_task",
        "_waiting",
    )  # fmt: skip

    def __init__(self, source: "Fluent[T]") -> None:
        self._source: Fluent[T] | None = source
        self._subscriber: _RunSubscriber | None = None
        self._task: Task[Any] | None = None
        """The task of the block, while that is to be cancelled by a failure."""
        self._cancelled_before = 0
        self._is_block_cancelled = False
        self._error: BaseException | None = None
        """The error that was raised."""
        self._has_left = False
        """Whether the block has ended."""
        self._waiting = 0
        """How many calls of `wait` and `drain` are going to raise the error."""

    def __repr__(self) -> str:
        subscriber = self._subscriber
        if subscriber is None:
            return "<Run not started>"
        state = "ended" if subscriber.is_done else "running"
        return f"<Run {state}, {subscriber.delivered} delivered>"

    @property
    def delivered(self) -> int:
        """How many elements have passed the whole flow."""
        return 0 if self._subscriber is None else self._subscriber.delivered

    @property
    def is_done(self) -> bool:
        """Whether the flow has ended."""
        return self._subscriber is not None and self._subscriber.is_done

    @property
    def is_complete(self) -> bool:
        """Whether the flow has completed: it has neither failed nor was cut."""
        return self._subscriber is not None and self._subscriber.is_complete

    async def wait(self) -> None:
        """Wait until the flow has ended; raise its error if it has failed.

        It also returns if the flow is cut, because the time of a drain is over or the block is
        left: `is_complete` is False then.
        """
        subscriber = self._started("wait()")
        with self._raising():
            had_ended = subscriber.is_done
            await self._wait_for_end(subscriber, None, None)
            await self._raise_error(subscriber, had_ended)

    async def drain(self, timeout: Duration | None = DRAIN_TIME) -> DrainReport:
        """Complete the sources, deliver what the flow holds, and report.

        No source reads any more. What was read before passes through every stage, queue and call,
        and the operators complete one after another, as at the end of the input: a ``buffer`` emits
        its last list.

        *timeout* is the time for all of it (None: without a limit). What has not been delivered
        after nine tenths is cancelled. The rest, half a second at least, is for acknowledgements
        and cleanups: what has not ended then is not cut, but nothing waits for it any longer, and
        the report names it (``waits_for``).

        A source that was made of an element, as by ``flat_map``, is work on that element and runs
        to its end; but one that has no end, such as a queue, ``interval`` or a processor,
        completes. Sources that would follow, as after ``concat`` or ``repeat``, are not started.

        Raises the error of a flow that fails, with the report as a note.
        """
        seconds = None if timeout is None else to_seconds(timeout, "drain: timeout", zero=True)
        return await self.drain_within(DrainTimes.within(seconds))

    async def ended_before(self, signalled: Future[Any]) -> bool:
        """Wait until the flow has ended, or *signalled* is done; return whether it has ended."""
        subscriber = self._started("wait()")
        with self._raising():
            await self._wait_for_end(subscriber, None, signalled)
            if subscriber.is_done:
                await self._raise_error(subscriber, had_ended=False)
        return subscriber.is_done

    async def drain_within(
        self, times: DrainTimes, on_late: Callable[[], object] | None = None
    ) -> DrainReport:
        """`drain`. If the work is not done in time, *on_late* is called before it is cancelled."""
        with self._raising():
            return await self._drain(self._started("drain()"), times, on_late)

    async def _drain(
        self,
        subscriber: "_RunSubscriber",
        times: DrainTimes,
        on_late: Callable[[], object] | None,
    ) -> DrainReport:
        before, loop_handle = subscriber.delivered, subscriber.loop_handle
        began, had_ended = loop_handle.time(), subscriber.is_done
        control = subscriber.control
        loop_handle.run(control.stop)
        await self._wait_for_end(subscriber, times.work, None)
        if not subscriber.is_done and on_late is not None:
            on_late()
        passed = loop_handle.time() - began
        is_clean = await subscriber.closed_within(times.left_after(passed))
        report = DrainReport(
            delivered=subscriber.delivered + control.finished,
            drained=subscriber.delivered + control.finished - before,
            in_flight=control.interrupted,
            discarded=control.discarded,
            unacknowledged=control.unacknowledged,
            is_complete=subscriber.is_complete,
            seconds=loop_handle.time() - began,
            is_clean=is_clean,
            waits_for=subscriber.waited_for if is_clean else subscriber.waits(),
        )
        await self._raise_error(subscriber, had_ended, str(report))
        return report

    def _started(self, call: str) -> "_RunSubscriber":
        if self._subscriber is None:
            raise RuntimeError(
                f"the flow does not run yet; write `async with flow.running() as run:`, and call "
                f"run.{call} in the block"
            )
        loop_handle = self._subscriber.loop_handle
        if not loop_handle.is_running_here:
            remedy = "from another thread, use asyncio.run_coroutine_threadsafe(…, loop)"
            raise WrongLoop(f"run.{call}", remedy, is_closed=loop_handle.is_closed)
        return self._subscriber

    async def _wait_for_end(
        self, subscriber: "_RunSubscriber", seconds: float | None, signalled: Future[Any] | None
    ) -> None:
        """Wait for the end, but not longer than *seconds* or until *signalled* is done."""
        futures = [subscriber.end, *(() if signalled is None else (signalled,))]
        with suppress(TimeoutError):
            async with time_limit(seconds):
                await wait_first(*futures)

    @contextmanager
    def _raising(self) -> Generator[None]:
        """Around a call that waits for the end of the flow, and raises its error."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            self._forget_error()

    def _forget_error(self) -> None:
        """Forget the error, whose traceback refers to this, when nobody is going to raise it."""
        if self._has_left and not self._waiting:
            self._error = None

    async def _raise_error(
        self, subscriber: "_RunSubscriber", had_ended: bool = True, note: str = ""
    ) -> None:
        """Wait for the cleanup; raise the error of the flow or the cleanup.

        It is raised once, and in each call that was waiting for the end of the flow, which
        *had_ended* before those that follow.
        """
        await subscriber.aclose()
        error = self._error
        if error is None:
            error = self._error = subscriber.take_error()
        elif had_ended:
            return
        if error is not None:
            if note:
                error.add_note(note)
            raise error

    # -- the block --------------------------------------------------------------------------------
    async def __aenter__(self) -> "Run[T]":
        source, self._source = self._source, None
        if source is None:
            raise RuntimeError("a Run runs once; call flow.running() for another one")
        self._task = current_task()
        if self._task is not None:
            self._cancelled_before = self._task.cancelling()
        subscriber = self._subscriber = _RunSubscriber(LoopHandle("running()"), self._on_failure)
        context = copy_context()
        context.run(current_run.set, subscriber.control)
        context.run(source.subscribe, subscriber)
        return self

    def _on_failure(self) -> None:
        """The flow has failed: cancel the block, unless it is waiting for the flow anyway."""
        # Later, since a task that runs now could leave the block before it is interrupted.
        cast("_RunSubscriber", self._subscriber).loop_handle.call_soon(self._cancel_block)

    def _cancel_block(self) -> None:
        if self._task is not None and not self._waiting and self._error is None:
            self._is_block_cancelled = True
            self._task.cancel()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        task, self._task = self._task, None
        try:
            await self._leave(cast("_RunSubscriber", self._subscriber), task, error)
        finally:
            self._has_left = True
            self._forget_error()

    async def _leave(
        self,
        subscriber: "_RunSubscriber",
        task: "Task[Any] | None",
        error: BaseException | None,
    ) -> None:
        if self._is_block_cancelled and task is not None:
            is_ours = task.uncancel() <= self._cancelled_before
            if is_ours and isinstance(error, CancelledError):
                await self._raise_error(subscriber)
                raise cast("BaseException", self._error)  # it was raised in another task
        if error is None:
            await self._raise_error(subscriber)
            return
        await subscriber.aclose()
        failure = subscriber.take_error()
        # At the end of the program, `asyncio.run` cancels the block and the task of the flow.
        is_cancelled_too = isinstance(error, CancelledError) and isinstance(failure, Interrupted)
        if failure is not None and failure is not error and not is_cancelled_too:
            message = "a flow failed whose block has raised another error"
            subscriber.loop_handle.report(message, failure)


@dataclass(slots=True, eq=False, repr=False)
class _RunSubscriber(BulkSubscriber):
    """Counts the elements, and is the end from which the control travels upstream."""

    loop_handle: LoopHandle
    _on_failure: Callable[[], object]
    control: RunControl = field(default_factory=RunControl)
    delivered: int = 0
    end: Future[None] = field(init=False)
    """Done when the flow has ended."""
    is_done: bool = False
    is_complete: bool = False
    """Whether it has ended by itself, and without an error."""
    waited_for: str = ""
    """What ran when the flow was cut while it was drained."""
    _is_cut: bool = False
    is_notified: bool = True
    cleanup: CleanupErrors = field(  # pyright: ignore[reportIncompatibleMethodOverride]
        default_factory=CleanupErrors
    )
    _discards: RunDiscards = field(init=False)
    _error: BaseException | None = None
    _subscription: "Subscription | None" = None
    _closing: "Task[Any] | None" = None
    _top: FlowSubscription | None = None
    """The subscription also while it cleans up and nobody waits for that."""

    def __post_init__(self) -> None:
        self.end = self.loop_handle.create_future()
        self._discards = RunDiscards(self.control, self.control)

    @property
    def on_discard(self) -> OnDiscard:
        return self._discards

    async def aclose(self) -> None:
        """Cancel the flow unless it has ended, and wait for its cleanup."""
        self._note_cut()
        try:
            if isinstance(subscription := self._subscription, FlowSubscription):
                await self.cleanup.wait(subscription)
                self._subscription = self._top = None
        finally:
            self._set_ended()

    def _note_cut(self) -> None:
        """The flow is going to be cancelled, unless it has ended."""
        if not self.is_done and not self._is_cut:
            self._is_cut = True
            if self.control.is_stopped:
                self.waited_for = self.waits()

    async def closed_within(self, seconds: float | None) -> bool:
        """`aclose`, at most *seconds*; return whether the cleanup is over.

        If it is not, nobody waits for it any longer.
        """
        self._note_cut()
        if self._closing is None:  # else another drain has begun it
            if seconds is None:
                await self.aclose()
                return True
            self._closing = self.loop_handle.create_task(self.aclose(), "closes the flow")
        closing = self._closing
        try:
            async with time_limit(seconds):
                await wait_first(closing)
        except TimeoutError:
            self._subscription = None
            return False
        closing.result()
        return True

    def waits(self) -> str:
        """One line: what runs for the flow now."""
        return what_run_waits_for(self.control, self.loop_handle.event_loop, self._top)

    def _set_ended(self) -> None:
        self.is_done = True
        if not self.end.done():
            self.end.set_result(None)

    def take_error(self) -> BaseException | None:
        """The error of the flow, or that of its cleanup."""
        error, self._error = self._error, None
        if error is None:
            return self.cleanup.take()
        self.cleanup.report()
        return error

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription
        if isinstance(subscription, FlowSubscription):
            self._top = subscription
        subscription.request(UNBOUNDED)

    def append(self, _: object) -> None:
        self.delivered += 1

    on_next = append

    def flush(self) -> None:
        """Nothing waits for an element."""

    def on_error(self, error: BaseException) -> None:
        self._error = error
        self._set_ended()
        self._on_failure()

    def on_complete(self) -> None:
        self.is_complete = not self._is_cut
        self._set_ended()
