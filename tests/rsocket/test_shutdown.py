"""The end of connections: servers that close in good order, and both sides that are notified."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from anyio import CancelScope

from reactive_aio import Flow, from_iterable, just, never
from reactive_aio.rsocket import (
    JSON,
    Client,
    ClientOptions,
    ConnectionLost,
    Resumption,
    Router,
    Server,
    StreamFailed,
    connect,
    loopback,
    serve,
)
from reactive_aio.rsocket.link.transports.buffered import BufferedTransport
from reactive_aio.rsocket.protocol.events import RequestReceived
from reactive_aio.rsocket.protocol.frames import (
    Error,
    ErrorCode,
    Payload,
    PayloadFrame,
    RequestFnf,
    RequestResponse,
    Setup,
)
from reactive_aio.rsocket.protocol.metadata import ROUTING, write_composite, write_routing
from reactive_aio.testing.probes import SubscriberProbe

from .cut_transport import Bench
from .loop_turns import turns
from .wire import one, read, sent, server as server_connection, wire

CLOSE = Error(0, ErrorCode.CONNECTION_CLOSE, b"the server is closing")


class Work:
    """Routes that take a time that the test decides."""

    def __init__(self) -> None:
        self.router = Router()
        self.done: list[str] = []
        self.may_end = asyncio.Event()
        self.router.route("one")(self.one)
        self.router.route("many")(self.many)
        self.router.route("now")(lambda: "now")

    async def one(self) -> str:
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.done.append("cancelled")
            raise
        self.done.append("one")
        return "one"

    def many(self) -> Flow[int]:
        return just(1).concat_with(never()).do_on_cancel(lambda: self.done.append("cancelled"))


def clock() -> float:
    return asyncio.get_running_loop().time()


# -- a server that closes --------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_a_running_request_ends_within_the_grace() -> None:
    work = Work()
    bench = Bench(work.router)
    async with await bench.client() as client:
        response = asyncio.create_task(client.request_response(route="one"))
        await turns()
        closing = asyncio.create_task(bench.server.aclose(grace=10))
        await asyncio.sleep(3)
        assert not closing.done()
        work.may_end.set()
        assert await response == "one"
        await closing
        assert clock() == 3
        assert bench.server.connections == 0


@pytest.mark.virtual_time
async def test_after_the_grace_streams_are_cancelled_with_a_reason() -> None:
    work = Work()
    bench = Bench(work.router)
    async with await bench.client() as client:
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        client.request_stream(route="many").subscribe(probe)
        await probe.wait_for_signals(1)
        await bench.server.aclose(grace=10)
        assert clock() == pytest.approx(10)
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        assert probe.error.data == b"the server is closing"
        assert work.done == ["cancelled"]


@pytest.mark.virtual_time
async def test_new_requests_fail_while_open_ones_continue() -> None:
    work = Work()
    bench = Bench(work.router)
    async with await bench.client() as client:
        response = asyncio.create_task(client.request_response(route="one"))
        await turns()
        closing = asyncio.create_task(bench.server.aclose(grace=10))
        await turns()
        assert not client.is_closed
        assert not client.may_request
        with pytest.raises(ConnectionLost, match="the peer is closing the connection"):
            await client.request_response(route="now")
        work.may_end.set()
        assert await response == "one"
        await closing


async def test_a_request_in_transit_is_rejected_so_that_it_may_be_repeated() -> None:
    work = Work()
    server = await serve("tcp://127.0.0.1:0", work.router)
    assert server.address is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
    composite = write_composite([(ROUTING, write_routing("one"))])
    writer.write(wire(Setup(data_mime="text/plain"), RequestResponse(1, Payload(b"", composite))))
    while not server.stats().routes:  # noqa: ASYNC110 - until the request has arrived
        await asyncio.sleep(0)
    closing = asyncio.create_task(server.aclose(grace=5))
    announced = await reader.readexactly(len(wire(CLOSE)))
    assert read(announced) == [CLOSE]
    writer.write(wire(RequestResponse(3)))
    rejected = Error(3, ErrorCode.REJECTED, b"the connection is closing")
    assert read(await reader.readexactly(len(wire(rejected)))) == [rejected]
    work.may_end.set()
    last = PayloadFrame(1, Payload(b"one"), True, True)
    assert read(await reader.readexactly(len(wire(last)))) == [last]
    writer.write(wire(RequestResponse(5)))  # the client has not read the announcement yet
    rejected = Error(5, ErrorCode.REJECTED, b"the connection is closing")
    assert read(await reader.readexactly(len(wire(rejected)))) == [rejected]
    assert not closing.done()
    writer.close()
    await writer.wait_closed()
    await closing


@pytest.mark.virtual_time
async def test_a_client_that_ignores_the_announcement_is_closed_after_two_seconds() -> None:
    bench = Bench(Work().router)
    async with await bench.client() as client:
        assert await client.request_response(route="now") == "now"
        near, _ = bench.ends[-1]
        near.pause_reading()
        closing = asyncio.create_task(bench.server.aclose(grace=10))
        await asyncio.sleep(1.9)
        assert not closing.done()
        await asyncio.sleep(0.2)
        near.resume_reading()
        await closing
        assert clock() < 3


@pytest.mark.virtual_time
async def test_requests_without_a_response_end_within_the_grace() -> None:
    work = Work()
    bench = Bench(work.router)
    async with await bench.client() as client:
        await client.fire_and_forget(route="one")
        await turns()
        closing = asyncio.create_task(bench.server.aclose(grace=60))
        await asyncio.sleep(30)
        assert not closing.done()
        work.may_end.set()
        await closing
        assert work.done == ["one"]
        assert clock() == 30


@pytest.mark.virtual_time
async def test_requests_without_a_response_are_cancelled_after_the_grace() -> None:
    work = Work()
    bench = Bench(work.router)
    async with await bench.client() as client:
        await client.fire_and_forget(route="one")
        await turns()
        await bench.server.aclose(grace=7)
        assert work.done == ["cancelled"]
        assert clock() == pytest.approx(7)


@pytest.mark.virtual_time
async def test_a_server_without_streams_closes_at_once() -> None:
    bench = Bench(Work().router, resume=Resumption())
    async with await bench.client() as client:
        assert await client.request_response(route="now") == "now"
        await bench.server.aclose(grace=100)
        assert clock() < 1
        await client.aclose()


@pytest.mark.virtual_time
async def test_a_second_call_ends_the_grace() -> None:
    work = Work()
    bench = Bench(work.router)
    async with await bench.client() as client:
        response = asyncio.create_task(client.request_response(route="one"))
        await turns()
        closing = asyncio.create_task(bench.server.aclose(grace=100))
        await asyncio.sleep(1)
        await bench.server.aclose(grace=0)
        await closing
        assert clock() == 1
        with pytest.raises(ConnectionLost):
            await response


@pytest.mark.virtual_time
async def test_cancelling_the_call_aborts_the_connections() -> None:
    work = Work()
    bench = Bench(work.router)
    async with await bench.client() as client:
        response = asyncio.create_task(client.request_response(route="one"))
        await turns()
        closing = asyncio.create_task(bench.server.aclose(grace=100))
        await asyncio.sleep(1)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(ConnectionLost):
            await response
        assert work.done == ["cancelled"]
        assert clock() == 1
        await bench.server.aclose()


@pytest.mark.virtual_time
@pytest.mark.parametrize("turns_before", [1, 30])
async def test_cancelling_the_call_ends_sessions_as_well(turns_before: int) -> None:
    work = Work()
    reasons: list[StreamFailed] = []
    bench = Bench(work.router, resume=Resumption(timeout=60))
    bench.server._responder._on_close = lambda _, reason: reasons.append(reason)
    client = await bench.client()
    response = asyncio.create_task(client.request_response(route="one"))
    await turns()
    closing = asyncio.create_task(bench.server.aclose(grace=100))
    await turns(turns_before)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await turns()
    assert work.done == ["cancelled"]
    assert bench.server.connections == 0
    assert [each.data for each in reasons] == [b"the server is closing"]
    assert clock() == 0
    await client.aclose()
    with pytest.raises(ConnectionLost):
        await response


@pytest.mark.parametrize("transport", ["tcp", "ws"])
async def test_the_grace_of_a_server_applies_when_its_block_ends(transport: str) -> None:
    router = Router()

    @router.route("slow")
    async def slow() -> AsyncIterator[int]:
        for each in range(50):
            await asyncio.sleep(0)
            yield each

    async with await serve(f"{transport}://127.0.0.1:0", router, grace=30) as server:
        client = await connect(server.uri, codec=JSON)
        came = asyncio.create_task(client.request_stream(route="slow").to_list(limit=99))
        while not server.stats().routes:  # noqa: ASYNC110 - until the request has arrived
            await asyncio.sleep(0)
        waiting = asyncio.create_task(server.closed())
    assert await came == [*range(50)]
    await waiting
    await server.closed()
    reason = await client.closed()
    assert reason.code == ErrorCode.CONNECTION_CLOSE
    await client.aclose()


async def test_all_elements_arrive_before_the_end() -> None:
    """A socket that is closed with unread data would be reset."""
    size, count = 50_000, 100
    router = Router()
    router.route("large")(lambda: from_iterable(bytes(size) for _ in range(count)))
    server = await serve("tcp://127.0.0.1:0", router)
    async with await connect(server.uri) as client:
        came: list[int] = []

        async def take() -> None:
            async for element in client.request_stream(route="large").boundary(count):
                came.append(len(element))
                if len(came) % 10 == 0:
                    await asyncio.sleep(0.001)

        taking = asyncio.create_task(take())
        while not came:  # noqa: ASYNC110 - until it has begun
            await asyncio.sleep(0)
        await server.aclose(grace=30)
        await taking
        assert came == [size] * count


@pytest.mark.virtual_time
async def test_a_coroutine_for_a_connection_does_not_delay_the_end() -> None:
    ended: list[str] = []

    async def accompany(peer: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    bench = Bench(Work().router)
    bench.server._responder._on_connect = accompany
    async with await bench.client() as client:
        assert await client.request_response(route="now") == "now"
        await bench.server.aclose(grace=100)
        assert ended == ["cancelled"]
        assert clock() < 1


def test_requests_without_a_response_are_accepted_while_closing() -> None:
    connection = server_connection()
    connection.receive(wire(RequestResponse(1)), 0.0)
    connection.close_gracefully("bye")
    events = connection.receive(wire(RequestFnf(3, Payload(b"x")), RequestResponse(5)), 0.0)
    assert one(events, RequestReceived).stream_id == 3
    rejected = Error(5, ErrorCode.REJECTED, b"the connection is closing")
    assert sent(connection) == [Error(0, ErrorCode.CONNECTION_CLOSE, b"bye"), rejected]


class Reset(BufferedTransport):
    """A socket that the peer has reset, which the loop has not noticed yet."""

    is_aborted = False

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        raise OSError(107, "Transport endpoint is not connected")

    def abort(self) -> None:
        self.is_aborted = True
        self.driver.connection_lost(None)

    def _output_changed(self) -> None: ...
    def _reading_resumed(self) -> None: ...


async def test_a_socket_that_was_reset_is_aborted_at_the_end() -> None:
    server = Server(Work().router, authenticate=lambda _: None)
    transport = Reset(server.new_driver())
    transport.driver.attach(transport)
    transport.driver.data_received(wire(Setup()))
    await turns()
    assert transport.is_aborted
    assert server.connections == 0


# -- notified of the end ---------------------------------------------------------------------------
async def test_both_sides_are_notified_of_the_end() -> None:
    ended: list[tuple[str, StreamFailed]] = []
    peers: list[Any] = []

    def left(peer: Any, reason: StreamFailed) -> None:
        assert peer is peers[0]
        ended.append(("server", reason))

    options = ClientOptions(on_close=lambda reason: ended.append(("client", reason)))
    client = loopback(
        Work().router, codec=JSON, client=options, on_connect=peers.append, on_close=left
    )
    async with client:
        assert await client.request_response(route="now") == "now"
        waiting = asyncio.create_task(client.closed())
        await turns()
        assert not waiting.done()
        assert ended == []
    assert await waiting is dict(ended)["client"]
    assert sorted(dict(ended)) == ["client", "server"]
    assert all(reason.code == ErrorCode.CONNECTION_CLOSE for _, reason in ended)


@pytest.mark.virtual_time
async def test_a_lost_connection_is_reported_with_its_reason() -> None:
    reasons: list[StreamFailed] = []
    bench = Bench(Work().router)
    bench.options["on_close"] = reasons.append
    async with bench.server, await bench.client() as client:
        assert await client.request_response(route="now") == "now"
        bench.lose()
        reason = await client.closed()
        assert reasons == [reason]
        assert "the transport was closed" in str(reason)


async def test_nothing_is_left_of_those_who_no_longer_wait_for_the_end() -> None:
    async with loopback(Work().router, codec=JSON) as client:
        before = [*client._driver.ending._callbacks]
        waiting = asyncio.create_task(client.closed())
        await turns()
        assert len(client._driver.ending._callbacks) == len(before) + 1
        waiting.cancel()
        await asyncio.wait([waiting])
        assert client._driver.ending._callbacks == before


async def test_a_refused_client_has_no_end_to_report() -> None:
    ended: list[Any] = []
    router = Work().router

    def left(peer: Any, reason: StreamFailed) -> None:
        ended.append(reason)

    client = loopback(router, authenticate=lambda _: None, on_close=left)
    async with client:
        with pytest.raises(ConnectionLost):
            await client.request_response(route="now")
    assert ended == []


async def test_an_error_of_on_close_is_reported(expects_loop_errors: list[Any]) -> None:
    def fails(reason: StreamFailed) -> None:
        raise RuntimeError("no disk")

    options = ClientOptions(on_close=fails)
    async with loopback(Work().router, codec=JSON, client=options) as client:
        assert await client.request_response(route="now") == "now"
    [context] = expects_loop_errors
    assert "on_close" in context["message"]
    assert str(context["exception"]) == "no disk"


async def left(*_: Any) -> None: ...


@pytest.mark.parametrize(
    "make",
    [
        lambda: loopback(Router(), on_close=left),
        lambda: loopback(Router(), client=ClientOptions(on_close=left)),
    ],
)
async def test_on_close_is_a_plain_function(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="on_close"):
        make()


# -- calls that are cancelled ----------------------------------------------------------------------
async def until_none_is_open(server: Server) -> None:
    async with asyncio.timeout(4):  # less than the timeouts of the protocol
        while server.connections:  # noqa: ASYNC110 - sockets take a few turns
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("turns_before", [1, 2, 3])
@pytest.mark.parametrize("by_scope", [False, True])
async def test_a_client_whose_aclose_is_cancelled_closes(by_scope: bool, turns_before: int) -> None:
    scope = CancelScope()

    async def close(client: Client[Any]) -> None:
        with scope:
            client.metadata_push(("text/plain", b"output that no answer confirms"))
            await client.aclose()

    async with await serve("tcp://127.0.0.1:0", Work().router) as server:
        client = await connect(server.uri, codec=JSON)
        closing = asyncio.create_task(close(client))
        for _ in range(turns_before):
            await asyncio.sleep(0)
        (scope if by_scope else closing).cancel()
        await until_none_is_open(server)
        await asyncio.wait([closing])
        await client.aclose()


async def test_a_server_whose_aclose_is_cancelled_is_closed() -> None:
    async with await serve("tcp://127.0.0.1:0", Work().router) as server:
        client = await connect(server.uri, codec=JSON)
        waiting = asyncio.create_task(server.closed())
        with CancelScope() as scope:
            scope.cancel()
            await server.aclose()
        async with asyncio.timeout(5):
            await waiting
            await server.closed()
        await client.aclose()
