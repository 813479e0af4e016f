"""Whatever a client sends: no crash, no stream left, and every answer is a message of the table."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings, strategies as some

from reactive_aio import Flow, never, range as numbers
from reactive_aio.asgi import Peer, Tally, websocket
from reactive_aio.asgi.text.messages import Malformed, read
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


def greet(peer: Peer) -> Any:
    return peer.request_stream(route="back").take(5).to_list(limit=5)


ROUTED: dict[str, Any] = {"count": numbers(20), "never": never(), "back": back, "fails": fails}


@given(some.text())
def test_reading_a_message_never_raises_anything_else(text: str) -> None:
    try:
        assert read(text).type in TYPES
    except Malformed:
        pass


async def talk(messages: list[str]) -> None:
    tally = Tally()
    app = websocket(ROUTED, tally=tally, on_connect=greet, on_error=str, max_useless=10)
    call = SocketCall(app)
    for message in messages:
        call.send(message)
        for _ in range(3):
            await asyncio.sleep(0)
    await call.left()
    assert (tally.open, tally.outstanding) == (0, 0)
    assert tally.opened <= tally.completed + tally.failed + tally.cancelled
    for said in call.messages:
        assert said["type"] in TYPES
        assert said["type"] != "error" or 400 <= said["status"] <= 503


@settings(max_examples=200)
@given(some.lists(MESSAGES, max_size=25))
def test_a_socket_survives_any_conversation(messages: list[str]) -> None:
    asyncio.run(talk(messages))
