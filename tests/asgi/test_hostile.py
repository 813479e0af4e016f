"""What a server does about bad input: the table of docs/protocol.md, and handshakes."""

import asyncio
import json
from typing import Any

import pytest

from reactive_aio import Flow, just, never
from reactive_aio.asgi import (
    HttpRequest,
    Refused,
    javascript,
    websocket,
)
from reactive_aio.asgi.text.request import SocketRequest
from reactive_aio.testing.probes import PublisherProbe
from tests.asgi.calls import Call, SocketCall
from tests.asgi.routes import MOST, called, router
from tests.harness.leftover_checks import Context

# -- bad input: the table --------------------------------------------------------------------------
ENDS_THE_SOCKET = {
    "not json": ("{", 400, 1007),
    "no object": ("[1]", 400, 1007),
    "not a number of json": ('{"type":"request","id":1,"n":NaN}', 400, 1007),
    "deep": ("[" * 60_000, 400, 1007),
    "too many digits": ('{"type":"request","id":1,"n":' + "9" * 5000 + "}", 400, 1007),
    "too long": (json.dumps({"type": "cancel", "id": 1, "x": "x" * 70_000}), 413, 1009),
}


@pytest.mark.parametrize("name", ENDS_THE_SOCKET)
async def test_what_cannot_be_read_closes_the_socket(name: str) -> None:
    text, status, code = ENDS_THE_SOCKET[name]
    probe = PublisherProbe[int]()
    call = await called({"a": probe})
    call.say("subscribe", 1, route="a")
    await probe.expect_subscriber()
    call.send(text)
    assert await call.closed() == code
    assert call.messages[-1]["status"] == status
    assert "id" not in call.messages[-1]
    await probe.expect_cancel()


async def test_a_binary_message_closes_the_socket() -> None:
    call = await called()
    call.incoming.put_nowait({"type": "websocket.receive", "bytes": b"{}"})
    assert await call.closed() == 1003
    assert call.messages[0]["status"] == 415


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": "subscribe"},
        {"type": "publish", "id": 1},
        {"type": ["next"], "id": 1},
        {"type": "request", "id": -1, "n": 1},
        {"type": "request", "id": 1.0, "n": 1},
        {"type": "request", "id": True, "n": 1},
        {"type": "request", "id": MOST + 1, "n": 1},
        {"type": "cancel", "id": ""},
        {"type": "cancel", "id": "x" * 65},
        {"type": "cancel", "id": None},
        {"type": "subscribe", "id": 1},
        {"type": "subscribe", "id": 1, "route": 5, "n": 1},
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_said_and_ignored(message: dict[str, Any]) -> None:
    call = await called()
    call.send(json.dumps(message))
    call.say("subscribe", 5, route="count.0")
    first, second = await call.came(2)
    assert first["type"] == "error"
    assert first["status"] == 400
    assert "id" not in first
    assert second["type"] == "complete"
    await call.left()


async def test_an_id_in_use_is_not_given_away() -> None:
    call = await called()
    call.say("subscribe", 1, route="count.9", n=1)
    call.say("subscribe", 1, route="count.9", n=1)
    call.say("request", 1, n=1)
    messages = await call.came(3)
    assert sorted(each["type"] for each in messages) == ["error", "next", "next"]
    (blamed,) = [each for each in messages if each["type"] == "error"]
    assert blamed["status"] == 409
    assert "id" not in blamed
    await call.left()


WRONG: list[Any] = [-1, 1.5, "5", None, True, [], -(2**70)]


@pytest.mark.parametrize("n", [0, *WRONG], ids=str)
async def test_a_request_that_is_no_demand_ends_its_stream(n: Any) -> None:
    """Rule 3.9."""
    probe = PublisherProbe[int]()
    call = await called({"a": probe})
    call.say("subscribe", 1, route="a", n=1)
    await probe.expect_request(1)
    call.say("request", 1, n=n)
    (message,) = await call.came(1)
    assert (message["type"], message["status"], message["rule"]) == ("error", 400, "3.9")
    assert "3.9" in message["detail"]
    await probe.expect_cancel()
    await call.left()


@pytest.mark.parametrize("n", WRONG, ids=str)
async def test_a_subscription_with_a_wrong_demand_is_refused(n: Any) -> None:
    """Rule 3.9."""
    call = await called()
    call.say("subscribe", 1, route="count.5", n=n)
    (message,) = await call.came(1)
    assert (message["id"], message["rule"]) == (1, "3.9")
    await call.left()


