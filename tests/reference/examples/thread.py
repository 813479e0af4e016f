"""Examples of sources that are iterated on a thread."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import reactive_aio as rx


async def from_thread() -> None:
    def rows() -> Iterator[tuple[str, int]]:
        with closing(sqlite3.connect(":memory:")) as database:
            yield from database.execute("values ('tea', 3), ('milk', 1)")

    print(await rx.from_thread(rows).to_list())
