"""Functions of the application that fail in unusual ways: each request is answered all the same."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reactive_aio import range as rx_range
from reactive_aio.rsocket import (
    JSON,
    ApplicationError,
    Codec,
    PayloadError,
    Requester,
    RequestInvalid,
    Router,
    loopback,
)

Context = dict[str, Any]
pytestmark = pytest.mark.virtual_time
MODELS = ("response", "stream")


def failing_routes(fail: Callable[[], object]) -> Router:
    """Routes whose handlers call *fail* in each way in which a handler may be called."""
    router = Router()

    @router.route("plain")
    def _() -> object:
        return fail()

    @router.route("plain with its request")
    def _(request: object) -> object:
        return fail()

    @router.route("coroutine")
    async def _() -> object:
        return fail()

    @router.route("coroutine that suspends")
    async def _() -> object:
        await asyncio.sleep(0)
        return fail()

    @router.route("coroutine with its request")
    async def _(request: object) -> object:
        await asyncio.sleep(0)
        return fail()

    @router.route("generator")
    async def _() -> AsyncIterator[object]:
        await asyncio.sleep(0)
        yield fail()

    @router.route("flow")
    def _() -> object:
        return rx_range(3).map(lambda _: fail())

    router.route("fine")(lambda: "fine")
    return router


ROUTES = tuple(each for each in failing_routes(int)._exact if each != "fine")


async def request(requester: Requester[Any], model: str, route: str) -> Any:
    async with asyncio.timeout(10):
        if model == "response":
            return await requester.request_response(route=route)
        return await requester.request_stream(route=route).to_list(limit=9)


def divide() -> object:
    return 1 // 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("route", ROUTES)
async def test_a_request_is_answered_if_on_error_raises(
    expects_loop_errors: list[Context], route: str, model: str
) -> None:
    def on_error(error: BaseException) -> None:
        raise OSError("the log is full")

    async with loopback(failing_routes(divide), codec=JSON, on_error=on_error) as requester:
        with pytest.raises(ApplicationError):
            await request(requester, model, route)
        assert await requester.request_response(route="fine") == "fine"
    kinds: set[type] = {type(each["exception"]) for each in expects_loop_errors}
    assert kinds == {OSError, ZeroDivisionError}, "neither error is lost"


class Unprintable(Exception):
    """An error whose message cannot be made."""

    def __str__(self) -> str:
        raise IndexError(0)


def raising(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unprintable(), b"Unprintable, whose message raises IndexError"),
        (ValueError("half of a pair: \ud83d"), rb"half of a pair: \ud83d"),
    ],
)
async def test_a_message_that_cannot_be_written_is_exposed_all_the_same(
    route: str, model: str, error: Exception, text: bytes
) -> None:
    router = failing_routes(raising(error))
    async with loopback(router, codec=JSON, expose_errors=True, on_error=type) as requester:
        with pytest.raises(ApplicationError) as raised:
            await request(requester, model, route)
        assert raised.value.data == text
        assert await requester.request_response(route="fine") == "fine"


async def test_a_payload_error_with_half_of_a_surrogate_pair_reaches_the_peer() -> None:
    def decode(data: bytes) -> object:
        raise PayloadError("not a name: \ud83d")

    router = Router()

    @router.route("name")
    def _(payload: object) -> object:
        return payload

    codec: Codec[Any] = Codec("text/x-name", bytes, decode)
    async with loopback(router, codec=codec, codecs={codec.mime: codec}) as requester:
        with pytest.raises(RequestInvalid, match=r"not a name: \\ud83d"):
            await requester.request_response(b"x", route="name")
