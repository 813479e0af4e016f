"""The reactions to bad input that docs/protocol.md lists, and handshakes."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow, from_aiter, just, never
from reactive_aio.asgi import (
    HttpRequest,
    Refused,
    javascript,
    websocket,
)
from reactive_aio.asgi.text_protocol import multiplexer
from reactive_aio.asgi.text_protocol.multiplexer import SocketRequest
from reactive_aio.testing.probes import PublisherProbe
from tests.asgi.calls import Call, SocketCall
from tests.asgi.routes import MOST, connected, router
from tests.harness.leftover_checks import Context

# -- bad input: the table --------------------------------------------------------------------------
CLOSES_THE_SOCKET = {
    "not json": ("{", 400, 1007),
    "not an object": ("[1]", 400, 1007),
    "not a number of json": ('{"type":"request","id":1,"n":NaN}', 400, 1007),
    "deep": ("[" * 60_000, 400, 1007),
    "too many digits": ('{"type":"request","id":1,"n":' + "9" * 5000 + "}", 400, 1007),
    "too long": (json.dumps({"type": "cancel", "id": 1, "x": "x" * 70_000}), 413, 1009),
}


@pytest.mark.parametrize("name", CLOSES_THE_SOCKET)
async def test_a_message_that_cannot_be_parsed_closes_the_socket(name: str) -> None:
    text, status, code = CLOSES_THE_SOCKET[name]
    probe = PublisherProbe[int]()
    call = await connected({"a": probe})
    call.send("subscribe", 1, route="a")
    await probe.expect_subscriber()
    call.send_text(text)
    assert await call.closed() == code
    assert call.messages[-1]["status"] == status
    assert "id" not in call.messages[-1]
    await probe.expect_cancel()


async def test_a_binary_message_closes_the_socket() -> None:
    call = await connected()
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
async def test_an_invalid_message_is_answered_with_an_error_and_ignored(
    message: dict[str, Any],
) -> None:
    call = await connected()
    call.send_text(json.dumps(message))
    call.send("subscribe", 5, route="count.0")
    first, second = await call.received(2)
    assert first["type"] == "error"
    assert first["status"] == 400
    assert "id" not in first
    assert second["type"] == "complete"
    await call.close()


async def test_an_error_about_the_whole_socket_is_not_answered() -> None:
    """Two ends that answer each other's errors would never stop."""
    call = await connected(max_useless=1)
    call.send_text('{"type":"error","status":400,"detail":"type must be one of …"}')
    call.send("subscribe", 5, route="count.0")
    assert [each["type"] for each in await call.received(1)] == ["complete"]
    call.send_text('{"type":"error"}')
    assert await call.closed() == 1008
    assert [each["type"] for each in call.messages] == ["complete", "error"]


async def test_an_id_in_use_is_refused() -> None:
    call = await connected()
    call.send("subscribe", 1, route="count.9", n=1)
    call.send("subscribe", 1, route="count.9", n=1)
    call.send("request", 1, n=1)
    messages = await call.received(3)
    assert sorted(each["type"] for each in messages) == ["error", "next", "next"]
    (error,) = [each for each in messages if each["type"] == "error"]
    assert error["status"] == 409
    assert "id" not in error
    await call.close()


INVALID: list[Any] = [-1, 1.5, "5", None, True, [], -(2**70)]


@pytest.mark.parametrize("n", [0, *INVALID], ids=str)
async def test_a_request_with_an_invalid_demand_ends_its_stream(n: Any) -> None:
    """Rule 3.9."""
    probe = PublisherProbe[int]()
    call = await connected({"a": probe})
    call.send("subscribe", 1, route="a", n=1)
    await probe.expect_request(1)
    call.send("request", 1, n=n)
    (message,) = await call.received(1)
    assert (message["type"], message["status"], message["rule"]) == ("error", 400, "3.9")
    assert "3.9" in message["detail"]
    await probe.expect_cancel()
    await call.close()


