# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[postgres]"]
# ///
"""PostgreSQL: print the rows of an outbox after they were committed, and delete them after that.

    python examples/recipes/postgres_outbox.py --postgres postgresql://localhost/shop

To try it: psql shop -c "insert into outbox (topic, payload) values ('orders', 'a first row')"
"""

import argparse
import asyncio
import sys

import reactive_aio as rx
from reactive_aio.connectors import postgres
from reactive_aio.connectors.postgres import Outbox as Outbox


async def main(options: argparse.Namespace) -> int:
    """Print the rows of the outbox until SIGTERM or Ctrl-C."""
    async with postgres.connect(options.postgres) as pool:
        rows = postgres.source(pool, "outbox")
        sent = rows.ack_after(lambda row: print(row["topic"], row["payload"], flush=True))
        return await rx.run_until_signal(sent, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    dsn = "such as postgresql://localhost/shop"
    parser.add_argument("--postgres", required=True, metavar="DSN", help=dsn)
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except postgres.LOST as error:
        sys.exit(f"--postgres: {type(error).__name__}: {error}")
