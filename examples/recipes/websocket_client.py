# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[websockets]"]
# ///
"""A WebSocket client: messages under demand, across lost connections.

    python examples/recipes/websocket_client.py wss://example.org/prices --send '{"subscribe": "A"}'

A connection is read as far as messages are requested; a server that sends more is slowed by TCP.
When a connection is lost, the client connects again, after a delay that grows, and sends again what
subscribes. What the server has sent meanwhile is lost, unless the subscription says where to
continue: `subscription` is called with the last message. Serve until Ctrl-C.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

import reactive_aio as rx
from reactive_aio.asgi import websocket_messages
from reactive_aio.errors import ReactiveError

# For ten minutes; a message that arrives begins the time again. What the server refuses is not
# repeated.
RECONNECT: Final = rx.RetryPolicy(
    attempts=None, within=600, delay=0.2, maximum=30, only=ConnectionError, reset=True
)


def subscription(send: Sequence[str], last: str | bytes | None) -> Sequence[str]:
    """What is sent on each connection; *last* is the last message, None on the first connection."""
    return send


async def main(options: argparse.Namespace) -> int:
    """Print messages until SIGTERM or Ctrl-C."""
    send = partial(subscription, options.send)
    messages = websocket_messages(options.url, send, retry=RECONNECT)
    return await rx.run_until_signal(messages.do_on_next(print), on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="such as wss://example.org/prices")
    send = "a message to send on each connection; may be repeated"
    parser.add_argument("--send", action="append", default=[], metavar="TEXT", help=send)
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (ReactiveError, ValueError, OSError) as error:
        sys.exit(f"{options.url}: {error}")