@pytest.mark.parametrize("n", INVALID, ids=str)
async def test_a_subscription_with_an_invalid_demand_is_refused(n: Any) -> None:
    """Rule 3.9."""
    call = await connected()
    call.send("subscribe", 1, route="count.5", n=n)
    (message,) = await call.received(1)
    assert (message["id"], message["rule"]) == (1, "3.9")
    await call.close()


async def test_unknown_routes_are_404() -> None:
    call = await connected()
    call.send("subscribe", 1, route="counts", n=1)
    assert (await call.received(1))[0]["status"] == 404
    await call.close()


async def test_a_stream_above_max_streams_is_429() -> None:
    call = await connected({"a": never()}, max_streams=2)
    for id in range(3):
        call.send("subscribe", id, route="a", n=1)
    (message,) = await call.received(1)
    assert (message["id"], message["status"]) == (2, 429)
    call.send("cancel", 0)
    call.send("subscribe", 4, route="a", n=1)
    call.send("subscribe", 5, route="a", n=1)
    assert (await call.received(2))[1]["id"] == 5
    await call.close()


async def test_messages_for_unknown_ids_are_ignored() -> None:
    """Rule 3.6."""
    call = await connected()
    for kind in ("request", "cancel", "next", "complete", "error"):
        call.send(kind, 9, n=1, value=1)
    call.send("subscribe", 1, route="count.0")
    assert await call.values(1) == ["complete"]
    await call.close()


async def test_too_many_useless_messages_close_the_socket() -> None:
    call = await connected(max_useless=20)
    for _ in range(30):
        call.send("cancel", 9)
    assert await call.closed() == 1008
    assert call.messages[-1]["status"] == 429


async def test_streams_that_are_cancelled_before_their_first_element_count_as_useless() -> None:
    call = await connected({"a": never()}, max_useless=20)
    for _ in range(30):
        call.send("subscribe", 1, route="a", n=1)
        call.send("cancel", 1)
    assert await call.closed() == 1008


async def test_elements_offset_useless_messages() -> None:
    call = await connected(max_useless=5)
    call.send("subscribe", 1, route="count.100", n=1)
    for number in range(50):
        await call.received(number + 1)
        call.send("cancel", 9)
        call.send("request", 1, n=1)
    assert len(await call.received(51)) == 51
    await call.close()


@pytest.mark.virtual_time
async def test_a_close_does_not_wait_for_a_client_that_does_not_read() -> None:
    call = await connected()
    call.pause()
    call.send_text("{")
    await asyncio.sleep(6)
    call.resume()
    assert await call.closed() == 1007


@pytest.mark.virtual_time
async def test_a_client_that_does_not_even_read_the_close_loses_its_place() -> None:
    call = await connected()
    call.pause()
    call.send_text("{")
    await call.end(within=30)


# -- the handshake ---------------------------------------------------------------------------------
async def test_the_subprotocol_is_selected_if_it_is_offered() -> None:
    call = await connected(subprotocols=["other", "reactive-streams.v1"])
    assert call.sent[0]["subprotocol"] == "reactive-streams.v1"
    await call.close()
    call = await connected()
    assert call.sent[0]["subprotocol"] is None
    await call.close()
    call = await connected(subprotocols=["graphql-ws"])
    assert call.sent[0]["status"] == 400


async def test_the_query_of_the_url_subscribes_to_a_stream() -> None:
    call = await connected(query="route=count.9&n=2&x=1")
    assert await call.received(2) == [
        {"type": "next", "id": 0, "value": 0},
        {"type": "next", "id": 0, "value": 1},
    ]
    call.send("request", 0, n=1)
    await call.received(3)
    await call.close()


async def test_other_query_parameters_become_params() -> None:
    def echo(payload: dict[str, str]) -> Flow[dict[str, str]]:
        return just(payload)

    call = await connected({"echo": echo}, query="route=echo&n=1&a=b&c=d")
    assert await call.values(2) == [{"a": "b", "c": "d"}, "complete"]
    await call.close()


