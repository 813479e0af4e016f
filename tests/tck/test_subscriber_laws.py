"""Each law catches a subscriber that breaks it and says what it saw; honest ones pass them all."""

from collections import Counter
from pathlib import Path

import pytest

from reactive_aio.tck import Law, Outcome, Subject, Terms, check
from reactive_aio.tck.judge import Judge
from reactive_aio.tck.laws import BLACK_BOX, LAWS, WHITE_BOX
from reactive_aio.tck.laws.black_box import UNTESTED_BLACK_BOX
from reactive_aio.tck.laws.white_box import UNTESTED_WHITE_BOX
from tests.tck.broken_receivers import SUBSCRIBERS, WHITE_BOXES
from tests.tck.publishers import BrokenTrial
from tests.tck.subscribers import UNUSUAL_SUBSCRIBERS

HASTY = Terms(come=0.2, come_again=0.1)
PATIENT = Terms(come=20.0, come_again=20.0)
BRISK = Terms(come=0.02, come_again=0.01, turns=10, quiet=0.001)
HERE = Path(__file__).parent


@pytest.mark.parametrize("trial", SUBSCRIBERS + WHITE_BOXES, ids=str)
def test_law_catches(trial: BrokenTrial) -> None:
    verdict = Judge(trial.make(), "subscriber", HASTY).judge(LAWS[trial.law])
    assert verdict.outcome is Outcome.FAIL, str(verdict)
    assert trial.words in verdict.why, str(verdict)
    assert verdict.broken == trial.rule, str(verdict)


@pytest.mark.parametrize(("laws", "trials"), [(BLACK_BOX, SUBSCRIBERS), (WHITE_BOX, WHITE_BOXES)])
def test_no_law_is_without_a_subscriber_that_breaks_it(
    laws: tuple[Law, ...], trials: list[BrokenTrial]
) -> None:
    assert {law.name for law in laws} == {trial.law for trial in trials}


@pytest.mark.parametrize("manner", UNUSUAL_SUBSCRIBERS)
def test_an_unusual_but_honest_subscriber_passes(manner: str) -> None:
    report = check(UNUSUAL_SUBSCRIBERS[manner](), terms=PATIENT)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.ok


FLAWED = {trial.suspect: trial.make for trial in SUBSCRIBERS + WHITE_BOXES}


@pytest.mark.parametrize("flaw", sorted(FLAWED))
def test_every_law_gives_a_verdict_about_every_broken_subscriber(flaw: str) -> None:
    subject: Subject = FLAWED[flaw]()
    for verdict in check(subject, terms=BRISK):
        assert verdict.outcome is Outcome.PASS or verdict.why, str(verdict)
        assert "came out of the subject" not in verdict.why, str(verdict)
        assert not verdict.stack, str(verdict)


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
