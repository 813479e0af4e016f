"""Any messages of a client: nothing crashes, no stream remains, and answers are valid messages."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from typing import Any, Final

from hypothesis import given, settings, strategies as some

from reactive_aio import Flow, from_aiter, never, range as numbers
from reactive_aio.asgi import AppStreams, Counters, Peer, websocket
from reactive_aio.asgi.text_protocol.messages import InvalidMessage, parse_message
from tests.asgi.calls import SocketCall

TYPES = ["subscribe", "request", "cancel", "next", "complete", "error"]
IDS = some.sampled_from([0, 1, 2, "a", -1, None, 1.5, True, "x" * 99])
VALUES: some.SearchStrategy[Any] = some.sampled_from(
    [0, 1, 3, -1, 2**53, 10**30, None, "1", 1.5, True, [], {}]
)
ROUTES = some.sampled_from(["count", "never", "back", "fails", "cleans", "nowhere", None])
MEMBERS: some.SearchStrategy[Any] = some.fixed_dictionaries(
    {"type": some.sampled_from([*TYPES, "nonsense"]), "id": IDS},
    optional={"route": ROUTES, "n": VALUES, "value": VALUES, "params": VALUES, "status": VALUES},
)
CHARACTERS = '{}[]",:.+-0123456789eEInfityaNruls\\ \t\n\r\0é\u2028😀\ud800'
MESSAGES = MEMBERS.map(json.dumps) | some.text(CHARACTERS, max_size=30)


async def fails() -> None:
    raise ValueError("on purpose")


def back(incoming: Flow[Any]) -> Flow[Any]:
    return incoming


def on_connect(peer: Peer) -> Any:
    return peer.request_stream(route="back").take(5).to_list(limit=5)


running = 0
MOST_SECONDS: Final = 0.5
"""Of the processor's time, for one conversation."""


async def cleans() -> AsyncIterator[int]:
    """Runs for a while after it was cancelled."""
    global running
    running += 1
    try:
        for number in itertools.count():
            yield number
    finally:
        for _ in range(9):
            await asyncio.sleep(0)
        running -= 1


ROUTED: dict[str, Any] = {
    "count": numbers(20),
    "never": never(),
    "back": back,
    "fails": fails,
    "cleans": lambda: from_aiter(cleans),
}


@given(some.text(CHARACTERS))
def test_parsing_a_message_raises_only_invalid_message(text: str) -> None:
    try:
        assert parse_message(text).type in TYPES
    except InvalidMessage:
        pass


async def converse(messages: list[str], stops: bool) -> None:
    counters, streams, began = Counters(), AppStreams(), time.thread_time()
    options: Any = {"on_connect": on_connect, "on_error": str, "max_useless": 10, "max_streams": 4}
    call = SocketCall(streams.wrap(websocket(ROUTED, counters=counters, **options)))
    await call.until(lambda: call.sent)
    for message in messages:
        call.send_text(message)
        for _ in range(3):
            await asyncio.sleep(0)
        assert running <= 4
    if stops:
        streams.stop()
        assert await call.closed() in (1007, 1008, 1012)
    else:
        await call.close()
    assert time.thread_time() - began < MOST_SECONDS
    assert running == 0
    assert (counters.open, counters.outstanding) == (0, 0)
    assert counters.opened <= counters.completed + counters.failed + counters.cancelled
    for answer in call.messages:
        assert answer["type"] in TYPES
        assert answer["type"] != "error" or 400 <= answer["status"] <= 503


@settings(max_examples=100)
@given(some.lists(MESSAGES, max_size=25), some.booleans())
def test_a_socket_survives_any_conversation(messages: list[str], stops: bool) -> None:
    asyncio.run(converse(messages, stops))
