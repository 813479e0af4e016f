# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "nats-py>=2.9"]
# ///
"""NATS JetStream: messages of a durable consumer, acknowledged when their work is done.

    python examples/recipes/nats_jetstream.py --nats nats://127.0.0.1:4222 --subject orders

Messages are pulled by demand, and `ack` waits until the server has confirmed it. One whose work has
failed is delivered again after a second; one without an answer, after ACK_WAIT. The server counts
deliveries: one that fails too often, or stops its process each time, is moved to `SUBJECT.dead`.
Serve until Ctrl-C.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError, TimeoutError as NoMessages
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, StreamConfig
from nats.js.errors import NotFoundError, ServiceUnavailableError

import reactive_aio as rx
from reactive_aio.delivery import Delivery, DeliveryFlow, Unfinished, deliveries

ACK_WAIT: Final = 30.0  # seconds: more than the work on a message takes, or it is done twice
CONFIRMED: Final = 5.0  # seconds within which the server has to confirm an acknowledgement
WAIT: Final = 5.0  # seconds for which one call waits for messages
RECONNECT: Final = {"max_reconnect_attempts": 20, "reconnect_time_wait": 0.2}
AGAIN: Final = rx.RetryPolicy(attempts=5, delay=0.5, factor=3)


def messages(
    context: JetStreamContext,
    subject: str,
    durable: str,
    *,
    count: int = 100,
    limit: int = 256,
    ack_wait: float = ACK_WAIT,
) -> DeliveryFlow[Msg]:
    """The messages of *subject* for the consumer *durable*; at most *limit* of them are held."""

    async def lists() -> AsyncGenerator[list[Delivery[Msg]]]:
        config = ConsumerConfig(ack_wait=ack_wait, max_ack_pending=10 * limit)
        subscription = await context.pull_subscribe(subject, durable, config=config)
        try:
            while True:
                try:
                    yield [delivery(each) for each in await subscription.fetch(count, WAIT)]
                except NoMessages:  # or nobody who would send any: `NotFoundError`
                    with suppress(NoMessages, NoRespondersError, ServiceUnavailableError):
                        await subscription.consumer_info()
        finally:
            await subscription.unsubscribe()

    flow = rx.from_aiter(lists).flat_map(lambda each: each)
    return deliveries(flow, limit=limit, ack_concurrency=32)  # each is a request of its own


def delivery(message: Msg) -> Delivery[Msg]:
    """A message, and how it is acknowledged and given back."""

    def nack(error: Exception) -> Awaitable[None]:
        return message.nak(None if isinstance(error, Unfinished) else 1.0)

    return Delivery(message, partial(message.ack_sync, CONFIRMED), nack)


async def bury(context: JetStreamContext, message: Msg, error: Exception) -> None:
    """Move a message that always fails to a subject of its own, with the error."""
    shown = repr(error).replace("\n", " ")  # a header is one line
    await context.publish(f"{message.subject}.dead", message.data, headers={"error": shown})


async def require_stream(context: JetStreamContext, name: str, subject: str) -> None:
    """Create the stream of *subject*, unless there is one."""
    try:
        await context.find_stream_name_by_subject(subject)
    except NotFoundError:
        config = StreamConfig(name=name, subjects=[subject, f"{subject}.dead"])
        await context.add_stream(config)  # pyright: ignore[reportUnknownMemberType]


async def show(error: Exception) -> None:
    """Show why the client connects again."""
    print(f"nats: {error!r}", file=sys.stderr)


async def main(options: argparse.Namespace) -> int:
    """Print messages until SIGTERM or Ctrl-C."""
    client: Any = Client()  # whose options have no types
    async with client:
        await client.connect(options.nats, error_cb=show, **RECONNECT)
        context: JetStreamContext = client.jetstream()
        await require_stream(context, options.stream, options.subject)
        flow = messages(context, options.subject, options.durable)
        flow = flow.nack_on_error(AGAIN, dead_letter=partial(bury, context))
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
