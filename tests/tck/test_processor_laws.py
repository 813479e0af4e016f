"""Processors are judged in all of their roles; each law detects processors that break it."""

from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import processors
from reactive_aio.tck import RULES, Candidate, Outcome, Strength, cases, check
from reactive_aio.tck.laws import PROCESSOR, PUBLISHER, WHITE_BOX
from reactive_aio.tck.run.checking import Judge
from tests.tck.broken_candidate import (
    HASTY,
    PATIENT,
    BrokenCandidate,
    require_broken_candidates,
    require_caught,
    require_verdicts,
)
from tests.tck.broken_processors import BROKEN_AS_SUBSCRIBERS, BROKEN_PROCESSORS
from tests.tck.flawed_processor import processor_with

CONFORMING: dict[str, Callable[[], Candidate]] = {
    "unicast": lambda: Candidate(processor=processors.UnicastProcessor[Any], max_subscribers=1),
    "multicast": lambda: Candidate(processor=processors.MulticastProcessor[Any]),
    "without the runtime": processor_with,
}


@pytest.mark.parametrize("broken", BROKEN_PROCESSORS, ids=str)
def test_a_law_detects_a_broken_processor(broken: BrokenCandidate) -> None:
    require_caught(broken, "processor")


@pytest.mark.parametrize("broken", BROKEN_AS_SUBSCRIBERS, ids=str)
def test_a_law_for_subscribers_detects_a_broken_processor(broken: BrokenCandidate) -> None:
    found = cases(broken.make(), [broken.law])
    (case,) = (each for each in found if each.role == "processor as subscriber")
    verdict = Judge(HASTY).judge(case)
    assert verdict.outcome is Outcome.FAIL
    assert broken.words in verdict.why, str(verdict)
    assert verdict.broken == broken.rule, str(verdict)


def test_an_error_that_is_held_back_breaks_a_must_rule_4_2() -> None:
    assert RULES["4.2"].strength is Strength.MUST
    broken = check(processor_with("does not pass errors on"), rules=["4.2"], timeouts=HASTY)
    assert [verdict.broken for verdict in broken.having(Outcome.FAIL)] == ["4.2"]
    assert not broken.ok


def test_every_law_has_a_processor_that_breaks_it() -> None:
    require_broken_candidates(PROCESSOR, BROKEN_PROCESSORS, "broken_processors.py")


@pytest.mark.parametrize("kind", CONFORMING)
def test_a_conforming_processor_passes(kind: str) -> None:
    report = check(CONFORMING[kind](), timeouts=PATIENT)
    assert not report.broken, str(report)
    assert report.ok


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN_PROCESSORS, ids=lambda broken: broken.flaw)
def test_every_law_has_a_verdict_on_every_broken_processor(broken: BrokenCandidate) -> None:
    require_verdicts(broken.make())


def test_a_processor_is_judged_in_three_roles() -> None:
    found = {(case.role, case.law.name) for case in cases(processor_with())}
    assert found == {
        *(("processor as publisher", law.name) for law in PUBLISHER),
        *(("processor as subscriber", law.name) for law in WHITE_BOX),
        *(("processor", law.name) for law in PROCESSOR),
    }


def test_the_three_tests_of_processors_in_the_jvm_kit_have_one_law_each() -> None:
    assert sorted(name for law in PROCESSOR for name in law.jvm) == [
        "mustImmediatelyPassOnOnErrorEventsReceivedFromItsUpstreamToItsDownstream",
        "required_mustRequestFromUpstreamForElementsThatHaveBeenRequestedLongAgo",
        "required_spec104_mustCallOnErrorOnAllItsSubscribersIfItEncountersANonRecoverableError",
    ]
