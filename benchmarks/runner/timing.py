"""Runs the cases of a question interleaved; reports medians and ratios to the hand-written case."""

import asyncio
import gc
import statistics
from typing import TYPE_CHECKING, Final

from .cases import TIME, Case, Effort, Row

if TYPE_CHECKING:
    from .question import Question

NANO: Final = 1e9
LONGEST: Final = 2.0
"""Seconds of one run; a case that takes longer gets fewer elements in the rounds that follow."""


class WrongChecksum(Exception):
    """A case did not do the same work as the hand-written case."""


async def measure(question: "Question", effort: Effort) -> list[Row]:
    """Run every case once a round, usually after one round of warm-up."""
    run = _Measurement(question, effort)
    rounds = min(effort.rounds, question.rounds or effort.rounds)
    is_warmed_up = effort.is_warmed_up and question.is_warmed_up
    for number in range(rounds + is_warmed_up):
        await run.round(is_measured=number >= is_warmed_up)
    return run.rows()


class _Measurement:
    """The figures of one question, round by round."""

    def __init__(self, question: "Question", effort: Effort) -> None:
        self._question = question
        self._effort = effort
        self._notes = {case.name: case.missing for case in question.cases}
        self._figures: dict[str, list[float]] = {case.name: [] for case in question.cases}
        self._expected: dict[int, float] = {}
        self._shares = {case.name: case.share for case in question.cases}

    async def round(self, *, is_measured: bool) -> None:
        if self._question.prepare is not None:
            self._question.prepare()
        for case in self._question.cases:
            if self._notes[case.name]:
                continue
            try:
                figure = await self._figure(case)
            except WrongChecksum:
                raise
            except Exception as error:
                # One way that fails does not hide what the others cost.
                self._notes[case.name] = f"fails: {type(error).__name__}: {error}"
                continue
            finally:
                await _end_tasks()
            if is_measured:
                self._figures[case.name].append(figure)

    async def _figure(self, case: Case) -> float:
        count = self._count(case)
        if self._question.unit != TIME:
            gc.collect()
            return await case.run(count)
        expected = await self._checksum(count)
        gc.collect()
        before = self._question.clock()
        returned = await case.run(count)
        took = self._question.clock() - before
        if returned != expected:
            raise WrongChecksum(
                f"{self._question.text}: {case.name!r} returned {returned} for {count} elements, "
                f"the hand-written case {expected}"
            )
        if took > LONGEST:
            self._shares[case.name] *= LONGEST / took
        return took / count * NANO

    def _count(self, case: Case) -> int:
        is_scaled = self._question.is_scaled or self._effort.is_quick
        scale = self._effort.scale if is_scaled else 1.0
        elements = self._question.elements * scale * self._shares[case.name]
        return max(int(elements), self._effort.least)

    async def _checksum(self, count: int) -> float:
        """Return the checksum of the hand-written case for *count* elements."""
        if count not in self._expected:
            self._expected[count] = await self._question.cases[0].run(count)
        return self._expected[count]

    def rows(self) -> list[Row]:
        first = self._question.cases[0]
        handwritten = self._figures[first.name] if first.kind == "hand-written" else []
        return [self._row(case, handwritten) for case in self._question.cases]

    def _row(self, case: Case, handwritten: list[float]) -> Row:
        figures, note = self._figures[case.name], self._notes[case.name]
        if note or not figures:
            return Row(case.name, case.kind, None, None, case.goal, note)
        ratios = [each / hand for each, hand in zip(figures, handwritten, strict=False) if hand]
        ratio = statistics.median(ratios) if ratios else None
        return Row(case.name, case.kind, statistics.median(figures), ratio, case.goal)


async def _end_tasks() -> None:
    """End the tasks that a case has left behind: they would run beside the next one."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
