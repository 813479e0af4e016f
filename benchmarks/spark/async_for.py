"""What does ``async for`` over the rows of a Spark job cost, of the same flow's ``run()``?"""

from time import perf_counter
from typing import TYPE_CHECKING

from ..runner.question import Question
from .tables import clear_results, flow, numbers, size

if TYPE_CHECKING:
    from reactive_aio.spark.rows import RowKind


def read(kind: "RowKind", name: str, goal: float) -> Question:
    """Return the question for rows of this kind."""
    question = Question(
        f"Spark read by `async for`, {name}",
        2_000_000,
        clock=perf_counter,
        prepare=clear_results,
    )

    @question.handwritten("`flow.run()`")
    async def run(count: int) -> int:
        await flow(numbers(count), kind).run()
        return count

    @question.ours(f"`async for` over {name} of Spark (× `run()`)", goal=goal)
    async def over(count: int) -> int:
        found = 0
        async for element in flow(numbers(count), kind):
            found += size(element) if kind == "batch" else 1
        return found

    @question.peer("`df.toLocalIterator()`", "pyspark", share=0.25)
    async def iterator(count: int) -> int:
        return sum(1 for _ in numbers(count).toLocalIterator())

    return question


# By rate: at least 0.5, and at least 0.85.
tuples = read("tuple", "tuples", goal=1 / 0.5)
batches = read("batch", "batches", goal=1 / 0.85)
