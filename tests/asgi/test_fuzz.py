"""Any messages of a client: nothing crashes, no stream remains, and answers are valid messages."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings, strategies as some

from reactive_aio import Flow, never, range as numbers
from reactive_aio.asgi import Counters, Peer, websocket
from reactive_aio.asgi.text_protocol.messages import InvalidMessage, parse_message
from tests.asgi.calls import SocketCall

TYPES = ["subscribe", "request", "cancel", "next", "complete", "error"]
IDS = some.sampled_from([0, 1, 2, "a", -1, None, 1.5, True, "x" * 99])
VALUES: some.SearchStrategy[Any] = some.sampled_from(
    [0, 1, 3, -1, 2**53, 10**30, None, "1", 1.5, True, [], {}]
)
ROUTES = some.sampled_from(["count", "never", "back", "fails", "nowhere", None])
MEMBERS: some.SearchStrategy[Any] = some.fixed_dictionaries(
    {"type": some.sampled_from([*TYPES, "nonsense"]), "id": IDS},
    optional={"route": ROUTES, "n": VALUES, "value": VALUES, "params": VALUES, "status": VALUES},
)
MESSAGES = MEMBERS.map(json.dumps) | some.text(max_size=30)


async def fails() -> None:
    raise ValueError("on purpose")


def back(incoming: Flow[Any]) -> Flow[Any]:
    return incoming


def on_connect(peer: Peer) -> Any:
    return peer.request_stream(route="back").take(5).to_list(limit=5)


ROUTED: dict[str, Any] = {"count": numbers(20), "never": never(), "back": back, "fails": fails}


@given(some.text())
def test_parsing_a_message_raises_only_invalid_message(text: str) -> None:
    try:
        assert parse_message(text).type in TYPES
    except InvalidMessage:
        pass


async def converse(messages: list[str]) -> None:
    counters = Counters()
    app = websocket(ROUTED, counters=counters, on_connect=on_connect, on_error=str, max_useless=10)
    call = SocketCall(app)
    for message in messages:
        call.send_text(message)
        for _ in range(3):
            await asyncio.sleep(0)
    await call.close()
    assert (counters.open, counters.outstanding) == (0, 0)
    assert counters.opened <= counters.completed + counters.failed + counters.cancelled
    for answer in call.messages:
        assert answer["type"] in TYPES
        assert answer["type"] != "error" or 400 <= answer["status"] <= 503


@settings(max_examples=200)
@given(some.lists(MESSAGES, max_size=25))
def test_a_socket_survives_any_conversation(messages: list[str]) -> None:
    asyncio.run(converse(messages))