async def test_routes_that_are_not_there_are_404() -> None:
    call = await called()
    call.say("subscribe", 1, route="counts", n=1)
    assert (await call.came(1))[0]["status"] == 404
    await call.left()


async def test_one_stream_too_many_is_429() -> None:
    call = await called({"a": never()}, max_streams=2)
    for id in range(3):
        call.say("subscribe", id, route="a", n=1)
    (message,) = await call.came(1)
    assert (message["id"], message["status"]) == (2, 429)
    call.say("cancel", 0)
    call.say("subscribe", 4, route="a", n=1)
    call.say("subscribe", 5, route="a", n=1)
    assert (await call.came(2))[1]["id"] == 5
    await call.left()


async def test_what_is_late_is_ignored() -> None:
    """Rule 3.6."""
    call = await called()
    for kind in ("request", "cancel", "next", "complete", "error"):
        call.say(kind, 9, n=1, value=1)
    call.say("subscribe", 1, route="count.0")
    assert await call.values(1) == ["complete"]
    await call.left()


async def test_too_much_of_no_use_closes_the_socket() -> None:
    call = await called(max_useless=20)
    for _ in range(30):
        call.say("cancel", 9)
    assert await call.closed() == 1008
    assert call.messages[-1]["status"] == 429


async def test_streams_that_are_begun_only_to_be_cancelled_close_the_socket() -> None:
    call = await called({"a": never()}, max_useless=20)
    for _ in range(30):
        call.say("subscribe", 1, route="a", n=1)
        call.say("cancel", 1)
    assert await call.closed() == 1008


async def test_what_is_of_use_makes_up_for_it() -> None:
    call = await called(max_useless=5)
    call.say("subscribe", 1, route="count.100", n=1)
    for number in range(50):
        await call.came(number + 1)
        call.say("cancel", 9)
        call.say("request", 1, n=1)
    assert len(await call.came(51)) == 51
    await call.left()


@pytest.mark.virtual_time
async def test_a_client_that_is_sent_away_and_does_not_read_is_not_waited_for() -> None:
    call = await called()
    call.pause()
    call.send("{")
    await asyncio.sleep(6)
    call.resume()
    assert await call.closed() == 1007


# -- the handshake ---------------------------------------------------------------------------------
async def test_the_subprotocol_is_chosen_if_it_is_asked_for() -> None:
    call = await called(subprotocols=["other", "reactive-streams.v1"])
    assert call.sent[0]["subprotocol"] == "reactive-streams.v1"
    await call.left()
    call = await called()
    assert call.sent[0]["subprotocol"] is None
    await call.left()
    call = await called(subprotocols=["graphql-ws"])
    assert call.sent[0]["status"] == 400


async def test_an_address_denotes_a_stream() -> None:
    call = await called(query="route=count.9&n=2&x=1")
    assert await call.came(2) == [
        {"type": "next", "id": 0, "value": 0},
        {"type": "next", "id": 0, "value": 1},
    ]
    call.say("request", 0, n=1)
    await call.came(3)
    await call.left()


async def test_the_rest_of_an_address_becomes_params() -> None:
    def echo(payload: dict[str, str]) -> Flow[dict[str, str]]:
        return just(payload)

    call = await called({"echo": echo}, query="route=echo&n=1&a=b&c=d")
    assert await call.values(2) == [{"a": "b", "c": "d"}, "complete"]
    await call.left()


async def test_a_wrong_demand_in_an_address_is_refused() -> None:
    """Rule 3.9."""
    call = await called(query="route=a&n=0")
    assert call.sent[0]["status"] == 400
    assert "3.9" in json.loads(call.sent[1]["body"])["detail"]


ORIGINS: dict[str, tuple[dict[str, str], set[str] | None, bool]] = {
    "none": ({"host": "a:1"}, None, True),
    "the same": ({"host": "a:1", "origin": "http://a:1"}, None, True),
    "another": ({"host": "a:1", "origin": "http://b"}, None, False),
    "another port": ({"host": "a:1", "origin": "http://a:2"}, None, False),
    "null": ({"host": "a:1", "origin": "null"}, None, False),
    "allowed": ({"host": "a:1", "origin": "http://b"}, {"http://b"}, True),
    "not that one": ({"host": "a:1", "origin": "http://c"}, {"http://b"}, False),
    "any": ({"host": "a:1", "origin": "http://c"}, {"*"}, True),
}


