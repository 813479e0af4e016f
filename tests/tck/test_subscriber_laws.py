"""Each law catches a subscriber that breaks it and says what it saw; honest ones pass them all."""

from collections import Counter
from pathlib import Path

import pytest

from reactive_aio.tck import Law, Outcome, check
from reactive_aio.tck.laws import BLACK_BOX, WHITE_BOX
from reactive_aio.tck.laws.black_box import UNTESTED_BLACK_BOX
from reactive_aio.tck.laws.white_box import UNTESTED_WHITE_BOX
from tests.tck.broken_receivers import SUBSCRIBERS, WHITE_BOXES
from tests.tck.judged import PATIENT, gives_verdicts, is_caught
from tests.tck.publishers import BrokenTrial
from tests.tck.subscribers import UNUSUAL_SUBSCRIBERS

HERE = Path(__file__).parent


@pytest.mark.parametrize("trial", SUBSCRIBERS + WHITE_BOXES, ids=str)
def test_law_catches(trial: BrokenTrial) -> None:
    is_caught(trial, "subscriber")


@pytest.mark.parametrize(("laws", "trials"), [(BLACK_BOX, SUBSCRIBERS), (WHITE_BOX, WHITE_BOXES)])
def test_no_law_is_without_a_subscriber_that_breaks_it(
    laws: tuple[Law, ...], trials: list[BrokenTrial]
) -> None:
    assert {law.name for law in laws} == {trial.law for trial in trials}


@pytest.mark.slow
@pytest.mark.parametrize("manner", UNUSUAL_SUBSCRIBERS)
def test_an_unusual_but_honest_subscriber_passes(manner: str) -> None:
    report = check(UNUSUAL_SUBSCRIBERS[manner](), terms=PATIENT)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.ok


# They keep the processor busy, under every law.
FLAWED = {
    trial.suspect: trial.make
    for trial in SUBSCRIBERS + WHITE_BOXES
    if "computes" not in trial.suspect
}


@pytest.mark.slow
@pytest.mark.parametrize("flaw", sorted(FLAWED))
def test_every_law_gives_a_verdict_about_every_broken_subscriber(flaw: str) -> None:
    gives_verdicts(FLAWED[flaw]())


@pytest.mark.parametrize(
    ("names", "count", "laws", "untested"),
    [
        ("jvm_black_box_tests.txt", 26, BLACK_BOX, UNTESTED_BLACK_BOX),
        ("jvm_white_box_tests.txt", 27, WHITE_BOX, UNTESTED_WHITE_BOX),
    ],
)
def test_every_test_of_the_jvms_kit_has_one_law_or_a_reason_why_not(
    names: str, count: int, laws: tuple[Law, ...], untested: dict[str, str]
) -> None:
    jvm = (HERE / names).read_text().split()
    assert len(jvm) == count
    assert Counter([*(name for law in laws for name in law.jvm), *untested]) == Counter(jvm)
