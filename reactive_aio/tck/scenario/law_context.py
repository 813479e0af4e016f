"""The context of one law: one candidate, on one loop, with what the scenario uses."""

import asyncio
import itertools
import sys
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from inspect import isawaitable
from threading import get_ident
from typing import Any, Final

from ...errors import RuleViolation
from ...spec import Publisher
from ...testing.journal import Journal, Kind
from ...testing.safe_repr import safe_repr
from ..candidate import Candidate
from ..law import SETUP, NotJudged, StopCandidate
from ..timeouts import Timeouts
from .recorder import AsyncRecorder, OnElement, Recorder, close_coroutine

BUSY_POLLS: Final = 200


class LawContext:
    """Makes the candidate's objects, subscribes recorders, waits, and collects violations.

    A violation is one of *rule*, the law's own, unless another one is named.
    """

    def __init__(self, candidate: Candidate, timeouts: Timeouts, rule: str) -> None:
        self.candidate = candidate
        self.timeouts = timeouts
        self.rule = rule
        self.journals: list[Journal] = []
        self.faults: list[RuleViolation] = []
        self.violation_found: RuleViolation | None = None
        """What the scenario raised; it counts even if the candidate hangs during cleanup."""
        self.reported_errors: list[dict[str, Any]] = []
        """The contexts that the loop's exception handler received."""
        self.current_call: str = ""
        """The current call into the candidate, for the watchdog."""
        self.has_timed_out: bool = False
        # Weak: whether the candidate releases its subscriber is judged by a law (3.13).
        self._recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(
            lambda _loop, context: self.reported_errors.append(context)
        )

    # -- the candidate's objects ------------------------------------------------------------------
    async def create(self, factory: str, *args: Any) -> Any:
        """A new object from the candidate's *factory*."""
        make = getattr(self.candidate, factory)
        call = f"{factory}({', '.join(map(repr, args))})"
        with self.calling(call):
            try:
                made = make(*args)
                # A publisher of another library may be awaitable as well.
                if isawaitable(made) and not isinstance(made, Publisher):
                    made = await made
            except StopCandidate:
                raise
            except BaseException as error:
                if _is_own_cancellation(error):
                    raise
                what = f"the factory {call} raised {safe_repr(error)}"
                raise self.violation(what, SETUP) from error
        if made is None:
            raise NotJudged(f"the factory {call} returned None")
        return made

    async def publisher(self, n: int) -> Publisher[Any]:
        made: Publisher[Any] = await self.create("publisher", n)
        return made

    # -- observing a publisher --------------------------------------------------------------------
    @property
    def recorder_types(self) -> tuple[type[Recorder], ...]:
        """The subscribers that the candidate must serve: with ``def`` and ``async def``."""
        return (Recorder, AsyncRecorder) if self.candidate.awaits_signals else (Recorder,)

    async def watch(
        self,
        source: Publisher[Any] | int | str,
        kind: type[Recorder] = Recorder,
        initial: int = 0,
        on_element: OnElement | None = None,
    ) -> Recorder:
        """Subscribe a new recorder, and wait for on_subscribe, which may come later (1.9).

        *source* is a publisher, the length of a new one, or the factory of one.
        """
        if isinstance(source, int):
            source = await self.publisher(source)
        publisher = await self.create(source) if isinstance(source, str) else source
        return await self.subscribe(publisher, self.track(kind(self, initial, on_element)))

    def track(self, recorder: Recorder) -> Recorder:
        """Cancel the subscription of *recorder* when the law has ended."""
        self._recorders.add(recorder)
        return recorder

    async def subscribe(self, publisher: Publisher[Any], recorder: Recorder) -> Recorder:
        """Subscribe *recorder*, and wait for on_subscribe."""
        journal = recorder.journal
        journal.note(Kind.SUBSCRIBE)
        returned, error = self.try_call("subscribe()", lambda: publisher.subscribe(recorder))
        if error is not None:
            what = f"subscribe() raised {safe_repr(error)}"
            raise self.violation(what, "1.9", journal) from error
        if isawaitable(returned):
            close_coroutine(returned)
            what = "subscribe() returned an awaitable; it must do its work and return None"
            raise self.violation(what, "1.9", journal)
        what = "on_subscribe has not come"
        if isinstance(recorder, AsyncRecorder):
            what += ", or what it returned was not awaited (does it need awaits_signals=False?)"
        await self.wait_until(lambda: recorder.subscriptions, what, "1.9", journal)
        return recorder

    # -- judging ----------------------------------------------------------------------------------
    def journal(self, name: str) -> Journal:
        """A new journal, which the verdict shows if the law is broken."""
        journal = Journal(name, clock=self._loop.time)
        self.journals.append(journal)
        return journal

    def violation(self, what: str, rule: str = "", journal: Journal | None = None) -> RuleViolation:
        """The error to raise, by default of the law's rule; the offence is marked in *journal*."""
        rule = rule or self.rule
        if journal is not None:
            journal.note(Kind.OFFENCE, f"{rule}: {what}")
        return RuleViolation(rule, what)

    def record_fault(self, rule: str, what: str) -> None:
        """Record a fault that cannot be raised where it is detected."""
        self.faults.append(RuleViolation(rule, what))

    def raise_fault(self) -> None:
        """Raise the first fault that was recorded."""
        if self.faults:
            raise self.faults[0]

    def require(
        self, condition: bool, what: str, rule: str = "", journal: Journal | None = None
    ) -> None:
        """Raise the first recorded fault; then the violation of *rule* unless *condition* holds."""
        self.raise_fault()
        if not condition:
            raise self.violation(what, rule, journal)

    @contextmanager
    def calling(self, what: str) -> Generator[None]:
        """Name the call into the candidate, for the verdict on one that never returns."""
        before, self.current_call = self.current_call, what
        try:
            yield
        finally:
            self.current_call = before

    def try_call(self, what: str, call: Callable[[], object]) -> tuple[Any, BaseException | None]:
        """Call into the candidate; return what it returned, or what it raised."""
        with self.calling(what):
            try:
                return call(), None
            except StopCandidate:
                raise
            except BaseException as error:
                return None, error

    @contextmanager
    def checking_thread_calls(self, rule: str) -> Generator[None]:
        """Another thread that calls the loop as if it were its own breaks *rule*.

        It often seems to work, since an unrelated timer wakes the loop soon enough.
        """
        loop, own_thread = self._loop, get_ident()
        if not isinstance(loop, asyncio.BaseEventLoop):
            yield  # its methods cannot be replaced
            return
        original = loop.call_soon

        def call_soon(callback: Any, *args: Any, **context: Any) -> Any:
            if get_ident() == own_thread:
                return original(callback, *args, **context)
            what = "another thread called loop.call_soon; use loop.call_soon_threadsafe"
            self.record_fault(rule, what)
            return loop.call_soon_threadsafe(callback, *args, **context)

        vars(loop)["call_soon"] = call_soon
        try:
            yield
        finally:
            del vars(loop)["call_soon"]

    # -- waiting ----------------------------------------------------------------------------------
    async def turn(self) -> None:
        await asyncio.sleep(0)

    async def wait_until(
        self,
        condition: Callable[[], object],
        what: str,
        rule: str = "",
        journal: Journal | None = None,
    ) -> None:
        """Wait for *condition*; if it does not come about, *rule* is broken, as *what* says."""
        deadline = self._loop.time() + self.timeouts.response
        pause, polls = 0.0, 0
        while not condition():
            self.raise_fault()
            if self._loop.time() > deadline:
                self.has_timed_out = True
                raise self.violation(what, rule, journal)
            polls += 1
            if polls > BUSY_POLLS:
                pause = min(0.05, pause * 1.5 or 0.0005)
            await asyncio.sleep(pause)
        self.raise_fault()

    async def settle(self) -> None:
        """Wait a quiet period, in which a signal that must not come would come."""
        for _ in range(self.timeouts.quiet_turns):
            await asyncio.sleep(0)
        own = self.candidate.quiet_period
        seconds = self.timeouts.quiet_period if own is None else own
        if seconds:
            await asyncio.sleep(seconds)

    async def gather(self, *scenarios: Coroutine[Any, Any, None]) -> None:
        """Run all of them concurrently, so that they share the waiting time."""
        tasks = [asyncio.ensure_future(scenario) for scenario in scenarios]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def gather_each(
        self, scenario: Callable[..., Coroutine[Any, Any, None]], *choices: Iterable[Any]
    ) -> None:
        """Run *scenario* for each type of recorder, with each combination of the *choices*."""
        combinations = itertools.product(self.recorder_types, *choices)
        await self.gather(*(scenario(*combination) for combination in combinations))

    async def close(self) -> None:
        """Cancel the remaining subscriptions, so that they do not affect the next law."""
        for recorder in list(self._recorders):
            is_open = recorder.subscriptions and not recorder.is_terminated
            if is_open and recorder.count_at_cancel is None:
                recorder.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        if self.candidate.after_each is not None:
            done = self.candidate.after_each()
            if isawaitable(done):
                await done


def _is_own_cancellation(error: BaseException) -> bool:
    """Whether the law's own task was cancelled: then the factory is not at fault."""
    task = asyncio.current_task()
    return (
        isinstance(error, asyncio.CancelledError) and task is not None and bool(task.cancelling())
    )


@contextmanager
def fast_thread_switches() -> Generator[None]:
    """Make the interpreter switch threads much more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
