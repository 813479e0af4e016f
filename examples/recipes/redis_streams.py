# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[redis]"]
# ///
"""Redis Streams: print what is read as one consumer of a group, and acknowledge what was printed.

python examples/recipes/redis_streams.py --redis redis://127.0.0.1:6379 --stream events
"""

import argparse
import asyncio
import sys

import reactive_aio as rx
from reactive_aio.connectors import redis_streams
from reactive_aio.connectors.redis_streams import Consumer as Consumer, Entry as Entry


async def main(options: argparse.Namespace) -> int:
    """Print entries until SIGTERM or Ctrl-C."""
    async with redis_streams.connect(options.redis) as redis:
        entries = redis_streams.source(redis, options.stream, group=options.group)
        printed = entries.ack_after(lambda entry: print(entry.id, entry.fields, flush=True))
        return await rx.run_until_signal(printed, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--redis", default="redis://127.0.0.1:6379", metavar="URL")
    parser.add_argument("--stream", default="events", help="name of the stream")
    parser.add_argument("--group", default="recipe", help="name of the consumer group")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except redis_streams.LOST as error:
        sys.exit(f"{options.redis}: {error} (Redis 7 or newer has to run there)")
