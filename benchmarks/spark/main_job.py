"""What does `examples/flights_ingest.py` cost, compared with what one would write without a flow?

A joined DataFrame of flights goes into SQLite, each row enriched by the same awaited query for each
batch, and written by the same statement; the database is on the disk when a case ends. `toArrow`
holds all rows in memory, looks up once and writes in one transaction; neither it nor
`toLocalIterator` could go on where it was. Each time is that of a new plan, which is part of it;
the session, the files and an empty database are there before. After each case its table is
compared with that of the first one.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import cache
from itertools import islice
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))  # as for the program itself

import aiosqlite
import flights_data as data
import flights_ingest as example
from flights_screen import Figures
from flights_store import UPSERT, Store
from pyspark.sql import Row

from ..runner.question import Question
from .tables import clear_results, processor, session

ROWS = 1_000_000
CHECK = """
select count(*), count(distinct number), sum(arr_delay), sum(rough), sum(length(destination)),
sum(length(coalesce(model, ''))) from flights
"""

Way = Callable[[Any, Store, Path], Awaitable[None]]
_expected: dict[int, Any] = {}


@cache
def flights(count: int) -> Any:
    """Return the query of the example, in partitions of its size."""
    folder = Path(mkdtemp(prefix="flights-"))
    data.unpack(folder, count)
    spark = session().newSession()  # whose settings are its own
    return data.delays(spark, folder, ceil(count / example.PARTITION))


def elapsed() -> float:
    return perf_counter()


async def measured(count: int, clock: Callable[[], float], way: Way) -> float:
    """Fill a new database; return the milliseconds of *clock* for a million rows."""
    table = flights(count).select("*")  # planned again
    with TemporaryDirectory(prefix="flights-") as name:
        path = Path(name, "flights.sqlite")
        async with Store.opened(path, data.airports()) as store:
            began = clock()
            await way(table, store, path)
            took = clock() - began
        with closing(sqlite3.connect(path)) as database:
            found = database.execute(CHECK).fetchone()
    if found != _expected.setdefault(count, found):
        raise AssertionError(f"another table: {found}, not {_expected[count]}")
    return 1000 * took * ROWS / count


async def to_arrow(table: Any, store: Store, path: Path) -> None:
    whole = await asyncio.to_thread(table.toArrow)
    for batch in whole.combine_chunks().to_batches():  # one, or none
        await store.write(await store.locate(batch))


async def to_local_iterator(table: Any, store: Store, path: Path) -> None:
    rows: Iterator[Row] = await asyncio.to_thread(table.toLocalIterator, prefetchPartitions=True)

    def read() -> list[Row]:
        return list(islice(rows, example.BATCH))

    async with aiosqlite.connect(path) as database:
        while chunk := await asyncio.to_thread(read):
            codes: list[str] = list({row.dest for row in chunk})
            names = dict(zip(codes, await store.names(codes), strict=True))
            await database.executemany(UPSERT, [(*row, names[row.dest]) for row in chunk])
            await database.commit()


async def as_the_example(table: Any, store: Store, path: Path) -> None:
    figures, checkpoint = Figures(), path.with_name("checkpoint")
    written = await asyncio.to_thread(
        example.pipeline, table, checkpoint, store.locate, store.write, figures.report
    )
    async for batch in written:
        figures.written(batch.num_rows)
        figures.look(written)


def main_job(text: str, clock: Callable[[], float], goal: float | None) -> Question:
    """Return the question, for the time that *clock* measures."""
    question = Question(text, ROWS, unit="ms", rounds=5, prepare=clear_results)

    @question.handwritten("`df.toArrow()` + ADBC")
    async def arrow(count: int) -> float:
        return await measured(count, clock, to_arrow)

    @question.peer("`df.toLocalIterator()` + `executemany`", "pyspark")
    async def iterator(count: int) -> float:
        return await measured(count, clock, to_local_iterator)

    @question.ours(f"{text}: `examples/flights_ingest.py`", goal=goal)
    async def ours(count: int) -> float:
        return await measured(count, clock, as_the_example)

    return question


question = main_job("a million flights from Spark into SQLite", elapsed, 1 / 0.9)
processor_time = main_job("a million flights into SQLite, processor time", processor, None)
