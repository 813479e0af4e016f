"""Client and server in memory: interaction models, demand, errors, closing, timeouts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow, from_awaitable, from_iterable, just, never
from reactive_aio.errors import AlreadySubscribed, EmptyFlow
from reactive_aio.rsocket import (
    BYTES,
    JSON,
    TEXT,
    BearerToken,
    ClientOptions,
    Codec,
    ConnectionLost,
    Limits,
    Request,
    Requester,
    RequestInvalid,
    RequestRejected,
    ResponderOptions,
    Router,
    SetupRejected,
    StreamFailed,
    loopback,
    serve,
)
from reactive_aio.testing.probes import PublisherProbe, SubscriberProbe
from tests.harness.leftover_checks import Context

from .loop_turns import turns

router = Router()


@router.route("range.{n}")
def count(n: str) -> Flow[int]:
    return from_iterable(range(int(n)))


@router.route("twice")
async def twice(payload: int) -> int:
    await asyncio.sleep(0)
    return payload * 2


@router.route("letters")
async def letters(payload: int) -> AsyncIterator[str]:
    for each in "abcdefgh"[:payload]:
        yield each


@router.route("plus")
def plus(incoming: Flow[int]) -> Flow[int]:
    return incoming.map(lambda each: each + 1)


@router.route("nothing")
def nothing() -> None:
    """Complete without an element."""


@router.route("secret")
def secret() -> None:
    raise ValueError("the password is swordfish")


@router.route("secret later")
def secret_later() -> Flow[int]:
    return from_iterable([2, 1, 0]).map(lambda each: 2 // each)


@router.route("meant")
def meant() -> None:
    raise StreamFailed(0x301, b"no seats left")


@router.route("back")
async def back(request: Request) -> Any:
    assert request.peer is not None
    return await request.peer.request_response(21, route="twice")


# -- interaction models ----------------------------------------------------------------------------
async def test_a_stream_is_a_flow() -> None:
    async with loopback(router, codec=JSON) as requester:
        flow = requester.request_stream(route="range.1000")
        assert await flow.to_list(limit=1000) == list(range(1000))
        assert await flow.take(3).to_list(limit=3) == [0, 1, 2]
        assert [each async for each in requester.request_stream(5, route="letters")] == [*"abcde"]


async def test_a_response_is_awaited() -> None:
    async with loopback(router, codec=JSON) as requester:
        answers = (requester.request_response(each, route="twice") for each in range(64))
        assert await asyncio.gather(*answers) == [each * 2 for each in range(64)]
        assert await requester.request_response(route="range.3") == 0


async def test_a_response_without_an_element_is_empty() -> None:
    async with loopback(router, codec=JSON) as requester:
        for route in ("nothing", "range.0"):
            with pytest.raises(EmptyFlow):
                await requester.request_response(route=route)


async def test_one_value_is_a_stream_of_one_element() -> None:
    async with loopback(router, codec=JSON) as requester:
        assert await requester.request_stream(4, route="twice").to_list(limit=2) == [8]
        assert await requester.request_stream(route="nothing").to_list(limit=2) == []


async def test_both_halves_of_a_channel_flow_under_demand() -> None:
    async with loopback(router, codec=JSON) as requester:
        answers = requester.request_channel(range(1000), route="plus")
        assert await answers.to_list(limit=1000) == list(range(1, 1001))
        assert await answers.take(2).to_list(limit=2) == [1, 2]
        assert await requester.request_channel([], route="plus").to_list(limit=1) == []


async def test_incoming_serves_one_subscription() -> None:
    errors: list[BaseException] = []
    routes = Router()

    @routes.route("both")
    def both(incoming: Flow[int]) -> Flow[int]:
        return incoming.merge_with(incoming)

    async with loopback(routes, codec=JSON, on_error=errors.append) as requester:
        with pytest.raises(StreamFailed):
            await requester.request_channel([1, 2], route="both").to_list(limit=9)
    assert isinstance(errors[0], AlreadySubscribed)


async def test_either_half_of_a_channel_may_end_first() -> None:
    seen: list[int] = []
    routes = Router()

    @routes.route("early")
    def early(incoming: Flow[int]) -> Flow[int]:
        return just(0).concat_with(incoming.do_on_next(seen.append).filter(lambda _: False))

    @routes.route("deaf")
    def deaf() -> Flow[int]:
        return from_iterable(range(5))

    async with loopback(routes, codec=JSON) as requester:
        assert await requester.request_channel([1, 2], route="early").to_list(limit=9) == [0]
        assert seen == [1, 2]
        source = never()
        answers = requester.request_channel(source.start_with(1), route="deaf")
        assert await answers.to_list(limit=9) == [0, 1, 2, 3, 4]


async def test_both_sides_may_request() -> None:
    async with loopback(router, codec=JSON, client=ClientOptions(router=router)) as requester:
        assert await requester.request_response(route="back") == 42
    async with loopback(router, codec=JSON, on_error=str) as requester:
        with pytest.raises(RequestRejected):
            await requester.request_response(route="back")


async def test_fire_and_forget_has_no_response() -> None:
    got: asyncio.Queue[Any] = asyncio.Queue()
    routes = Router()

    @routes.route("log")
    async def log(payload: Any) -> None:
        await got.put(payload)

    async with loopback(routes, codec=JSON) as requester:
        for each in range(10):
            await requester.fire_and_forget(each, route="log")
        assert [await got.get() for _ in range(10)] == list(range(10))


@pytest.mark.parametrize("size", [1, 1_000_000])
async def test_fire_and_forget_is_sent_before_the_connection_closes(size: int) -> None:
    got: asyncio.Queue[int] = asyncio.Queue()
    routes = Router()

    @routes.route("log")
    def log(payload: str) -> None:
        got.put_nowait(len(payload))

    async with loopback(routes, codec=TEXT) as requester:
        await requester.fire_and_forget("x" * size, route="log")
    assert await got.get() == size


async def test_concurrent_fire_and_forget_requests_are_limited() -> None:
    begun: list[int] = []
    routes = Router()

    @routes.route("log")
    async def log(payload: int) -> None:
        begun.append(payload)
        await asyncio.Event().wait()

    @routes.route("done")
    def done() -> int:
        return 1

    drops = ResponderOptions(max_fire_and_forget=3, fire_and_forget_overflow="drop_newest")
    async with loopback(routes, codec=JSON, **drops) as requester:
        for each in range(10):
            await requester.fire_and_forget(each, route="log")
        assert await requester.request_response(route="done") == 1
        assert begun == [0, 1, 2]


# -- demand ----------------------------------------------------------------------------------------
async def test_demand_is_sent_unchanged() -> None:
    requested: list[int] = []
    routes = Router()

    @routes.route("n")
    def numbers() -> Flow[int]:
        return from_iterable(range(100)).do_on_request(requested.append)

    async with loopback(routes, codec=JSON) as requester:
        probe: SubscriberProbe[int] = SubscriberProbe()
        requester.request_stream(route="n").subscribe(probe)
        await turns()
        assert requested == []
        probe.request(3)
        await turns()
        assert probe.elements == [0, 1, 2]
        assert requested == [3]
        probe.request(1)
        probe.request(1)
        await turns()
        assert requested == [3, 2]
        probe.cancel()
        await turns()
        assert probe.elements == [0, 1, 2, 3, 4]


READERS: dict[str, Callable[[Flow[int], asyncio.Event], Awaitable[object]]] = {
    "for_each": lambda flow, held: flow.for_each(lambda _: held.wait()),
    "map_async": lambda flow, held: flow.map_async(lambda _: held.wait()).count(),
    "flat_map": lambda flow, held: flow.flat_map(lambda _: from_awaitable(held.wait)).count(),
    "share": lambda flow, held: flow.share().for_each(lambda _: held.wait()),
}


@pytest.mark.parametrize("model", ["stream", "channel"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
async def test_a_slow_reader_has_a_bound_of_256(reader: Any, model: str) -> None:
    """Whatever reads the stream; what operators hold themselves is their own bound."""
    requested: list[int] = []
    routes = Router()
    routes.route("many")(lambda: from_iterable(range(10_000)).do_on_request(requested.append))
    async with loopback(routes, codec=JSON) as client:
        flow = client.request_stream(route="many")
        if model == "channel":
            flow = client.request_channel(just(1), route="many")
        assert str(flow.bound()).startswith("holds at most 256 elements")
        reading = asyncio.ensure_future(reader(flow, asyncio.Event()))
        await turns(200)
        assert 0 < sum(requested) <= 2 * 256
        reading.cancel()
        await asyncio.wait([reading])


async def test_a_cancellation_reaches_the_publisher() -> None:
    cancelled = asyncio.Event()
    routes = Router()

    @routes.route("n")
    def numbers() -> Flow[int]:
        return just(1).concat_with(never()).do_on_cancel(cancelled.set)

    async with loopback(routes, codec=JSON) as requester:
        assert await requester.request_stream(route="n").first() == 1
        await cancelled.wait()


async def test_cancelling_the_await_cancels_the_request() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()
    routes = Router()

    @routes.route("wait")
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with loopback(routes, codec=JSON) as requester:
        task = asyncio.create_task(requester.request_response(route="wait"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await cancelled.wait()


# -- errors ----------------------------------------------------------------------------------------
async def test_the_text_of_an_exception_is_sent_only_on_request(
    expects_loop_errors: list[Context],
) -> None:
    for tell, text in ((False, b""), (True, b"the password is swordfish")):
        async with loopback(router, codec=JSON, expose_errors=tell) as requester:
            with pytest.raises(StreamFailed) as raised:
                await requester.request_response(route="secret")
            assert (raised.value.code, raised.value.data) == (0x201, text)
    assert [str(each["exception"]) for each in expects_loop_errors] == [
        "the password is swordfish",
        "the password is swordfish",
    ]


@pytest.mark.parametrize("codec", [BYTES, TEXT])
async def test_the_wrong_codec_is_the_fault_of_the_requester(codec: Codec[Any]) -> None:
    async with loopback(router, codec=codec) as requester:
        with pytest.raises(RequestInvalid, match=r"'int' cannot be sent as .*codec=.* JSON"):
            await requester.request_stream(route="range.3").to_list()


async def test_a_codec_of_a_handler_s_own_request_is_the_fault_of_the_handler(
    expects_loop_errors: list[Context],
) -> None:
    front = Router()
    async with loopback(router) as backend:
        wrong: Any = 7
        front.route("x")(lambda: backend.request_response(wrong, route="range.3"))
        async with loopback(front, codec=JSON) as requester:
            with pytest.raises(StreamFailed):
                await requester.request_response(route="x")
    assert "'int' cannot be sent as" in str(expects_loop_errors[0]["exception"])


async def test_bytes_that_a_requester_wants_as_json_are_its_fault() -> None:
    front = Router()
    front.route("x")(lambda: b"1")
    async with loopback(front, codec=JSON) as requester:
        with pytest.raises(RequestInvalid, match="'bytes' cannot be sent as application/json"):
            await requester.request_response(route="x")


async def test_a_server_reports_its_address() -> None:
    async with await serve("tcp://127.0.0.1:0", router) as server:
        assert repr(server) == f"<RSocket server at {server.uri}, 0 connections>"


async def test_elements_are_delivered_before_the_error() -> None:
    errors: list[BaseException] = []
    async with loopback(router, codec=JSON, on_error=errors.append) as requester:
        probe: SubscriberProbe[int] = SubscriberProbe()
        requester.request_stream(route="secret later").subscribe(probe)
        probe.request(10)
        await turns()
        assert probe.elements == [1, 2]
        assert isinstance(probe.error, StreamFailed)
        assert isinstance(errors[0], ZeroDivisionError)


async def test_an_application_error_reaches_the_peer() -> None:
    async with loopback(router, codec=JSON) as requester:
        with pytest.raises(StreamFailed, match="no seats left") as raised:
            await requester.request_stream(route="meant").to_list(limit=1)
        assert raised.value.code == 0x301


async def test_an_unknown_route_is_an_invalid_request() -> None:
    async with loopback(router, codec=JSON) as requester:
        with pytest.raises(RequestInvalid, match="no such route"):
            await requester.request_response(route="else")
        with pytest.raises(RequestInvalid):
            await requester.request_response()


async def test_a_malformed_payload_fails_its_own_request_only() -> None:
    routes = Router()
    routes.route("broken")(lambda: from_iterable([b"1", b"x"]))
    routes.route("fine")(lambda: b"3")
    async with loopback(routes, codec=JSON, codecs={JSON.mime: BYTES}) as requester:
        with pytest.raises(ValueError, match="Expecting value"):
            await requester.request_stream(route="broken").to_list(limit=2)
        assert await requester.request_response(route="fine") == 3


async def test_a_source_that_fails_fails_the_channel_on_both_sides() -> None:
    errors: list[BaseException] = []
    async with loopback(router, codec=JSON, on_error=errors.append) as requester:
        source = from_iterable([1, 0]).map(lambda each: 1 // each)
        with pytest.raises(ZeroDivisionError):
            await requester.request_channel(source, route="plus").to_list(limit=9)
        await turns()
        with pytest.raises(ZeroDivisionError):
            await requester.request_channel(source.skip(1), route="plus").to_list(limit=9)


# -- closing ---------------------------------------------------------------------------------------
async def test_closing_the_requester_cancels_its_streams_on_the_server() -> None:
    ended: list[str] = []
    routes = Router()

    @routes.route("flow")
    def flow() -> Flow[int]:
        return just(1).concat_with(never()).do_on_cancel(lambda: ended.append("flow"))

    @routes.route("task")
    async def task() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("task")

    requester = loopback(routes, codec=JSON)
    probe: SubscriberProbe[int] = SubscriberProbe()
    requester.request_stream(route="flow").subscribe(probe)
    probe.request(5)
    answer = asyncio.create_task(requester.request_response(route="task"))
    await requester.fire_and_forget(route="task")
    await turns()
    await requester.aclose()
    assert sorted(ended) == ["flow", "task", "task"]
    assert isinstance(probe.error, ConnectionLost)
    with pytest.raises(ConnectionLost):
        await answer
    with pytest.raises(ConnectionLost):
        await requester.request_response(route="task")
    with pytest.raises(ConnectionLost):
        await requester.request_stream(route="flow").to_list(limit=1)
    assert requester.is_closed


async def test_a_channel_whose_connection_ends_cancels_its_source() -> None:
    source: PublisherProbe[int] = PublisherProbe()
    requester = loopback(router, codec=JSON)
    probe: SubscriberProbe[int] = SubscriberProbe()
    requester.request_channel(source, route="plus").subscribe(probe)
    probe.request(5)
    await turns()
    source.emit(1)
    await turns()
    assert probe.elements == [2]
    await requester.aclose()
    await turns()
    await source.expect_cancel()
    assert isinstance(probe.error, ConnectionLost)


# -- authentication --------------------------------------------------------------------------------
async def test_a_refused_client_gets_no_response() -> None:
    async def check(credentials: object) -> str | None:
        await asyncio.sleep(0)
        return "ann" if credentials == BearerToken("token") else None

    served: list[Any] = []
    routes = Router()

    @routes.route("me")
    def me(request: Request) -> Any:
        served.append(request.user)
        return request.user

    good = loopback(routes, codec=JSON, credentials=BearerToken("token"), authenticate=check)
    async with good as requester:
        assert await requester.request_response(route="me") == "ann"
    for wrong in (None, BearerToken("other")):
        async with loopback(routes, credentials=wrong, authenticate=check) as refused:
            with pytest.raises(SetupRejected):
                await refused.request_response(route="me")
    assert served == ["ann"]


@pytest.mark.virtual_time
async def test_a_slow_authentication_refuses_the_client() -> None:
    async def check(credentials: object) -> bool:
        del credentials
        await asyncio.sleep(100)
        return True

    async with loopback(router, authenticate=check, auth_timeout=3) as requester:
        with pytest.raises(SetupRejected, match="too long"):
            await requester.request_response(route="nothing")
        assert asyncio.get_running_loop().time() < 10


# -- keepalive -------------------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_a_connection_without_requests_stays_alive() -> None:
    async with loopback(router, codec=JSON) as requester:
        await asyncio.sleep(3600)
        assert await requester.request_response(4, route="twice") == 8


@pytest.mark.virtual_time
async def test_a_silent_peer_is_disconnected() -> None:
    requester = loopback(router, codec=JSON)
    server = getattr(requester, "_server")  # noqa: B009
    await requester.request_response(4, route="twice")
    server.data_received = str  # from now on it receives and sends nothing
    with pytest.raises(ConnectionLost, match="no sign of life"):
        await requester.request_response(4, route="twice")
    assert asyncio.get_running_loop().time() >= 80
    await requester.aclose()


# -- backpressure ----------------------------------------------------------------------------------
async def test_a_peer_that_requests_everything_and_reads_nothing_costs_little() -> None:
    made = 0
    size = 1000
    routes = Router()

    def element(n: int) -> str:
        nonlocal made
        made += 1
        return "x" * size

    @routes.route("all")
    def everything() -> Flow[str]:
        return from_iterable(range(10**6)).map(element)

    requester: Requester[str] = loopback(routes, codec=TEXT, limits=Limits())
    probe: SubscriberProbe[str] = SubscriberProbe()
    requester.request_stream(route="all").subscribe(probe)
    transport = getattr(requester, "_driver").line.transport  # noqa: B009
    probe.request(2**63 - 1)
    await turns(2)
    transport.pause_reading()
    await turns(500)
    before = made
    await turns(500)
    assert made == before
    assert made * size < 1024 * 1024
    transport.resume_reading()
    await turns(50)
    assert made > before
    probe.cancel()
    await requester.aclose()


async def test_a_route_of_others_does_nothing_to_a_terminal() -> None:
    async with loopback(router) as requester:
        stream = requester.request_stream(route="x\x1b[2J")
        assert repr(stream) == r"<Flow request_stream(x\x1b[2J)>"
        assert r"x\x1b[2J" in str(stream.bound())