async def test_an_invalid_demand_in_the_url_is_refused() -> None:
    """Rule 3.9."""
    call = await connected(query="route=a&n=0")
    assert call.sent[0]["status"] == 400
    assert "3.9" in json.loads(call.sent[1]["body"])["detail"]


ORIGINS: dict[str, tuple[dict[str, str], set[str] | None, bool]] = {
    "none": ({"host": "a:1"}, None, True),
    "the same address": ({"host": "[::1]:8", "origin": "http://[::1]:8"}, None, True),
    "this machine": ({"host": "localhost:1", "origin": "http://localhost:1"}, None, True),
    "the same name, which may point here by now": (
        {"host": "a:1", "origin": "http://a:1"},
        None,
        False,
    ),
    "another": ({"host": "a:1", "origin": "http://b"}, None, False),
    "another port": ({"host": "a:1", "origin": "http://a:2"}, None, False),
    "null": ({"host": "a:1", "origin": "null"}, None, False),
    "allowed": ({"host": "a:1", "origin": "http://b"}, {"http://b"}, True),
    "not that one": ({"host": "a:1", "origin": "http://c"}, {"http://b"}, False),
    "any": ({"host": "a:1", "origin": "http://c"}, {"*"}, True),
    "malformed": ({"host": "a:1", "origin": "http://["}, {"http://b"}, False),
    "null, allowed": ({"host": "a:1", "origin": "null"}, {"null"}, True),
    "an extension": (
        {"host": "a:1", "origin": "moz-extension://a-1"},
        {"moz-extension://a-1"},
        True,
    ),
    "IPv6": ({"host": "a:1", "origin": "http://[::1]:8000"}, {"http://[::1]:8000"}, True),
}


@pytest.mark.parametrize("name", ORIGINS)
async def test_pages_of_other_origins_are_refused(name: str) -> None:
    headers, origins, is_accepted = ORIGINS[name]
    call = await connected(headers=headers, origins=origins)
    if is_accepted:
        assert call.sent[0]["type"] == "websocket.accept"
        await call.close()
    else:
        assert call.sent[0]["status"] == 403


@pytest.mark.parametrize(
    "wrong",
    [
        *["a.example", "https://a.example/", "https://A.example", "https://a.example:443"],
        *[
            "http://a.example:80",
            "https://bücher.example",
            "https://",
            "",
            "https://a.example/x",
            5,
        ],
    ],
)
def test_an_origin_that_no_browser_sends_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"websocket: origins has .*write it as 'https://"):
        websocket(router, origins=["https://b.example", wrong])


def test_origins_must_be_a_list() -> None:
    with pytest.raises(TypeError, match="websocket: origins must be a list"):
        websocket(router, origins="https://a.example")


async def test_authenticate_returns_the_user_or_refuses() -> None:
    async def authenticate(request: HttpRequest) -> str:
        if request.headers.get("authorization") != "Bearer t":
            raise Refused(401, headers={"WWW-Authenticate": "Bearer"})
        return "ann"

    def me(user: str, request: SocketRequest) -> Flow[str]:
        return just(user, request.http.path)

    routes = {"me": me}
    call = await connected(routes, authenticate=authenticate)
    assert call.sent[0]["status"] == 401
    assert (b"www-authenticate", b"Bearer") in call.sent[0]["headers"]
    call = await connected(routes, authenticate=authenticate, headers={"authorization": "Bearer t"})
    call.send("subscribe", 1, route="me", n=2)
    assert await call.values(3) == ["ann", "/", "complete"]
    await call.close()


@pytest.mark.parametrize(("user", "status"), [(None, 401), (False, 401), ("", None), (0, None)])
@pytest.mark.parametrize("is_async", [False, True])
async def test_none_and_false_are_not_users(user: Any, status: int | None, is_async: bool) -> None:
    async def authenticate_later(_: HttpRequest) -> Any:
        return user

    def authenticate_now(_: HttpRequest) -> Any:
        return user

    authenticate = authenticate_later if is_async else authenticate_now
    call = await connected(authenticate=authenticate)
    assert call.sent[0].get("status") == status
    if status is None:
        await call.close()


