"""Each law catches a publisher that breaks it, says what it saw, and lets honest ones pass."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from reactive_aio.errors import RuleViolation
from reactive_aio.tck import FAILING_LAWS, INFINITE_LAWS, LAWS, RULES, Strength, check_publisher
from reactive_aio.tck.recorder import Terms, terms
from tests.conformance.suspects import Suspect, Synchronous

ALL_LAWS = {**LAWS, **FAILING_LAWS, **INFINITE_LAWS}

# law, flaw, the rule named, words of the message
BITES = [
    ("spec101_sends_no_more_than_requested", "ignores demand", "1.1", "before anything was req"),
    (
        "spec101_sends_no_more_than_requested",
        "sends one too many",
        "1.1",
        "1 were requested in all, 2",
    ),
    ("spec101_infinite_sends_no_more_than_requested", "ignores demand", "1.1", "3 were requested"),
    ("spec103_does_not_overlap_signals", "overlaps", "1.3", "signals began before another ended"),
    ("spec104_signals_its_failure", "hides its failure", "1.4", "completed instead of failing"),
    ("spec104_signals_its_failure", "never ends", "1.4", "no terminal signal"),
    ("spec105_completes_a_finite_stream", "never ends", "1.5", "no terminal signal came"),
    ("spec105_completes_a_finite_stream", "loses the first", "1.1", "came before"),
    ("spec107_is_silent_after_its_end", "ends twice", "1.7", "signals came after on_complete"),
    ("spec107_is_silent_after_its_failure", "ends twice", "1.7", "signals came after on_error"),
    ("spec108_is_silent_after_cancel", "ignores cancel", "1.8", "signals came after cancel()"),
    ("spec108_infinite_is_silent_after_cancel", "ignores cancel", "1.8", "after cancel()"),
    ("spec109_refuses_no_subscriber", "takes nobody", "1.9", "did not raise TypeError"),
    ("spec109_refuses_no_subscriber", "raises in subscribe", "1.9", "no TypeError"),
    ("spec109_subscribes_first", "begins with an element", "1.9", "before on_subscribe"),
    ("spec109_subscribes_first", "subscribes twice", "2.12", "on_subscribe came 2 times"),
    ("spec109_subscribes_first", "raises in subscribe", "1.9", "subscribe raised RuntimeError"),
    ("spec110_serves_or_refuses_the_next_subscriber", "serves one", "1.9", "has not come"),
    ("spec213_cancels_a_subscriber_that_raises", "swallows errors", "2.13", "nobody was told"),
    ("spec213_cancels_a_subscriber_that_raises", "goes on", "2.13", "after it had raised in on_"),
    ("spec213_survives_a_subscriber_that_raises_in_on_error", "swallows errors", "2.13", "nobody"),
    ("spec302_takes_requests_inside_signals", "takes no request inside signals", "3.2", "no term"),
    ("spec303_does_not_recurse", "recurses", "3.3", "on_next was called inside on_next"),
    ("spec304_leaves_the_loop_to_others", "hogs the loop", "3.4", "the loop had no turn for"),
    ("spec305_cancels_from_another_thread", "cancels on its thread only", "3.5", "another thread"),
    ("spec306_takes_no_request_after_cancel", "revives", "3.6", "signals came after cancel()"),
    ("spec307_takes_cancel_again", "cancels once only", "3.15", "cancelled already"),
    ("spec307_takes_cancel_again", "ignores cancel and completes", "3.7", "after cancel()"),
    ("spec308_adds_requests_up", "takes the last request only", "3.8", "not all came"),
    ("spec308_sends_the_same_whatever_the_demand", "loses the last demanded", "3.8", "requested"),
    ("spec309_refuses_what_is_not_positive", "ignores a wrong request", "3.9", "was not answered"),
    ("spec309_refuses_what_is_not_positive", "answers vaguely", "3.9", "does not say what was"),
    (
        "spec309_refuses_what_is_not_positive",
        "raises for a wrong request",
        "3.16",
        "raised ValueErr",
    ),
    ("spec313_forgets_the_subscriber", "remembers", "3.13", "still referred to, by objects of"),
    ("spec317_takes_the_largest_demand", "counts with 32 bits", "3.17", "made it fail"),
    ("spec317_takes_the_largest_demand", "fails beyond the largest demand", "3.17", "made it fail"),
]

IMPATIENT = Terms(come=0.1, turns=40)


def suspect_for(law: str, *flaws: str) -> Any:
    if law in FAILING_LAWS:
        return lambda: Suspect(2, *flaws, fails=True)
    if law in INFINITE_LAWS:
        return lambda: Suspect(float("inf"), *flaws)
    kept: list[Suspect] = []  # a publisher outlives its subscriptions

    def make(n: int) -> Suspect:
        kept.append(Suspect(n, *flaws))
        return kept[-1]

    return make


async def end_all() -> None:
    """What a flawed publisher has left behind."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def judge(law: str, make: Any, under: Terms = IMPATIENT) -> None:
    before = terms.set(under)
    try:
        await ALL_LAWS[law](make)
    finally:
        terms.reset(before)
        await end_all()


