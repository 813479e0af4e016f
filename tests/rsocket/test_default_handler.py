"""Requests that no route matches: without a route, with an unknown one, with opaque metadata."""

from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.errors import EmptyFlow
from reactive_aio.rsocket import (
    JSON,
    TEXT,
    ClientOptions,
    Codec,
    Request,
    RequestInvalid,
    Router,
    StreamFailed,
    loopback,
)


def described(request: Request) -> list[str]:
    return [request.route, *(f"{mime} {content!r}" for mime, content in request.metadata)]


def of_symbol(symbol: str) -> str:
    return symbol


def with_default() -> Router:
    router = Router()
    router.route("known")(lambda: "known")
    router.default(described)
    return router


async def test_it_serves_requests_without_a_route() -> None:
    async with loopback(with_default(), codec=JSON) as requester:
        assert await requester.request_response() == [""]
        assert await requester.request_response(route="known") == "known"


async def test_it_serves_requests_for_an_unknown_route() -> None:
    async with loopback(with_default(), codec=JSON) as requester:
        found = await requester.request_response(route="other")
        assert found == ["other", r"message/x.rsocket.routing.v0 b'\x05other'"]


@pytest.mark.parametrize("mime", ["application/x.header", "application/json"])
async def test_it_serves_requests_with_opaque_metadata(mime: str) -> None:
    client = ClientOptions(metadata_mime=mime)
    async with loopback(with_default(), codec=JSON, client=client) as requester:
        found = await requester.request_response(metadata=[(mime, b"\0\xff")])
        assert found == ["", rf"{mime} b'\x00\xff'"]


async def test_it_serves_every_interaction_model() -> None:
    router = Router()
    logged: list[Any] = []

    @router.default
    def total(request: Request, incoming: Flow[int]) -> Flow[int]:
        logged.append(request.model.name)
        return incoming.map(lambda n: n * 2)

    async with loopback(router, codec=JSON) as requester:
        assert await requester.request_channel([1, 2]).to_list(limit=9) == [2, 4]
        assert await requester.request_stream(3).to_list(limit=9) == [6]
        assert await requester.request_response(4) == 8
        await requester.fire_and_forget(5)
    assert logged == ["CHANNEL", "STREAM", "RESPONSE", "FNF"]


def test_a_router_has_one_default_handler() -> None:
    router = with_default()
    assert router.routes == 2
    with pytest.raises(ValueError, match="default: there is a function for it already"):
        router.default(described)
    with pytest.raises(ValueError, match="default handler: unknown symbol"):
        Router().default(of_symbol)
    with pytest.raises(ValueError, match=r"1 to 255 bytes long; Router\.default serves requests"):
        Router().route("")


# -- without a default handler ---------------------------------------------------------------------
async def test_an_unknown_route_is_named() -> None:
    async with loopback(Router(), codec=JSON) as requester:
        with pytest.raises(RequestInvalid, match="there is no such route: 'pricse'"):
            await requester.request_response(route="pricse")


async def test_a_missing_route_is_reported_as_missing() -> None:
    async with loopback(Router(), codec=JSON) as requester:
        for request in (requester.request_response(), requester.request_stream().first()):
            with pytest.raises(RequestInvalid, match=r"no route was given.*Router\.default"):
                await request


# -- results and types -----------------------------------------------------------------------------
async def test_a_handler_that_returns_none_is_named_as_the_cause() -> None:
    router = Router()
    router.route("log")(lambda: None)
    async with loopback(router, codec=JSON) as requester:
        with pytest.raises(EmptyFlow, match=r"a handler returns None.*fire_and_forget"):
            await requester.request_response(route="log")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"a/b": b"c"}, r"not a dict: write \[\*metadata\.items\(\)\]"),
        ("a/b", "not str"),
        (7, "not int"),
        ([b"c"], "one of its items is not: a bytes"),
        ([("a/b",)], "one of its items is not: a tuple"),
        ([(b"a/b", b"c")], "one of its items is not: a tuple"),
        ([("a/b", "c")], r"metadata of type a/b must be bytes, not str: write value\.encode\(\)"),
        ([("a/b", None)], "must be bytes, not NoneType"),
    ],
)
async def test_wrong_metadata_is_explained(metadata: Any, message: str) -> None:
    async with loopback(with_default()) as requester:
        with pytest.raises(TypeError, match=message):
            await requester.request_response(metadata=metadata)
        with pytest.raises(TypeError, match=message):
            requester.request_stream(metadata=metadata)


def decodes(mime: str) -> Codec[Any]:
    return Codec(mime, lambda value: str(value).encode(), bytes.decode)


def typed_routes() -> Router:
    router = Router()

    @router.route("int")
    def number(payload: int) -> int:
        return payload

    router.route("dict")(lambda: {"a": 1})

    @router.route("bytes")
    def same(payload: Any) -> Any:
        return payload

    return router


@pytest.mark.parametrize(
    ("codec", "route", "message"),
    [
        (TEXT, "int", "the data is str, not int; it was sent as text/plain"),
        (decodes("application/jsom"), "int", "the data is bytes, not int; it was sent as applicat"),
        (
            decodes("application/jsom"),
            "dict",
            "'dict' cannot be sent as application/jsom, which is not known here: connect with .*"
            "application/json",
        ),
    ],
)
async def test_the_wrong_type_of_data_is_named(codec: Codec[Any], route: str, message: str) -> None:
    async with loopback(typed_routes(), codec=codec, on_error=lambda _: None) as requester:
        with pytest.raises(StreamFailed, match=message):
            await requester.request_response("7", route=route)


async def test_bytes_of_an_unknown_type_are_passed_on() -> None:
    async with loopback(typed_routes(), codec=decodes("application/x.own")) as requester:
        assert await requester.request_response("7", route="bytes") == "7"
