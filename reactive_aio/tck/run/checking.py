"""Checking a candidate: the laws that judge it in each role, their verdicts, and the report.

A judge runs one law after another and returns a verdict, whatever the candidate does.
"""

import asyncio
import difflib
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast

from ...errors import RuleViolation
from ...spec import Processor, Publisher, Subscriber
from ...testing.drawing import draw
from ...testing.safe_repr import safe_repr
from ...testing.virtual_time import VirtualTimeLoop
from ..candidate import PUBLISHER_FACTORIES, Candidate
from ..law import SETUP, Law, NotJudged
from ..laws import BLACK_BOX, LAWS, PROCESSOR, PUBLISHER, WHITE_BOX
from ..report.verdict import Outcome, Report, Verdict
from ..rules import LIBRARY_RULES, NO_LAW, RULES, Strength, find_rule
from ..scenario.law_context import LawContext
from ..scenario.processor_views import processor_as_publisher, processor_as_subscriber
from ..timeouts import Timeouts
from .watchdog import FRAMES, KIT, Watchdog


class Case(NamedTuple):
    """One law that judges the candidate in one role."""

    role: str
    candidate: Candidate
    law: Law

    @property
    def id(self) -> str:
        """``publisher-spec109_subscribes_first-MUST``: unique within a candidate."""
        return f"{self.role.replace(' ', '_')}-{self.law.name}-{self.law.strength.name}"


def cases(candidate: Candidate, rules: Iterable[str] = ()) -> list[Case]:
    """Every law that applies to *candidate*, or only those of some *rules*.

    A rule is named by its number, ``"1.3"``; the name of a law selects that law alone. A name that
    selects nothing is a `ValueError`.
    """
    selected = {*require_rules(rules)}
    return [case for case in _cases(candidate) if case.law.is_selected(selected)]


def require_rules(names: Iterable[object]) -> Iterable[Any]:
    """Each of *names* must be a law, or a rule that has one."""
    if isinstance(names, str) or not isinstance(cast("object", names), Iterable):
        raise TypeError(f'rules are a list of numbers or laws: write ["{names}"]')
    judged = {law.rule for law in LAWS.values()}
    for name in names:
        if name in LAWS or name in judged:
            continue
        if isinstance(name, str) and find_rule(name) is not None:
            raise ValueError(f"rule {name} cannot be judged: {NO_LAW}")
        known = [*RULES, *LIBRARY_RULES, SETUP, *LAWS]
        similar = difflib.get_close_matches(str(name), known, 3, 0.5)
        hint = f"did you mean {' or '.join(similar)}? " if similar else ""
        command = "`python -m reactive_aio.tck rules`"
        raise ValueError(f"there is no rule or law {name!r}: {hint}{command} lists them")
    return names


def _cases(candidate: Candidate) -> Iterator[Case]:
    roles = (
        ("publisher", candidate, PUBLISHER, PUBLISHER_FACTORIES),
        ("subscriber", candidate, BLACK_BOX, ("subscriber",)),
        ("white box", candidate, WHITE_BOX, ("whitebox_subscriber",)),
        ("processor as publisher", processor_as_publisher(candidate), PUBLISHER, ("processor",)),
        ("processor as subscriber", processor_as_subscriber(candidate), WHITE_BOX, ("processor",)),
        ("processor", candidate, PROCESSOR, ("processor",)),
    )
    for role, view, laws, factories in roles:
        if any(getattr(view, factory) is not None for factory in factories):
            yield from (Case(role, view, law) for law in laws)


