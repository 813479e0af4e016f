"""Each law detects publishers that break it, with the reason; conforming ones pass every law."""

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from reactive_aio.tck import RULES, Candidate, Outcome, Strength, Timeouts, check
from reactive_aio.tck.laws import LAWS, PUBLISHER
from reactive_aio.tck.rules import LIBRARY_RULES
from tests.harness.effort import Effort, effort
from tests.tck.broken_candidate import (
    HASTY,
    PATIENT,
    BrokenCandidate,
    require_broken_candidates,
    require_caught,
    require_verdicts,
)
from tests.tck.broken_publishers import BROKEN_PUBLISHERS
from tests.tck.honest_publishers import HONEST_PUBLISHERS, TOLERATED_FAILURES, endless


@pytest.mark.parametrize("broken", BROKEN_PUBLISHERS, ids=str)
def test_a_law_detects_a_broken_publisher(broken: BrokenCandidate) -> None:
    require_caught(broken, "publisher")


def test_every_law_has_a_publisher_that_breaks_it() -> None:
    require_broken_candidates(PUBLISHER, BROKEN_PUBLISHERS, "broken_publishers.py")


@pytest.mark.slow
@pytest.mark.parametrize("manner", HONEST_PUBLISHERS)
def test_an_unusual_but_conforming_publisher_passes(manner: str) -> None:
    report = check(HONEST_PUBLISHERS[manner](), timeouts=PATIENT)
    failed = {verdict.law for verdict in report.having(Outcome.FAIL)}
    assert failed <= TOLERATED_FAILURES.get(manner, set()), str(report)
    assert report.ok


def make_nothing(_: int) -> Any:
    return None


def test_factories_that_make_nothing_are_not_ok() -> None:
    """None says that there is no such publisher, and a candidate needs one."""
    candidate = Candidate(publisher=make_nothing)
    report = check(candidate, timeouts=HASTY)
    assert not report.ok
    with pytest.raises(ValueError, match=r"nothing was judged: the factory .* returned None"):
        report.raise_if_broken()
    assert check(candidate, rules=["setup"]).ok


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        (["9.9"], r"^there is no rule or law '9\.9': "),
        (["spec109_subscribes_frist"], "did you mean spec109_subscribes_first"),
        (["N.14"], r"^rule N\.14 cannot be judged: no law judges it"),
        ("1.9", r'write \["1\.9"\]'),
        (1.9, r'write \["1\.9"\]'),
        ([1.9], r"no rule or law 1\.9: "),
    ],
)
def test_rules_that_select_nothing_are_refused(rules: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        check(Candidate(publisher=make_nothing), rules=rules)


def test_what_is_no_candidate_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a Candidate is needed, not <function make_nothing"):
        check(cast("Any", make_nothing))
    with pytest.raises(ValueError, match="response must be a number from 0, not -1"):
        Timeouts(response=-1)


def test_a_publisher_that_sends_endlessly_inside_request_fails_one_law_only() -> None:
    report = check(endless(), timeouts=HASTY)
    failed = [verdict.law for verdict in report.having(Outcome.FAIL)]
    assert failed == ["spec304_yields_to_the_loop"], str(report)
    assert "the loop had no turn for" in report[failed[0]].why
    assert not report[failed[0]].stack


# -- no errors of the kit -----------------------------------------------------------------------

SLOW = {"computes in request", "computes in cancel", "hogs the loop"}
FLAWS = sorted({broken.flaw for broken in BROKEN_PUBLISHERS} - SLOW)
SOME_FLAWS = FLAWS if effort() is Effort.THOROUGH else FLAWS[::3]


@pytest.mark.slow
@pytest.mark.parametrize("flaw", SOME_FLAWS)
def test_every_law_has_a_verdict_on_every_broken_publisher(flaw: str) -> None:
    require_verdicts(next(each.make for each in BROKEN_PUBLISHERS if each.flaw == flaw)())


# -- names -------------------------------------------------------------------------------------

JVM = (Path(__file__).parent / "jvm_publisher_tests.txt").read_text().split()


def test_every_test_of_the_jvm_kit_has_one_law_with_the_same_meaning() -> None:
    assert len(JVM) == 38
    assert Counter(name for law in PUBLISHER for name in law.jvm) == Counter(JVM)


def test_there_are_43_rules_with_distinct_texts() -> None:
    assert len(RULES) == 43
    assert len({rule.text for rule in RULES.values()}) == 43
    assert all(number == rule.number for number, rule in {**RULES, **LIBRARY_RULES}.items())
    assert RULES["1.1"].strength is Strength.MUST
    assert RULES["3.4"].strength is Strength.SHOULD


def test_the_rule_of_every_law_exists() -> None:
    assert {law.rule for law in LAWS.values()} <= {*RULES, *LIBRARY_RULES, "setup"}


def test_a_law_is_not_stronger_than_its_rule() -> None:
    optional = {number for number, rule in {**RULES, **LIBRARY_RULES}.items()
            if rule.strength is not Strength.MUST}  # fmt: skip
    # Rule 1.2 allows fewer elements than requested; the law requires completion after them.
    binding = {law.rule for law in PUBLISHER if law.strength is Strength.MUST} - {"1.2"}
    assert optional & binding == set()


def test_laws_for_publishers_judge_every_rule_of_publishers_and_subscriptions() -> None:
    judged = {law.rule for law in PUBLISHER}
    assert {number for number in RULES if number[0] in "13"} <= judged


def test_every_rule_has_a_law() -> None:
    missing = {*RULES, *LIBRARY_RULES} - {law.rule for law in LAWS.values()}
    assert not missing, f"add a law for each of {missing} to a module of reactive_aio/tck/laws"