@pytest.mark.virtual_time
async def test_an_authentication_that_takes_too_long_is_refused() -> None:
    async def authenticate(_: HttpRequest) -> Any:
        await asyncio.Event().wait()

    async def fails(_: HttpRequest) -> Any:
        raise TimeoutError("a database did not answer")

    started = asyncio.get_running_loop().time()
    call = await connected(authenticate=authenticate, auth_timeout=7)
    assert call.sent[0]["status"] == 503
    assert asyncio.get_running_loop().time() - started == pytest.approx(7)
    await call.end()
    call = await connected(authenticate=fails, on_error=str)
    assert call.sent[0]["status"] == 500


async def test_an_authentication_that_raises_refuses_the_client(
    expects_loop_errors: list[Context],
) -> None:
    def authenticate(_: HttpRequest) -> str:
        raise ValueError("secret")

    call = await connected(authenticate=authenticate)
    assert call.sent[0]["status"] == 500
    assert b"secret" not in call.sent[1]["body"]
    assert len(expects_loop_errors) == 1


async def test_a_server_without_denial_responses_closes_the_socket() -> None:
    call = await connected(headers={"host": "a", "origin": "http://b"}, denial=False)
    assert call.sent[0]["type"] == "websocket.close"


async def test_a_socket_above_max_sockets_gets_503() -> None:
    app = websocket(router, max_sockets=1)
    first = SocketCall(app)
    await first.until(lambda: first.sent)
    second = SocketCall(app)
    await second.until(lambda: second.sent)
    assert second.sent[0]["status"] == 503
    await first.close()
    assert "0 sockets" in repr(app)


async def test_a_get_without_an_upgrade_gets_426() -> None:
    call = await Call(websocket(router)).end()
    assert call.status == 426


@pytest.mark.parametrize(
    "broken", [OSError("disconnected"), RuntimeError("it is closed")], ids=repr
)
async def test_a_send_that_fails_counts_as_a_disconnect(broken: Exception) -> None:
    probe = PublisherProbe[int]()
    call = await connected({"a": probe})
    call.send("subscribe", 1, route="a", n=1)
    await probe.expect_request(1)
    call.send_error = broken
    probe.emit(1)
    for _ in range(9):
        await asyncio.sleep(0)
    call.send_text("{")  # which would close the socket
    await call.close()
    await probe.expect_cancel()


@pytest.mark.virtual_time
async def test_a_send_that_fails_without_a_disconnect_is_reported() -> None:
    errors: list[BaseException] = []
    call = await connected({"a": just(1)}, on_error=errors.append)
    call.send_error = RuntimeError("a bug of the server")
    call.send("subscribe", 1, route="a", n=1)
    await asyncio.sleep(10)
    assert errors == [call.send_error]
    await call.end()


async def test_a_message_that_a_server_cannot_send_closes_the_socket() -> None:
    errors: list[BaseException] = []
    probe = PublisherProbe[int]()
    call = await connected({"a": probe, "b": just(1)}, on_error=errors.append)
    call.send("subscribe", 1, route="a", n=1)
    await probe.expect_request(1)
    broken = call.send_error = RuntimeError("a bug of the server")
    call.send("subscribe", 2, route="b", n=1)
    call.send_error_count = 1
    await call.until(lambda: call.sent[-1]["type"] == "websocket.close")
    assert call.sent[-1]["code"] == 1011
    await call.end()
    await probe.expect_cancel()
    assert errors == [broken]


@pytest.mark.virtual_time
async def test_a_socket_ends_a_while_after_a_failed_send_without_a_disconnect() -> None:
    probe = PublisherProbe[int]()
    call = await connected({"a": probe})
    call.send("subscribe", 1, route="a", n=1)
    await probe.expect_request(1)
    call.send_error = OSError("disconnected")
    probe.emit(1)
    await call.end()
    await probe.expect_cancel()


