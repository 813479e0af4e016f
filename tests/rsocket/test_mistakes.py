"""Mistakes in how a server or a client is written, and errors that say too little."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reactive_aio import RetryPolicy, just, using
from reactive_aio.rsocket import (
    JSON,
    TEXT,
    ApplicationError,
    ConnectionLost,
    RequestCanceled,
    Router,
    asgi_app,
    connect,
    connect_balanced,
    error_of,
    loopback,
    serve,
)
from tests.harness.leftover_checks import Context

URI = "tcp://127.0.0.1:0"


def prices() -> int:
    return 1


def twice(n: int) -> int:
    return n * 2


# -- routers ---------------------------------------------------------------------------------------
ROUTED: dict[str, Callable[[Any], Any]] = {
    "serve": lambda router: serve(URI, router),
    "asgi_app": asgi_app,
    "loopback": loopback,
    "loopback: client": lambda router: loopback({}, client={"router": router}),
    "connect": lambda router: connect(URI, router=router),
    "connect_balanced": lambda router: connect_balanced([URI], router=router),
}


async def awaited(result: Any) -> None:
    if hasattr(result, "__await__"):
        await result


@pytest.mark.parametrize("name", ROUTED)
async def test_what_is_not_a_router_is_refused_where_it_is_given(name: str) -> None:
    message = rf"^{name}: router must be a Router, or a mapping from .*, not 'x' \(str\)$"
    with pytest.raises(TypeError, match=message):
        await awaited(ROUTED[name]("x"))
    with pytest.raises(TypeError, match=rf"^{name}: router\['x'\] must be a function, not 3 \(int"):
        await awaited(ROUTED[name]({"x": 3}))
    with pytest.raises(ValueError, match="has no symbol"):
        await awaited(ROUTED[name]({"prices.{symbol}": prices}))


async def test_a_mapping_from_routes_to_handlers_and_flows_is_served() -> None:
    routes = {"twice.{n}": twice, "letters": just("a", "b")}
    async with (
        await serve(URI, routes) as server,
        await connect(server.uri, codec=JSON, router=routes) as client,
    ):
        assert await client.request_response(route="twice.4") == 8
        assert await client.request_stream(route="letters").to_list() == ["a", "b"]
        assert await client.request_stream(route="letters").to_list() == ["a", "b"]
    async with loopback(routes, codec=JSON) as requester:
        assert await requester.request_response(route="letters") == "a"


def test_a_route_is_given_in_parentheses() -> None:
    router: Any = Router()
    message = (
        r'^route: the route must be a str, not prices .*; write @router\.route\("name"\) above'
    )
    with pytest.raises(TypeError, match=message):
        router.route(prices)
    with pytest.raises(TypeError, match=r"^route: the route must be a str, not 3 \(int\)$"):
        router.route(3)


def test_a_handler_is_a_function() -> None:
    router: Any = Router()
    with pytest.raises(TypeError, match=r"^route 'x': the handler must be a function, not 5 \(int"):
        router.route("x")(5)
    with pytest.raises(TypeError, match=r"^default handler: the handler must be a function, not"):
        router.default(just(1))
    with pytest.raises(TypeError, match=r"^on_metadata_push: the handler must be a function, not"):
        router.on_metadata_push("x")
    assert router.routes == 0


# -- options ---------------------------------------------------------------------------------------
OPTIONS: dict[str, Callable[[Any], Any]] = {
    "serve": lambda given: serve(URI, Router(), **given),
    "asgi_app": lambda given: asgi_app(Router(), **given),
    "loopback": lambda given: loopback(Router(), **given),
    "loopback: client": lambda given: loopback(Router(), client=given),
    "connect": lambda given: connect(URI, **given),
    "connect: responder_options": lambda given: connect(URI, responder_options=given),
    "connect_balanced": lambda given: connect_balanced([URI], **given),
}
SIMILAR = {
    "serve": ("max_connection", "max_connections"),
    "asgi_app": ("origin", "origins"),
    "loopback": ("authentication", "authenticate"),
    "loopback: client": ("keep_alive", "keepalive"),
    "connect": ("retries", "retry"),
    "connect: responder_options": ("expose_error", "expose_errors"),
    "connect_balanced": ("health_intervall", "health_interval"),
}


@pytest.mark.parametrize("name", OPTIONS)
async def test_an_unknown_option_names_the_function_and_the_most_similar_one(name: str) -> None:
    given, similar = SIMILAR[name]
    with pytest.raises(TypeError, match=rf"^{name}: unknown {given}; here it is called {similar}$"):
        await awaited(OPTIONS[name]({given: 3}))
    with pytest.raises(TypeError, match=rf"^{name}: unknown zzz; known are .*expose_errors|limits"):
        await awaited(OPTIONS[name]({"zzz": 3}))


# -- errors of the other side ----------------------------------------------------------------------
def failing_later() -> Iterator[int]:
    yield 1
    raise ValueError("secret")


async def test_a_failed_handler_says_where_its_error_is(
    expects_loop_errors: list[Context],
) -> None:
    routes = {"fails": lambda: 1 // 0, "fails later": failing_later}
    message = "the handler of the other side failed, .* log there .*expose_errors=True"
    async with loopback(routes, codec=JSON) as requester:
        with pytest.raises(ApplicationError, match=message):
            await requester.request_response(route="fails")
        with pytest.raises(ApplicationError, match=message) as caught:
            await requester.request_stream(route="fails later").run()
        assert "secret" not in str(caught.value)
    assert [type(each["exception"]) for each in expects_loop_errors] == [
        ZeroDivisionError, ValueError
    ]  # fmt: skip


async def test_an_exposed_error_without_a_text_has_its_type(
    expects_loop_errors: list[Context],
) -> None:
    def fails() -> None:
        raise KeyError

    async with loopback({"fails": fails}, expose_errors=True) as requester:
        with pytest.raises(ApplicationError, match=r"^APPLICATION_ERROR \(0x201\): KeyError$"):
            await requester.request_response(route="fails")
    expects_loop_errors.clear()


def test_other_codes_without_a_text_do_not_blame_a_handler() -> None:
    canceled = error_of(0x203)
    assert isinstance(canceled, RequestCanceled)
    assert re.fullmatch(r"CANCELED \(0x203\): no reason was given", str(canceled))


# -- the forms of connect and serve ----------------------------------------------------------------
async def test_what_connects_or_serves_is_awaited_or_entered() -> None:
    routes = {"prices": prices}
    async with serve(URI, routes) as server:
        async with connect(server.uri, codec=JSON) as client:
            assert await client.request_response(route="prices") == 1
        assert client.is_closed
        async with await connect(server.uri, codec=JSON) as client:
            assert await client.request_response(route="prices") == 1
        async with connect_balanced([server.uri], codec=JSON) as balanced:
            assert await balanced.request_response(route="prices") == 1
    with pytest.raises(ConnectionLost):
        await connect(server.uri)


async def test_an_opening_is_a_coroutine() -> None:
    async with serve(URI, {"prices": prices}) as server:
        task = asyncio.create_task(connect(server.uri, codec=JSON))
        assert "connect" in repr(task)
        async with await asyncio.wait_for(task, 10) as client:
            assert await client.request_response(route="prices") == 1


async def test_a_resource_may_be_a_connection() -> None:
    async with serve(URI, {"letters": just("a", "b")}) as server:
        letters = using(
            lambda: connect(server.uri, codec=TEXT),
            lambda client: client.request_stream(route="letters"),
        )
        assert await letters.to_list() == ["a", "b"]


async def test_an_opening_that_fails_leaves_the_block_out() -> None:
    with pytest.raises(ConnectionLost):
        async with connect("tcp://127.0.0.1:1"):
            pytest.fail("it is not connected")


def test_a_connection_that_is_not_awaited_warns_by_name() -> None:
    with pytest.warns(RuntimeWarning, match="coroutine 'connect' was never awaited"):
        connect(URI)


# -- after the server has closed -------------------------------------------------------------------
async def test_a_client_that_does_not_reconnect_says_how_it_would() -> None:
    message = r"closed by the server: the server is closing; connect\(…, retry=…\) reconnects"
    async with serve(URI, {"prices": prices}) as server:
        client = await connect(server.uri, codec=JSON)
    await client.closed()
    with pytest.raises(ConnectionLost, match=message):
        await client.request_response(route="prices")
    with pytest.raises(ConnectionLost, match=message):
        await client.request_stream(route="prices").run()
    await client.aclose()


async def test_a_client_that_has_closed_or_retries_does_not_say_how_to_reconnect() -> None:
    async with serve(URI, {"prices": prices}) as server:
        closed = await connect(server.uri)
        await closed.aclose()
        retrying = await connect(server.uri, retry=RetryPolicy(attempts=1))
        balanced = await connect_balanced([server.uri], retry=1)
    for client in (closed, retrying, balanced):
        with pytest.raises(ConnectionLost) as caught:
            await client.request_response(route="prices")
        assert "retry=" not in str(caught.value)
        await client.aclose()


async def test_each_request_after_the_end_has_an_error_of_its_own() -> None:
    async with serve(URI, {"prices": prices}) as server:
        client = await connect(server.uri, codec=JSON)
    await client.closed()
    lengths: list[int] = []
    for _ in range(3):
        with pytest.raises(ConnectionLost):
            await client.request_stream(route="prices").run()
        for request in (client.request_response(route="prices"), client.ready()):
            with pytest.raises(ConnectionLost) as caught:
                await request
            assert not hasattr(caught.value, "__notes__")
            lengths.append(len(caught.traceback))
    assert lengths[:2] == lengths[-2:]
    await client.aclose()
