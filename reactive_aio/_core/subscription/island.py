"""Island: one subscription, from where elements enter to where the subscriber receives them.

`Island` executes what the table in `lifecycle` decides and holds every guard of the contract of
signals, once, for all operators: serial delivery (1.3), one terminal signal (1.7), demand (1.1,
3.9), cancellation (3.5 to 3.7), releasing the subscriber (3.13), a subscriber that raises (2.13),
the subscriber's context, and threads. How its loop runs is in `sync_island` and in `task_island`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from inspect import isawaitable, iscoroutine
from threading import get_ident
from typing import Any, Final, cast

from ...errors import Interrupted
from ...spec import Subscriber
from ..cleanup import CleanupErrors, add_cleanup_error
from ..compiler.chain import Chain, PullSource, PushSource, control_of_source, is_spent
from ..compiler.discards import Discards
from ..compiler.end_hooks import EndHooks
from ..compiler.loop_runtime import (
    CLOSABLE,
    NO_DEMAND,
    NO_ELEMENTS,
    Pause,
)
from ..compiler.loops import CompiledLoop
from ..demand import require_demand
from ..failures import STOPS_PROGRAM, as_failure, is_cancelled, is_cancelled_here
from ..flow_subscription import FlowSubscription
from ..loop import (
    LoopHandle,
    Task,
    report,
    wait_for_others,
    yield_to_loop,
)
from ..observation.registry import NamedFlow, current_flow, named_flow
from ..observation.tracing import End, Outcome
from ..run_control import RunControl
from ..time_slice import TimeSlice
from .bulk_subscriber import BulkSubscriber
from .input_queue import InputQueue
from .lifecycle import Action, Input, Phase

_NEVER: Final = float("-inf")
# Looking up a member of an enumeration takes as long as all the rest of a step.
_IDLE: Final = Phase.IDLE
# And a tuple is indexed faster by an int than by a member of an IntEnum.
_REQUEST, _WAKE = int(Input.REQUEST), int(Input.WAKE)
_PAUSED, _FINISHED = int(Input.PAUSED), int(Input.FINISHED)
_DRAIN, _RECHECK = Action.DRAIN, Action.RECHECK
_INTERRUPT, _RELEASE, _TERMINATE = Action.INTERRUPT, Action.RELEASE, Action.TERMINATE


@dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class Island(TimeSlice, FlowSubscription):
    """One subscription. `request` and `cancel` may be called from any thread, at any time."""

    mode = "sync"
    chain: Chain
    subscriber: Subscriber[Any] | None
    delivery: InitVar[str]
    loop_handle: LoopHandle
    compiled_loop: CompiledLoop = field(init=False)
    flush_batch: Callable[[], None] | None = None
    cleanup: CleanupErrors | None = None
    end_hooks: EndHooks | None = None
    phase: Phase = Phase.OPENING
    limit: float = 0  # requested in total; -inf once no more signals may be sent
    emitted: int = 0  # delivered in total, as of the last pause of the drain
    passed: int = 0  # have passed the name of the flow, if it has one
    requested_limit: float = 0  # `limit` at the last request to upstream
    needed: float | None = None  # from upstream, as of the last pause, if that is not the demand
    is_stopped: bool = False
    pause: Pause = NO_DEMAND
    error: BaseException | None = None
    keeps_flows: bool = False  # it completes, and flows that it has delivered may be read
    is_fault: bool = False  # `error` answers a broken rule (3.9), and is sent although stopped
    source: Any = None
    input_queue: InputQueue[Any] | None = None
    pending_signal: Awaitable[None] | None = None
    awaited_signal: Awaitable[None] | None = None  # what a task of its own awaits now
    task: Task[Any] | None = None
    closing_upstream: FlowSubscription | None = None
    is_finished: bool = False  # everything that it delivered is processed
    discards: Discards | None = None
    record: NamedFlow | None = None

    def __post_init__(self, delivery: str) -> None:
        chain, on_discard = self.chain, None
        subscriber: object = self.subscriber
        if isinstance(subscriber, BulkSubscriber):
            self.flush_batch, self.cleanup = subscriber.flush, subscriber.cleanup
            on_discard = subscriber.on_discard
        if on_discard is None and not chain.discard_hooks:
            self.compiled_loop = chain.compiled_loop(self.mode, delivery)
        else:
            self.discards = chain.discards(on_discard)
            # `extend` would not show what was delivered.
            delivery = "append" if delivery == "extend" else delivery
            self.compiled_loop = chain.compiled_loop(self.mode, delivery, True)
        if chain.label is not None:
            self.record = named_flow(chain.label)
            self.record.begin(self, self.loop_handle.time())
            self.loop_handle.context.run(current_flow.set, self.record)
        if (hooks := self.compiled_loop.end_hooks) is not None:
            self.end_hooks = EndHooks(hooks(*self.chain.arguments), report, as_failure)

    def __repr__(self) -> str:
        return f"<subscription {self.phase.name.lower()} {self.chain.trail()}>"

    # -- the subscription: any thread -------------------------------------------------------------
    def request(self, n: int, /) -> None:
        # The addition is atomic under the GIL, and the drain reads the limit again after it has
        # become idle. So only an idle island needs its thread (docs/decisions/0004).
        if n.__class__ is not int or n < 1:
            self._request_unusual(n)
            return
        self.limit += n
        if self.phase is _IDLE:
            loop_handle = self.loop_handle
            if get_ident() != loop_handle.thread:
                loop_handle.call_soon_threadsafe(self._enter, _REQUEST)
            elif loop_handle.event_loop.is_closed():
                self._fail(Interrupted("the event loop of this subscription is closed"))
            else:
                self.resume()

    def cancel(self) -> None:
        self.is_stopped = True
        if self.loop_handle.is_current_thread:
            self.limit, self.is_fault = _NEVER, False
            self._wake(Input.CANCEL)
        else:
            self.loop_handle.call_soon_threadsafe(self.cancel)

    def leave(self) -> None:
        self.keeps_flows = True
        self.cancel()

    @property
    def is_one_by_one(self) -> bool:
        return self.chain.is_one_by_one

    @property
    def is_lossy(self) -> bool | None:
        return self.chain.is_lossy

    @property
    def passes_on(self) -> FlowSubscription | None:
        return None if self.input_queue is None else self.input_queue.upstream

    @property
    def is_settled(self) -> bool:
        # Not closed: its loop runs further up the stack, and will find that it was cancelled.
        # In its own task, a closed island is about to return: it has cleaned up before its end.
        task = self.task
        is_over = task is None or task.done() or self.loop_handle.is_current_task(task)
        return self.phase is Phase.CLOSED and is_over

    async def settle(self) -> None:
        if self.task is not None:
            await wait_for_others((self.task,))
        if self.phase is not Phase.CLOSED:
            await yield_to_loop()

    @property
    def closing(self) -> Sequence[FlowSubscription]:
        return () if self.closing_upstream is None else (self.closing_upstream,)

    def _request_unusual(self, n: object) -> None:
        """Handle rule 3.9, and subclasses of int."""
        try:
            valid = require_demand(n)
        except ValueError as error:
            if self.loop_handle.is_current_thread:
                self._fail(error)
            else:
                self.loop_handle.call_soon_threadsafe(self._fail, error)
        else:
            self.request(valid)

    def _fail(self, error: BaseException) -> None:
        if not self.is_stopped:
            self.error, self.is_fault, self.is_stopped, self.limit = error, True, True, _NEVER
            self._wake(Input.FAULT)

    def _wake(self, happened: int) -> None:
        """Apply *happened* on the loop's thread, in the subscription's context."""
        loop_handle = self.loop_handle
        if get_ident() != loop_handle.thread:
            loop_handle.call_soon_threadsafe(self._enter, happened)
        else:
            loop_handle.run_or_defer(self._enter, happened)

    def wake(self) -> None:
        """The input queue has elements or the end."""
        if self.phase is _IDLE:
            self.loop_handle.run_or_defer(self._enter, _WAKE)

    def resume(self, elements: tuple[object, ...] | None = None, /) -> bool | None:
        """Resume the idle loop, in the subscription's context: there is demand.

        With *elements*, return whether it has processed them, and is idle again; None if it does
        not wait for any, and has not taken them.
        """
        if elements is None:
            self.loop_handle.run_or_defer(self._enter, _WAKE)
        return None

    def note_finished(self) -> Sequence[FlowSubscription]:
        self.is_finished = True
        if self.phase is not Phase.CLOSED or self.closing_upstream is None:
            return ()  # a call that was cancelled cleans up
        return (self.closing_upstream,)

    def pull(self) -> None:
        if self.input_queue is not None:
            self.input_queue.process()

    # -- what it does, for reports ----------------------------------------------------------------
    @property
    def upstreams(self) -> Sequence[FlowSubscription]:
        upstream = None if self.input_queue is None else self.input_queue.upstream
        return () if upstream is None else (upstream,)

    @property
    def delivered(self) -> int:
        """How many elements have passed its name; without one, how many it has delivered, as of the
        last time that its loop paused."""
        return self.emitted if self.chain.label is None else self.passed

    @property
    def is_waiting(self) -> bool:
        """Whether its loop waits for demand or elements."""
        return self.phase is _IDLE

    @property
    def awaited(self) -> Any:
        """The coroutine of its loop, which awaits functions of the user; None without one."""
        return None

    @property
    def needed_from_upstream(self) -> float:
        """How many elements the stages need, as of the last pause."""
        return self.requested_limit - self.emitted if self.needed is None else self.needed

    # -- executing the table ----------------------------------------------------------------------
    def _step(self, happened: int) -> Action:
        self.phase, action = self.phase.steps[happened]
        return action

    def _enter(self, happened: int) -> None:
        self.phase, action = self.phase.steps[happened]
        if action is _DRAIN:
            self._run()
        elif action is _TERMINATE:
            self._terminate()
        elif action is _RECHECK:
            if self._is_ready():
                self._enter(_WAKE)
        elif action is _INTERRUPT:
            self._interrupt()
        elif action is _RELEASE:
            subscriber = self.subscriber
            self._release()
            self._has_ended(subscriber)

    def _is_ready(self) -> bool:
        queue = self.input_queue
        if queue is not None:
            if self.pause is NO_ELEMENTS:
                # Another thread may have raised the limit after the request to upstream.
                has_news = queue.waiting or queue.is_ended
                return bool(has_news) or self.limit != self.requested_limit
            if self.pause is NO_DEMAND and queue.is_over:
                return True  # so that it ends
        return self.limit > self.emitted

    def _run(self) -> None:
        """Continue the loop."""
        raise NotImplementedError  # `SyncIsland` and `TaskIsland` do, each in its own way

    def _interrupt(self) -> None:
        """Make the running loop return soon."""
        raise NotImplementedError  # `SyncIsland` and `TaskIsland` do, each in its own way

    # -- the beginning: in the subscriber's context -----------------------------------------------
    def begin(self) -> None:
        """Send on_subscribe (1.9), and open the source once it has returned (1.3)."""
        subscriber: Any = self.subscriber
        try:
            signalled = subscriber.on_subscribe(self)
        except BaseException as error:
            self._subscriber_raised("on_subscribe", error)
            return
        if signalled is not None and self.must_await(signalled):
            self._await_in_task("on_subscribe", self._on_subscribed)
        else:
            self._on_subscribed()

    def _on_subscribed(self) -> None:
        if self.is_stopped:
            self._enter(Input.PAUSED)
            return
        try:
            self._open()
        except BaseException as error:
            self._opening_raised(error)
        else:
            # It may be known, before there is demand, that no element will follow.
            is_empty = (
                not self.limit
                and not self.compiled_loop.emits_unprompted
                and self.is_source_spent()
            )
            self._enter(_FINISHED if is_empty else _PAUSED)

    def _open(self) -> None:
        source = self.chain.source
        if not isinstance(source, PushSource) and (control := self.control) is not None:
            control.add(self)
        if isinstance(source, PullSource):
            self.source = self.chain.open_source(self.compiled_loop, self.discards)
        elif isinstance(source, PushSource):
            if source.flattening is not None and self.mode == "sync":
                self.source = self.chain.open_source(self.compiled_loop, self.discards)
                return
            queue = self.make_queue()
            self.pause = NO_ELEMENTS
            if (control := self.control) is None:
                queue.upstream = self.chain.open_push(self.compiled_loop, queue)
            else:
                self._open_controlled(queue, control)

    @property
    def control(self) -> RunControl | None:
        """What stops the source, if that is one of a run."""
        discards = self.discards
        return None if discards is None else control_of_source(self.chain.source, discards.below)

    def _open_controlled(self, queue: InputQueue[Any], control: RunControl) -> None:
        """Open a source that pushes, unless its run is drained already."""
        if not control.is_stopped:
            queue.upstream = self.chain.open_push(self.compiled_loop, queue)
            queue.control = control
            control.add(queue)
        if control.is_stopped:
            queue.complete() if queue.upstream is None else queue.stop_source()

    def make_queue(self) -> InputQueue[Any]:
        """From now on, the source is a queue that elements are pushed to."""
        queue: InputQueue[Any] = InputQueue(
            self, self.chain.window(self.mode), awaits=self.mode == "task"
        )
        self.input_queue, queue.cleanup, self.source = queue, self.cleanup, queue.take
        if self.discards is not None:
            queue.on_discard = self.discards.of_source
        subscriber: object = self.subscriber
        if isinstance(subscriber, BulkSubscriber) and subscriber.pulls:
            queue.puller = subscriber
        return queue

    def _opening_error(self, error: BaseException) -> BaseException:
        failure = as_failure(error)
        return failure if self.end_hooks is None else self.end_hooks.fail_at(0, failure)

    def _opening_raised(self, error: BaseException) -> None:
        """Fail: the source could not be opened."""
        try:
            self.error = self._opening_error(error)
        except STOPS_PROGRAM as raised:  # by a callback that observes the failure
            error, self.error = raised, as_failure(raised)
        self._enter(_FINISHED)
        if isinstance(error, STOPS_PROGRAM):
            raise error

    def _upstream_raised(self, queue: InputQueue[Any], error: BaseException) -> None:
        """3.16: `request_needed` of *queue* has raised *error*."""
        queue.upstream_raised(as_failure(error))
        if isinstance(error, STOPS_PROGRAM):
            raise error

    def is_cancelled(self, error: BaseException) -> bool:
        """Whether *error* ends the loop from outside, and no function of the user raised it."""
        if isinstance(error, GeneratorExit):  # the coroutine is closed, not run by its task
            return not self.loop_handle.is_current_task(self.task)
        return is_cancelled(self.task, error)

    def is_source_spent(self) -> bool:
        """Whether the source is known to be exhausted, or its run is drained."""
        if is_spent(self.source):
            return True
        control = None if self.input_queue is not None else self.control
        return control is not None and control.is_stopped

    def stop_source(self) -> bool:
        """The source that is pulled ends here: no demand is waited for to find that out."""
        if self.pause is NO_DEMAND:
            self.wake()
        return True

    # -- the end ----------------------------------------------------------------------------------
    def _subscriber_raised(self, signal: str, error: BaseException) -> None:
        """2.13: cancel the subscription of a subscriber that raises, and report the error."""
        self.is_stopped, self.limit, self.error, self.is_fault = True, _NEVER, None, False
        self._step(Input.CANCEL)
        self._enter(Input.FINISHED)
        if isinstance(error, STOPS_PROGRAM):
            raise error
        self.loop_handle.report(
            f"rule 2.13: the subscriber raised in {signal}; its subscription is cancelled "
            f"({self.chain.trail()})",
            error,
            rule="2.13",
            flow=self.chain.trail(),
        )

    def _release(self) -> None:
        """Cancel upstream, run the source's cleanup and drop every reference (3.13)."""
        self.is_stopped, self.limit = True, _NEVER
        if self.record is not None:
            self.record.end(self, End("cancelled", self.delivered))
        self.subscriber = self.flush_batch = None
        if self.pending_signal is not None:  # it was cancelled in the signal, which runs to its end
            self._await_in_task("its last signal", lambda: None)
        try:
            if self.end_hooks is not None:
                self.end_hooks.cancel_rest()
        finally:  # if a callback stops the program, the source is closed as well
            if (control := self.control) is not None:
                control.remove(self)
            self._close_source()

    def _close_source(self) -> None:
        """Cancel upstream and run the source's cleanup."""
        source, queue, self.source, self.input_queue = self.source, self.input_queue, None, None
        try:
            if queue is not None:
                failure = None if self.keeps_flows else queue.untold_failure
                self.closing_upstream = queue.close(self.keeps_flows)
                if failure is not None:
                    self._report_dropped(failure)
            elif isinstance(source, CLOSABLE):
                source.close()
        except STOPS_PROGRAM:
            raise
        except BaseException as error:
            self._report_dropped(error)

    def _report_dropped(self, error: BaseException) -> None:
        self.chain.annotate(error)
        trail = self.chain.trail()
        message = f"an error after the end of a flow ({trail})"
        report = partial(self.loop_handle.report, message, error, flow=trail)
        add_cleanup_error(self.cleanup, error, report)

    def _terminate(self) -> None:
        is_silent = self.is_stopped and not self.is_fault
        error, subscriber = self.error, self.subscriber
        self.error = None
        if not is_silent:
            self.keeps_flows = error is None
            self._record_end(error)
        try:
            self._release()
        finally:  # if a cleanup stops the program, the subscriber is notified as well
            if subscriber is not None:
                self._send_end(subscriber, error, is_silent)
                self._has_ended(subscriber)

    def _has_ended(self, subscriber: object) -> None:
        """Tell upstream that all elements are processed, unless the subscriber is going to."""
        tells = isinstance(subscriber, BulkSubscriber) and subscriber.tells_finished
        if self.is_finished or not tells:
            self.finished()

    def _record_end(self, error: BaseException | None) -> None:
        """The flow has completed, or failed with *error*: count that under its name."""
        note = "" if error is None else self.chain.annotate(error)
        record, self.record = self.record, None
        if record is not None:
            outcome: Outcome = "completed" if error is None else "failed"
            record.end(self, End(outcome, self.delivered, error, note))

    def _send_end(
        self, subscriber: Subscriber[Any], error: BaseException | None, is_silent: bool
    ) -> None:
        if is_silent:
            if error is not None:
                self._report_dropped(error)
            return
        try:
            if error is None:
                signalled = subscriber.on_complete()
            else:
                signalled = subscriber.on_error(error)
        except BaseException as raised:
            self._subscriber_raised("on_complete" if error is None else "on_error", raised)
            return
        if signalled is not None and self.must_await(signalled):
            self._await_in_task("its terminal signal", lambda: None)

    # -- signals that return an awaitable ---------------------------------------------------------
    def must_await(self, signalled: object) -> bool:
        """Whether a signal returned an awaitable, which the next signal has to wait for (1.3)."""
        if isawaitable(signalled):
            self.pending_signal = signalled
            return True
        return False

    def _await_in_task(self, signal: str, then: Callable[[], None]) -> None:
        pending, self.pending_signal = cast("Awaitable[None]", self.pending_signal), None
        if self.loop_handle.is_closed:
            if iscoroutine(pending):
                pending.close()  # no loop is left to await it
            return
        name = f"{signal} of {self.chain.trail()}"
        task = self.loop_handle.create_task(
            self._run_signal(pending, signal, then),
            name,
            partial(self._on_signal_task_done, pending),
        )
        self.task = self.task or task

    def _on_signal_task_done(self, pending: Awaitable[None], task: Task[Any]) -> None:
        if task.cancelled():
            if iscoroutine(pending):
                pending.close()  # it has not started if the task has not
            self._on_task_done(task)

    def _on_task_done(self, task: Task[Any]) -> None:
        """End the subscription of a task that was cancelled before its first step."""
        if not task.cancelled():
            task.exception()  # it stops the program, and has left the loop
        if self.phase is not Phase.CLOSED:
            if not self.is_stopped:
                self.error = Interrupted(f"the task {task.get_name()!r} was cancelled from outside")
            self.loop_handle.run(self._enter, Input.FINISHED)

    async def _run_signal(
        self, pending: Awaitable[None], signal: str, then: Callable[[], None]
    ) -> None:
        self.task, self.awaited_signal = None, pending
        try:
            await pending
        except BaseException as error:
            self.awaited_signal = None
            if is_cancelled_here(error):
                raise  # `_on_signal_task_done` ends the subscription
            self._subscriber_raised(signal, error)
        else:
            self.awaited_signal = None
            then()
