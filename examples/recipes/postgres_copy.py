# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "asyncpg>=0.30"]
# ///
"""PostgreSQL: the rows of a query by demand, and rows into a table by COPY.

    python examples/recipes/postgres_copy.py --postgres postgresql://localhost/shop \\
        --query "select id, payload from events" --table archive --columns id payload

The query is read by a cursor of the server in a transaction that only reads: it sees one snapshot,
and memory holds a few hundred of its rows. Each batch is one COPY, of which all rows are written or
none. SIGTERM and Ctrl-C drain: rows that were read are written, and the number is printed.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import asyncpg

import reactive_aio as rx

if TYPE_CHECKING:
    Pool = asyncpg.Pool[asyncpg.Record]
    Rows = Sequence[Sequence[object]]


def from_query(
    pool: "Pool", query: str, *arguments: object, prefetch: int = 256
) -> rx.Flow[asyncpg.Record]:
    """The rows of *query*; up to *prefetch* of them are read with one call."""

    async def lists() -> AsyncGenerator[list[asyncpg.Record]]:
        async with pool.acquire() as connection, connection.transaction(readonly=True):
            cursor = await connection.cursor(query, *arguments)
            while rows := await cursor.fetch(prefetch):
                yield rows

    return rx.from_aiter(lists).flat_map(lambda rows: rows)


def copy_into(
    pool: "Pool", table: str, columns: Sequence[str]
) -> "Callable[[Rows], Awaitable[int]]":
    """A function that appends rows to *table*, all or none, and returns how many."""

    async def copy(rows: "Rows") -> int:
        async with pool.acquire() as connection:
            await connection.copy_records_to_table(table, records=rows, columns=columns)
        return len(rows)

    return copy


async def main(options: argparse.Namespace) -> int:
    """Copy the rows of a query into a table."""
    copied = 0

    def count(rows: int) -> None:
        nonlocal copied
        copied += rows

    # Two connections: one has the cursor, the other writes.
    async with asyncpg.create_pool(options.postgres, min_size=2, max_size=2) as pool:
        copy = copy_into(pool, options.table, options.columns)
        batches = from_query(pool, options.query).map(tuple).buffer_timeout(options.batch, 1.0)
        counts = batches.map_async(copy).do_on_next(count)
        status = await rx.run_until_signal(counts, on_drained=print)
    print(f"{copied:,} rows copied into {options.table}")
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--postgres", required=True, metavar="DSN", help="such as postgresql://localhost/shop")
    add("--query", required=True, metavar="SQL", help="a query of the columns, in their order")
    add("--table", required=True, help="the table to copy into, which has to exist")
    add("--columns", required=True, nargs="+", help="columns of the table")
    add("--batch", type=int, default=1000, metavar="N", help="rows of one COPY (default: 1000)")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error} (check --postgres, --query and --columns)")
