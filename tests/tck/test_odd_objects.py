"""Elements, errors and subjects whose own methods are broken are judged like all others."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio.spec import Subscriber
from reactive_aio.tck import Outcome, Report, Subject, Terms, check
from reactive_aio.tck.report.export import report_as_json, report_as_junit
from reactive_aio.tck.scenario.comparing import alike, all_alike, same
from reactive_aio.testing.drawing import draw
from reactive_aio.testing.journal import Journal, Kind
from reactive_aio.testing.safe_repr import safe_repr
from tests.tck.publishers import suspect
from tests.tck.suspects import Suspect
from tests.tck.unusual import Synchronous

BRISK = Terms(come=0.3, come_again=0.1, quiet=0.001)
PATIENT = Terms(come=20.0, come_again=20.0)


class Hostile:
    """Raises in all that a kit might call unasked."""

    def __init__(self, number: int) -> None:
        self.number = number

    def refuse(self, *_: object) -> Any:
        raise RuntimeError("leave me alone")


for name in ("repr", "str", "eq", "hash", "bool", "len", "format"):
    setattr(Hostile, f"__{name}__", Hostile.refuse)


class Array(Hostile):
    """Its ``==`` returns an array, and an array is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return Array(0)


class Plain:
    """Equal to itself only."""

    def __init__(self, number: int) -> None:
        self.number = number


class Silent(Exception):
    """An error that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("nor this")

    __str__ = __repr__


ODD: dict[str, Callable[[int], Any]] = {
    "hostile": Hostile,
    "arrays": Array,
    "plain objects": Plain,
    "not a number": lambda _: math.nan,
    "errors": ValueError,
    "a number of many digits": lambda number: 10**5000 + number,
    "no text that can be encoded": lambda number: f"\udc80\x00\x1b{number}",
}


def sending(make: Callable[[int], Any], *flaws: str) -> Subject:
    class Odd(Suspect):
        def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
            super().subscribe(subscriber and Turning(subscriber, make))

    return Subject(publisher=lambda n: Odd(n, *flaws), awaits_signals=False)


class Turning:
    """Makes odd elements of numbers, for the subscriber behind it."""

    def __init__(self, inner: Subscriber[Any], make: Callable[[int], Any]) -> None:
        self.on_subscribe, self.on_error = inner.on_subscribe, inner.on_error
        self.on_complete = inner.on_complete
        self.inner, self.make = inner, make

    def on_next(self, element: int, /) -> Any:
        return self.inner.on_next(self.make(element))


def told(report: Report) -> str:
    return str(report) + report_as_json(report) + report_as_junit(report)


@pytest.mark.parametrize("kind", ODD)
def test_odd_elements_are_no_offence(kind: str) -> None:
    make = ODD[kind]
    report = check(
        Subject(publisher=lambda n: Synchronous(map(make, range(n))), awaits_signals=False),
        terms=PATIENT,
    )
    assert not report.having(Outcome.FAIL), told(report)


@pytest.mark.parametrize("kind", ODD)
def test_offences_with_odd_elements_can_be_told(kind: str) -> None:
    report = check(sending(ODD[kind], "ignores demand"), rules=["1.1", "1.8", "L.1"], terms=BRISK)
    assert report["spec101_sends_no_more_than_requested"].broken == "1.1"
    assert "came out of the subject" not in told(report)


def test_other_elements_of_a_kind_that_can_be_compared_are_an_offence() -> None:
    assert alike(1, 1.0)
    assert not alike(1, 2)
    assert not alike(Plain(1), Thing)
    assert alike(Plain(1), Plain(2))
    assert not same(Hostile(1), Hostile(1))
    assert not all_alike([Plain(1)], [])


Thing = object()


def test_what_cannot_be_shown_is_named() -> None:
    assert safe_repr(Hostile(1)) == "<Hostile, whose repr() raises RuntimeError>"
    assert safe_repr("x" * 10**6, 10) == "'xxxxxxxx…"
    journal = Journal("all kinds")
    for make in ODD.values():
        journal.note(Kind.ON_NEXT, make(1))
    journal.note(Kind.ON_ERROR, Silent())
    assert "Silent" in draw(journal)
    assert "Silent, whose repr() raises RuntimeError" in str(journal)


# -- errors that are no Exceptions -----------------------------------------------------------------
class Unusual(BaseException):
    """Neither."""


ERRORS = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, Unusual, Silent)


class Raising:
    """A publisher whose *method*, or its subscription's, raises *error*."""

    def __init__(self, method: str, error: type[BaseException]) -> None:
        def throw(*_: object) -> None:
            raise error

        self.request: Callable[[int], None] = lambda _: None
        self.cancel: Callable[[], None] = lambda: None
        self.subscribe: Callable[[Any], None] = lambda subscriber: subscriber.on_subscribe(self)
        setattr(self, method, throw)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    ("method", "rule", "law"),
    [
        ("subscribe", "1.9", "spec109_subscribes_first"),
        ("request", "3.16", "spec316_request_returns_normally"),
        ("cancel", "3.15", "spec315_cancel_returns_normally"),
    ],
)
def test_whatever_a_method_raises_is_held_against_its_rule(
    method: str, rule: str, law: str, error: type[BaseException]
) -> None:
    report = check(
        Subject(publisher=lambda _: Raising(method, error), awaits_signals=False),
        rules=[law],
        terms=BRISK,
    )
    assert report[law].broken == rule
    assert f" raised {safe_repr(error())}" in report[law].why


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_a_factory_raises_is_held_against_the_factory(error: type[BaseException]) -> None:
    def publisher(_: int) -> Any:
        raise error

    report = check(Subject(publisher=publisher), rules=["1.9"], terms=BRISK)
    assert {verdict.broken for verdict in report} - {""} == {"setup"}


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_a_subscriber_raises_is_held_against_2_13(error: type[BaseException]) -> None:
    class Subscribing:
        def on_subscribe(self, subscription: Any, /) -> None:
            subscription.request(1)

        def on_next(self, element: object, /) -> None:
            raise error

        def on_error(self, error: BaseException, /) -> None: ...

        def on_complete(self) -> None: ...

    law = "spec201_requests_what_it_takes"
    report = check(Subject(subscriber=Subscribing), rules=[law], terms=BRISK)
    assert report[law].why == f"rule 2.13: on_next(0) raised {safe_repr(error())}"


def test_one_that_serves_one_subscriber_only_may_refuse_the_same_one_too() -> None:
    report = check(suspect("refuses its second subscriber"), rules=["1.10"], terms=PATIENT)
    assert not report.having(Outcome.FAIL), str(report)


def test_where_an_error_came_from_is_told_by_the_frames_of_the_subject() -> None:
    def reach() -> asyncio.AbstractEventLoop:
        raise OSError("there is no file left")

    def make_loop() -> asyncio.AbstractEventLoop:
        return reach()

    subject = Subject(publisher=lambda n: Synchronous(range(n)), loop=make_loop)
    verdict = check(subject, rules=["1.1"], terms=BRISK)["spec101_sends_no_more_than_requested"]
    assert "there is no file left" in verdict.why
    assert ", in make_loop\n" in verdict.stack
    assert verdict.stack.splitlines()[-1] == "OSError: there is no file left"
    assert "tck/run" not in verdict.stack, "how the kit is made helps nobody"
