"""Processors are judged in all their roles; each law of their own catches one that breaks it."""

from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import processors
from reactive_aio.tck import Subject, cases, check
from reactive_aio.tck.laws import PROCESSOR, PUBLISHER, WHITE_BOX
from tests.tck.broken_receivers import PROCESSORS
from tests.tck.judged import PATIENT, gives_verdicts, is_caught
from tests.tck.processors import passing
from tests.tck.publishers import BrokenTrial

OURS: dict[str, Callable[[], Subject]] = {
    "unicast": lambda: Subject(processor=processors.UnicastProcessor[Any], max_subscribers=1),
    "multicast": lambda: Subject(processor=processors.MulticastProcessor[Any]),
    "written by hand": passing,
}


@pytest.mark.parametrize("trial", PROCESSORS, ids=str)
def test_law_catches(trial: BrokenTrial) -> None:
    is_caught(trial, "processor")


def test_no_law_is_without_a_processor_that_breaks_it() -> None:
    assert {law.name for law in PROCESSOR} == {trial.law for trial in PROCESSORS}


@pytest.mark.parametrize("kind", OURS)
def test_an_honest_processor_passes(kind: str) -> None:
    report = check(OURS[kind](), terms=PATIENT)
    assert not report.broken, str(report)
    assert report.ok


@pytest.mark.slow
@pytest.mark.parametrize("trial", PROCESSORS, ids=lambda trial: trial.suspect)
def test_every_law_gives_a_verdict_about_every_broken_processor(trial: BrokenTrial) -> None:
    gives_verdicts(trial.make())


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