async def test_a_disconnect_during_the_handshake_raises_nothing() -> None:
    call = SocketCall(websocket(router))
    call.send_error = OSError("disconnected")
    await call.end()


@pytest.mark.parametrize(
    "options",
    [
        *[{"max_streams": 0}, {"max_message": 0}, {"max_sockets": "1"}, {"encode": None}],
        *[{"authenticate": lambda: 1}, {"authenticate": "x"}, {"on_connect": lambda: 1}],
        *[{"on_connect": 5}, {"auth_timeout": 0}],
    ],
    ids=lambda options: next(iter(options)),
)
def test_invalid_options_raise_at_once(options: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        websocket(router, **options)


def test_the_detail_of_a_refusal_must_be_a_text() -> None:
    detail: Any = {"code": 1}
    with pytest.raises(TypeError, match="Refused: detail must be a str, not "):
        Refused(400, detail)


def test_a_route_that_cannot_be_served_raises_at_once() -> None:
    with pytest.raises(TypeError, match="prices"):
        websocket({"prices": 5})


# -- the module for browsers -----------------------------------------------------------------------
MODULE = javascript()


async def test_the_module_is_served_with_its_media_type_and_an_etag() -> None:
    app = MODULE
    call = await Call(app).end()
    assert call.headers["content-type"].startswith("text/javascript")
    assert "export function connect" in call.body
    assert int(call.headers["content-length"]) == len(call.body.encode())
    again = await Call(app, headers={"if-none-match": call.headers["etag"]}).end()
    assert (again.status, again.body) == (304, "")
    head = await Call(app, method="HEAD").end()
    assert (head.status, head.body) == (200, "")
    tag = call.headers["etag"]
    for condition, status in {
        **{f"W/{tag}": 304, f'"other", W/{tag}': 304, f'{tag},W/"x"': 304, "*": 304},
        **{'"other"': 200, 'W/"other"': 200, tag.strip('"'): 200, "": 200},
    }.items():
        assert (await Call(app, headers={"if-none-match": condition}).end()).status == status
    assert (await Call(app, method="PUT").end()).status == 405


async def test_streams_that_clean_up_count_for_max_streams() -> None:
    """A client that subscribes, receives and cancels would have any number of handlers running."""
    running, may_end = 0, asyncio.Event()

    async def slow_to_end() -> AsyncIterator[int]:
        nonlocal running
        running += 1
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            running -= 1

    call = SocketCall(websocket({"slow": lambda: from_aiter(slow_to_end)}, max_streams=3))
    for id in range(10):
        call.send("subscribe", id, route="slow", n=1)
        await call.received(id + 1)
        call.send("cancel", id)
    assert running == 3
    assert [each.get("status") for each in call.messages] == [None] * 3 + [429] * 7
    may_end.set()
    await asyncio.sleep(0)
    call.send("subscribe", 11, route="slow", n=1)
    assert (await call.received(11))[-1] == {"type": "next", "id": 11, "value": 1}
    await call.close()
    assert running == 0


@pytest.mark.virtual_time
async def test_messages_of_no_use_that_take_long_are_read_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten sockets with such messages took all turns of the loop: others waited half a second."""
    ticks = itertools.count()
    monkeypatch.setattr(multiplexer, "thread_time", lambda: next(ticks) * 0.01)
    clock = asyncio.get_running_loop().time
    call = SocketCall(websocket({"one": just(1)}))
    await call.until(lambda: call.sent)
    began = clock()
    for id in range(10):
        call.send("subscribe", id, route="one", n=1)
    await call.received(20)
    assert clock() - began < 0.01, "messages of use take no longer"
    for id in range(10):
        call.send("cancel", 100 + id)
    call.send("subscribe", 11, route="one", n=1)
    await call.received(22)
    assert clock() - began == pytest.approx(10 * 20 * 0.01, abs=0.01)
    await call.close()
