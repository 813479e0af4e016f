# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[spark]"]
# ///
"""Exactly once: a streaming query of Spark into SQLite, by the numbers of its micro-batches.

    python examples/spark_stream.py [--crash N] [--directory PATH]

Spark reads files of clicks as they arrive, one for each micro-batch. Each micro-batch is written in
one transaction of the database, together with its number. Spark writes its checkpoint when the
next micro-batch is requested. If the program dies between the two, Spark repeats the last
micro-batch, and the database has its number already. ``--crash N`` dies there, after N
micro-batches; run it again with the same ``--directory`` to see that no row is lost and none is
written twice.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from reactive_aio.spark import MicroBatch, StreamFlow, from_micro_batches, local_session

FILES: Final = 4
CLICKS: Final = 250  # in each file
CRASHED: Final = 3
"""The exit status of a deliberate crash."""

_SCHEMA: Final = """
    create table if not exists clicks (id integer not null, page text not null);
    create table if not exists batches (id integer primary key);
"""


@dataclass(frozen=True)
class Store:
    """The database. Its methods block, so they are called on threads."""

    path: Path

    def open(self) -> None:
        with closing(sqlite3.connect(self.path)) as database:
            database.executescript(_SCHEMA)

    def knows(self, batch: int) -> bool:
        with closing(sqlite3.connect(self.path)) as database:
            found = database.execute("select 1 from batches where id = ?", (batch,))
            return found.fetchone() is not None

    def write(self, batch: int, clicks: list[tuple[Any, ...]]) -> None:
        """Write the rows and the number of the batch: both of them, or neither."""
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute("insert into batches values (?)", (batch,))
            database.executemany("insert into clicks values (?, ?)", clicks)

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of rows, of distinct rows, and of micro-batches."""
        query = "select count(*), count(distinct id), (select count(*) from batches) from clicks"
        with closing(sqlite3.connect(self.path)) as database:
            rows, different, batches = database.execute(query).fetchone()
        return rows, different, batches


def clicks(directory: Path) -> StreamFlow[MicroBatch[Any]]:
    """Return the streaming query, which continues from its checkpoint."""
    spark = local_session("spark_stream")
    source = spark.readStream.schema("id long, page string").option("maxFilesPerTrigger", 1)
    return from_micro_batches(
        source.json(str(directory / "clicks")),
        checkpoint=directory / "checkpoint",
        rows="tuple",
        trigger="available_now",  # without it the query never ends
    )


async def ingest(batches: StreamFlow[MicroBatch[Any]], store: Store, crash: int | None) -> None:
    """Write each micro-batch once."""
    written = 0
    async for batch in batches:
        if await asyncio.to_thread(store.knows, batch.id):
            print(f"micro-batch {batch.id} is repeated, and has been written already")
            continue
        rows = await batch.rows.to_list(limit=100_000)
        await asyncio.to_thread(store.write, batch.id, rows)
        written += 1
        print(f"micro-batch {batch.id}: {len(rows)} rows")
        if written == crash:
            print("dies, before Spark has written its checkpoint", flush=True)
            os._exit(CRASHED)


def prepare(directory: Path) -> None:
    """Write the files that a real service would find."""
    (directory / "clicks").mkdir(exist_ok=True)
    for file in range(FILES):
        path = directory / "clicks" / f"{file}.json"
        if not path.exists():
            numbers = range(file * CLICKS, (file + 1) * CLICKS)
            lines = [json.dumps({"id": number, "page": f"/{number % 7}"}) for number in numbers]
            path.write_text("\n".join(lines), encoding="utf-8")
            os.utime(path, (file + 1, file + 1))  # Spark reads the oldest first


def run(directory: Path, crash: int | None) -> int:
    """Ingest, then check that each click is stored once."""
    prepare(directory)
    store = Store(directory / "clicks.sqlite")
    store.open()
    batches = clicks(directory)
    asyncio.run(ingest(batches, store, crash))
    rows, different, written = store.counts()
    print(f"{rows} rows, {different} distinct, in {written} micro-batches")
    return 0 if rows == different == FILES * CLICKS else 1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A streaming query into SQLite, exactly once.")
    parser.add_argument("--crash", type=int, metavar="N", help="die after N micro-batches")
    parser.add_argument("--directory", type=Path, metavar="PATH", help="keep everything there")
    options = parser.parse_args(argv)
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
        return run(options.directory.absolute(), options.crash)
    with TemporaryDirectory(prefix="clicks-") as name:
        return run(Path(name), options.crash)


if __name__ == "__main__":
    sys.exit(main())
