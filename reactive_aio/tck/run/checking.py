"""Checking a candidate: which laws judge it in which role, and the report of all of them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ...spec import Processor, Publisher, Subscriber
from ..candidate import Candidate
from ..law import Law
from ..laws import BLACK_BOX, PROCESSOR, PUBLISHER, WHITE_BOX
from ..report.verdict import Report, Verdict
from ..scenario.processor_views import processor_as_publisher, processor_as_subscriber
from ..timeouts import Timeouts
from .judge import Judge

_PUBLISHERS = ("publisher", "failing_publisher", "infinite_publisher", "closing_publisher")


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

    A rule is named by its number, ``"1.3"``; the name of a law selects that law alone.
    """
    selected = set(rules)
    return [case for case in _cases(candidate) if case.law.is_selected(selected)]


def _cases(candidate: Candidate) -> Iterator[Case]:
    # The white-box laws treat a candidate with a processor as the view of that processor.
    whitebox = candidate
    if candidate.whitebox_subscriber is not None:
        whitebox = replace(candidate, processor=None)
    roles: tuple[tuple[str, Candidate, tuple[Law, ...], tuple[str, ...]], ...] = (
        ("publisher", candidate, PUBLISHER, _PUBLISHERS),
        ("subscriber", candidate, BLACK_BOX, ("subscriber",)),
        ("white box", whitebox, WHITE_BOX, ("whitebox_subscriber",)),
        ("processor as publisher", processor_as_publisher(candidate), PUBLISHER, ("processor",)),
        ("processor as subscriber", processor_as_subscriber(candidate), WHITE_BOX, ("processor",)),
        ("processor", candidate, PROCESSOR, ("processor",)),
    )
    for role, view, laws, factories in roles:
        if any(getattr(view, factory) is not None for factory in factories):
            yield from (Case(role, view, law) for law in laws)


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
    report = Report(candidate.name)
    judges: dict[str, Judge] = {}
    for role, view, law in cases(candidate, rules):
        judge = judges.setdefault(role, Judge(view, role, timeouts or Timeouts()))
        verdict = judge.judge(law)
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