@pytest.mark.parametrize(("law", "flaw", "rule", "words"), BITES, ids=lambda part: str(part)[:40])
async def test_law_catches(
    law: str, flaw: str, rule: str, words: str, expects_loop_errors: object
) -> None:
    with pytest.raises(RuleViolation) as caught:
        await judge(law, suspect_for(law, flaw))
    assert caught.value.rule == rule
    assert words in str(caught.value)


@pytest.mark.parametrize("law", ALL_LAWS)
def test_no_law_is_without_a_publisher_that_breaks_it(law: str) -> None:
    assert law in {caught for caught, *_ in BITES}


@pytest.mark.parametrize("law", ALL_LAWS)
@pytest.mark.parametrize("manner", ["task", "ends late"])
async def test_an_honest_publisher_passes(law: str, manner: str) -> None:
    before = terms.set(Terms(come=2.0))
    try:
        await ALL_LAWS[law](suspect_for(law, manner))
    finally:
        terms.reset(before)
        await end_all()


# Those that use an ``async def`` subscriber need a publisher that awaits it.
PLAIN = [
    "spec107_is_silent_after_its_end",
    "spec303_does_not_recurse",
    "spec305_cancels_from_another_thread",
    "spec306_takes_no_request_after_cancel",
    "spec307_takes_cancel_again",
    "spec308_adds_requests_up",
    "spec317_takes_the_largest_demand",
]


@pytest.mark.parametrize("law", PLAIN)
async def test_a_synchronous_publisher_passes(law: str) -> None:
    await LAWS[law](Synchronous)


async def test_signals_in_flight_may_be_allowed() -> None:
    """2.8: what had been sent when the cancellation arrived."""
    late = suspect_for("spec108_is_silent_after_cancel", "cancels later")
    with pytest.raises(RuleViolation, match="signals came after cancel"):
        await judge("spec108_is_silent_after_cancel", late)
    await judge("spec108_is_silent_after_cancel", late, replace(IMPATIENT, in_flight=50))


async def test_the_report_tells_all_that_is_broken() -> None:
    report = await check_publisher(
        lambda n: Suspect(n, "ignores cancel", "ignores demand"), under=IMPATIENT
    )
    await end_all()
    assert not report.ok
    assert report.violations.keys() >= {
        "spec101_sends_no_more_than_requested",
        "spec108_is_silent_after_cancel",
    }
    assert "seen: on_subscribe" in str(report)
    with pytest.raises(RuleViolation):
        report.raise_if_broken()


async def test_the_report_of_an_honest_publisher_is_clean() -> None:
    report = await check_publisher(
        Suspect,
        failing=lambda: Suspect(2, fails=True),
        infinite=lambda: Suspect(float("inf")),
        under=Terms(come=2.0),
    )
    await end_all()
    assert report.ok, str(report)
    assert sorted(report.kept) == sorted(ALL_LAWS)
    report.raise_if_broken()


def test_there_are_43_rules_each_with_a_strength_and_words_of_its_own() -> None:
    assert len(RULES) == 43
    assert len({rule.text for rule in RULES.values()}) == 43
    assert all(number == rule.number for number, rule in RULES.items())
    assert RULES["1.1"].strength is Strength.MUST
    assert RULES["3.4"].strength is Strength.SHOULD


def test_every_law_is_named_after_its_rule() -> None:
    for name in ALL_LAWS:
        digits = name.removeprefix("spec").partition("_")[0]
        assert f"{digits[0]}.{int(digits[1:])}" in RULES
