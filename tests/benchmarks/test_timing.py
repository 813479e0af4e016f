"""The runner compares only what did the same work, and reports medians."""

import asyncio
from itertools import accumulate, repeat

import pytest

from benchmarks.runner.cases import QUICK, Effort, Row
from benchmarks.runner.peers import missing
from benchmarks.runner.question import Question
from benchmarks.runner.timing import WrongChecksum

ONCE = Effort(rounds=1, scale=1, least=1, is_warmed_up=False)


def measured(question: Question, effort: Effort = ONCE) -> dict[str, Row]:
    rows = asyncio.run(question.measure(effort))
    return {row.name: row for row in rows}


class Clock:
    """A clock that a case moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def timed(*, handwritten: list[float], ours: list[float]) -> Question:
    """A question whose cases take the given seconds, round by round."""
    clock = Clock()
    question = Question("Timed", 1000, clock=clock)
    # The first call of the hand-written case is for the checksum.
    times = {"hand-written": iter([0.0, *handwritten]), "ours": iter(ours)}

    @question.handwritten("hand-written")
    async def handwritten_case(count: int) -> float:
        clock.now += next(times["hand-written"])
        return count

    @question.ours("ours", goal=2)
    async def ours_case(count: int) -> float:
        clock.now += next(times["ours"])
        return count

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
    question = Question("Adding", 10)

    @question.handwritten("all of it")
    async def handwritten(count: int) -> int:
        return sum(range(count))

    @question.ours("nearly all of it")
    async def ours(count: int) -> int:
        return sum(range(count - 1))

    with pytest.raises(
        WrongChecksum, match=r"'nearly all of it' returned 36 .* hand-written case 45"
    ):
        measured(question)


def test_a_slow_case_runs_with_its_share_and_is_compared_for_that() -> None:
    question, counts = Question("Shared", 1000), list[int]()

    @question.handwritten("hand-written")
    async def handwritten(count: int) -> int:
        return count

    @question.peer("slow", share=0.1)
    async def slow(count: int) -> int:
        counts.append(count)
        return count

    assert measured(question)["slow"].figure is not None
    assert counts == [100]


def test_a_case_that_takes_long_gets_fewer_elements_in_the_next_round() -> None:
    clock, counts = Clock(), list[int]()
    question = Question("Long", 1000, clock=clock)

    @question.handwritten("hand-written")
    async def handwritten(count: int) -> int:
        return count

    @question.ours("long")
    async def long(count: int) -> int:
        counts.append(count)
        clock.now += count / 100
        return count

    row = measured(question, Effort(rounds=2, least=1, is_warmed_up=False))["long"]
    assert counts == [1000, 200]
    assert row.figure == pytest.approx(1e7)


def test_a_case_that_fails_is_reported_and_does_not_stop_the_others() -> None:
    question = Question("Failing", 10)

    @question.handwritten("hand-written")
    async def handwritten(count: int) -> int:
        return count

    @question.ours("broken")
    async def broken(count: int) -> int:
        raise LookupError("no such thing")

    @question.ours("sound")
    async def sound(count: int) -> int:
        return count

    rows = measured(question)
    assert rows["broken"].note == "fails: LookupError: no such thing"
    assert rows["broken"].figure is None
    assert rows["sound"].figure is not None


def test_a_peer_that_is_not_installed_is_left_out() -> None:
    question = Question("Peers", 10)

    @question.handwritten("hand-written")
    async def handwritten(count: int) -> int:
        return count

    @question.peer("absent", "no_such_package")
    async def absent(count: int) -> int:
        raise AssertionError

    assert measured(question)["absent"].note == "no_such_package is not installed"
    assert missing("asyncio") == ""


def test_a_task_that_a_case_leaves_behind_does_not_run_beside_the_next() -> None:
    question, left = Question("Leaving", 1), list[asyncio.Task[None]]()

    @question.handwritten("leaving a task")
    async def handwritten(count: int) -> int:
        left.append(asyncio.ensure_future(asyncio.sleep(3600)))
        return count

    @question.ours("next")
    async def ours(count: int) -> int:
        assert all(task.cancelled() for task in left)
        return count

    assert measured(question)["next"].note == ""


def test_a_question_in_another_unit_reports_the_figures_of_its_cases() -> None:
    question, figures = Question("Bytes", 1, unit="B"), accumulate(repeat(100.0))

    @question.handwritten("hand-written")
    async def handwritten(_: int) -> float:
        return next(figures)

    @question.ours("ours")
    async def ours(_: int) -> float:
        return 3 * next(figures)

    rows = measured(question)
    assert (rows["hand-written"].figure, rows["ours"].figure, rows["ours"].ratio) == (100, 600, 6)


def test_a_quick_run_has_few_elements() -> None:
    question, counts = Question("Large", 100_000_000), list[int]()

    @question.handwritten("hand-written")
    async def handwritten(count: int) -> int:
        counts.append(count)
        return count

    measured(question, QUICK)
    assert set(counts) == {10_000}


@pytest.mark.parametrize(("effort", "count"), [(Effort(1, 0.1, 1), 1000), (QUICK, 256)])
def test_only_a_quick_run_shortens_a_question_about_a_size(effort: Effort, count: int) -> None:
    question, counts = Question("Size", 1000, unit="B", is_scaled=False), list[int]()

    @question.handwritten("hand-written")
    async def handwritten(elements: int) -> int:
        counts.append(elements)
        return elements

    measured(question, effort)
    assert set(counts) == {count}


def test_the_handwritten_case_comes_first_and_names_are_unique() -> None:
    question = Question("Twice", 1)

    async def run(count: int) -> int:
        return count

    question.handwritten("hand-written")(run)
    with pytest.raises(TypeError, match="hand-written case comes first"):
        question.handwritten("hand-written again")(run)
    with pytest.raises(TypeError, match="two cases are named 'hand-written'"):
        question.ours("hand-written")(run)
