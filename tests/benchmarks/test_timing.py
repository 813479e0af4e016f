"""The runner compares only what did the same work, and reports medians."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import accumulate, repeat
from typing import Any

import pytest

from benchmarks.runner.cases import QUICK, Effort, Row
from benchmarks.runner.peers import missing
from benchmarks.runner.question import Question
from benchmarks.runner.timing import WrongChecksum

ONCE = Effort(rounds=1, scale=1, least=1, is_warmed_up=False)


def measured(question: Question, effort: Effort = ONCE) -> dict[str, Row]:
    rows = asyncio.run(question.measure(effort))
    return {row.name: row for row in rows}


async def same(count: int) -> int:
    """The work of a case: none."""
    return count


def asked(
    handwritten: Callable[[int], Awaitable[Any]] = same, *, size: int = 1000, **options: Any
) -> Question:
    """A question of so many elements, with a hand-written case."""
    question = Question("Asked", size, **options)
    question.handwritten("hand-written")(handwritten)
    return question


class Recorded:
    """A case that records for how many elements it was called, and takes *seconds* for each."""

    def __init__(self, seconds: float = 0) -> None:
        self.counts: list[int] = []
        self.seconds = seconds
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    async def __call__(self, count: int) -> int:
        self.counts.append(count)
        self.now += count * self.seconds
        return count


def timed(*, handwritten: list[float], ours: list[float]) -> Question:
    """A question whose cases take the given seconds, round by round."""
    now = 0.0

    def taking(seconds: list[float]) -> Callable[[int], Awaitable[int]]:
        remaining = iter(seconds)

        async def case(count: int) -> int:
            nonlocal now
            now += next(remaining)
            return count

        return case

    # The first call of the hand-written case is for the checksum.
    question = asked(taking([0.0, *handwritten]), clock=lambda: now)
    question.ours("ours", goal=2)(taking(ours))
    return question


def test_a_row_has_the_median_cost_and_the_median_ratio_of_its_rounds() -> None:
    question = timed(handwritten=[1e-3, 2e-3, 4e-3], ours=[3e-3, 2e-3, 6e-3])
    rows = measured(question, Effort(rounds=3, least=1, is_warmed_up=False))
    assert rows["hand-written"].figure == pytest.approx(2e-3 / 1000 * 1e9)
    assert rows["ours"].figure == pytest.approx(3e-3 / 1000 * 1e9)
    assert rows["ours"].ratio == pytest.approx(1.5)
    assert rows["ours"].goal == 2


def test_the_round_of_warm_up_does_not_count() -> None:
    question = timed(handwritten=[0.9, 1e-3], ours=[0.9, 5e-3])
    rows = measured(question, Effort(rounds=1, least=1))
    assert rows["ours"].ratio == pytest.approx(5)


def test_a_case_that_does_less_work_is_refused() -> None:
    question = asked(size=10)

    @question.ours("nearly all of it")
    async def ours(count: int) -> int:
        return count - 1

    with pytest.raises(
        WrongChecksum, match=r"'nearly all of it' returned 9 .* hand-written case 10"
    ):
        measured(question)


def test_a_slow_case_runs_with_its_share_and_is_compared_for_that() -> None:
    question, slow = asked(), Recorded()
    question.peer("slow", share=0.1)(slow)
    assert measured(question)["slow"].figure is not None
    assert slow.counts == [100]


def test_a_case_that_takes_long_gets_fewer_elements_in_the_next_round() -> None:
    long = Recorded(seconds=0.01)
    question = asked(clock=long.clock)
    question.ours("long")(long)
    row = measured(question, Effort(rounds=2, least=1, is_warmed_up=False))["long"]
    assert long.counts == [1000, 200]
    assert row.figure == pytest.approx(1e7)


def test_a_case_that_fails_or_lacks_its_package_says_so_and_does_not_stop_the_others() -> None:
    question = asked(size=10)

    @question.ours("broken")
    async def broken(count: int) -> int:
        raise LookupError("no such thing")

    question.ours("sound")(same)
    question.peer("absent", "no_such_package")(broken)
    rows = measured(question)
    assert rows["broken"].note == "fails: LookupError: no such thing"
    assert rows["broken"].figure is None
    assert rows["sound"].figure is not None
    assert rows["absent"].note == "no_such_package is not installed"
    assert missing("asyncio") == ""


def test_a_task_that_a_case_leaves_behind_does_not_run_beside_the_next() -> None:
    left: list[asyncio.Task[None]] = []

    async def leaving(count: int) -> int:
        left.append(asyncio.ensure_future(asyncio.sleep(3600)))
        return count

    question = asked(leaving, size=1)

    @question.ours("next")
    async def ours(count: int) -> int:
        assert all(task.cancelled() for task in left)
        return count

    assert measured(question)["next"].note == ""


def test_a_question_in_another_unit_reports_the_figures_of_its_cases() -> None:
    figures = accumulate(repeat(100.0))

    async def handwritten(_: int) -> float:
        return next(figures)

    question = asked(handwritten, size=1, unit="B")

    @question.ours("ours")
    async def ours(_: int) -> float:
        return 3 * next(figures)

    rows = measured(question)
    assert (rows["hand-written"].figure, rows["ours"].figure, rows["ours"].ratio) == (100, 600, 6)


@pytest.mark.parametrize(
    ("size", "options", "effort", "count"),
    [
        (100_000_000, {}, QUICK, 10_000),
        (1000, {"unit": "B", "is_scaled": False}, Effort(1, 0.1, 1), 1000),
        (1000, {"unit": "B", "is_scaled": False}, QUICK, 256),
    ],
)
def test_a_quick_run_has_few_elements_and_alone_shortens_a_question_about_a_size(
    size: int, options: dict[str, Any], effort: Effort, count: int
) -> None:
    handwritten = Recorded()
    measured(asked(handwritten, size=size, **options), effort)
    assert set(handwritten.counts) == {count}


def test_the_handwritten_case_comes_first_and_names_are_unique() -> None:
    question = asked()
    with pytest.raises(TypeError, match="hand-written case comes first"):
        question.handwritten("hand-written again")(same)
    with pytest.raises(TypeError, match="two cases are named 'hand-written'"):
        question.ours("hand-written")(same)
