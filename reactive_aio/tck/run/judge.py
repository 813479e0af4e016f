"""The judge: runs one law on one candidate and returns a verdict, whatever the candidate does."""

import asyncio
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...errors import RuleViolation
from ...testing.drawing import draw
from ...testing.safe_repr import safe_repr
from ...testing.virtual_time import VirtualTimeLoop
from ..candidate import Candidate
from ..law import Law, NotJudged
from ..report.verdict import Outcome, Verdict
from ..rules import RULES, Strength
from ..scenario.law_context import LawContext
from ..timeouts import Timeouts
from .watchdog import Watchdog

REDUCED_STALL: Final = 1.0
_KIT: Final = str(Path(__file__).parents[1])
_FRAMES: Final = 12


@dataclass
class Judge:
    """Judges one candidate in one role, law by law."""

    candidate: Candidate
    role: str
    timeouts: Timeouts
    """The timeouts of the next law: reduced after the candidate has hung."""
    _context: LawContext | None = None

    def judge(self, law: Law) -> Verdict:
        """Judge by *law*, on a loop of its own in a thread of its own."""
        why = why_not_applicable(self.candidate, law)
        if why:
            return Verdict.of(law, self.role, Outcome.NOT_JUDGED, why)
        self._context = None
        began = time.perf_counter()
        watchdog = Watchdog(lambda: self._run(law), self._loop, self._current_call)
        watchdog.run(self.timeouts, f"tck {law.name}")
        verdict = self._conclude(law, watchdog)
        self._reduce_timeouts(watchdog)
        return replace(verdict, seconds=time.perf_counter() - began)

    def _loop(self) -> asyncio.AbstractEventLoop:
        if self.candidate.virtual_time:
            return VirtualTimeLoop()
        return (self.candidate.loop or asyncio.new_event_loop)()

    def _current_call(self) -> str:
        return self._context.current_call if self._context is not None else ""

    async def _run(self, law: Law) -> None:
        timeouts = self.timeouts
        if law.strength is Strength.MAY:
            # The signal is optional, so the wait for it is short.
            timeouts = replace(timeouts, response=min(timeouts.response, timeouts.reduced_response))
        self._context = context = LawContext(self.candidate, timeouts, law.rule)
        try:
            await law.scenario(context)
        except GeneratorExit:  # the loop is closed, and nothing can be awaited
            raise
        except BaseException as error:
            context.violation_found = error if isinstance(error, RuleViolation) else None
            await context.close()
            raise
        await context.close()
        context.raise_fault()

    def _conclude(self, law: Law, watchdog: Watchdog) -> Verdict:
        context, error = self._context, watchdog.error
        found = error if isinstance(error, RuleViolation) else context and context.violation_found
        if found:
            return self._failure(law, found.rule or law.rule, found.what)
        if watchdog.stop_reason:
            return self._stopped(law, watchdog)
        if context is not None and context.faults:
            # A candidate that sends without end is stopped after a fault has been recorded.
            fault = context.faults[0]
            return self._failure(law, fault.rule or law.rule, fault.what)
        if isinstance(error, NotJudged):
            return Verdict.of(law, self.role, Outcome.NOT_JUDGED, str(error))
        if error is not None:
            verdict = self._failure(law, law.rule, f"{safe_repr(error)} came out of the candidate")
            return replace(verdict, stack=_traceback(error))
        return Verdict.of(law, self.role, Outcome.PASS)

    def _stopped(self, law: Law, watchdog: Watchdog) -> Verdict:
        inside = f" inside {watchdog.stopped_call}" if watchdog.stopped_call else ""
        why = f"{watchdog.stop_reason}{inside}"
        if watchdog.is_abandoned:
            why += ", and cannot be stopped: it continues in its thread"
        return replace(self._failure(law, law.rule, why), stack=watchdog.stack)

    def _failure(self, law: Law, rule: str, why: str) -> Verdict:
        if law.strength is Strength.MAY and rule == law.rule:
            return Verdict.of(
                law, self.role, Outcome.NOT_JUDGED, f"optional, and not offered: {why}"
            )
        verdict = Verdict.of(law, self.role, Outcome.FAIL, f"rule {rule}: {why}")
        if rule != law.rule and rule in RULES:
            # Another rule is broken, and its strength counts.
            verdict = replace(verdict, strength=RULES[rule].strength)
        journals = self._context.journals if self._context is not None else []
        # The journal in which the offence is marked, or else the first.
        marked = [each for each in journals if each.has_offence] or journals
        if marked:
            verdict = replace(verdict, log=str(marked[0]), drawing=draw(marked[0]))
        return replace(verdict, broken=rule)

    def _reduce_timeouts(self, watchdog: Watchdog) -> None:
        """After a candidate has hung once, the next laws wait less."""
        timeouts = self.timeouts
        context = self._context
        # A law of a MAY has shorter timeouts of its own: its timing out proves nothing.
        if context is not None and context.has_timed_out and context.timeouts is timeouts:
            response = min(timeouts.response, timeouts.reduced_response)
            self.timeouts = timeouts = replace(timeouts, response=response)
        if watchdog.stop_reason:
            stall = min(timeouts.stall, REDUCED_STALL)
            self.timeouts = replace(timeouts, stall=stall, law=min(timeouts.law, 4 * stall))


def why_not_applicable(candidate: Candidate, law: Law) -> str:
    """Why *law* cannot judge *candidate*; empty if it can."""
    missing = [factory for factory in law.needs if getattr(candidate, factory) is None]
    if missing:
        return f"the candidate has no {' and no '.join(missing)}"
    if law.elements > candidate.max_elements:
        return f"it takes {law.elements} elements; max_elements is {candidate.max_elements}"
    if law.completes and not candidate.completes:
        return "the candidate's publishers do not complete"
    return ""


def _traceback(error: BaseException) -> str:
    """The last frames of *error*, without those of the kit."""
    trace = traceback.TracebackException.from_exception(error)
    foreign = [each for each in trace.stack if not each.filename.startswith(_KIT)]
    trace.stack[:] = foreign[-_FRAMES:]
    return "".join(list(trace.format(chain=False))[1:]).rstrip()
