# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "websockets>=15"]
# ///
"""A WebSocket client: messages under demand, across lost connections.

    python examples/recipes/websocket_client.py wss://example.org/prices --send '{"subscribe": "A"}'

A connection is read as far as messages are requested; a server that sends more is slowed by TCP.
When a connection is lost, the client connects again, after a delay that grows, and sends again what
subscribes. What the server has sent meanwhile is lost, unless the subscription says where to
continue: `hello` is called with the last message. Serve until Ctrl-C.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException

import reactive_aio as rx

Message = str | bytes

NORMAL: Final = 1000  # the server has sent everything
WINDOW: Final = 16  # messages that wait in a connection
CLOSED: Final = 1.0  # seconds for which a server that sends more may answer a close
TEMPORARY: Final = (429, 500, 502, 503, 504)


class ConnectionLost(ConnectionError):
    """The connection has ended, and the server did not say that this was all."""


def from_websocket(
    url: str,
    hello: Callable[[Message | None], Sequence[Message]] = lambda last: (),
    *,
    retry: rx.RetryPolicy | None = None,
) -> rx.Flow[Message]:
    """The messages of *url*, after what ``hello(last)`` returns was sent on each connection.

    *last* is the last message that was received; None on the first connection. Completes when the
    server closes the connection normally. *retry* is in place of `POLICY`.
    """

    def attempts() -> rx.Flow[Message]:
        last: Message | None = None

        async def messages() -> AsyncGenerator[Message]:
            nonlocal last
            connection = await connect(url, max_queue=WINDOW, close_timeout=CLOSED)
            try:
                for message in hello(last):
                    await connection.send(message)
                async for message in connection:
                    last = message
                    yield message
            finally:
                await connection.close()
            if connection.close_code != NORMAL:
                raise ConnectionLost(f"{url}: closed with {connection.close_code}")

        return rx.from_aiter(messages).retry(retry or POLICY)

    return rx.defer(attempts)


def is_worth_another_attempt(error: BaseException) -> bool:
    """Whether a later connection may succeed: not where the server refuses this client."""
    if isinstance(error, InvalidStatus):
        return error.response.status_code in TEMPORARY
    return isinstance(error, (OSError, WebSocketException)) and not isinstance(
        error, (InvalidURI, InvalidHandshake)
    )


# For ten minutes; a message that arrives begins the time again.
POLICY: Final = rx.RetryPolicy(
    attempts=None, within=600, delay=0.2, maximum=30, only=is_worth_another_attempt, reset=True
)


async def main(options: argparse.Namespace) -> int:
    """Print messages until SIGTERM or Ctrl-C."""
    messages = from_websocket(options.url, lambda last: options.send)
    return await rx.run_until_signal(messages.do_on_next(print), on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="such as wss://example.org/prices")
    send = "a message to send on each connection; may be repeated"
    parser.add_argument("--send", action="append", default=[], metavar="TEXT", help=send)
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (WebSocketException, OSError) as error:
        sys.exit(f"{options.url}: {error}")
