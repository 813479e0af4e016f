"""Checking a subject: which laws judge it in which role, and the report of all of them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ...spec import Processor, Publisher, Subscriber
from ..law import Law
from ..laws import BLACK_BOX, PROCESSOR, PUBLISHER, WHITE_BOX
from ..report.verdict import Report, Verdict
from ..scenario.views import as_publisher, as_subscriber
from ..subject import Subject
from ..terms import Terms
from .judge import Judge

__all__ = ("Case", "cases", "check", "check_processor", "check_publisher", "check_subscriber")


class Case(NamedTuple):
    """One law that will judge the subject in one role."""

    role: str
    subject: Subject
    law: Law

    @property
    def id(self) -> str:
        """``publisher-spec109_subscribes_first-MUST``: unique within a subject."""
        return f"{self.role.replace(' ', '_')}-{self.law.name}-{self.law.strength.name}"


def cases(subject: Subject, rules: Iterable[str] = ()) -> list[Case]:
    """Every law for what *subject* gives, or those of some *rules* only.

    A rule is named by its number, ``"1.3"``; the name of a law stands for that law alone.
    """
    wanted = set(rules)
    return [
        case
        for case in _cases(subject)
        if not wanted or case.law.rule in wanted or case.law.name in wanted
    ]


def _cases(subject: Subject) -> Iterator[Case]:
    alone = subject
    if subject.processor is not None and subject.whitebox_subscriber is not None:
        alone = replace(subject, processor=None)
    roles: tuple[tuple[str, Subject, tuple[Law, ...], tuple[str, ...]], ...] = (
        (
            "publisher",
            subject,
            PUBLISHER,
            ("publisher", "failing_publisher", "infinite_publisher", "closing_publisher"),
        ),
        ("subscriber", subject, BLACK_BOX, ("subscriber",)),
        # By its processor a law knows that the white box is behind one.
        ("white box", alone, WHITE_BOX, ("whitebox_subscriber",)),
        ("processor as publisher", as_publisher(subject), PUBLISHER, ("processor",)),
        ("processor as subscriber", as_subscriber(subject), WHITE_BOX, ("processor",)),
        ("processor", subject, PROCESSOR, ("processor",)),
    )
    for role, view, laws, parts in roles:
        if any(getattr(view, part) is not None for part in parts):
            yield from (Case(role, view, law) for law in laws)


def check(
    subject: Subject,
    *,
    rules: Iterable[str] = (),
    terms: Terms | None = None,
    seen: Callable[[Verdict], object] | None = None,
) -> Report:
    """Judge *subject* by every law for it, or by those of some *rules* (see `cases`).

    Each law has a loop of its own, in a thread that is watched: a subject that blocks, runs away,
    never answers or raises gets its verdict all the same. *seen* is called with each verdict.
    """
    _not_on_a_loop()
    report = Report(subject.name)
    judges: dict[str, Judge] = {}
    for role, view, law in cases(subject, rules):
        judge = judges.setdefault(role, Judge(view, role, terms or Terms()))
        verdict = judge.judge(law)
        report.verdicts.append(verdict)
        if seen is not None:
            seen(verdict)
    return report


def _not_on_a_loop() -> None:
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
    terms: Terms | None = None,
    **options: Any,
) -> Report:
    """Judge a publisher: ``publisher(n)`` makes one of exactly *n* elements.

    ``failing()`` makes one that fails and ``infinite()`` one that never ends; *options* are those
    of `Subject`.
    """
    subject = Subject(
        publisher=publisher, failing_publisher=failing, infinite_publisher=infinite, **options
    )
    return check(subject, terms=terms)


def check_subscriber(
    subscriber: Callable[[], Subscriber[Any]], *, terms: Terms | None = None, **options: Any
) -> Report:
    """Judge a subscriber as a black box: by what it requests, and how it takes signals."""
    return check(Subject(subscriber=subscriber, **options), terms=terms)


def check_processor(
    processor: Callable[[int], Processor[Any, Any]], *, terms: Terms | None = None, **options: Any
) -> Report:
    """Judge a processor, ``processor(buffer_size)``, in all of its roles."""
    return check(Subject(processor=processor, **options), terms=terms)
