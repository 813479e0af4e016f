# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[postgres]", "asyncpg>=0.30"]
# ///
"""PostgreSQL: the rows of a query by demand, and rows into a table by COPY.

    python examples/recipes/postgres_copy.py --postgres postgresql://localhost/shop \\
        --query "select id, payload from events" --table archive --columns id payload

Memory holds a few hundred rows. SIGTERM and Ctrl-C drain: rows that were read are written, and the
number is printed.
"""

import argparse
import asyncio
import sys

import asyncpg

import reactive_aio as rx
from reactive_aio.connectors import postgres


async def main(options: argparse.Namespace) -> int:
    """Copy the rows of a query into a table."""
    copied = 0
    async with postgres.connect(options.postgres) as pool:
        send = postgres.sink(pool, options.table, options.columns)

        async def copy(rows: list[tuple[object, ...]]) -> int:
            nonlocal copied
            await send(rows)
            copied += len(rows)
            return copied

        rows = postgres.rows(pool, options.query).map(tuple)
        batches = rows.buffer_timeout(options.batch, 1.0).map_async(copy)
        status = await rx.run_until_signal(batches, on_drained=print)
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
