"""Functions of the application that fail in unusual ways: each request is answered all the same."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reactive_aio import Flow, range as rx_range
from reactive_aio.errors import TimedOut
from reactive_aio.rsocket import (
    JSON,
    ApplicationError,
    ClientOptions,
    Codec,
    ConnectionLost,
    PayloadError,
    Requester,
    RequestInvalid,
    Router,
    SetupRejected,
    StreamFailed,
    loopback,
)
from reactive_aio.rsocket.protocol.errors import error_of

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


class Panic(BaseException):
    """As extensions in Rust raise it."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "error",
    [
        Panic(),
        BaseExceptionGroup("panics", [Panic()]),
        GeneratorExit(),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_base_exception_is_answered(route: str, model: str, error: BaseException) -> None:
    reported: list[BaseException] = []
    router = failing_routes(raising(error))
    async with loopback(router, codec=JSON, on_error=reported.append) as requester:
        for _ in range(2):  # a coroutine that has suspended gets a task of its own
            with pytest.raises(StreamFailed):
                await request(requester, model, route)
        assert await requester.request_response(route="fine") == "fine"
    if not isinstance(error, asyncio.CancelledError):
        assert len(reported) == 2


@pytest.mark.parametrize("route", ROUTES)
async def test_a_base_exception_of_a_request_without_a_response_is_reported(route: str) -> None:
    reported: list[BaseException] = []
    router = failing_routes(raising(Panic()))
    async with loopback(router, codec=JSON, on_error=reported.append) as requester:
        await requester.fire_and_forget(route=route)
        assert await requester.request_response(route="fine") == "fine"
        await asyncio.sleep(1)
    assert [type(each) for each in reported] == [Panic]


async def test_a_base_exception_of_authenticate_refuses_the_client() -> None:
    reported: list[BaseException] = []

    def authenticate(_: object) -> object:
        raise Panic

    options: dict[str, Any] = {"authenticate": authenticate, "on_error": reported.append}
    with pytest.raises(SetupRejected):
        async with loopback(Router(), **options) as requester:
            await request(requester, "response", "fine")
    assert [type(each) for each in reported] == [Panic]


async def test_a_base_exception_of_on_connect_is_reported() -> None:
    reported: list[BaseException] = []

    def now(_: object) -> None:
        raise Panic

    async def later(_: object) -> None:
        raise Panic

    router = failing_routes(int)
    for on_connect in (now, later):
        options: dict[str, Any] = {"on_connect": on_connect, "on_error": reported.append}
        async with loopback(router, codec=JSON, **options) as requester:
            assert await request(requester, "response", "fine") == "fine"
    assert [type(each) for each in reported] == [Panic, Panic]


@pytest.mark.parametrize(
    "error", [ValueError("no"), Panic()], ids=lambda error: type(error).__name__
)
async def test_leases_that_cannot_be_made_are_reported(
    expects_loop_errors: list[Context], error: BaseException
) -> None:
    def leases(user: object) -> Any:
        raise error

    client = ClientOptions(lease=True)
    async with loopback(failing_routes(int), client=client, leases=leases) as requester:
        with pytest.raises(TimedOut):
            await requester.request_response(route="fine", timeout=1)
        assert not requester.is_closed
    assert [each["exception"] for each in expects_loop_errors] == [error]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_handler_can_stop_the_program(stop: type[BaseException], route: str) -> None:
    async def program() -> None:
        router = failing_routes(raising(stop()))
        async with loopback(router, codec=JSON, on_error=type) as requester:
            await requester.request_stream(route=route).to_list(limit=9)

    with pytest.raises(stop):
        asyncio.run(program())


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


@pytest.mark.parametrize("failing", ["encode", "decode"])
@pytest.mark.parametrize("at_client", [False, True])
async def test_a_base_exception_of_a_codec_ends_its_stream_alone(
    failing: str, at_client: bool
) -> None:
    def fail(value: Any) -> Any:
        if value in (b"bad", "bad"):
            raise Panic
        return value if isinstance(value, bytes) else value.encode()

    router = Router()

    @router.route("echo")
    def _(incoming: Flow[Any]) -> Flow[Any]:
        return incoming

    mine: Codec[Any] = Codec("text/x-mine", bytes, bytes)
    is_encode = failing == "encode"
    other: Codec[Any] = Codec(mine.mime, fail if is_encode else bytes, bytes if is_encode else fail)
    codecs = {mine.mime: mine if at_client else other}
    codec = other if at_client else mine
    async with loopback(router, codec=codec, codecs=codecs, on_error=type) as requester:
        for elements in ([b"bad"], [b"good", b"bad"]):
            async with asyncio.timeout(10):
                with pytest.raises((Panic, RuntimeError, StreamFailed)):
                    await requester.request_channel(elements, route="echo").to_list(limit=9)
        echo = requester.request_channel([b"good"], route="echo")
        assert await echo.to_list(limit=9) == [b"good"]


@pytest.mark.parametrize("name", ["on_error", "on_drop"])
async def test_a_callback_is_a_plain_function(name: str) -> None:
    async def callback(_: object) -> None: ...

    options: dict[str, Any] = {name: callback}
    with pytest.raises(TypeError, match=f"RSocket: {name} must be a plain function, and callback"):
        loopback(Router(), **options)
    options = {name: lambda: None}
    with pytest.raises(TypeError, match=f"RSocket: {name} is called with 1 argument"):
        loopback(Router(), **options)


# -- errors of another server ----------------------------------------------------------------------
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("code", [0x101, 0x102, 0x201, 0x202, 0x203, 0x204, 0x301])
async def test_an_error_of_another_server_is_not_passed_on(
    route: str, model: str, code: int
) -> None:
    """Its text may name hosts and tables; its code means something to the handler alone."""
    reported: list[BaseException] = []
    error = error_of(code, b"no such table at db-7.internal", origin=object())
    router = failing_routes(raising(error))
    async with loopback(router, codec=JSON, on_error=reported.append) as requester:
        with pytest.raises(ApplicationError) as raised:
            await request(requester, model, route)
        assert raised.value.code == 0x201
        assert "db-7" not in str(raised.value)
        assert reported == [error]


@pytest.mark.parametrize("error", [ConnectionLost(0x101, b"db-7"), ConnectionLost(0x102)])
async def test_a_lost_connection_to_another_server_is_reported(error: ConnectionLost) -> None:
    reported: list[BaseException] = []
    router = failing_routes(raising(error))
    async with loopback(router, codec=JSON, on_error=reported.append) as requester:
        with pytest.raises(ApplicationError):
            await requester.request_response(route="plain")
    assert reported == [error]


@pytest.mark.parametrize("model", MODELS)
async def test_a_handler_that_asks_a_client_which_leaves_has_nothing_to_report(model: str) -> None:
    reported: list[BaseException] = []
    failures: list[BaseException] = []
    peers: list[Requester[Any]] = []
    is_leaving = asyncio.Event()
    router = Router()

    @router.route("ask")
    async def ask() -> None:
        await is_leaving.wait()
        try:
            await request(peers[0], model, "any")
        except ConnectionLost as error:
            failures.append(error)
            raise

    client = loopback(router, codec=JSON, on_connect=peers.append, on_error=reported.append)
    async with client:
        asked = asyncio.create_task(client.request_response(route="ask"))
        await asyncio.sleep(0.1)
        client._driver.ending.announce("the client leaves", 1)
        await asyncio.sleep(0.1)
        is_leaving.set()
        with pytest.raises(ApplicationError):
            await asked
    assert len(failures) == 1
    assert reported == []


async def test_an_error_of_another_server_is_reported_for_a_request_without_response() -> None:
    reported: list[BaseException] = []
    done = asyncio.Event()
    error = error_of(0x204, b"no such table at db-7.internal", origin=object())
    router = Router()

    @router.route("fails")
    async def fails() -> None:
        done.set()
        raise error

    dropped: list[object] = []
    async with loopback(router, on_error=reported.append, on_drop=dropped.append) as requester:
        await requester.fire_and_forget(route="fails")
        await done.wait()
    assert reported == [error]
    assert dropped == []


async def test_a_gateway_may_pass_an_error_on() -> None:
    router = Router()
    error = error_of(0x301, b"sold out")

    @router.route("buy")
    def buy() -> None:
        raise ApplicationError(error.code, error.data)

    async with loopback(router, codec=JSON) as requester:
        with pytest.raises(ApplicationError, match="0x301: sold out"):
            await requester.request_response(route="buy")