@pytest.mark.parametrize("name", ORIGINS)
async def test_pages_of_other_origins_are_refused(name: str) -> None:
    headers, origins, welcome = ORIGINS[name]
    call = await called(headers=headers, origins=origins)
    if welcome:
        assert call.sent[0]["type"] == "websocket.accept"
        await call.left()
    else:
        assert call.sent[0]["status"] == 403


async def test_admit_says_who_comes_in() -> None:
    async def admit(request: HttpRequest) -> str:
        if request.headers.get("authorization") != "Bearer t":
            raise Refused(401, headers={"WWW-Authenticate": "Bearer"})
        return "ann"

    def me(user: str, request: SocketRequest) -> Flow[str]:
        return just(user, request.http.path)

    routes = {"me": me}
    call = await called(routes, admit=admit)
    assert call.sent[0]["status"] == 401
    assert (b"www-authenticate", b"Bearer") in call.sent[0]["headers"]
    call = await called(routes, admit=admit, headers={"authorization": "Bearer t"})
    call.say("subscribe", 1, route="me", n=2)
    assert await call.values(3) == ["ann", "/", "complete"]
    await call.left()


async def test_an_admission_that_fails_lets_nobody_in(expects_loop_errors: list[Context]) -> None:
    def admit(_: HttpRequest) -> str:
        raise ValueError("secret")

    call = await called(admit=admit)
    assert call.sent[0]["status"] == 500
    assert b"secret" not in call.sent[1]["body"]
    assert len(expects_loop_errors) == 1


async def test_a_server_that_knows_no_denial_closes() -> None:
    call = await called(headers={"host": "a", "origin": "http://b"}, denial=False)
    assert call.sent[0]["type"] == "websocket.close"


async def test_one_socket_too_many_is_turned_away() -> None:
    app = websocket(router, max_sockets=1)
    first = SocketCall(app)
    await first.until(lambda: first.sent)
    second = SocketCall(app)
    await second.until(lambda: second.sent)
    assert second.sent[0]["status"] == 503
    await first.left()
    assert "0 sockets" in repr(app)


async def test_who_gets_it_without_an_upgrade_is_told_so() -> None:
    call = await Call(websocket(router)).end()
    assert call.status == 426


@pytest.mark.parametrize("broken", [OSError("gone"), RuntimeError("it is closed")], ids=repr)
async def test_a_server_that_cannot_send_is_a_client_that_left(broken: Exception) -> None:
    probe = PublisherProbe[int]()
    call = await called({"a": probe})
    call.say("subscribe", 1, route="a", n=1)
    await probe.expect_request(1)
    call.broken = broken
    probe.emit(1)
    for _ in range(9):
        await asyncio.sleep(0)
    call.send("{")  # which would close it
    await call.left()
    await probe.expect_cancel()


@pytest.mark.virtual_time
async def test_a_send_that_fails_while_the_client_stays_is_reported() -> None:
    errors: list[BaseException] = []
    call = await called({"a": just(1)}, on_error=errors.append)
    call.broken = RuntimeError("a bug of the server")
    call.say("subscribe", 1, route="a", n=1)
    await asyncio.sleep(10)
    assert errors == [call.broken]
    await call.left()


async def test_a_client_that_does_not_wait_for_its_handshake_is_no_error() -> None:
    call = SocketCall(websocket(router))
    call.broken = OSError("gone")
    await call.end()


@pytest.mark.parametrize(
    "options", [{"max_streams": 0}, {"max_message": 0}, {"max_sockets": "1"}, {"encode": None}]
)
def test_wrong_options_raise_at_once(options: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        websocket(router, **options)


def test_what_cannot_be_served_raises_at_once() -> None:
    with pytest.raises(TypeError, match="prices"):
        websocket({"prices": 5})


# -- the module for browsers -----------------------------------------------------------------------
MODULE = javascript()


async def test_the_module_is_served_with_its_type_and_a_tag() -> None:
    app = MODULE
    call = await Call(app).end()
    assert call.headers["content-type"].startswith("text/javascript")
    assert "export function connect" in call.body
    assert int(call.headers["content-length"]) == len(call.body.encode())
    again = await Call(app, headers={"if-none-match": call.headers["etag"]}).end()
    assert (again.status, again.body) == (304, "")
    head = await Call(app, method="HEAD").end()
    assert (head.status, head.body) == (200, "")
    assert (await Call(app, method="PUT").end()).status == 405
