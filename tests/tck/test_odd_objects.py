"""Elements, errors and candidates with broken methods of their own are judged like all others."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio.spec import Subscriber
from reactive_aio.tck import Candidate, Outcome, Report, Timeouts, check
from reactive_aio.tck.report.formats import report_as_json, report_as_junit
from reactive_aio.tck.scenario.equality import alike, all_alike, same
from reactive_aio.testing.drawing import draw
from reactive_aio.testing.journal import Journal, Kind
from reactive_aio.testing.safe_repr import safe_repr
from tests.tck.broken_publishers import publisher_with
from tests.tck.flawed_publisher import FlawedPublisher
from tests.tck.honest_publishers import SynchronousPublisher

BRISK = Timeouts(response=0.3, reduced_response=0.1, quiet_period=0.001)
PATIENT = Timeouts(response=20.0, reduced_response=20.0)


class Hostile:
    """Raises in every special method."""

    def __init__(self, number: int) -> None:
        self.number = number

    def refuse(self, *_: object) -> Any:
        raise RuntimeError("broken")


for name in ("repr", "str", "eq", "hash", "bool", "len", "format"):
    setattr(Hostile, f"__{name}__", Hostile.refuse)


class Array(Hostile):
    """Its ``==`` returns an array, which is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return Array(0)


class Plain:
    """Equal only to itself."""

    def __init__(self, number: int) -> None:
        self.number = number


class Silent(Exception):
    """An error that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("broken")

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


def sending(make: Callable[[int], Any], *flaws: str) -> Candidate:
    class Odd(FlawedPublisher):
        def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
            super().subscribe(subscriber and Converting(subscriber, make))

    return Candidate(publisher=lambda n: Odd(n, *flaws), awaits_signals=False)


class Converting:
    """Converts numbers to odd elements, for the inner subscriber."""

    def __init__(self, inner: Subscriber[Any], make: Callable[[int], Any]) -> None:
        self.on_subscribe, self.on_error = inner.on_subscribe, inner.on_error
        self.on_complete = inner.on_complete
        self.inner, self.make = inner, make

    def on_next(self, element: int, /) -> Any:
        return self.inner.on_next(self.make(element))


def full_text(report: Report) -> str:
    return str(report) + report_as_json(report) + report_as_junit(report)


@pytest.mark.parametrize("kind", ODD)
def test_odd_elements_break_no_rule(kind: str) -> None:
    make = ODD[kind]
    report = check(
        Candidate(
            publisher=lambda n: SynchronousPublisher(map(make, range(n))), awaits_signals=False
        ),
        timeouts=PATIENT,
    )
    assert not report.having(Outcome.FAIL), full_text(report)


@pytest.mark.parametrize("kind", ODD)
def test_violations_with_odd_elements_can_be_reported(kind: str) -> None:
    report = check(
        sending(ODD[kind], "ignores demand"), rules=["1.1", "1.8", "L.1"], timeouts=BRISK
    )
    assert report["spec101_sends_no_more_than_requested"].broken == "1.1"
    assert "came out of the candidate" not in full_text(report)


def test_comparable_elements_must_be_equal_and_others_of_one_type() -> None:
    assert alike(1, 1.0)
    assert not alike(1, 2)
    assert not alike(Plain(1), Thing)
    assert alike(Plain(1), Plain(2))
    assert not same(Hostile(1), Hostile(1))
    assert not all_alike([Plain(1)], [])


Thing = object()


def test_an_object_with_a_broken_repr_is_shown_by_its_type() -> None:
    assert safe_repr(Hostile(1)) == "<Hostile, whose repr() raises RuntimeError>"
    assert safe_repr("x" * 10**6, 10) == "'xxxxxxxx…"
    journal = Journal("all kinds")
    for make in ODD.values():
        journal.note(Kind.ON_NEXT, make(1))
    journal.note(Kind.ON_ERROR, Silent())
    assert "Silent" in draw(journal)
    assert "Silent, whose repr() raises RuntimeError" in str(journal)


# -- errors that are not Exceptions ----------------------------------------------------------------
class Unusual(BaseException):
    """Not an Exception."""


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
def test_any_error_of_a_method_breaks_its_rule(
    method: str, rule: str, law: str, error: type[BaseException]
) -> None:
    report = check(
        Candidate(publisher=lambda _: Raising(method, error), awaits_signals=False),
        rules=[law],
        timeouts=BRISK,
    )
    assert report[law].broken == rule
    assert f" raised {safe_repr(error())}" in report[law].why


@pytest.mark.parametrize("error", ERRORS)
def test_any_error_of_a_factory_fails_the_setup(error: type[BaseException]) -> None:
    def publisher(_: int) -> Any:
        raise error

    report = check(Candidate(publisher=publisher), rules=["1.9"], timeouts=BRISK)
    assert {verdict.broken for verdict in report} - {""} == {"setup"}


@pytest.mark.parametrize("error", ERRORS)
def test_any_error_of_a_subscriber_breaks_rule_2_13(error: type[BaseException]) -> None:
    class Subscribing:
        def on_subscribe(self, subscription: Any, /) -> None:
            subscription.request(1)

        def on_next(self, element: object, /) -> None:
            raise error

        def on_error(self, error: BaseException, /) -> None: ...

        def on_complete(self) -> None: ...

    law = "spec201_requests_what_it_takes"
    report = check(Candidate(subscriber=Subscribing), rules=[law], timeouts=BRISK)
    assert report[law].why == f"rule 2.13: on_next(0) raised {safe_repr(error())}"


def test_a_publisher_for_one_subscriber_may_refuse_the_same_one_again() -> None:
    report = check(
        publisher_with("refuses its second subscriber"), rules=["1.10"], timeouts=PATIENT
    )
    assert not report.having(Outcome.FAIL), str(report)


def test_an_error_is_shown_with_the_frames_of_the_candidate() -> None:
    def reach() -> asyncio.AbstractEventLoop:
        raise OSError("there is no file left")

    def make_loop() -> asyncio.AbstractEventLoop:
        return reach()

    candidate = Candidate(publisher=lambda n: SynchronousPublisher(range(n)), loop=make_loop)
    verdict = check(candidate, rules=["1.1"], timeouts=BRISK)[
        "spec101_sends_no_more_than_requested"
    ]
    assert "there is no file left" in verdict.why
    assert ", in make_loop\n" in verdict.stack
    assert verdict.stack.splitlines()[-1] == "OSError: there is no file left"
    assert "tck/run" not in verdict.stack, "the frames of the kit are left out"
