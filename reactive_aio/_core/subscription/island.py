"""Islands: one subscription, from where elements enter to where the subscriber gets them.

`Island` acts out what the table in `lifecycle` decides and holds every guard of the contract of
signals, once, for all operators: serial delivery (1.3), one terminal signal (1.7), demand (1.1,
3.9), cancellation (3.5 to 3.7), forgetting the subscriber (3.13), a subscriber that raises (2.13),
the context of the subscriber, and threads. `SyncIsland` runs a generated generator in whoever
calls; `TaskIsland` runs a generated coroutine in the subscription's one task.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from types import GeneratorType
from typing import Any, Final, cast

from ...errors import Interrupted
from ...spec import Subscriber
from ..compiler.chain import Chain
from ..compiler.chain_sources import PullSource, PushSource, is_spent
from ..compiler.end_hooks import EndHooks
from ..compiler.loop_compiler import DRY, WAIT, Pause
from ..demand import require_demand
from ..loop import LoopHandle, Task, report, wait_settled
from ..time_slice import TimeSlice
from .bulk_subscriber import BulkSubscriber
from .input_queue import InputQueue
from .lifecycle import STEPS, Action, Input, Phase

__all__ = ("Island",)

_NEVER: Final = float("-inf")
_IDLE: Final = Phase.IDLE


class Island(TimeSlice):
    """One subscription. `request` and `cancel` may be called from any thread, at any time."""

    __slots__ = (
        "__weakref__",
        "after",
        "asked",
        "chain",
        "dead",
        "emitted",
        "ending",
        "error",
        "fault",
        "intake",
        "leaving",
        "limit",
        "loop",
        "loop_handle",
        "need",
        "pause",
        "pending",
        "phase",
        "src",
        "subscriber",
        "task",
    )
    mode = "sync"

    def __init__(
        self, chain: Chain, subscriber: Subscriber[Any], delivery: str, loop_handle: LoopHandle
    ) -> None:
        self.loop_handle = loop_handle
        self.chain = chain
        self.loop = chain.compiled_loop(self.mode, delivery)
        self.subscriber: Subscriber[Any] | None = subscriber
        self.after = subscriber.flush if isinstance(subscriber, BulkSubscriber) else None
        self.phase = Phase.OPENING
        self.limit: float = 0  # requested since the beginning; -inf once it must not deliver
        self.emitted = 0  # delivered since the beginning, as far as the drain has told
        self.asked: float = 0  # the limit when upstream was asked last
        self.need: float = 0  # what the stages want of upstream, as far as the drain has told
        hooks = self.loop.hooks
        self.ending = EndHooks(hooks(*chain.arguments), report) if hooks else None
        self.dead = False
        super().__init__()
        self.pause: Pause = WAIT
        self.error: BaseException | None = None
        self.fault = False
        self.src: Any = None
        self.intake: InputQueue[Any] | None = None
        self.pending: Awaitable[None] | None = None
        self.task: Task[Any] | None = None
        self.leaving: Any = None

    def __repr__(self) -> str:
        return f"<subscription {self.phase.name.lower()} {self.chain.trail()}>"

    # -- the subscription: any thread -------------------------------------------------------------
    def request(self, n: int, /) -> None:
        # The addition is atomic under the GIL, and the drain looks at the limit again after it has
        # said that it is idle; so the thread need only be asked for when somebody must be woken.
        # docs/decisions/0004 says why, and what it saves.
        if n.__class__ is not int or n < 1:
            self._unusual(n)
            return
        self.limit += n
        if self.phase is _IDLE:
            self._wake(Input.REQUEST)

    def cancel(self) -> None:
        self.dead = True
        if self.loop_handle.is_current_thread:
            self.limit, self.fault = _NEVER, False
            self._wake(Input.CANCEL)
        else:
            self.loop_handle.call_soon_threadsafe(self.cancel)

    @property
    def is_clean(self) -> bool:
        """Whether `aclose` would have nothing to wait for."""
        return (self.task is None or self.task.done()) and not hasattr(self.leaving, "aclose")

    async def aclose(self) -> None:
        """Cancel, and wait until the source has cleaned up after itself."""
        self.cancel()
        if self.task is not None and not self.loop_handle.is_current_task(self.task):
            await wait_settled(self.task)
        leaving, self.leaving = self.leaving, None
        if hasattr(leaving, "aclose"):
            await leaving.aclose()

    def _unusual(self, n: object) -> None:
        """3.9, and subclasses of int."""
        try:
            usual = require_demand(n)
        except ValueError as error:
            if self.loop_handle.is_current_thread:
                self._fail(error)
            else:
                self.loop_handle.call_soon_threadsafe(self._fail, error)
        else:
            self.request(usual)

    def _fail(self, error: Exception) -> None:
        if not self.dead:
            self.error, self.fault, self.dead, self.limit = error, True, True, _NEVER
            self._wake(Input.FAULT)

    def _wake(self, happened: Input) -> None:
        """Let *happened* take effect on the loop's thread, in the subscriber's context."""
        if not self.loop_handle.is_current_thread:
            self.loop_handle.call_soon_threadsafe(self._enter, happened)
        elif happened is Input.REQUEST and self.loop_handle.is_closed:
            self._fail(Interrupted("the event loop of this subscription is closed"))
        else:
            self.loop_handle.run_or_defer(self._enter, happened)

    def woken(self) -> None:
        """Upstream has news."""
        if self.phase is _IDLE:
            self._wake(Input.WAKE)

    # -- acting on the table ----------------------------------------------------------------------
    def _step(self, happened: Input) -> Action:
        self.phase, action = STEPS[self.phase][happened]
        return action

    def _enter(self, happened: Input) -> None:
        match self._step(happened):
            case Action.DRAIN:
                self._run()
            case Action.RECHECK:
                if self._ready():
                    self._enter(Input.WAKE)
            case Action.INTERRUPT:
                self._interrupt()
            case Action.RELEASE:
                self._release()
            case Action.TERMINATE:
                self._terminate()
            case Action.NOTHING:
                pass

    def _ready(self) -> bool:
        if self.intake is not None and self.pause is DRY:
            # Another thread may have raised the limit after upstream was asked.
            return self.intake.news or self.limit != self.asked
        return self.limit > self.emitted

    def _run(self) -> None:
        """Let the loop go on; each kind of island has its own way."""
        raise NotImplementedError

    def _interrupt(self) -> None:
        """Make the loop at work return soon; each kind of island has its own way."""
        raise NotImplementedError

    # -- beginning --------------------------------------------------------------------------------
    def begin(self) -> None:
        """Send on_subscribe (1.9); open the source once it has returned (1.3)."""
        self.loop_handle.run(self._begin)

    def _begin(self) -> None:
        subscriber = cast("Subscriber[Any]", self.subscriber)
        try:
            signalled = subscriber.on_subscribe(self)
        except Exception as error:
            self._raised("on_subscribe", error)
            return
        if signalled is not None and self.holds(signalled):
            self._hold("on_subscribe", self._opened)
        else:
            self._opened()

    def _opened(self) -> None:
        if self.dead:
            self._enter(Input.PAUSED)
            return
        try:
            self._open()
        except Exception as error:
            self.error = self._unopened(error)
            self._enter(Input.FINISHED)
        else:
            self._enter(Input.FINISHED if self.exhausted() else Input.PAUSED)

    def _open(self) -> None:
        head = self.chain.source
        if isinstance(head, PullSource):
            self.src = head.open()
        elif isinstance(head, PushSource):
            chain = self.chain
            intake: InputQueue[Any] = InputQueue(self.woken, chain.window(self.mode))
            self.intake = intake
            self.pause, self.src = DRY, intake.take
            intake.upstream = head.open(intake)

    def _unopened(self, error: Exception) -> Exception:
        return error if self.ending is None else self.ending.failed(error, 0)

    def spent(self) -> bool:
        """Whether the source is known to have ended."""
        return is_spent(self.src)

    def exhausted(self) -> bool:
        """Whether, before anything has run, it is known that nothing will come."""
        return not self.loop.speaks and self.spent()

    # -- ending -----------------------------------------------------------------------------------
    def _raised(self, signal: str, error: BaseException) -> None:
        """2.13: a subscriber that raises is cancelled, and somebody is told."""
        self.dead, self.limit, self.error, self.fault = True, _NEVER, None, False
        self._step(Input.CANCEL)
        self._enter(Input.FINISHED)
        self.loop_handle.report(
            f"rule 2.13: the subscriber raised in {signal}; its subscription is cancelled "
            f"({self.chain.trail()})",
            error,
            rule="2.13",
            flow=self.chain.trail(),
        )

    def _release(self) -> None:
        """Cancel upstream, run the source's cleanup and drop every reference (3.13)."""
        self.dead, self.limit = True, _NEVER
        self.subscriber = self.after = self.pending = None
        if self.ending is not None:
            self.ending.left()
        self._leave()

    def _leave(self) -> None:
        """Cancel upstream and run the source's cleanup."""
        src, intake, self.src, self.intake = self.src, self.intake, None, None
        try:
            if intake is not None:
                self.leaving = intake.close()
            elif isinstance(src, GeneratorType):
                src.close()
        except Exception as error:
            self._dropped(error)

    def _dropped(self, error: BaseException) -> None:
        trail = self.chain.trail()
        self.loop_handle.report(f"an error after the end of a flow ({trail})", error, flow=trail)

    def _terminate(self) -> None:
        silent = self.dead and not self.fault
        error, subscriber = self.error, self.subscriber
        self.error = None
        self._release()
        if subscriber is None:
            return
        if silent:
            if error is not None:
                self._dropped(error)
            return
        try:
            if error is None:
                signalled = subscriber.on_complete()
            else:
                self.chain.annotate(error)
                signalled = subscriber.on_error(error)
        except Exception as raised:
            self._raised("on_complete" if error is None else "on_error", raised)
            return
        if signalled is not None and self.holds(signalled):
            self._hold("its terminal signal", _nothing)

    # -- signals to await -------------------------------------------------------------------------
    def holds(self, signalled: object) -> bool:
        """Whether a signal returned something to await before the next one (1.3)."""
        if isawaitable(signalled):
            self.pending = signalled
            return True
        return False

    def _hold(self, signal: str, then: Callable[[], None]) -> None:
        pending, self.pending = cast("Awaitable[None]", self.pending), None
        if self.loop_handle.is_closed:
            if iscoroutine(pending):
                pending.close()  # nobody can await it
            return
        name = f"{signal} of {self.chain.trail()}"
        task = self.loop_handle.create_task(self._held(pending, signal, then), name)
        task.add_done_callback(partial(self._unheld, pending))
        self.task = self.task or task

    def _unheld(self, pending: Awaitable[None], task: Task[Any]) -> None:
        if task.cancelled():
            if iscoroutine(pending):
                pending.close()  # it has not begun if the task had not
            self._lost(task)

    def _lost(self, task: Task[Any]) -> None:
        """A task is over; one that was cancelled before its first step has not said so."""
        if self.phase is not Phase.CLOSED:
            if not self.dead:
                self.error = Interrupted(f"the task {task.get_name()!r} was cancelled from outside")
            self.loop_handle.run(self._enter, Input.FINISHED)

    async def _held(self, pending: Awaitable[None], signal: str, then: Callable[[], None]) -> None:
        self.task = None
        try:
            await pending
        except Exception as error:
            self._raised(signal, error)
        else:
            then()


def _nothing() -> None:
    """Nothing follows a terminal signal (1.7)."""
