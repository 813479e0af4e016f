"""Each law detects subscribers that break it, with the reason; conforming ones pass every law."""

from collections import Counter
from pathlib import Path

import pytest

from reactive_aio.tck import Law, Outcome, check
from reactive_aio.tck.laws import BLACK_BOX, WHITE_BOX
from tests.tck.broken_candidate import (
    PATIENT,
    BrokenCandidate,
    require_broken_candidates,
    require_caught,
    require_verdicts,
)
from tests.tck.broken_subscribers import BROKEN_BLACK_BOXES, BROKEN_WHITE_BOXES
from tests.tck.flawed_subscriber import HONEST_SUBSCRIBERS
from tests.tck.tables import UNTESTED_BLACK_BOX

HERE = Path(__file__).parent


@pytest.mark.parametrize("broken", BROKEN_BLACK_BOXES + BROKEN_WHITE_BOXES, ids=str)
def test_a_law_detects_a_broken_subscriber(broken: BrokenCandidate) -> None:
    require_caught(broken, "subscriber")


def test_every_law_has_a_subscriber_that_breaks_it() -> None:
    require_broken_candidates(BLACK_BOX, BROKEN_BLACK_BOXES, "broken_subscribers.py")
    require_broken_candidates(WHITE_BOX, BROKEN_WHITE_BOXES, "broken_subscribers.py")


@pytest.mark.slow
@pytest.mark.parametrize("manner", HONEST_SUBSCRIBERS)
def test_an_unusual_but_conforming_subscriber_passes(manner: str) -> None:
    report = check(HONEST_SUBSCRIBERS[manner](), timeouts=PATIENT)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.ok


# Without those that block the loop, which would do so under every law.
FLAWED = {
    broken.flaw: broken.make
    for broken in BROKEN_BLACK_BOXES + BROKEN_WHITE_BOXES
    if "computes" not in broken.flaw
}


@pytest.mark.slow
@pytest.mark.parametrize("flaw", sorted(FLAWED))
def test_every_law_has_a_verdict_on_every_broken_subscriber(flaw: str) -> None:
    require_verdicts(FLAWED[flaw]())


@pytest.mark.parametrize(
    ("names", "count", "laws", "untested"),
    [
        ("jvm_black_box_tests.txt", 26, BLACK_BOX, UNTESTED_BLACK_BOX),
        ("jvm_white_box_tests.txt", 27, WHITE_BOX, {}),
    ],
)
def test_every_test_of_the_jvm_kit_has_one_law_or_a_reason(
    names: str, count: int, laws: tuple[Law, ...], untested: dict[str, str]
) -> None:
    jvm = (HERE / names).read_text().split()
    assert len(jvm) == count
    assert Counter([*(name for law in laws for name in law.jvm), *untested]) == Counter(jvm)