# -- one law ---------------------------------------------------------------------------------------
@dataclass
class Judge:
    """Judges a candidate, case by case."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    """The timeouts of the next case: reduced after the candidate has hung."""
    _context: LawContext | None = None

    def judge(self, case: Case) -> Verdict:
        """Judge by the law of *case*, on a loop of its own in a thread of its own."""
        candidate, law = case.candidate, case.law
        why = why_not_applicable(candidate, law)
        if why:
            return Verdict.of(law, case.role, Outcome.NOT_JUDGED, why)
        self._context = None
        began = time.perf_counter()
        make_loop = VirtualTimeLoop if candidate.virtual_time else candidate.loop
        work = partial(self._run, candidate, law)
        watchdog = Watchdog(work, make_loop or asyncio.new_event_loop, self._current_call)
        watchdog.run(self.timeouts, f"tck {law.name}")
        verdict = self._conclude(law, case.role, watchdog)
        self._reduce_timeouts(watchdog)
        return replace(verdict, seconds=time.perf_counter() - began)

    def _current_call(self) -> str:
        return self._context.current_call if self._context is not None else ""

    async def _run(self, candidate: Candidate, law: Law) -> None:
        # The signal of a MAY is optional, so the wait for it is short.
        is_optional = law.strength is Strength.MAY
        timeouts = self.timeouts.after_timeout() if is_optional else self.timeouts
        self._context = context = LawContext(candidate, timeouts, law.rule)
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

    def _conclude(self, law: Law, role: str, watchdog: Watchdog) -> Verdict:
        context, error = self._context, watchdog.error
        found = error if isinstance(error, RuleViolation) else context and context.violation_found
        if not found and not watchdog.stop_reason and context is not None and context.faults:
            # A candidate that sends without end is stopped after a fault has been recorded.
            found = context.faults[0]
        if found:
            return self._failure(law, role, found.rule or law.rule, found.what)
        if watchdog.stop_reason:
            verdict = self._failure(law, role, law.rule, watchdog.description())
            return replace(verdict, stack=watchdog.stack)
        if isinstance(error, NotJudged):
            return Verdict.of(law, role, Outcome.NOT_JUDGED, str(error))
        if error is not None:
            why = f"{safe_repr(error)} came out of the candidate"
            return replace(self._failure(law, role, law.rule, why), stack=_traceback(error))
        return Verdict.of(law, role, Outcome.PASS)

    def _failure(self, law: Law, role: str, rule: str, why: str) -> Verdict:
        if law.strength is Strength.MAY and rule == law.rule:
            return Verdict.of(law, role, Outcome.NOT_JUDGED, f"optional, and not offered: {why}")
        verdict = Verdict.failed(law, role, rule, why)
        journals = self._context.journals if self._context is not None else []
        # The journal in which the offence is marked, or else the first.
        marked = [each for each in journals if each.has_offence] or journals
        if not marked:
            return verdict
        return replace(verdict, log=str(marked[0]), drawing=draw(marked[0]))

    def _reduce_timeouts(self, watchdog: Watchdog) -> None:
        """After a candidate has hung once, the next laws wait less."""
        context = self._context
        # A law of a MAY has shorter timeouts of its own: its timing out proves nothing.
        if context is not None and context.has_timed_out and context.timeouts is self.timeouts:
            self.timeouts = self.timeouts.after_timeout()
        if watchdog.stop_reason:
            timeouts = self.timeouts.after_stall()
            self.timeouts = replace(timeouts, law=min(timeouts.law, 4 * timeouts.stall))


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
    foreign = [each for each in trace.stack if not each.filename.startswith(KIT)]
    trace.stack[:] = foreign[-FRAMES:]
    return "".join(list(trace.format(chain=False))[1:]).rstrip()


# -- all laws --------------------------------------------------------------------------------------
def check(
    candidate: Candidate,
    *,
    rules: Iterable[str] = (),
    timeouts: Timeouts | None = None,
    on_verdict: Callable[[Verdict], object] | None = None,
) -> Report:
    """Judge *candidate* by every law that applies, or by those of some *rules* (see `cases`).

    Each law has its own loop in a watched thread, so a candidate that blocks, loops forever, never
    answers or raises still gets its verdict. *on_verdict* is called with each verdict.
    """
    _require_no_running_loop()
    if not isinstance(cast("object", candidate), Candidate):
        what = f"not {safe_repr(candidate)}; write Candidate(publisher=…)"
        raise TypeError(f"check: a Candidate is needed, {what}")
    report = Report(candidate.name)
    judges: dict[str, Judge] = {}
    for case in cases(candidate, rules):
        judge = judges.setdefault(case.role, Judge(timeouts or Timeouts()))
        verdict = judge.judge(case)
        report.verdicts.append(verdict)
        if on_verdict is not None:
            on_verdict(verdict)
    return report


def _require_no_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "a check takes its time and would block this event loop: call it outside of async code, "
        "or await asyncio.to_thread(check, …)"
    )


def check_publisher(
    publisher: Callable[[int], Publisher[Any]] | None = None,
    *,
    failing: Callable[[], Publisher[Any]] | None = None,
    infinite: Callable[[], Publisher[Any]] | None = None,
    timeouts: Timeouts | None = None,
    **options: Any,
) -> Report:
    """Judge a publisher: ``publisher(n)`` makes one of exactly *n* elements.

    ``failing()`` makes one that fails and ``infinite()`` one that never ends; *options* are the
    other fields of `Candidate`.
    """
    candidate = Candidate(
        publisher=publisher, failing_publisher=failing, infinite_publisher=infinite, **options
    )
    return check(candidate, timeouts=timeouts)


def check_subscriber(
    subscriber: Callable[[], Subscriber[Any]], *, timeouts: Timeouts | None = None, **options: Any
) -> Report:
    """Judge a subscriber as a black box: by its requests, and by how it accepts signals."""
    return check(Candidate(subscriber=subscriber, **options), timeouts=timeouts)


def check_processor(
    processor: Callable[[int], Processor[Any, Any]],
    *,
    timeouts: Timeouts | None = None,
    **options: Any,
) -> Report:
    """Judge a processor, ``processor(buffer_size)``, in all of its roles."""
    return check(Candidate(processor=processor, **options), timeouts=timeouts)
