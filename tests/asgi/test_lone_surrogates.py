"""Texts with a lone surrogate, which JSON can escape, but which UTF-8 cannot encode."""

import asyncio
import json
from typing import Any

import pytest

from reactive_aio import Flow, just, range as numbers
from reactive_aio.asgi import Peer, Refused, connect, ndjson, sse
from tests.asgi.calls import Call, SocketCall
from tests.asgi.routes import connected
from tests.asgi.test_client import scripted

HALF = "\ud83d"
"""The first half of an emoji, as `slice` of JavaScript may return it."""


def refused() -> Flow[Any]:
    raise Refused(404, f"there is no {HALF}")


def echo(payload: Any) -> Flow[Any]:
    return just(payload)


def publish(incoming: Flow[Any]) -> Flow[Any]:
    return incoming


async def connected_socket(**options: Any) -> SocketCall:
    routes = {
        "half": just("a", HALF, "b"),
        "refused": refused,
        "echo": echo,
        "count": numbers(2),
        "incoming": publish,
    }
    return await connected(routes, **options)


def sendable(call: SocketCall) -> list[dict[str, Any]]:
    """The messages of a socket, each of which a server must be able to encode."""
    for event in call.sent:
        event.get("text", "").encode()
    return call.messages


async def requires_both_of_count(call: SocketCall) -> None:
    """Another stream of the same socket must be served."""
    before = len(call.messages)
    call.send("subscribe", 99, route="count", n=2)
    assert (await call.values(before + 3))[before:] == [0, 1, "complete"]
    sendable(call)
    await call.close()


@pytest.mark.parametrize("route", ["half", "echo"])
async def test_an_element_that_cannot_be_encoded_fails_its_stream_alone(route: str) -> None:
    errors: list[BaseException] = []
    call = await connected_socket(on_error=errors.append)
    call.send("subscribe", 1, route=route, n=9, params=HALF)
    await call.until(lambda: errors)
    await call.until(lambda: call.messages[-1:] and call.messages[-1]["type"] == "error")
    assert sendable(call)[-1] == {
        "type": "error", "id": 1, "status": 500, "detail": "the stream failed",
    }  # fmt: skip
    assert [type(each) for each in errors] == [UnicodeEncodeError]
    await requires_both_of_count(call)


async def test_a_refusal_is_sent_with_a_question_mark() -> None:
    call = await connected_socket()
    call.send("subscribe", 1, route="refused", n=9)
    await call.received(1)
    assert sendable(call)[0]["detail"] == "there is no ?"
    await requires_both_of_count(call)


@pytest.mark.parametrize("members", [{"id": HALF, "route": "count"}, {"id": 1, "route": HALF}])
async def test_an_id_or_a_route_that_is_not_unicode_is_refused(members: dict[str, Any]) -> None:
    call = await connected_socket()
    call.send_text(json.dumps({"type": "subscribe", "n": 1, **members}))
    await call.received(1)
    [message] = sendable(call)
    assert (message["type"], message["status"]) == ("error", 400)
    assert "Unicode" in message["detail"]
    await requires_both_of_count(call)


async def test_params_that_a_handler_returns_to_the_client_fail_its_stream_alone() -> None:
    errors: list[BaseException] = []
    call = await connected_socket(on_error=errors.append)
    call.send("subscribe", 1, route="incoming", n=9, params=HALF)
    assert (await call.received(1))[0]["type"] == "error"
    await requires_both_of_count(call)


async def test_a_response_reports_a_refusal_with_a_question_mark() -> None:
    assert (await Call(sse(lambda _: refused())).end()).problem["detail"] == "there is no ?"

    def refuse_second(each: int) -> Any:
        return refused() if each else each

    call = await Call(ndjson(numbers(2).map(refuse_second))).end()
    assert call.body == '0\n{"$failure":{"status":404,"detail":"there is no ?"}}\n'


@pytest.mark.parametrize("payload", [HALF, object(), float("nan")], ids=["half", "object", "nan"])
async def test_a_payload_that_cannot_be_sent_fails_its_stream_alone(payload: Any) -> None:
    async def handler(socket: Any) -> None:
        request = json.loads(await socket.recv())
        assert request["route"] == "good"
        await socket.send(json.dumps({"type": "complete", "id": request["id"]}))
        await socket.wait_closed()

    async def elements(peer: Peer, payload: Any, route: str) -> list[Any]:
        async with asyncio.timeout(10):
            return await peer.request_stream(payload, route=route).to_list(limit=9)

    async with scripted(handler) as script, connect(script.url) as peer:
        with pytest.raises((TypeError, ValueError)):
            await elements(peer, payload, "bad")
        with pytest.raises(UnicodeEncodeError):
            await elements(peer, None, HALF)
        assert await elements(peer, "é", "good") == []
