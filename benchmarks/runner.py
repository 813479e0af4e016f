"""Runs the cases of a question interleaved, and reports medians and ratios to its limit.

A question is a module with a `question` (a `Question`). Its first case is the limit: hand-written
code that makes the same calls of the user's functions, and nothing else. Every case returns a
checksum that must equal the limit's, so that no case is fast because it does less. A question
that does not measure time has a `unit`, and each of its cases returns its figure instead.
"""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

Case = Callable[[int], Awaitable[float]]


@dataclass
class Question:
    """A question, its cases, and the number of elements that each handles."""

    text: str
    elements: int
    cases: dict[str, Case] = field(default_factory=dict[str, Case])
    goals: dict[str, float] = field(default_factory=dict[str, float])
    clock: Callable[[], float] = time.process_time
    """`time.perf_counter` where other processes or a disk take part."""
    unit: str | None = None
    """The unit of what the cases return, if they do not measure time."""
    warm: bool = True
    """Whether the first round is a warm-up."""
    prepare: Callable[[], object] | None = None
    """Called before each round; it is not measured."""

    def case(self, name: str, *, goal: float | None = None) -> Callable[[Case], Case]:
        """Add a case; *goal* is the ratio to the limit that it should reach."""

        def add(function: Case) -> Case:
            self.cases[name] = function
            if goal is not None:
                self.goals[name] = goal
            return function

        return add


@dataclass(frozen=True)
class Row:
    """The result of one case: the median time per element or the median of its figures,
    and the median of the rounds' ratios to the limit."""

    name: str
    figure: float
    ratio: float
    goal: float | None


async def measure(question: Question, *, rounds: int, scale: float) -> list[Row]:
    """Run every case once a round, usually after one round of warm-up."""
    count = max(1000, int(question.elements * scale))
    times: dict[str, list[float]] = {name: [] for name in question.cases}
    for number in range(rounds + question.warm):
        expected: float | None = None
        if question.prepare is not None:
            question.prepare()
        for name, case in question.cases.items():
            gc.collect()
            before = question.clock()
            returned = await case(count)
            took = (question.clock() - before) / count * 1e9
            expected = returned if expected is None else expected
            if question.unit is None and returned != expected:
                raise AssertionError(f"{name}: checksum {returned}, the limit's is {expected}")
            if number >= question.warm:
                times[name].append(took if question.unit is None else returned)
    return _rows(question, times)


def _rows(question: Question, times: dict[str, list[float]]) -> list[Row]:
    limit = times[next(iter(times))]
    return [
        Row(
            name,
            statistics.median(took),
            statistics.median(case / floor for case, floor in zip(took, limit, strict=True)),
            question.goals.get(name),
        )
        for name, took in times.items()
    ]


def table(question: Question, rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        f"### {question.text}",
        "",
        f"| case | {question.unit or 'ns/element'} | × limit | reach |",
        "|---|--:|--:|--:|",
    ]
    for row in rows:
        goal = f"≤ {row.goal}" if row.goal is not None else ""
        figure = f"{row.figure:.0f}" if row.figure >= 10 else f"{row.figure:.1f}"
        lines.append(f"| {row.name} | {figure} | {row.ratio:.2f} | {goal} |")
    return "\n".join([*lines, ""])
