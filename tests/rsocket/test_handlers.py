"""Handlers: arguments, typed payloads, codecs of a request, errors."""

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    BYTES,
    JSON,
    MSGPACK,
    TEXT,
    ApplicationError,
    ClientOptions,
    Codec,
    MetadataItem,
    Payload,
    Request,
    Requester,
    RequestInvalid,
    Router,
    loopback,
    typed,
)
from reactive_aio.rsocket.protocol.events import Elements
from reactive_aio.rsocket.protocol.metadata import (
    ACCEPT_MIME_TYPES,
    MIME_TYPE,
    ROUTING,
    read_composite,
    write_composite,
    write_mime_types,
    write_routing,
)

from .loop_turns import turns


class Order(msgspec.Struct):
    symbol: str
    count: int


class Bill(pydantic.BaseModel):
    symbol: str
    total: float


@dataclass
class Point:
    x: int
    y: int


class Side(Enum):
    BUY = "buy"
    SELL = "sell"


# -- parameters of a route -------------------------------------------------------------------------
async def test_route_parameters_are_converted_to_their_annotations() -> None:
    routes = Router()
    got: list[Any] = []

    @routes.route("all.{n}.{x}/{yes}.{side}.{key}.{name}.{cost}")
    def every(n: int, x: float, yes: bool, side: Side, key: UUID, name: str, cost: Decimal) -> int:
        got.extend((n, x, yes, side, key, name, cost))
        return 1

    async with loopback(routes, codec=JSON) as requester:
        route = "all.-3.1e3/true.sell.12345678123456781234567812345678.5.7"
        assert await requester.request_response(route=route) == 1
        key = UUID("12345678123456781234567812345678")
        assert got == [-3, 1000.0, True, Side.SELL, key, "5", Decimal(7)]
        for wrong in ("x", "1_0", " 1", "٣", "1.5"):
            with pytest.raises(RequestInvalid):
                await requester.request_response(route=f"all.{wrong}.1/true.buy.{key.hex}.a.1")
        with pytest.raises(RequestInvalid, match="side cannot be 'keep'"):
            await requester.request_response(route=f"all.1.1/true.keep.{key.hex}.a.1")


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Decimal, ["NaN", "sNaN", "-Infinity", "1e999999", "1e1000", " 1 ", "1_0", "٣"]),
        (float, ["nan", "inf", "1e999", "-1e999", " 1 ", "1_0", "٣"]),
        (int, ["1e3", " 1 ", "1_0", "٣", "+1"]),
        (UUID, ["{" + "1" * 32 + "}", "1" * 31, "1" * 31 + "_", "٣" * 32, "urn:uuid:" + "1" * 32]),
    ],
)
async def test_a_number_of_a_route_is_plain_and_finite(kind: Any, wrong: list[str]) -> None:
    """``int`` of a Decimal such as 1e999999 would stop the loop."""

    def served(value: Any) -> int:
        raise AssertionError(value)

    served.__annotations__["value"] = kind
    routes = Router()
    routes.route("n/{value}")(served)
    async with loopback(routes, codec=JSON) as requester:
        for text in wrong:
            with pytest.raises(RequestInvalid, match="the route's value cannot be"):
                await requester.request_response(route=f"n/{text}")


def test_unsupported_annotations_are_refused_at_registration() -> None:
    def listed(n: list[int]) -> None: ...
    def unknown(n: int) -> None: ...

    unknown.__annotations__["n"] = "Nowhere"  # as if imported for type checkers alone

    with pytest.raises(TypeError, match=r"route 'a.\{n\}': n cannot be of type .*Decimal"):
        Router().route("a.{n}")(listed)
    with pytest.raises(TypeError, match="the type Nowhere of n is not known"):
        Router().route("a.{n}")(unknown)

    def unread(payload: int) -> None: ...

    unread.__annotations__["payload"] = "Nowhere"
    with pytest.raises(TypeError, match="the type Nowhere of payload is not known"):
        Router().route("b")(unread)


# -- typed payloads --------------------------------------------------------------------------------
typing = Router()


@typing.route("order")
def order(payload: Order) -> Bill:
    return Bill(symbol=payload.symbol, total=payload.count * 2.5)


