"""The database of the flights: SQLite. Queries go through aiosqlite, Arrow batches through ADBC.

Every statement has the same effect twice, so that an ingestion may repeat what it has written.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any, Final

import adbc_driver_sqlite.dbapi
import aiosqlite
import pyarrow

__all__ = ("COLUMNS", "UPSERT", "Route", "Store", "check", "saved")

Batch = Any
"""A ``pyarrow.RecordBatch``."""

_OURS: Final = 0x4E594331
"""Marks a file as written by this program, so that it may be written again."""

# Neither has types for what is used here.
_arrow: Final[Any] = pyarrow
_adbc: Final[Any] = adbc_driver_sqlite.dbapi


@dataclass(frozen=True, slots=True)
class Route:
    """The statistics of one route."""

    origin: str
    destination: str
    flights: int
    minutes: float
    late: float
    rough: float


COLUMNS: Final = (
    "number", "scheduled", "airline", "flight", "model", "origin", "dest", "dep_delay", "arr_delay",
    "made_up", "speed", "rough", "destination",
)  # fmt: skip
UPSERT: Final = f"insert or replace into flights values ({', '.join('?' * len(COLUMNS))})"
_SCHEMA: Final = f"""
    pragma journal_mode = wal;
    pragma application_id = {_OURS};
    create table if not exists airports (code text primary key, name text not null) without rowid;
    create table if not exists flights ({", ".join(COLUMNS)}, primary key (number));
"""
_NAMES: Final = "select code, name from airports where code in (select value from json_each(?))"
_WORST: Final = """
    select origin, destination, count(*), avg(arr_delay), avg(arr_delay > 15), avg(rough)
    from flights group by origin, dest having count(*) >= ?
    order by avg(arr_delay) desc limit ?
"""


def check(path: Path) -> None:
    """Raise ValueError if *path* is a file that this program has not written."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            (mark,) = database.execute("pragma application_id").fetchone()
            (tables,) = database.execute("select count(*) from sqlite_schema").fetchone()
    except sqlite3.Error as error:
        raise ValueError(f"{path}: {error}") from error
    if tables and mark != _OURS:
        raise ValueError(f"{path} is the database of another program, and is not overwritten")


def saved(path: Path) -> str:
    """Return how much an interrupted run has saved, read through a new connection."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            (rows,) = database.execute("select count(*) from flights").fetchone()
    except sqlite3.Error:
        return "nothing is saved"
    return f"{rows:,} rows are saved"


def _connect(path: Path) -> Any:
    """Return a cursor that takes Arrow batches."""
    return _adbc.connect(str(path)).cursor()


def _close(batches: Any) -> None:
    connection = batches.connection
    batches.close()
    connection.close()


class Store:
    """An open database."""

    def __init__(
        self, queries: aiosqlite.Connection, batches: Any, thread: ThreadPoolExecutor
    ) -> None:
        """*batches* is a cursor of ADBC, which is used on *thread* alone."""
        self._queries = queries
        self._batches = batches
        self._thread = thread

    @staticmethod
    @asynccontextmanager
    async def opened(
        path: Path, airports: Iterable[tuple[str, str]]
    ) -> "AsyncGenerator[Store, None]":
        """Open a database, which keeps the flights of an earlier run."""
        async with aiosqlite.connect(path) as queries:
            await queries.executescript(_SCHEMA)
            await queries.executemany("insert or replace into airports values (?, ?)", airports)
            await queries.commit()
            loop = asyncio.get_running_loop()
            with ThreadPoolExecutor(1) as thread:
                batches = await loop.run_in_executor(thread, _connect, path)
                try:
                    yield Store(queries, batches, thread)
                finally:  # after what the thread is writing
                    await loop.run_in_executor(thread, _close, batches)

    async def locate(self, flights: Batch) -> Batch:
        """Add the names of the destinations: one query for all flights of a batch."""
        dest = flights.column("dest").dictionary_encode()
        names = _arrow.array(await self.names(dest.dictionary.to_pylist()), _arrow.string())
        return flights.append_column("destination", names.take(dest.indices))

    async def names(self, codes: list[str]) -> list[str]:
        """Look up the names of airports; one that is not known has its code."""
        async with self._queries.execute(_NAMES, (dumps(codes),)) as found:
            names = {code: name async for code, name in found}
        return [names.get(code, code) for code in codes]

    async def write(self, flights: Batch) -> None:
        """Write a batch in one transaction, which is on the disk when this returns."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, partial(self._write, flights))

    def _write(self, flights: Batch) -> None:
        self._batches.executemany(UPSERT, flights)
        self._batches.connection.commit()

    async def totals(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Count the flights of each route and add up their delays."""
        query = "select origin, dest, count(*), sum(arr_delay) from flights group by origin, dest"
        async with self._queries.execute(query) as rows:
            return {(origin, dest): (count, minutes) async for origin, dest, count, minutes in rows}

    async def worst(self, routes: int, at_least: int) -> list[Route]:
        """The routes with the largest average delay, among those that are flown often."""
        async with self._queries.execute(_WORST, (at_least, routes)) as rows:
            return [Route(*row) async for row in rows]
