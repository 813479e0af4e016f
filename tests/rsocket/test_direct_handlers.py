"""Direct handlers answer as executions do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    JSON,
    ApplicationError,
    Payload,
    RequestInvalid,
    Router,
    StreamFailed,
    connect,
    loopback,
    serve,
)
from reactive_aio.testing.probes import SubscriberProbe

routes = Router()


@routes.route("twice")
def twice(payload: int) -> int:
    return payload * 2


@routes.route("optional")
def optional(payload: int = 7) -> int:
    return payload


@routes.route("nothing")
def nothing() -> None:
    """Answers with no element."""


@routes.route("named.{name}.{count}")
def named(name: str, count: int) -> str:
    return name * count


@routes.route("later")
async def later(payload: Any) -> Any:
    await asyncio.sleep(0)
    return payload


@routes.route("flow")
def flow() -> Flow[int]:
    return from_iterable([1, 2, 3])


@routes.route("raises")
def raises() -> None:
    raise ApplicationError(0x301, "no")


@routes.route("unwritable")
def unwritable() -> object:
    return {1: object()}


@routes.route("with metadata")
def with_metadata() -> Payload:
    return Payload(b"5", b"m")


@pytest.mark.parametrize(
    ("route", "payload", "answer"),
    [
        ("twice", 21, 42),
        ("optional", None, 7),
        ("optional", 8, 8),
        ("named.ab.2", None, "abab"),
        ("later", [1], [1]),
        ("flow", None, 1),
        ("with metadata", None, 5),
    ],
)
async def test_direct_and_general_execution_give_the_same_response(
    route: str, payload: Any, answer: Any
) -> None:
    async with loopback(routes, codec=JSON) as requester:
        for _ in range(3):
            assert await requester.request_response(payload, route=route) == answer
        assert await requester.request_response(payload, route=route, timeout=60) == answer


@pytest.mark.parametrize(
    ("route", "payload", "error"),
    [
        ("raises", None, ApplicationError),
        ("unwritable", None, StreamFailed),
        ("twice", "not a number", RequestInvalid),
        ("named.ab.x", None, RequestInvalid),
        ("unknown", None, RequestInvalid),
    ],
)
async def test_an_error_of_direct_execution_fails_the_request(
    route: str, payload: Any, error: type[Exception]
) -> None:
    async with loopback(routes, codec=JSON, on_error=lambda _: None) as requester:
        for _ in range(2):
            with pytest.raises(error):
                await requester.request_response(payload, route=route)


async def test_a_more_specific_route_added_later_is_used() -> None:
    growing = Router()

    @growing.route("{name}")
    def any_other(name: str) -> str:
        return f"any {name}"

    async with loopback(growing, codec=JSON) as requester:
        assert await requester.request_response(route="new") == "any new"
        growing.route("new")(lambda: "the new one")
        assert await requester.request_response(route="new") == "the new one"


async def test_more_routes_than_the_cache_holds_are_served() -> None:
    async with loopback(routes, codec=JSON) as requester:
        for number in [*range(600), *range(600)]:
            assert await requester.request_response(route=f"named.{number}.1") == str(number)


async def test_every_request_is_authorized() -> None:
    asked: list[str] = []

    def authorize(request: Any) -> bool:
        asked.append(request.route)
        return len(asked) < 3

    async with loopback(routes, codec=JSON, authorize=authorize) as requester:
        for _ in range(2):
            assert await requester.request_response(1, route="twice") == 2
        with pytest.raises(StreamFailed):
            await requester.request_response(1, route="twice")
    assert asked == ["twice"] * 3


# -- elements that are sent together ---------------------------------------------------------------
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_elements_before_one_that_cannot_be_encoded_are_sent(asynchronous: bool) -> None:
    closed = asyncio.Event()
    elements: list[Any] = [1, 2, object(), 4]

    async def one_by_one() -> AsyncIterator[Any]:
        try:
            for element in elements:
                yield element
        finally:
            closed.set()

    mixed = Router()
    mixed.route("mixed")(lambda: one_by_one() if asynchronous else from_iterable(elements))
    async with loopback(mixed, codec=JSON, on_error=lambda _: None) as requester:
        probe: SubscriberProbe[Any] = SubscriberProbe(request=10)
        requester.request_stream(route="mixed").subscribe(probe)
        await probe.end()
        assert probe.elements == [1, 2]
        assert isinstance(probe.error, StreamFailed)
        if asynchronous:
            await closed.wait()


async def test_elements_with_and_without_metadata_keep_their_order() -> None:
    mixed = Router()
    elements = [1, Payload(b"2", b"m"), 3]
    mixed.route("mixed")(lambda: from_iterable(elements))
    async with loopback(mixed, codec=JSON) as requester:
        assert await requester.request_stream(route="mixed").to_list() == [1, 2, 3]


# -- requests that leave at once -------------------------------------------------------------------
async def test_a_single_request_is_sent_at_once_and_many_are_sent_together() -> None:
    async with (
        await serve("tcp://127.0.0.1:0", routes) as server,
        await connect(server.uri, codec=JSON) as requester,
    ):
        assert await requester.request_response(1, route="twice") == 2
        transport: Any = requester._driver.line.transport
        written: list[bytes] = []

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(transport, name)

            def write(self, data: bytes) -> None:
                written.append(data)
                transport.write(data)

        watched: Any = Watched()
        requester._driver.line.transport = watched
        alone = asyncio.ensure_future(requester.request_response(1, route="twice"))
        await asyncio.sleep(0)
        assert len(written) == 1
        assert await alone == 2
        written.clear()
        asked = [requester.request_response(n, route="later") for n in range(50)]
        assert await asyncio.gather(*asked) == list(range(50))
        assert len(written) < 10

        async def again_and_again() -> None:
            for n in range(20):
                assert await requester.request_response(n, route="twice") == 2 * n

        written.clear()
        await asyncio.gather(*[again_and_again() for _ in range(30)])
        assert len(written) < 2 * 20, "those who are answered together ask together"


async def test_a_driver_has_no_more_attributes_than_are_looked_up_fast() -> None:
    async with loopback(routes, codec=JSON) as requester:
        assert await requester.request_response(1, route="twice") == 2
        assert len(vars(requester._driver)) <= 28