@typing.route("bill")
async def bill(payload: Bill) -> Order:
    return Order(payload.symbol, int(payload.total))


@typing.route("orders")
def orders(incoming: Flow[Order]) -> Flow[int]:
    return incoming.map(lambda each: each.count)


@typing.route("many")
def many(payload: list[Order]) -> Flow[Order]:
    return from_iterable(payload)


@typing.route("point")
def point(payload: Point) -> Point:
    return Point(payload.y, payload.x)


@typing.route("number")
def number(payload: int = 7) -> int:
    return payload


async def test_a_payload_is_decoded_into_its_annotated_class() -> None:
    async with loopback(typing, codec=JSON) as requester:
        ask = requester.request_response
        assert await ask({"symbol": "A", "count": 2}, route="order") == {"symbol": "A", "total": 5}
        assert await ask(Order("A", 2), route="order", codec=typed(Bill)) == Bill(
            symbol="A", total=5
        )
        assert await ask(Bill(symbol="A", total=5), route="bill", codec=typed(Order)) == Order(
            "A", 5
        )
        assert await ask(Point(1, 2), route="point", codec=typed(Point)) == Point(2, 1)
        assert await ask(route="number") == 7
        assert await ask(3, route="number") == 3
        listed = [Order("A", 1), Order("B", 2)]
        flow = requester.request_stream(listed, route="many", codec=typed(Order))
        assert await flow.to_list(limit=3) == listed
        counts = requester.request_channel(listed, route="orders")
        assert await counts.to_list(limit=3) == [1, 2]


@pytest.mark.parametrize(
    ("route", "payload", "says"),
    [
        ("order", {"symbol": "A"}, "not a valid Order: .*count"),
        ("order", None, "not a valid Order"),
        ("bill", {"symbol": "A", "total": "x"}, "not a valid Bill: total: "),
        ("point", {"x": 1}, "not a valid Point: .*y"),
        ("many", [1], "not a valid list"),
        ("number", "x", "str, not int"),
        ("number", True, "bool, not int"),
    ],
)
async def test_a_payload_that_does_not_fit_its_class_is_an_invalid_request(
    route: str, payload: Any, says: str
) -> None:
    async with loopback(typing, codec=JSON) as requester:
        with pytest.raises(RequestInvalid, match=says):
            await requester.request_response(payload, route=route)
        if route == "order" and payload:
            with pytest.raises(RequestInvalid, match="not a valid Order"):
                await requester.request_channel([payload], route="orders").to_list(limit=1)


async def test_a_payload_of_the_wrong_scalar_type_is_an_invalid_request() -> None:
    raw = Codec("application/json", bytes, bytes)
    async with loopback(typing, codec=raw) as requester:
        with pytest.raises(RequestInvalid, match="JSON"):
            await requester.request_response(b"{", route="number")
        with pytest.raises(RequestInvalid, match="not a valid Order"):
            await requester.request_response(b"{", route="order")
    async with loopback(typing) as requester:
        with pytest.raises(RequestInvalid, match="must be application/json or application/msgpack"):
            await requester.request_response(b"{}", route="order")


async def test_the_error_of_a_custom_codec_is_not_sent_to_the_peer() -> None:
    def fail(data: bytes) -> Any:
        raise ValueError("the key is swordfish")

    strange = Codec("application/strange", bytes, fail)
    codecs = {strange.mime: strange}
    async with loopback(typing, codec=Codec(strange.mime, bytes, bytes), codecs=codecs) as ask:
        with pytest.raises(RequestInvalid, match=r"the data cannot be read$"):
            await ask.request_response(b"x", route="number")


async def test_message_pack_is_decoded_into_classes() -> None:
    async with loopback(typing, codec=MSGPACK) as requester:
        answer = await requester.request_response(
            Order("A", 2), route="order", codec=typed(Bill, MSGPACK)
        )
        assert answer == Bill(symbol="A", total=5)
        assert await requester.request_response(route="number") == 7


# -- codecs of one request -------------------------------------------------------------------------
either = Router()


@either.route("echo")
def echo(payload: Any) -> Any:
    return payload


