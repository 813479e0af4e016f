"""Processors are judged in all their roles; each law of their own catches one that breaks it."""

from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import processors
from reactive_aio.tck import Outcome, Subject, Terms, cases, check
from reactive_aio.tck.judge import Judge
from reactive_aio.tck.laws import LAWS, PROCESSOR, PUBLISHER, WHITE_BOX
from tests.tck.broken_receivers import PROCESSORS
from tests.tck.processors import passing
from tests.tck.publishers import BrokenTrial

HASTY = Terms(come=0.2, come_again=0.1)
PATIENT = Terms(come=20.0, come_again=20.0)
BRISK = Terms(come=0.02, come_again=0.01, turns=10, quiet=0.001)

OURS: dict[str, Callable[[], Subject]] = {
    "unicast": lambda: Subject(processor=processors.UnicastProcessor[Any], max_subscribers=1),
    "multicast": lambda: Subject(processor=processors.MulticastProcessor[Any]),
    "written by hand": passing,
}


@pytest.mark.parametrize("trial", PROCESSORS, ids=str)
def test_law_catches(trial: BrokenTrial) -> None:
    verdict = Judge(trial.make(), "processor", HASTY).judge(LAWS[trial.law])
    assert verdict.outcome is Outcome.FAIL, str(verdict)
    assert trial.words in verdict.why, str(verdict)
    assert verdict.broken == trial.rule, str(verdict)


def test_no_law_is_without_a_processor_that_breaks_it() -> None:
    assert {law.name for law in PROCESSOR} == {trial.law for trial in PROCESSORS}


@pytest.mark.parametrize("kind", OURS)
def test_an_honest_processor_passes(kind: str) -> None:
    report = check(OURS[kind](), terms=PATIENT)
    assert not report.broken, str(report)
    assert report.ok


@pytest.mark.parametrize("trial", PROCESSORS, ids=lambda trial: trial.suspect)
def test_every_law_gives_a_verdict_about_every_broken_processor(trial: BrokenTrial) -> None:
    for verdict in check(trial.make(), terms=BRISK):
        assert verdict.outcome is Outcome.PASS or verdict.why, str(verdict)
        assert "came out of the subject" not in verdict.why, str(verdict)


def test_a_processor_is_judged_in_three_roles() -> None:
    found = {(case.role, case.law.name) for case in cases(passing())}
    assert found == {
        *(("processor as publisher", law.name) for law in PUBLISHER),
        *(("processor as subscriber", law.name) for law in WHITE_BOX),
        *(("processor", law.name) for law in PROCESSOR),
    }


def test_the_jvms_three_own_tests_of_processors_have_a_law_each() -> None:
    assert sorted(name for law in PROCESSOR for name in law.jvm) == [
        "mustImmediatelyPassOnOnErrorEventsReceivedFromItsUpstreamToItsDownstream",
        "required_mustRequestFromUpstreamForElementsThatHaveBeenRequestedLongAgo",
        "required_spec104_mustCallOnErrorOnAllItsSubscribersIfItEncountersANonRecoverableError",
    ]
