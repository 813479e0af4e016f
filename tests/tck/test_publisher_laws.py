"""Each law catches a publisher that breaks it and says what it saw; honest ones pass them all."""

from collections import Counter
from pathlib import Path

import pytest

from reactive_aio.tck import RULES, Outcome, Strength, check
from reactive_aio.tck.laws import LAWS, PUBLISHER
from reactive_aio.tck.rules import HOUSE_RULES, UNJUDGED
from tests.tck.judged import HASTY, PATIENT, gives_verdicts, is_caught
from tests.tck.publishers import TRIALS, BrokenTrial
from tests.tck.unusual import TOLERATED, UNUSUAL, endless


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_law_catches(trial: BrokenTrial) -> None:
    is_caught(trial, "publisher")


def test_no_law_is_without_a_publisher_that_breaks_it() -> None:
    assert {law.name for law in PUBLISHER} == {trial.law for trial in TRIALS}


@pytest.mark.slow
@pytest.mark.parametrize("manner", UNUSUAL)
def test_an_unusual_but_honest_publisher_passes(manner: str) -> None:
    report = check(UNUSUAL[manner](), terms=PATIENT)
    failed = {verdict.law for verdict in report.having(Outcome.FAIL)}
    assert failed <= TOLERATED.get(manner, set()), str(report)
    assert report.ok


def test_an_endless_publisher_inside_request_holds_up_nobody_but_the_law_about_that() -> None:
    report = check(endless(), terms=HASTY)
    failed = [verdict.law for verdict in report.having(Outcome.FAIL)]
    assert failed == ["spec304_leaves_the_loop_to_others"], str(report)
    assert "the loop had no turn for" in report[failed[0]].why
    assert not report[failed[0]].stack


# -- never an error of the kit -----------------------------------------------------------------

SLOW = {"computes in request", "computes in cancel", "hogs the loop"}
FLAWS = sorted({trial.suspect for trial in TRIALS} - SLOW)


@pytest.mark.slow
@pytest.mark.parametrize("flaw", FLAWS)
def test_every_law_gives_a_verdict_about_every_broken_publisher(flaw: str) -> None:
    gives_verdicts(next(trial.make for trial in TRIALS if trial.suspect == flaw)())


# -- names -------------------------------------------------------------------------------------

JVM = (Path(__file__).parent / "jvm_publisher_tests.txt").read_text().split()


def test_every_test_of_the_jvms_kit_has_one_law_of_the_same_meaning() -> None:
    assert len(JVM) == 38
    assert Counter(name for law in PUBLISHER for name in law.jvm) == Counter(JVM)


def test_there_are_43_rules_each_with_a_strength_and_words_of_its_own() -> None:
    assert len(RULES) == 43
    assert len({rule.text for rule in RULES.values()}) == 43
    assert all(number == rule.number for number, rule in {**RULES, **HOUSE_RULES}.items())
    assert RULES["1.1"].strength is Strength.MUST
    assert RULES["3.4"].strength is Strength.SHOULD


def test_every_law_is_of_a_rule_that_exists() -> None:
    assert {law.rule for law in LAWS.values()} <= {*RULES, *HOUSE_RULES, "setup"}


def test_a_law_insists_no_more_than_its_rule() -> None:
    weak = {number for number, rule in {**RULES, **HOUSE_RULES}.items()
            if rule.strength is not Strength.MUST}  # fmt: skip
    # To send less than requested is allowed; to end then is not only allowed.
    strict = {law.rule for law in PUBLISHER if law.strength is Strength.MUST} - {"1.2"}
    assert weak & strict == set()


def test_laws_for_publishers_judge_every_rule_of_publisher_and_subscription() -> None:
    judged = {law.rule for law in PUBLISHER}
    assert {number for number in RULES if number[0] in "13"} <= judged


def test_every_rule_is_judged_or_it_is_said_why_not() -> None:
    judged = {law.rule for law in LAWS.values()}
    assert judged & UNJUDGED.keys() == set()
    assert RULES.keys() - judged - UNJUDGED.keys() == set()
