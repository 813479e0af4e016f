"""One law on one subject, on one loop: what a scenario works with."""

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from inspect import isawaitable
from threading import get_ident
from typing import Any, Final

from ...errors import RuleViolation
from ...spec import Publisher
from ...testing.journal import Journal, Kind
from ...testing.safe_repr import safe_repr
from ..law import SETUP, NotJudged
from ..subject import Subject
from ..terms import Terms
from .brake import Brake
from .recorder import AsyncRecorder, OnNext, Recorder, discard

__all__ = ("Trial",)

QUICK_LOOKS: Final = 200


class Trial:
    """What a scenario may use: the subject's parts, recorders, waiting, and what went wrong."""

    def __init__(self, subject: Subject, terms: Terms) -> None:
        self.subject = subject
        self.terms = terms
        self.journals: list[Journal] = []
        self.faults: list[RuleViolation] = []
        self.found: RuleViolation | None = None
        """What the scenario ended with; the subject may yet hang while it is cleaned up."""
        self.heard: list[dict[str, Any]] = []
        """What the loop's exception handler was told."""
        self.doing: str = ""
        """The call into the subject that is under way, for the watchdog."""
        self.waited_in_vain: bool = False
        # Weak: whether the subject lets go of its subscriber is a law of its own (3.13).
        self._recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _loop, context: self.heard.append(context))

    # -- the subject's parts ----------------------------------------------------------------------
    async def make(self, part: str, *args: Any) -> Any:
        """A fresh one from the factory *part*."""
        factory = getattr(self.subject, part)
        called = f"{part}({', '.join(map(repr, args))})"
        with self.calling(called):
            try:
                made = factory(*args)
                if isawaitable(made):
                    made = await made
            except Brake:
                raise
            except BaseException as error:
                if _is_cancelled(error):
                    raise
                raise self.violation(
                    SETUP, f"the factory {called} raised {safe_repr(error)}"
                ) from error
        if made is None:
            raise NotJudged(f"the factory {called} returned None")
        return made

    async def publisher(self, n: int) -> Publisher[Any]:
        """A publisher of *n* elements."""
        made: Publisher[Any] = await self.make("publisher", n)
        return made

    # -- watching a publisher ---------------------------------------------------------------------
    @property
    def kinds(self) -> tuple[type[Recorder], ...]:
        """The kinds of subscribers that the subject must serve: ``def`` and ``async def``."""
        return (Recorder, AsyncRecorder) if self.subject.awaits_signals else (Recorder,)

    async def watch(
        self,
        publisher: Publisher[Any],
        kind: type[Recorder] = Recorder,
        first: int = 0,
        then: OnNext | None = None,
    ) -> Recorder:
        """Subscribe a new recorder, and wait for on_subscribe, which may come later (1.9)."""
        return await self.subscribe(publisher, self.add(kind(self, first, then)))

    def add(self, recorder: Recorder) -> Recorder:
        """Cancel *recorder*'s subscription when the trial is over."""
        self._recorders.add(recorder)
        return recorder

    async def subscribe(self, publisher: Publisher[Any], recorder: Recorder) -> Recorder:
        """Subscribe *recorder*, and wait for on_subscribe."""
        journal = recorder.journal
        journal.note(Kind.SUBSCRIBE)
        with self.calling("subscribe()"):
            try:
                # Annotated to return None; a stranger's may be a coroutine function.
                subscribe: Callable[[Recorder], object] = publisher.subscribe
                returned = subscribe(recorder)
            except Brake:
                raise
            except BaseException as error:
                raise self.violation(
                    "1.9", f"subscribe() raised {safe_repr(error)}", journal
                ) from error
        if isawaitable(returned):
            discard(returned)
            what = "subscribe() returned something to await; it must do its work, and return None"
            raise self.violation("1.9", what, journal)
        what = "on_subscribe has not come"
        if isinstance(recorder, AsyncRecorder):
            what += (
                ", or what it returned was not awaited (is this a case for awaits_signals=False?)"
            )
        await self.until(lambda: recorder.subscriptions, "1.9", what, journal)
        return recorder

    # -- judging ----------------------------------------------------------------------------------
    def journal(self, name: str) -> Journal:
        """A new journal, which is shown if the law is broken."""
        journal = Journal(name, clock=self._loop.time)
        self.journals.append(journal)
        return journal

    def violation(self, rule: str, what: str, journal: Journal | None = None) -> RuleViolation:
        """The error of a law; the offence is marked in *journal*."""
        if journal is not None:
            journal.note(Kind.OFFENCE, f"{rule}: {what}")
        return RuleViolation(rule, what)

    def fault(self, rule: str, what: str) -> None:
        """Remember a fault that cannot be raised where it was seen."""
        self.faults.append(RuleViolation(rule, what))

    def demand(self, condition: bool, rule: str, what: str, journal: Journal | None = None) -> None:
        """Raise the first fault there was; then the violation of *rule* unless *condition*."""
        if self.faults:
            raise self.faults[0]
        if not condition:
            raise self.violation(rule, what, journal)

    @contextmanager
    def calling(self, what: str) -> Generator[None]:
        """The subject is called: should it never return, the verdict says where."""
        before, self.doing = self.doing, what
        try:
            yield
        finally:
            self.doing = before

    @contextmanager
    def minding_threads(self, rule: str) -> Generator[None]:
        """Another thread that calls the loop as if it were its own breaks *rule*.

        It often seems to work: somebody else's timer wakes the loop soon enough.
        """
        loop, home = self._loop, get_ident()
        if not isinstance(loop, asyncio.BaseEventLoop):
            yield  # its methods are not to be had
            return
        call_soon = loop.call_soon

        def mind(callback: Any, *args: Any, **context: Any) -> Any:
            if get_ident() == home:
                return call_soon(callback, *args, **context)
            self.fault(rule, "another thread called loop.call_soon; use loop.call_soon_threadsafe")
            return loop.call_soon_threadsafe(callback, *args, **context)

        vars(loop)["call_soon"] = mind
        try:
            yield
        finally:
            del vars(loop)["call_soon"]

    # -- waiting ----------------------------------------------------------------------------------
    async def turn(self) -> None:
        """One turn of the loop."""
        await asyncio.sleep(0)

    async def until(
        self,
        condition: Callable[[], object],
        rule: str,
        what: str,
        journal: Journal | None = None,
    ) -> None:
        """Wait for what must come; *what* says what did not."""
        latest = self._loop.time() + self.terms.come
        nap, looks = 0.0, 0
        while not condition():
            if self.faults:
                raise self.faults[0]
            if self._loop.time() > latest:
                self.waited_in_vain = True
                raise self.violation(rule, what, journal)
            looks += 1
            if looks > QUICK_LOOKS:
                nap = min(0.05, nap * 1.5 or 0.0005)
            await asyncio.sleep(nap)
        self.demand(True, rule, what)

    async def quiet(self) -> None:
        """Give what must not come the time to come."""
        for _ in range(self.terms.turns):
            await asyncio.sleep(0)
        seconds = self.terms.quiet if self.subject.quiet is None else self.subject.quiet
        if seconds:
            await asyncio.sleep(seconds)

    async def each(self, *scenarios: Coroutine[Any, Any, None]) -> None:
        """Try all of them at the same time, so that they share the time that waiting takes."""
        tasks = [asyncio.ensure_future(scenario) for scenario in scenarios]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Cancel what the scenario has left, so that it reaches into no other; then all faults."""
        for recorder in list(self._recorders):
            if recorder.subscriptions and not recorder.ended and recorder.cancelled_at is None:
                recorder.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        if self.subject.after_each is not None:
            done = self.subject.after_each()
            if isawaitable(done):
                await done


def _is_cancelled(error: BaseException) -> bool:
    """Whether this is the trial's own cancellation, and nobody's fault."""
    task = asyncio.current_task()
    return (
        isinstance(error, asyncio.CancelledError) and task is not None and bool(task.cancelling())
    )
