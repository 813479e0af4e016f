"""The peak memory of a Python worker that runs a flow: it does not grow with the partition.

    python -m benchmarks.spark.workers [ROWS …]

Each size is one partition, in a session of its own.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from ..runner.question import Question

SIZES = (100_000, 1_000_000, 10_000_000)
FLOW, MANUALLY = "--flow", "--manually"
MODULE = "benchmarks.spark.workers"

question = Question(
    "Memory of a worker of Spark, of a partition of 10,000,000 rows", SIZES[-1], unit="MB",
    rounds=1, is_warmed_up=False, is_scaled=False,
)  # fmt: skip


@question.handwritten("`mapInArrow`, a `for` loop over batches")
async def manually(count: int) -> float:
    return await asyncio.to_thread(in_new_session, MANUALLY, count)


@question.ours("memory of a worker: `map_flow`", goal=1.25)
async def by_flow(count: int) -> float:
    return await asyncio.to_thread(in_new_session, FLOW, count)


@question.ours("memory of a worker: `map_flow`, of a hundredth of the rows")
async def by_flow_of_few(count: int) -> float:
    return await asyncio.to_thread(in_new_session, FLOW, count // 100)


# -- in the new session ---------------------------------------------------------------------------
def peak(way: str, rows: int) -> int:
    """Return the MB of the worker's peak, after *rows* rows."""
    from reactive_aio import Flow
    from reactive_aio.spark import local_session, map_flow

    def megabytes() -> int:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    def pipeline(rows: Flow[Any]) -> Flow[Any]:
        return rows.boundary(256).map(lambda _: (megabytes(),))

    def loop(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        untyped: Any = pyarrow
        for batch in batches:
            found = [megabytes() for _ in zip(*(each.to_pylist() for each in batch.columns))]  # noqa: B905 - as one would write it
            yield untyped.RecordBatch.from_pydict({"megabytes": found})

    spark = local_session("memory", cores=1)
    df: Any = spark.range(0, rows, 1, 1).selectExpr("id", "cast(id as string) as text")
    schema = "megabytes long"
    mapped: Any = (
        df.mapInArrow(loop, schema)
        if way == MANUALLY
        else map_flow(df, pipeline, schema, rows="tuple")
    )
    found = int(mapped.selectExpr("max(megabytes)").first()[0])
    spark.stop()
    return found


def in_new_session(way: str, rows: int) -> float:
    command = [sys.executable, "-W", "ignore", "-m", MODULE, way, str(rows)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(ran.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> None:
    if arguments[:1] in ([FLOW], [MANUALLY]):
        print(json.dumps(peak(arguments[0], int(arguments[1]))))
        return
    for rows in map(int, arguments) if arguments else SIZES:
        print(f"{rows:12,} rows: {in_new_session(FLOW, rows):.0f} MB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
