"""Other libraries take a flow for what it is: an asynchronous iterable, and nothing else."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Any, cast

import aiohttp
import graphql as untyped_graphql
import httpx
import pytest
from aiohttp import web
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import reactive_aio as rx
from reactive_aio import Flow


async def upper(part: bytes) -> bytes:
    return part.upper()


async def parts() -> AsyncIterator[bytes]:
    yield b"a"
    yield b"b"


FLOWS: dict[str, Callable[[], Flow[bytes]]] = {
    "synchronous": lambda: rx.just(b"a", b"b"),
    "asynchronous": lambda: rx.from_aiter(parts),
    "boundary": lambda: rx.just(b"a", b"b").boundary(1),
    "deferred": lambda: rx.defer(lambda: rx.just(b"a", b"b")),
    "shared": lambda: rx.just(b"a", b"b").share(),
}
every_flow = pytest.mark.parametrize("make", FLOWS.values(), ids=FLOWS)


async def echo(request: Request) -> Response:
    return Response(await request.body())


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@every_flow
async def test_a_flow_is_an_asynchronous_iterable_and_nothing_else(
    make: Callable[[], Flow[bytes]],
) -> None:
    flow: object = make()
    assert isinstance(flow, AsyncIterable)
    assert not isinstance(flow, Iterable)
    assert not isinstance(flow, Awaitable)
    assert not isawaitable(flow)


async def test_python_says_itself_that_a_flow_is_not_iterated_synchronously_or_awaited() -> None:
    flow: Any = rx.just(1)
    with pytest.raises(TypeError, match="'Flow' object is not iterable"):
        list(flow)
    with pytest.raises(TypeError, match=r"Flow.* 'await' expression"):
        await flow


@every_flow
async def test_httpx_sends_a_flow_as_the_body_of_a_request(
    make: Callable[[], Flow[bytes]],
) -> None:
    async with client(Starlette(routes=[Route("/", echo, methods=["POST"])])) as http:
        assert (await http.post("/", content=make())).content == b"ab"


@every_flow
@pytest.mark.parametrize("framework", ["starlette", "fastapi"])
async def test_a_streaming_response_sends_a_flow(
    framework: str, make: Callable[[], Flow[bytes]]
) -> None:
    async def answer(request: Request) -> Response:
        return StreamingResponse(make())

    app: Starlette
    if framework == "starlette":
        app = Starlette(routes=[Route("/", answer)])
    else:
        app = FastAPI()
        app.add_route("/", answer)
    async with client(app) as http:
        assert (await http.get("/")).content == b"ab"


@every_flow
async def test_aiohttp_sends_a_flow_as_the_body_of_a_request_and_of_a_response(
    make: Callable[[], Flow[bytes]],
) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert await request.read() == b"ab"
        return web.Response(body=make().map_async(upper))

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"http://{host}:{port}/", data=make()) as response,
        ):
            assert await response.read() == b"AB"
    finally:
        await runner.cleanup()


graphql: Any = untyped_graphql  # its types are incomplete


def ticker(make: Callable[..., Any]) -> Any:
    """What graphql-core answers to a subscription whose field is resolved by *make*."""
    schema = graphql.build_schema("type Query { n: Int } type Subscription { n: Int }")
    schema.subscription_type.fields["n"].subscribe = make
    return graphql.subscribe(schema, graphql.parse("subscription { n }"))


@pytest.mark.parametrize("is_function_async", [False, True], ids=["def", "async def"])
@every_flow
async def test_graphql_core_subscribes_to_a_flow(
    make: Callable[[], Flow[bytes]], is_function_async: bool
) -> None:
    def resolve(*_: object) -> Flow[dict[str, int]]:
        return make().map(lambda part: {"n": part[0]})

    async def resolve_later(*_: object) -> Flow[dict[str, int]]:
        return resolve()

    found = ticker(resolve_later if is_function_async else resolve)
    answers = await found if isawaitable(found) else found
    assert [answer.data async for answer in answers] == [{"n": 97}, {"n": 98}]


async def test_a_subscription_of_graphql_core_that_is_closed_cancels_the_flow() -> None:
    ended: list[str] = []
    counted = rx.range(5).boundary(1).map(lambda n: {"n": n})
    answers = ticker(lambda *_: counted.do_finally(ended.append))
    assert (await anext(answers)).data == {"n": 0}
    await answers.aclose()
    assert ended == ["cancelled"]


async def test_a_client_of_starlette_that_leaves_cancels_the_flow() -> None:
    ended = asyncio.Event()
    flow = rx.from_iterable([b"a"]).concat_with(cast("Flow[bytes]", rx.never()))
    response = StreamingResponse(flow.do_finally(lambda _: ended.set()))
    left = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("body"):
            left.set()

    await response({"type": "http"}, receive, send)
    await asyncio.wait_for(ended.wait(), 10)
