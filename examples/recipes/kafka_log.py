# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[kafka]", "aiokafka>=0.12"]
# ///
"""Kafka: print the records of topics, whose offsets are committed when they were printed.

python examples/recipes/kafka_log.py --servers 127.0.0.1:9092 --group demo orders payments
"""

import argparse
import asyncio
import sys

from aiokafka.errors import KafkaError

import reactive_aio as rx
from reactive_aio.connectors import kafka
from reactive_aio.connectors.kafka import Record, source as records


def set_aside(record: Record, error: Exception) -> None:
    """Keep a record that always fails: replace it by what writes it to a topic of its own."""
    where = f"{record.topic}/{record.partition}/{record.offset}"
    print(f"set aside: {where}: {error!r}", file=sys.stderr)


async def main(options: argparse.Namespace) -> int:
    """Print records until SIGTERM or Ctrl-C."""
    async with kafka.connect(options.servers, group=options.group) as consumer:
        flow = records(consumer, *options.topics, on_dead_letter=set_aside)
        printed = flow.ack_after(lambda record: print(record.topic, record.value, flush=True))
        return await rx.run_until_signal(printed, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("topics", nargs="+", help="topics that exist")
    parser.add_argument("--servers", default="127.0.0.1:9092", help="bootstrap servers")
    parser.add_argument("--group", default="recipe", help="the consumer group")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except KafkaError as error:
        sys.exit(f"{options.servers}: {error!r}")
