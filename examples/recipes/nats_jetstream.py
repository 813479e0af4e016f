# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[nats]", "nats-py>=2.9"]
# ///
"""NATS JetStream: print the messages of a durable consumer; what always fails is moved.

    python examples/recipes/nats_jetstream.py --nats nats://127.0.0.1:4222 --subject orders

What fails five times is moved to `SUBJECT.dead`, with its error. Serve until Ctrl-C.
"""

import argparse
import asyncio
import sys
from functools import partial
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

import reactive_aio as rx
from reactive_aio.connectors import Message, nats
from reactive_aio.delivery import DeliveryFlow

RECONNECT: Final = {"max_reconnect_attempts": 20, "reconnect_time_wait": 0.2}


def messages(client: Client | JetStreamContext, subject: str, durable: str) -> DeliveryFlow[Msg]:
    """The messages of *subject* for the consumer *durable*."""
    return nats.source(client, subject, group=durable)


async def bury(client: Client, message: Msg, error: Exception) -> None:
    """Move a message that always fails to a subject of its own, with the error."""
    shown = repr(error).replace("\n", " ")  # a header is one line
    dead = nats.sink(client, f"{message.subject}.dead")
    await dead([Message(message.data, headers={"error": shown})])


async def require_stream(context: JetStreamContext, name: str, subject: str) -> None:
    """Create the stream of *subject*, unless there is one."""
    try:
        await context.find_stream_name_by_subject(subject)
    except NotFoundError:
        config = StreamConfig(name=name, subjects=[subject, f"{subject}.dead"])
        await context.add_stream(config)  # pyright: ignore[reportUnknownMemberType]


async def main(options: argparse.Namespace) -> int:
    """Print messages until SIGTERM or Ctrl-C."""
    async with nats.connect(options.nats, **RECONNECT) as client:
        context: Any = client
        await require_stream(context.jetstream(), options.stream, options.subject)
        flow = messages(client, options.subject, options.durable)
        flow = flow.nack_on_error(5, dead_letter=partial(bury, client))
        printed = flow.ack_after(lambda message: print(message.subject, message.data, flush=True))
        return await rx.run_until_signal(printed, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--nats", default="nats://127.0.0.1:4222", metavar="URL", help="a server with -js")
    add("--subject", default="orders", help="what to read")
    add("--stream", default="ORDERS", help="the stream that is created if there is none")
    add("--durable", default="recipe", help="the name of the consumer, which several may share")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (Error, OSError) as error:
        sys.exit(f"{options.nats}: {error!r} (nats-server has to run there with JetStream: -js)")
