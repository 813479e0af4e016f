"""The judge: one law, one subject, one verdict; never a hang, never an error of its own."""

import asyncio
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...errors import RuleViolation
from ...testing.drawing import draw
from ...testing.safe_repr import safe_repr
from ...testing.virtual_time import VirtualTimeLoop
from ..law import Law, NotJudged
from ..report.verdict import Outcome, Verdict
from ..rules import RULES, Strength
from ..scenario.trial import Trial
from ..subject import Subject
from ..terms import Terms
from .watchdog import Watchdog

__all__ = ("Judge", "unfit")

IMPATIENT_STUCK: Final = 1.0
_KIT: Final = str(Path(__file__).parents[1])
_FRAMES: Final = 12


class Judge:
    """Judges one subject in one role, law by law."""

    def __init__(self, subject: Subject, role: str, terms: Terms) -> None:
        self._subject = subject
        self._role = role
        self._terms = terms
        self._trial: Trial | None = None

    @property
    def terms(self) -> Terms:
        """How long it waits: less, once the subject has hung."""
        return self._terms

    def judge(self, law: Law) -> Verdict:
        """Judge by *law*, on a loop of its own in a thread of its own."""
        why = unfit(self._subject, law)
        if why:
            return self._verdict(law, Outcome.NOT_JUDGED, why)
        self._trial = None
        began = time.perf_counter()
        watchdog = Watchdog(lambda: self._try(law), self._loop, self._doing)
        watchdog.run(self._terms, f"tck {law.name}")
        verdict = self._conclude(law, watchdog)
        self._lose_patience(watchdog)
        return replace(verdict, seconds=time.perf_counter() - began)

    def _loop(self) -> asyncio.AbstractEventLoop:
        if self._subject.virtual_time:
            return VirtualTimeLoop()
        return (self._subject.loop or asyncio.new_event_loop)()

    def _doing(self) -> str:
        return self._trial.doing if self._trial is not None else ""

    async def _try(self, law: Law) -> None:
        terms = self._terms
        if law.strength is Strength.MAY:
            # It need not come, so it is not waited for as long.
            terms = replace(terms, come=min(terms.come, terms.come_again))
        self._trial = trial = Trial(self._subject, terms)
        try:
            await law.scenario(trial)
        except GeneratorExit:  # its loop is gone, and nothing can be awaited any more
            raise
        except BaseException as error:
            trial.found = error if isinstance(error, RuleViolation) else None
            await trial.close()
            raise
        await trial.close()
        trial.demand(True, law.rule, "")

    def _conclude(self, law: Law, watchdog: Watchdog) -> Verdict:
        trial, error = self._trial, watchdog.error
        found = error if isinstance(error, RuleViolation) else trial and trial.found
        if found:
            return self._broken(law, found.rule or law.rule, found.what)
        if watchdog.braked:
            return self._stopped(law, watchdog)
        if trial is not None and trial.faults:
            # The brake ends a runaway with a fault in its trial.
            return self._broken(law, trial.faults[0].rule or law.rule, trial.faults[0].what)
        if isinstance(error, NotJudged):
            return self._verdict(law, Outcome.NOT_JUDGED, str(error))
        if error is not None:
            verdict = self._broken(law, law.rule, f"{safe_repr(error)} came out of the subject")
            return replace(verdict, stack=_where(error))
        return self._verdict(law, Outcome.PASS)

    def _stopped(self, law: Law, watchdog: Watchdog) -> Verdict:
        inside = f" inside {watchdog.doing}" if watchdog.doing else ""
        why = f"{watchdog.braked}{inside}"
        if watchdog.left_behind:
            why += ", and cannot be stopped: it goes on in its thread"
        verdict = self._broken(law, law.rule, why)
        return replace(verdict, stack=watchdog.stack)

    def _broken(self, law: Law, rule: str, why: str) -> Verdict:
        if law.strength is Strength.MAY and rule == law.rule:
            return self._verdict(law, Outcome.NOT_JUDGED, f"optional, and not offered: {why}")
        verdict = self._verdict(law, Outcome.FAIL, f"rule {rule}: {why}")
        if rule != law.rule and rule in RULES:
            # Another rule was broken on the way, and that one's strength counts.
            verdict = replace(verdict, strength=RULES[rule].strength)
        journals = self._trial.journals if self._trial is not None else []
        # The journal that holds the offence, or the last one: a scenario makes one after another.
        marked = [each for each in journals if each.has_offence] or journals
        if marked:
            verdict = replace(verdict, log=str(marked[0]), drawing=draw(marked[0]))
        return replace(verdict, broken=rule)

    def _verdict(self, law: Law, outcome: Outcome, why: str = "") -> Verdict:
        return Verdict(
            law=law.name,
            role=self._role,
            rule=law.rule,
            strength=law.strength,
            text=law.text,
            outcome=outcome,
            why=why,
        )

    def _lose_patience(self, watchdog: Watchdog) -> None:
        """A subject that has hung once is not waited for as long again."""
        terms = self._terms
        trial = self._trial
        # In vain for what is optional says nothing: such a law has terms of its own.
        if trial is not None and trial.waited_in_vain and trial.terms is terms:
            self._terms = terms = replace(terms, come=min(terms.come, terms.come_again))
        if watchdog.braked:
            stuck = min(terms.stuck, IMPATIENT_STUCK)
            self._terms = replace(terms, stuck=stuck, longest=min(terms.longest, 4 * stuck))


def unfit(subject: Subject, law: Law) -> str:
    """Why *law* cannot judge *subject*; empty if it can."""
    missing = [part for part in law.needs if getattr(subject, part) is None]
    if missing:
        return f"the subject has no {' and no '.join(missing)}"
    if law.elements > subject.max_elements:
        return f"it takes {law.elements} elements; max_elements is {subject.max_elements}"
    if law.completes and not subject.completes:
        return "the subject's publishers do not complete"
    return ""


def _where(error: BaseException) -> str:
    """Where *error* comes from: the last frames, but for those of this kit."""
    told = traceback.TracebackException.from_exception(error)
    theirs = [each for each in told.stack if not each.filename.startswith(_KIT)]
    told.stack[:] = theirs[-_FRAMES:]
    return "".join(list(told.format(chain=False))[1:]).rstrip()
