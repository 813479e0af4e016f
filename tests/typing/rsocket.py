"""The types that checkers infer for requesters and codecs; only read, not run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, assert_type

from reactive_aio import Flow, just
from reactive_aio.rsocket import (
    BYTES,
    JSON,
    TEXT,
    BalancedClient,
    BearerToken,
    Client,
    Codec,
    ConnectingClient,
    OutgoingRequest,
    Received,
    Request,
    Requester,
    Resumption,
    Router,
    RouteStats,
    Server,
    StreamFailed,
    connect,
    connect_balanced,
    loopback,
    serve,
    typed,
)


@dataclass
class Order:
    symbol: str


def knows(credentials: object) -> bool:
    return credentials is not None


async def judges(credentials: object, caller: ConnectingClient) -> str:
    return f"{caller.address}"


async def clients(router: Router) -> None:
    assert_type(await connect("tcp://here:1"), Client[bytes])
    assert_type(await connect("tcp://here:1", codec=TEXT), Client[str])
    assert_type(
        await connect(
            "tcp://here:1",
            codec=typed(Order),
            credentials=BearerToken("token"),
            resume=Resumption(),
            retry=3,
        ),
        Client[Order],
    )
    assert_type(loopback(router), Requester[bytes])
    assert_type(loopback(router, codec=JSON), Requester[Any])
    await serve("tcp://here:1", router, authenticate=knows, authorize=lambda each: each.user)
    await serve("tcp://here:1", router, authenticate=judges, auth_timeout=3)


async def passes(request: Request, proceed: Callable[[Request], Awaitable[Any]]) -> Any:
    return await proceed(request)


def sends(request: OutgoingRequest, proceed: Callable[[OutgoingRequest], Any]) -> Any:
    return proceed(request)


def ended(peer: Requester[Any], reason: StreamFailed) -> None: ...


async def operations(router: Router, server: Server) -> None:
    await serve("tcp://here:1", router, interceptors=[passes], on_close=ended, grace=3)
    assert_type(await connect("tcp://here:1", codec=TEXT, interceptors=[sends]), Client[str])
    assert_type(server.stats().routes["a"], RouteStats)
    balanced = await connect_balanced(["tcp://here:1"], codec=TEXT)
    assert_type(balanced, BalancedClient[str])
    assert_type(await balanced.request_response("x", route="a"), str)
    assert_type(await balanced.request_response(3, codec=typed(Order)), Order)
    assert_type(balanced.request_stream(route="a", timeout=3), Flow[str])
    assert_type(balanced.request_channel([1], codec=JSON), Flow[Any])


async def requests(ask: Requester[str]) -> None:
    assert_type(await ask.request_response("x", route="a"), str)
    assert_type(await ask.request_response(3, route="a", codec=typed(Order)), Order)
    assert_type(ask.request_stream(route="a", timeout=3), Flow[str])
    received = await ask.request_response("x", route="a", with_metadata=True)
    assert_type(received, Received[str])
    assert_type(
        ask.request_stream(3, route="a", codec=typed(Order), with_metadata=True),
        Flow[Received[Order]],
    )
    assert_type(ask.request_channel(just("x"), timeout=3, with_metadata=True), Flow[Received[str]])
    assert_type(ask.request_stream(b"x", codec=BYTES), Flow[bytes])
    assert_type(ask.request_channel(just("x")), Flow[str])
    assert_type(ask.request_channel(["x"], codec=typed(list[Order])), Flow[list[Order]])
    await ask.request_response(3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


def routes(router: Router) -> None:
    @router.route("a.{n}")
    def a(n: int) -> Flow[int]:
        return just(n)

    assert_type(a(3), Flow[int])
    assert_type(typed(Order), Codec[Order])
