"""Interceptors: around each request, around each connection, and around requests of a client."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    JSON,
    BearerToken,
    ClientOptions,
    ConnectingClient,
    InteractionModel,
    OutgoingRequest,
    Request,
    RequestInvalid,
    RequestRejected,
    Router,
    SetupRejected,
    connect,
    loopback,
    serve,
)

Proceed = Callable[[Request], Awaitable[Any]]


def routes() -> Router:
    router = Router()

    @router.route("twice")
    def twice(payload: int) -> int:
        return payload * 2

    @router.route("user")
    def who(user: Any) -> Any:
        return user

    @router.route("log")
    def log() -> None: ...

    @router.route("sum")
    async def total(incoming: Flow[int]) -> int:
        return await incoming.sum()

    @router.route("tenant")
    def tenant(request: Request) -> str:
        return (request.item("x.tenant") or b"none").decode()

    @router.route("range.{n}")
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    @router.route("fails")
    async def fails() -> None:
        raise RuntimeError("no disk")

    return router


# -- requests that are served ----------------------------------------------------------------------
async def test_the_first_interceptor_is_the_outermost() -> None:
    calls: list[str] = []

    def named(name: str) -> Any:
        async def intercept(request: Request, proceed: Proceed) -> Any:
            calls.append(f"{name} before {request.route}")
            result = await proceed(request)
            calls.append(f"{name} after {result}")
            return result

        return intercept

    async with loopback(
        routes(), codec=JSON, interceptors=[named("one"), named("two")]
    ) as requester:
        assert await requester.request_response(4, route="twice") == 8
    assert calls == ["one before twice", "two before twice", "two after 8", "one after 8"]


async def test_the_result_of_a_stream_is_a_flow() -> None:
    ended: list[str] = []

    async def watch(request: Request, proceed: Proceed) -> Any:
        flow: Flow[int] = await proceed(request)
        return flow.map(lambda n: n * 10).do_finally(ended.append)

    async with loopback(routes(), codec=JSON, interceptors=[watch]) as requester:
        stream = requester.request_stream(route="range.4")
        assert await stream.to_list(limit=9) == [0, 10, 20, 30]
        assert ended == ["completed"]
        assert await requester.request_stream(route="range.4").take(2).to_list(limit=9) == [0, 10]
        while len(ended) < 2:  # noqa: ASYNC110 - until the cancellation has arrived
            await asyncio.sleep(0)
        assert ended == ["completed", "cancelled"]


async def test_every_model_passes_the_interceptors() -> None:
    models: list[InteractionModel] = []

    async def note(request: Request, proceed: Proceed) -> Any:
        models.append(request.model)
        return await proceed(request)

    async with loopback(routes(), codec=JSON, interceptors=[note]) as requester:
        await requester.request_response(1, route="twice")
        await requester.request_stream(route="range.2").to_list(limit=2)
        assert await requester.request_channel([1, 2, 3], route="sum").to_list(limit=2) == [6]
        await requester.fire_and_forget(1, route="log")
    assert models == [
        InteractionModel.RESPONSE,
        InteractionModel.STREAM,
        InteractionModel.CHANNEL,
        InteractionModel.FNF,
    ]


async def test_an_interceptor_sees_refusals_and_errors(expects_loop_errors: list[Any]) -> None:
    seen: list[str] = []

    async def note(request: Request, proceed: Proceed) -> Any:
        try:
            return await proceed(request)
        except Exception as error:
            seen.append(f"{request.route}: {type(error).__name__}")
            raise

    async with loopback(
        routes(),
        codec=JSON,
        interceptors=[note],
        authorize=lambda request: request.route != "user",
        on_error=lambda _: None,
    ) as requester:
        with pytest.raises(RequestRejected, match="not authorized"):
            await requester.request_response(route="user")
        with pytest.raises(RequestInvalid, match="no such route: 'nowhere'"):
            await requester.request_response(route="nowhere")
        with pytest.raises(Exception, match="APPLICATION_ERROR"):
            await requester.request_response(route="fails")
    assert seen == ["user: RequestRejected", "nowhere: RequestInvalid", "fails: RuntimeError"]
    assert expects_loop_errors == []


async def test_an_interceptor_may_set_the_user_and_refuse() -> None:
    async def authenticate(request: Request, proceed: Proceed) -> Any:
        match request.item("x.tenant"):
            case None:
                raise RequestRejected(0x202, b"a tenant is required")
            case tenant:
                request.user = tenant.decode()
                return await proceed(request)

    async with loopback(routes(), codec=JSON, interceptors=[authenticate]) as requester:
        with pytest.raises(RequestRejected, match="a tenant is required"):
            await requester.request_response(route="user")
        tenant = [("x.tenant", b"7")]
        assert await requester.request_response(route="user", metadata=tenant) == "7"


async def test_a_plain_function_may_return_what_proceed_returns() -> None:
    calls: list[str] = []

    def note(request: Request, proceed: Proceed) -> Any:
        calls.append(request.route)
        return proceed(request)

    async def forwards(request: Request, proceed: Proceed) -> Any:
        return proceed(request)  # not awaited

    async with loopback(routes(), codec=JSON, interceptors=[note, forwards]) as requester:
        assert await requester.request_response(2, route="twice") == 4
    assert calls == ["twice"]


async def test_a_cancelled_request_cancels_its_interceptors() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(request: Request, proceed: Proceed) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with loopback(routes(), codec=JSON, interceptors=[wait]) as requester:
        task = asyncio.create_task(requester.request_response(1, route="twice"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ended.wait()


def one_argument(request: Request) -> None: ...


async def test_interceptors_are_functions_in_a_list() -> None:
    async def note(request: Request, proceed: Proceed) -> Any: ...

    wrong: Any = note
    with pytest.raises(TypeError, match=r"interceptors must be a list of functions: write \[note"):
        loopback(routes(), interceptors=wrong)
    wrong = [one_argument]
    with pytest.raises(TypeError, match="interceptors is called with 2 arguments"):
        loopback(routes(), interceptors=wrong)
    wrong = [3]
    with pytest.raises(TypeError, match="connection_interceptors must be a function"):
        loopback(routes(), connection_interceptors=wrong)


# -- connections -----------------------------------------------------------------------------------
async def test_an_interceptor_of_a_client_is_a_plain_function() -> None:
    async def note(request: OutgoingRequest, proceed: Any) -> Any: ...

    message = r"interceptors must be a plain function, and note is .* return what proceed returns"
    with pytest.raises(TypeError, match=message):
        await connect("tcp://127.0.0.1:1", interceptors=[note])
    with pytest.raises(TypeError, match=message):
        loopback(Router(), client=ClientOptions(interceptors=[note]))


async def test_a_connection_interceptor_is_called_around_authenticate() -> None:
    calls: list[str] = []

    async def note(client: ConnectingClient, proceed: Any) -> Any:
        user = await proceed(client)
        calls.append(f"{client.credentials!r} is {user}")
        return user and f"{user}!"

    def authenticate(credentials: Any) -> str | None:
        return "ann" if credentials == BearerToken("a") else None

    async with await serve(
        "tcp://127.0.0.1:0", routes(), connection_interceptors=[note], authenticate=authenticate
    ) as server:
        async with await connect(server.uri, codec=JSON, credentials=BearerToken("a")) as client:
            assert await client.request_response(route="user") == "ann!"
        with pytest.raises(SetupRejected):
            await connect(server.uri, credentials=BearerToken("b"))
    assert calls == ["BearerToken(token=…) is ann", "BearerToken(token=…) is None"]


async def test_a_connection_interceptor_may_refuse_without_authenticate() -> None:
    async def not_twice(client: ConnectingClient, proceed: Any) -> Any:
        return client.data != b"again" and await proceed(client)

    options = ClientOptions(data=b"again")
    async with loopback(
        routes(), codec=JSON, client=options, connection_interceptors=[not_twice]
    ) as refused:
        with pytest.raises(SetupRejected):
            await refused.request_response(route="user")
    async with loopback(routes(), codec=JSON, connection_interceptors=[not_twice]) as requester:
        assert await requester.request_stream(route="user").to_list(limit=1) == []  # there is none


# -- requests of a client --------------------------------------------------------------------------
def with_tenant(request: OutgoingRequest, proceed: Callable[[OutgoingRequest], Any]) -> Any:
    return proceed(replace(request, metadata=[*request.metadata, ("x.tenant", b"7")]))


async def test_a_client_adds_metadata_to_each_request() -> None:
    async with await serve("tcp://127.0.0.1:0", routes()) as server:
        uri = f"{server.uri}?route=tenant"
        async with await connect(uri, codec=JSON, interceptors=[with_tenant]) as client:
            assert await client.request_response() == "7"
            assert await client.request_stream().to_list(limit=1) == ["7"]
            assert await client.request_channel([1]).to_list(limit=1) == ["7"]
            assert await client.request_response(3, route="twice", timeout=5) == 6


async def test_a_client_sees_each_request_and_its_result() -> None:
    calls: list[Any] = []

    def note(request: OutgoingRequest, proceed: Callable[[OutgoingRequest], Any]) -> Any:
        calls.append((request.model.name, request.route))
        result = proceed(request)
        if request.model in (InteractionModel.STREAM, InteractionModel.CHANNEL):
            return result.do_finally(calls.append)
        return timed(result)

    async def timed(response: Awaitable[Any]) -> Any:
        result = await response
        calls.append(result)
        return result

    client = ClientOptions(interceptors=[note])
    async with loopback(routes(), codec=JSON, client=client) as requester:
        assert await requester.request_response(1, route="twice") == 2
        assert await requester.request_stream(route="range.2").to_list(limit=2) == [0, 1]
        await requester.fire_and_forget(3, route="log")
        assert await requester.request_channel(from_iterable([1, 2]), route="sum").to_list(
            limit=2
        ) == [3]
        unknown: Any = {"tiemout": 3}
        with pytest.raises(TypeError, match="tiemout"):
            await requester.request_response(1, route="twice", **unknown)
    assert calls == [
        ("RESPONSE", "twice"), 2, ("STREAM", "range.2"), "completed",
        ("FNF", "log"), None, ("CHANNEL", "sum"), "completed",
    ]  # fmt: skip
