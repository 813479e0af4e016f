"""The database of the flights: SQLite, written through aiosqlite."""

import sqlite3
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Final

import aiosqlite

__all__ = ("Flight", "Route", "Store", "check", "saved")

Airports = Iterable[tuple[str, str]]
"""Codes and names."""


_OURS: Final = 0x4E594331
"""Marks a file as written by this program, so that it may be overwritten."""


@dataclass(slots=True)
class Flight:
    """One row of the table of flights."""

    number: int
    scheduled: str
    airline: str
    flight: str
    model: str | None
    origin: str
    dest: str
    dep_delay: int
    arr_delay: int
    made_up: int
    speed: float
    rough: bool
    destination: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """The statistics of one route."""

    origin: str
    destination: str
    flights: int
    minutes: float
    late: float
    rough: float


_COLUMNS: Final = [field.name for field in fields(Flight)]
_SCHEMA: Final = f"""
    pragma journal_mode = wal;
    pragma synchronous = normal;
    pragma application_id = {_OURS};
    drop table if exists flights;
    drop table if exists batches;
    drop table if exists airports;
    create table airports (code text primary key, name text not null) without rowid;
    create table batches (id integer primary key, flights integer not null);
    create table flights ({", ".join(_COLUMNS)}, primary key (number));
"""
_INSERT: Final = f"insert into flights values ({', '.join('?' * len(_COLUMNS))})"
_VALUES: Final = attrgetter(*_COLUMNS)
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
            query = "select count(*), coalesce(sum(flights), 0) from batches"
            batches, rows = database.execute(query).fetchone()
    except sqlite3.Error:
        return "nothing is saved"
    return f"{rows:,} rows are saved, in {batches:,} whole batches"


class Store:
    """An open database."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._names: dict[str, str] = {}

    @staticmethod
    @asynccontextmanager
    async def opened(
        path: Path, airports: Iterable[tuple[str, str]]
    ) -> "AsyncGenerator[Store, None]":
        """Open a new database; that of an earlier run is overwritten."""
        async with aiosqlite.connect(path) as connection:
            await connection.executescript(_SCHEMA)
            await connection.executemany("insert into airports values (?, ?)", airports)
            await connection.commit()
            yield Store(connection)

    async def airport(self, code: str) -> str:
        """Return an airport's name, from a cache after the first look-up."""
        name = self._names.get(code)
        if name is None:
            query = "select name from airports where code = ?"
            async with self._connection.execute(query, (code,)) as found:
                row = await found.fetchone()
            self._names[code] = name = row[0] if row else code
        return name

    async def write(self, flights: list[Flight]) -> int:
        """Write a batch in one transaction: all of it, or nothing."""
        insert = self._connection.execute
        async with insert("insert into batches (flights) values (?)", (len(flights),)):
            await self._connection.executemany(_INSERT, map(_VALUES, flights))
        await self._connection.commit()
        return len(flights)

    async def totals(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Count the flights of each route and add up their delays."""
        query = "select origin, dest, count(*), sum(arr_delay) from flights group by origin, dest"
        async with self._connection.execute(query) as rows:
            return {(origin, dest): (count, minutes) async for origin, dest, count, minutes in rows}

    async def worst(self, routes: int, at_least: int) -> list[Route]:
        """The routes with the largest average delay, among those that are flown often."""
        async with self._connection.execute(_WORST, (at_least, routes)) as rows:
            return [Route(*row) async for row in rows]
