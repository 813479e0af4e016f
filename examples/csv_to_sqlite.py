# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""Load a CSV file of any size into SQLite; rows that are not valid go to a file of dead letters.

    python examples/csv_to_sqlite.py [--rows N] [--directory PATH]

The memory stays the same for any size: some thousand lines are read, parsed in two threads and
stored in transactions, as fast as the database takes them. ``--rows 32_000_000`` makes a sample of
one gigabyte.
"""

import argparse
import asyncio
import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

import reactive_aio as rx

Order = tuple[int, str, float]


def parse(lines: list[str]) -> tuple[list[Order], list[str]]:
    """The orders in *lines*, and the lines that contain none."""
    orders: list[Order] = []
    dead: list[str] = []
    for line, row in zip(lines, csv.reader(lines), strict=True):
        try:
            number, customer, amount = row
            orders.append((int(number), customer, float(amount)))
        except ValueError as error:
            dead.append(f"{line}\t{error}")
    return orders, dead


async def load(source: Path, database: sqlite3.Connection, letters: TextIO) -> tuple[int, int]:
    """Load *source*; return how many orders were stored, and how many lines were not valid."""

    def store(parsed: tuple[list[Order], list[str]]) -> tuple[int, int]:
        orders, dead = parsed
        with database:  # a transaction
            database.executemany("insert into orders values (?, ?, ?)", orders)
        letters.writelines(f"{line}\n" for line in dead)
        return len(orders), len(dead)

    parsed = rx.from_lines(source).skip(1).buffer(5000).map_in_thread(parse, concurrency=2)
    stored = parsed.map_in_thread(store, concurrency=1)  # a connection is for one thread
    return await stored.reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), (0, 0))


def make_sample(path: Path, rows: int) -> None:
    """Write a file of orders, of which one in a thousand is not valid."""
    with path.open("w", encoding="utf-8") as file:
        file.write("id,customer,amount\n")
        for i in range(rows):
            file.write(f"{i},customer {i % 997},{'many' if i % 1000 == 999 else i * 0.25}\n")


def run(rows: int, directory: Path) -> None:
    """Make a sample in *directory*, load it, and print what has become of it."""
    source = directory / "orders.csv"
    make_sample(source, rows)
    connection = sqlite3.connect(directory / "orders.db", check_same_thread=False)
    with closing(connection) as database, (directory / "dead.txt").open("w") as letters:
        database.execute("create table orders (id integer, customer text, amount real)")
        stored, dead = asyncio.run(load(source, database, letters))
    print(f"{stored} orders stored, {dead} dead letters")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        run(options.rows, options.directory or Path(temporary))