async def test_a_request_may_use_another_codec() -> None:
    async with loopback(either) as requester:
        assert await requester.request_response(b"x", route="echo") == b"x"
        assert await requester.request_response({"a": 1}, route="echo", codec=JSON) == {"a": 1}
        assert await requester.request_response("ä", route="echo", codec=TEXT) == "ä"
        assert await requester.request_stream([1], route="echo", codec=JSON).first() == [1]


def types(mime: str | None, *accept: str) -> list[MetadataItem]:
    items = [] if mime is None else [MetadataItem(MIME_TYPE, write_mime_types(mime))]
    return [*items, MetadataItem(ACCEPT_MIME_TYPES, write_mime_types(*accept))] if accept else items


async def test_the_response_has_the_first_acceptable_type_that_is_supported() -> None:
    async with loopback(either) as requester:
        metadata = types("application/json", "image/png", "text/plain", "application/json")
        answer = await requester.request_response(b'"x"', route="echo", metadata=metadata)
        assert answer == b"x"
        metadata = types(None, "image/png")
        with pytest.raises(RequestInvalid, match="none of the acceptable types"):
            await requester.request_response(b"x", route="echo", metadata=metadata)
        with pytest.raises(RequestInvalid, match="image/png cannot be read"):
            await requester.request_response(b"x", route="echo", metadata=types("image/png"))


async def test_the_response_names_its_type_if_several_are_acceptable() -> None:
    async with loopback(either) as requester:
        came: list[Payload] = []

        class Seen:
            def elements(self, event: Elements) -> None:
                came.extend(event.payloads)

            def answered(self, data: bytes) -> None: ...
            def completed(self) -> None: ...
            def failed(self, error: Exception) -> None: ...

        driver = requester._driver
        metadata = types("text/plain", "application/json", "text/plain")
        metadata.append(MetadataItem(ROUTING, write_routing("echo")))
        asked = Payload(b"x", write_composite(metadata))
        receivers: Any = driver.streams.receivers
        receivers[driver.connection.request_stream(asked, 2)] = Seen()
        driver.schedule_turn()
        await turns()
        told = read_composite(came[0].metadata or b"")
        assert told == [MetadataItem(MIME_TYPE, write_mime_types("application/json"))]
        assert came[0].data == b'"x"'


# -- errors ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", [0x201, 0x301, 0xFFFFFFFE])
async def test_an_application_error_arrives_unchanged(code: int) -> None:
    routes = Router()

    @routes.route("fails")
    def fails() -> None:
        raise ApplicationError(code, "no seats")

    def halve(n: int) -> int:
        if not n:
            fails()
        return n // 2

    @routes.route("fails later")
    def later() -> Flow[int]:
        return from_iterable([1, 0]).map(halve)

    async with loopback(routes, codec=JSON) as requester:
        for route in ("fails", "fails later"):
            with pytest.raises(ApplicationError, match="no seats") as raised:
                await requester.request_stream(route=route).to_list(limit=3)
            assert (raised.value.code, raised.value.data) == (code, b"no seats")


@pytest.mark.parametrize("code", [0, 0x101, 0x202, 0x300, 0xFFFFFFFF])
def test_an_application_error_may_not_use_codes_of_the_protocol(code: int) -> None:
    with pytest.raises(ValueError, match="0x301"):
        ApplicationError(code)


async def test_the_server_may_send_requests_to_a_new_client() -> None:
    got: asyncio.Queue[Any] = asyncio.Queue()
    answers = Router()
    answers.route("name")(lambda: "ann")

    async def hello(peer: Requester[Any]) -> None:
        await got.put(await peer.request_response(route="name"))

    async with loopback(either, client=ClientOptions(router=answers), on_connect=hello, codec=JSON):
        assert await got.get() == "ann"


async def test_bytes_are_delivered_unchanged() -> None:
    routes = Router()

    @routes.route("raw")
    def raw(request: Request) -> bytes:
        assert request.deadline is None
        assert request.remaining is None
        assert repr(request) == "<Request RESPONSE 'raw' 2 bytes>"
        return request.data + bytes(request.payload)

    async with loopback(routes, codec=BYTES) as requester:
        assert await requester.request_response(b"ab", route="raw") == b"abab"
