"""Questions about growth: the same work beside, or with, more and more of something."""

from collections.abc import Awaitable, Callable
from statistics import median
from time import process_time

from ..runner.question import Question

Measure = Callable[[int, int], Awaitable[float]]
"""Returns the cost of one element, or of one part, for a size, and for at most so many elements."""


def growth(
    text: str,
    way: str,
    sizes: tuple[int, ...],
    measure: Measure,
    *,
    unit: str = "ns each",
    goal: float = 1.5,
    rounds: int = 3,
) -> Question:
    """Return a question whose cases have more and more parts; *way* names a case by its size.

    The first case is the smallest size, and *goal* is how much more the largest may cost. A quick
    run shrinks every size.
    """
    question = Question(
        text, sizes[-1], unit=unit, rounds=rounds, is_warmed_up=rounds > 1, is_scaled=False
    )

    def add(size: int) -> None:
        async def run(count: int) -> float:
            # A small size takes too little time for one measurement.
            times = 5 if size * 10 <= count else 1
            return median([await measure(min(size, count), count) for _ in range(times)])

        name = way.format(n=f"{size:,}")
        if question.cases:
            question.ours(name, goal=goal if size == sizes[-1] else None)(run)
        else:
            question.handwritten(name)(run)

    for each in sizes:
        add(each)
    return question


async def nanoseconds(work: Awaitable[object], parts: int) -> float:
    """Return the CPU time of *work* for each of its parts."""
    before = process_time()
    await work
    return (process_time() - before) / parts * 1e9
