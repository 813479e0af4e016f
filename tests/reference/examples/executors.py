"""Examples of operators that call a plain function in threads or processes."""

import math
import sqlite3
from contextlib import closing

import reactive_aio as rx


async def map_in_thread() -> None:
    def query(sql: str) -> int:  # blocks its thread, and not the event loop
        with closing(sqlite3.connect(":memory:")) as database:
            return int(database.execute(sql).fetchone()[0])

    print(await rx.just("select 1 + 1", "select 2 * 3").map_in_thread(query).to_list())


async def map_in_process() -> None:
    # in a program, under `if __name__ == "__main__":`
    factorials = rx.just(3, 5).map_in_process(math.factorial, concurrency=1)
    print(await factorials.to_list())
