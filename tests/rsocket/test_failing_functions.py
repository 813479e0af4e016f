"""Functions of the application that fail in unusual ways: each request is answered all the same."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reactive_aio import range as rx_range
from reactive_aio.rsocket import (
    JSON,
    ApplicationError,
    Requester,
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
