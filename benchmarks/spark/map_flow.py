"""What does a flow in Spark's Python workers cost, compared with hand-written mapInArrow?

Each job reads (long, double, string) in 8 partitions, calls two functions for each row, and adds up
what they leave. Elapsed time of the job, on two cores; the first job has started the workers.

All functions are inside of others, so that they are sent to the workers with their text.
"""

import asyncio
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from reactive_aio import Flow
from reactive_aio.spark import map_flow

from ..runner.question import Question
from .tables import session

SCHEMA = "id long, x double, text string"
CONCURRENCY = 64

synchronous = Question(
    "A synchronous flow in Spark's workers", 2_000_000, clock=perf_counter, counted=0
)
awaited = Question("64 concurrent calls in Spark's workers", 100_000, clock=perf_counter, counted=0)


def table(count: int) -> Any:
    df = session().range(0, count, 1, 8)
    return df.selectExpr("id", "id * 0.5d as x", "cast(id as string) as text")


def counted(df: Any) -> int:
    return int(df.selectExpr("sum(id)").first()[0])


def functions() -> tuple[Callable[[Any], Any], Callable[[Any], bool]]:
    """The functions that each way calls."""

    def change(row: Any) -> Any:
        return (row[0] * 2, row[1] + 1, row[2])

    def keep(row: Any) -> bool:
        return bool(row[0] % 4 == 0)

    return change, keep


def lookup() -> Callable[[Any], Any]:
    """The coroutine function that each way calls: it takes a millisecond."""

    async def look_up(row: Any) -> Any:
        await asyncio.sleep(0.001)
        return (row[0] * 2, row[1], row[2])

    return look_up


def encoder() -> Callable[[list[Any]], Any]:
    """Make an Arrow batch of rows."""

    def encode(rows: list[Any]) -> Any:
        import pyarrow

        untyped: Any = pyarrow
        types = untyped.int64(), untyped.float64(), untyped.string()
        columns = [
            untyped.array(values, kind)
            for values, kind in zip(zip(*rows, strict=True), types, strict=True)
        ]
        return untyped.RecordBatch.from_arrays(columns, ["id", "x", "text"])

    return encode


# -- a synchronous flow ----------------------------------------------------------------------------
@synchronous.handwritten("`mapInArrow`, a `for` loop over tuples")
async def loop(count: int) -> int:
    (change, keep), encode = functions(), encoder()

    def partition(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = zip(*(each.to_pylist() for each in batch.columns), strict=True)
            yield encode([row for row in map(change, rows) if keep(row)])

    return counted(table(count).mapInArrow(partition, SCHEMA))


@synchronous.ours("`map_flow`: `map`, `filter` of tuples", goal=1.25)
async def tuples(count: int) -> int:
    change, keep = functions()

    def pipeline(rows: Flow[Any]) -> Flow[Any]:
        return rows.map(change).filter(keep)

    return counted(map_flow(table(count), pipeline, SCHEMA, rows="tuple"))


@synchronous.ours("`map_flow`: `map`, `filter` after `boundary(1024)`")
async def queued(count: int) -> int:
    change, keep = functions()

    def pipeline(rows: Flow[Any]) -> Flow[Any]:
        return rows.boundary(1024).map(change).filter(keep)

    return counted(map_flow(table(count), pipeline, SCHEMA, rows="tuple"))


# -- concurrent calls ------------------------------------------------------------------------------
@awaited.handwritten("`mapInArrow`, `gather` of a batch with a semaphore")
async def gathered(count: int) -> int:
    look_up, encode = lookup(), encoder()

    def partition(batches: Iterator[Any]) -> Iterator[Any]:
        async def each(slots: asyncio.Semaphore, row: Any) -> Any:
            async with slots:
                return await look_up(row)

        async def all_of(batch: Any) -> list[Any]:
            slots = asyncio.Semaphore(CONCURRENCY)
            rows = zip(*(each.to_pylist() for each in batch.columns), strict=True)
            return await asyncio.gather(*[each(slots, row) for row in rows])

        with asyncio.Runner() as runner:
            for batch in batches:
                yield encode(runner.run(all_of(batch)))

    return counted(table(count).mapInArrow(partition, SCHEMA))


@awaited.other("`mapInArrow`, 64 workers over an iterator of the batch")
async def workers(count: int) -> int:
    look_up, encode = lookup(), encoder()

    def partition(batches: Iterator[Any]) -> Iterator[Any]:
        async def work(rows: Iterator[Any], results: list[Any]) -> None:
            for number, row in rows:
                results[number] = await look_up(row)

        async def all_of(batch: Any) -> list[Any]:
            rows = enumerate(zip(*(each.to_pylist() for each in batch.columns), strict=True))
            results = [None] * batch.num_rows
            await asyncio.gather(*[work(rows, results) for _ in range(CONCURRENCY)])
            return results

        with asyncio.Runner() as runner:
            for batch in batches:
                yield encode(runner.run(all_of(batch)))

    return counted(table(count).mapInArrow(partition, SCHEMA))


@awaited.ours("`map_flow`: `map_async(concurrency=64)`", goal=1.11)
async def concurrent(count: int) -> int:
    look_up = lookup()

    def pipeline(rows: Flow[Any]) -> Flow[Any]:
        return rows.map_async(look_up, concurrency=CONCURRENCY)

    return counted(map_flow(table(count), pipeline, SCHEMA, rows="tuple"))
