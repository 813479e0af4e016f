"""What the bytes of a peer may cost: small forms of attacks, each of which meets its bound."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sized
from functools import partial
from typing import Any

import pytest

from reactive_aio import from_iterable, never, range as numbers
from reactive_aio._core.loop import LoopHandle
from reactive_aio._core.time_slice import TIME_SLICE, set_clock
from reactive_aio.rsocket import (
    BYTES,
    JSON,
    MSGPACK,
    TEXT,
    Codec,
    MetadataItem,
    PayloadError,
    RequestCanceled,
    RequestInvalid,
    Resumption,
    Router,
    loopback,
)
from reactive_aio.rsocket.link.driver import Driver
from reactive_aio.rsocket.link.turns import ROUND, Turns
from reactive_aio.rsocket.payloads import bounded, typed
from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.errors import ProtocolError
from reactive_aio.rsocket.protocol.events import Closed, RequestReceived
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    Error,
    ErrorCode,
    KeepAlive,
    Payload,
    PayloadFrame,
    RequestResponse,
    RequestStream,
    Setup,
)
from reactive_aio.rsocket.protocol.limits import Limits, MemoryBudget
from reactive_aio.rsocket.protocol.metadata import (
    ACCEPT_MIME_TYPES,
    ROUTING,
    read_composite,
    read_mime_types,
    read_routing,
    write_composite,
    write_routing,
)
from reactive_aio.rsocket.server import Server

from .loop_turns import turns
from .wire import one, read, sent, server, wire

EMPTY = (MetadataItem("a/b", b""),)
ROUTE = MetadataItem(ROUTING, write_routing("echo"))
FLOODS = [
    (read_composite, write_composite(EMPTY), "items"),
    (read_routing, b"\0", "tags"),
    (read_mime_types, b"\xff", "types of data"),
]
"""What reads a kind of metadata, the shortest item of that kind, and what the items are called."""


# -- items in metadata -----------------------------------------------------------------------------
@pytest.mark.parametrize(("read", "item", "what"), FLOODS)
def test_metadata_has_a_bounded_number_of_items(
    read: Callable[..., Sized], item: bytes, what: str
) -> None:
    assert len(read(item * 64)) == 64
    with pytest.raises(ProtocolError, match=f"more than 64 {what}"):
        read(item * 65)
    with pytest.raises(ProtocolError, match=f"more than 2 {what}"):
        read(item * 3, 2)


@pytest.mark.parametrize("guarded", [False, True])
async def test_a_request_with_too_many_items_is_refused_alone(guarded: bool) -> None:
    router = Router()
    router.route("echo")(lambda payload: payload)
    authorize = (lambda _: True) if guarded else None
    async with loopback(router, authorize=authorize) as peer:
        for metadata in (
            [ROUTE, *EMPTY * 64],
            [MetadataItem(ROUTING, b"\0" * 65)],
            [ROUTE, MetadataItem(ACCEPT_MIME_TYPES, b"\xff" * 65)],
        ):
            with pytest.raises(RequestInvalid, match="metadata with more than 64"):
                await peer.request_response(b"", metadata=metadata)
        assert await peer.request_response(b"x", route="echo") == b"x"


async def test_the_number_of_items_is_a_limit_of_the_server() -> None:
    router = Router()
    router.route("echo")(lambda payload: payload)
    async with loopback(router, limits=Limits(max_items=2)) as peer:
        assert await peer.request_response(b"x", metadata=[ROUTE, *EMPTY]) == b"x"
        with pytest.raises(RequestInvalid, match="metadata with more than 2 items"):
            await peer.request_response(b"x", metadata=[ROUTE, *EMPTY * 2])


# -- payloads in fragments -------------------------------------------------------------------------
SIGNS = Setup(keepalive=1000, lifetime=1_000_000)


def begin_payload(connection: Connection, stream_id: int, size: int, now: float = 0.0) -> None:
    frame = RequestResponse(stream_id, Payload(bytes(size)), follows=True)
    assert connection.receive(wire(frame), now) == []


def refused(connection: Connection) -> list[tuple[int, int]]:
    return [(each.stream_id, each.code) for each in sent(connection) if isinstance(each, Error)]


def test_a_payload_whose_rest_does_not_come_is_given_up() -> None:
    budget = MemoryBudget(1000)
    connection = server(SIGNS, limits=Limits(budget=budget))
    begin_payload(connection, 1, 600)
    assert budget.used == 600
    assert connection.next_deadline() == 20.0
    connection.receive(wire(KeepAlive(True)), 19.0)
    connection.tick(19.9)
    assert budget.used == 600
    assert connection.tick(20.0) == []
    assert refused(connection) == [(1, ErrorCode.INVALID)]
    assert (budget.used, connection.reassemblies.deadline) == (0, None)
    rest = PayloadFrame(1, Payload(b"late"), next=True, complete=True)
    assert not [each for each in connection.receive(wire(rest), 20.0) if isinstance(each, Closed)]


def test_fragments_that_bring_nothing_give_no_time() -> None:
    connection = server(SIGNS, limits=Limits(max_empty_fragments=100))
    begin_payload(connection, 1, 1000)
    for now in range(1, 20):
        more = PayloadFrame(1, Payload(b"."), next=True, follows=True)
        connection.receive(wire(more), float(now))
    connection.tick(connection.next_deadline() or 0.0)
    connection.tick(20.3)
    assert refused(connection) == [(1, ErrorCode.INVALID)]


def test_a_payload_that_keeps_coming_is_waited_for() -> None:
    connection = server(SIGNS)
    begin_payload(connection, 1, 4096)
    for now in range(1, 100):
        more = PayloadFrame(1, Payload(bytes(4096)), next=True, follows=True)
        connection.receive(wire(more), float(now))
        connection.tick(float(now))
    last = PayloadFrame(1, Payload(b"!"), next=True, complete=True)
    received = one(connection.receive(wire(last), 100.0), RequestReceived)
    assert len(received.payload.data) == 4096 * 100 + 1


def test_no_fragment_is_awaited_while_nothing_is_read() -> None:
    connection = server(SIGNS)
    begin_payload(connection, 1, 10)
    connection.pause_reading(10.0)
    connection.tick(50.0)
    connection.resume_reading(50.0)
    assert refused(connection) == []
    connection.tick(70.0)
    assert refused(connection) == [(1, ErrorCode.INVALID)]


def test_unfinished_payloads_of_all_connections_share_a_budget() -> None:
    limits = Limits(budget=MemoryBudget(1000))
    one_side, other_side = server(limits=limits), server(limits=limits)
    begin_payload(one_side, 1, 600)
    begin_payload(other_side, 1, 300)
    begin_payload(other_side, 3, 101)
    assert refused(other_side) == [(3, ErrorCode.INVALID)]
    assert limits.budget.used == 900
    one_side.transport_lost(0.0)
    assert limits.budget.used == 300
    last = PayloadFrame(1, Payload(b"!"), next=True, complete=True)
    one(other_side.receive(wire(last), 0.0), RequestReceived)
    assert limits.budget.used == 0


# -- data that is decoded --------------------------------------------------------------------------
def sized() -> Router:
    """Routes of each way to a decoded payload."""
    router = Router()

    @router.route("direct")
    def direct(payload: Any) -> Any:
        return len(payload)

    @router.route("coroutine")
    async def coroutine(payload: Any) -> Any:
        return len(payload)

    @router.route("request")
    def request(request: Any) -> Any:
        return len(request.payload)

    return router


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda each: each.mime)
@pytest.mark.parametrize("route", ["direct", "coroutine", "request"])
async def test_data_above_the_limit_is_not_decoded(route: str, codec: Codec[Any]) -> None:
    async with loopback(sized(), codec=codec, limits=Limits(max_decoded=100)) as peer:
        assert await peer.request_response("x" * 90, route=route) == 90
        with pytest.raises(RequestInvalid, match=r"bytes of application/.*at most 100"):
            await peer.request_response("x" * 100, route=route)


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda each: each.mime)
async def test_elements_above_the_limit_are_not_decoded(codec: Codec[Any]) -> None:
    router = Router()
    router.route("sizes")(lambda incoming: incoming.map(len))
    async with loopback(router, codec=codec, limits=Limits(max_decoded=100)) as peer:
        sizes = peer.request_channel(["x", "x" * 100], route="sizes")
        with pytest.raises(RequestInvalid, match=r"bytes of application/.*at most 100"):
            await sizes.to_list(limit=9)


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda each: each.mime)
async def test_a_response_above_the_limit_is_not_decoded(codec: Codec[Any]) -> None:
    """A server requests from clients that it does not know, as well."""
    router = {"large": lambda: "x" * 100, "stream": lambda: from_iterable(["x", "x" * 100])}
    async with loopback(router, codec=codec, limits=Limits(max_decoded=100)) as peer:
        with pytest.raises(PayloadError, match=r"at most 100 are .* raise Limits.max_decoded"):
            await peer.request_response(route="large")
        with pytest.raises(PayloadError, match="at most 100"):
            await peer.request_stream(route="stream", codec=codec).to_list(limit=9)


def test_less_of_messagepack_is_decoded_since_each_byte_may_be_an_object() -> None:
    limit, data = 2**20, MSGPACK.encode([[]] * (2**18 - 5))
    for codec, size in ((MSGPACK, 2**18), (typed(list[Any], MSGPACK), 2**18), (JSON, 2**20)):
        with pytest.raises(PayloadError, match=f"at most {size} are decoded"):
            bounded(codec, limit)(bytes(size + 1))
    assert len(bounded(MSGPACK, limit)(data)) == 2**18 - 5
    assert bounded(BYTES, 1) is bytes
    # So few cost nothing, and the limit is that of the application.
    assert bounded(MSGPACK, 2**14)(MSGPACK.encode("x" * 16_000))


@pytest.mark.parametrize(("codec", "data"), [(BYTES, b"x" * 200), (TEXT, "x" * 200)])
async def test_bytes_and_text_may_be_long(codec: Codec[Any], data: Any) -> None:
    async def direct(payload: Any) -> Any:
        return payload

    limits = Limits(max_decoded=100)
    async with loopback({"echo": direct}, codec=codec, limits=limits) as peer:
        assert await peer.request_response(data, route="echo") == data


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda each: each.mime)
def test_large_data_is_decoded_without_the_garbage_collector(codec: Codec[Any]) -> None:
    runs: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        runs.append(phase)

    found = sized().find("direct")
    assert found is not None
    decode, data = found[0].decoder(codec, 2**20), codec.encode([[]] * 100_000)
    gc.callbacks.append(note)
    try:
        assert len(decode(data)) == 100_000
    finally:
        gc.callbacks.remove(note)
    assert len(runs) <= 2, "there were more than 200, one for each 700 lists"
    assert gc.isenabled()


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5000])
def test_depth_and_digits_of_json_are_bounded(data: bytes) -> None:
    with pytest.raises(ValueError, match="is not JSON"):
        JSON.decode(data)


def test_many_errors_of_one_payload_are_counted() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Numbers", values=(list[int], ...))
    data = b'{"values":[' + b'"a",' * 1000 + b"1]}"
    with pytest.raises(ValueError, match="not a valid Numbers: 1000 errors"):
        typed(model).decode(data)


# -- responses that nobody reads -------------------------------------------------------------------
class Slow:
    """The transport of a peer that reads when it is told to."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.written, self.is_reading = driver, b"", True
        self.is_aborted = False
        driver.attach(self)

    def write(self, data: bytes, /) -> None:
        self.written += data
        self.driver.pause_writing()

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.is_aborted = True

    abort = close

    def get_extra_info(self, name: str) -> Any:
        return None

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    async def read_all(self) -> list[Any]:
        while self.driver.connection.has_output:
            self.driver.resume_writing()
            await turns(3)
        found, self.written = read(self.written), b""
        return found


def slow_peer(router: Router, limits: Limits, **options: Any) -> tuple[Driver, Slow]:
    return slow_peer_of(Server(router, limits=limits, **options))


def slow_peer_of(served: Server, setup: Setup | None = None) -> tuple[Driver, Slow]:
    driver = served.new_driver()
    transport = Slow(driver)
    driver.data_received(wire(setup or Setup(1000, 600_000, COMPOSITE)))
    return driver, transport


def asked(route: str, *stream_ids: int, size: int = 0) -> bytes:
    metadata = write_composite([MetadataItem(ROUTING, write_routing(route))])
    return wire(*(RequestResponse(each, Payload(bytes(size), metadata)) for each in stream_ids))


def big() -> Router:
    """Routes of each way to a response of 1000 bytes."""
    router = Router()
    router.route("direct")(lambda: bytes(1000))
    router.route("request")(lambda request: bytes(1000))
    router.route("object")(lambda: Payload(bytes(1000)))

    @router.route("coroutine")
    async def coroutine() -> bytes:
        return bytes(1000)

    return router


COMPOSITE = "message/x.rsocket.composite-metadata.v0"
UNREAD: dict[str, Any] = {"watermark": 2000, "max_unread": 10_000}
IDS = range(1, 200, 2)


LARGE: int = 10_000


async def test_responses_are_refused_while_no_more_may_be_held() -> None:
    router, may_end = Router(), asyncio.Event()

    @router.route("large")
    async def large() -> bytes:
        await may_end.wait()
        return bytes(LARGE)

    limits = Limits(budget=MemoryBudget(5 * LARGE), mtu=1000, watermark=2000)
    driver, peer = slow_peer(router, limits)
    driver.data_received(asked("large", *IDS))
    await turns()
    may_end.set()
    await turns()
    assert limits.budget.used <= limits.budget.most
    assert driver.connection.queued_bytes <= limits.budget.most
    answers = [each for each in await peer.read_all() if each.stream_id]
    refused = [each for each in answers if isinstance(each, Error)]
    sent = [each for each in answers if isinstance(each, PayloadFrame) and each.complete]
    assert {(each.code, each.data) for each in refused} == {
        (ErrorCode.REJECTED, b"too much waits for clients to read it")
    }
    assert len(sent) >= 4
    assert len(sent) + len(refused) == len(IDS)
    driver.connection_lost()
    await turns()


@pytest.mark.parametrize(("budget", "most"), [(2**30, 80), (1, 5)])
async def test_few_streams_have_a_large_first_element_at_a_time(budget: int, most: int) -> None:
    router = Router()
    router.route("large")(lambda: numbers(2).map(lambda _: bytes(LARGE)))
    limits = Limits(budget=MemoryBudget(budget), mtu=1000, watermark=2000)
    driver, peer = slow_peer(router, limits)
    metadata = write_composite([MetadataItem(ROUTING, write_routing("large"))])
    payload = Payload(b"", metadata)
    driver.data_received(wire(*(RequestStream(each, 9, payload) for each in IDS)))
    await turns()
    assert driver.connection.queued_bytes <= most * LARGE
    answers = await peer.read_all()
    ended = [each for each in answers if isinstance(each, PayloadFrame) and each.complete]
    assert len(ended) == len(IDS)
    driver.connection_lost()
    await turns()


@pytest.mark.parametrize("route", ["direct", "coroutine", "request", "object"])
async def test_requests_are_served_while_their_responses_are_read(route: str) -> None:
    driver, peer = slow_peer(big(), Limits(**UNREAD))
    driver.data_received(asked(route, *IDS))
    await turns()
    assert 9_000 < driver.connection.queued_bytes < 12_000
    answers = await peer.read_all()
    assert sorted(each.stream_id for each in answers if each.stream_id) == [*IDS]
    assert not driver.intake.held
    assert driver.connection.streams.remote_count == 0


async def test_a_held_request_that_is_cancelled_is_not_served() -> None:
    router, calls = Router(), list[int]()

    @router.route("direct")
    def direct() -> bytes:
        calls.append(1)
        return bytes(1000)

    driver, peer = slow_peer(router, Limits(**UNREAD))
    driver.data_received(asked("direct", *IDS))
    served = len(calls)
    driver.data_received(wire(*map(Cancel, IDS)))
    await peer.read_all()
    assert not driver.intake.held
    assert len(calls) == served < len(IDS)


async def test_held_requests_are_bounded_and_then_nothing_is_read() -> None:
    driver, peer = slow_peer(big(), Limits(**UNREAD))
    driver.data_received(asked("direct", *IDS))
    await turns()
    assert [peer.is_reading] == [True], "the peer is alive as long as its signs of life are read"
    for stream_id in range(201, 241, 2):
        driver.data_received(asked("direct", stream_id, size=500_000))
    await turns()
    assert driver.intake.held
    assert driver.intake.held_size < 9_000_000
    assert [peer.is_reading] == [False]
    answers = await peer.read_all()
    refusals = [each.stream_id for each in answers if isinstance(each, Error)]
    assert refusals == [*range(241 - 2 * len(refusals), 241, 2)]
    assert 0 < len(refusals) < 5
    assert peer.is_reading


async def test_what_is_not_read_counts_for_the_process() -> None:
    limits = Limits(**UNREAD, budget=MemoryBudget(15_000))
    (one_driver, peer), (other, _) = slow_peer(big(), limits), slow_peer(big(), limits)
    for driver in (one_driver, other):
        driver.data_received(asked("direct", *IDS))
        await turns()
    waiting = sum(each.intake.held_size for each in (one_driver, other))
    queued = one_driver.connection.queued_bytes + other.connection.queued_bytes
    assert limits.budget.used == queued + waiting
    third, _ = slow_peer(big(), limits)
    third.data_received(asked("direct", *IDS))
    assert third.connection.queued_bytes < 4_000
    await peer.read_all()
    for driver in (one_driver, other, third):
        driver.connection_lost()
    assert limits.budget.used == 0


async def test_many_large_responses_wait_and_a_few_do_not() -> None:
    router = Router()
    router.route("large")(lambda: bytes(5_000))
    router.route("small")(lambda: b"small")
    driver, peer = slow_peer(router, Limits(mtu=1000, **UNREAD))
    driver.data_received(asked("large", *range(1, 7, 2)) + asked("small", 7))
    assert not driver.intake.held
    driver.data_received(asked("large", *range(9, 99, 2)) + wire(Cancel(5)))
    assert driver.intake.held
    assert driver.connection.output.rotation.fragmented_count <= 9
    await peer.read_all()
    assert driver.connection.output.rotation.fragmented_count == 0
    assert driver.connection.streams.by_id == {}


# -- the budget of the process ---------------------------------------------------------------------
async def test_a_part_of_a_frame_counts_for_the_process() -> None:
    limits = Limits(**UNREAD, budget=MemoryBudget(40_000))
    whole = asked("direct", 1, size=30_000)
    (first, _), (second, peer) = slow_peer(big(), limits), slow_peer(big(), limits)
    first.data_received(whole[:25_000])
    assert limits.budget.used == 25_000
    second.data_received(whole[:1500])
    second.data_received(whole[1500:20_000])
    await turns()
    assert "holds as much as it may" in str(second.ending.reason)
    assert limits.budget.used == 25_000
    first.data_received(whole[25_000:])
    await turns()
    assert limits.budget.used == 0
    third, peer = slow_peer(big(), limits)
    third.data_received(asked("direct", 1))
    assert [each.stream_id for each in await peer.read_all()] == [1]
    for driver in (first, second, third):
        driver.connection_lost()


async def test_requests_that_wait_count_for_the_process() -> None:
    limits = Limits(**UNREAD, budget=MemoryBudget(60_000))
    (one_driver, _), (other, peer) = slow_peer(big(), limits), slow_peer(big(), limits)
    for driver in (one_driver, other):
        driver.data_received(asked("direct", *IDS))
        await turns()
        for stream_id in range(201, 241, 2):
            driver.data_received(asked("direct", stream_id, size=1000))
        await turns()
        assert driver.intake.held
    waiting = [each.intake.held_size for each in (one_driver, other)]
    queued = [each.connection.queued_bytes for each in (one_driver, other)]
    assert limits.budget.used == sum(waiting) + sum(queued) > 60_000
    assert not peer.is_reading, "it waits for its own requests"
    for driver in (one_driver, other):
        driver.connection_lost()
    assert limits.budget.used == 0


async def test_sessions_count_for_the_process_with_the_memory_they_take() -> None:
    limits = Limits(**UNREAD, budget=MemoryBudget(150_000))
    router = Router()
    router.route("small")(lambda: b"x")
    served = Server(router, limits=limits, resume=Resumption())
    drivers = list[Driver]()
    for number in range(3):
        setup = Setup(1000, 600_000, COMPOSITE, token=b"%d" % number)
        driver, peer = slow_peer_of(served, setup)
        drivers.append(driver)
        driver.data_received(asked("small", *range(1, 1001, 2)))
        while driver.connection.has_more or driver.connection.has_output:
            await peer.read_all()
            await turns(1)
    one_driver, other, third = (driver.connection.held_bytes for driver in drivers)
    assert one_driver == other > 500 * 128
    assert third <= 2000
    assert limits.budget.used == one_driver + other
    for driver in drivers:
        driver.connection_lost()
        driver.ending.end()
    assert limits.budget.used == 0


# -- handlers of cancelled requests ----------------------------------------------------------------
class Cleaning:
    """Handlers of each kind that clean up until they are let go, and how many of them run."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.may_end = asyncio.Event()
        self.router = Router()
        self.router.route("coroutine")(self.coroutine)
        self.router.route("request")(self.with_request)
        self.router.route("stream")(self.stream)

    async def coroutine(self) -> None:
        async for _ in self.stream():
            pass

    async def with_request(self, request: Any) -> None:
        await self.coroutine()

    async def stream(self) -> AsyncIterator[bytes]:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            yield b""
            await asyncio.Event().wait()
        finally:
            await self.may_end.wait()
            self.running -= 1


@pytest.mark.parametrize("route", ["coroutine", "request", "stream"])
async def test_a_cancelled_handler_keeps_its_place_until_it_has_ended(route: str) -> None:
    cleaning = Cleaning()
    driver, _ = slow_peer(cleaning.router, Limits(max_streams=10))
    metadata = write_composite([MetadataItem(ROUTING, write_routing(route))])
    kind = partial(RequestStream, n=2) if route == "stream" else RequestResponse
    for first in range(1, 200, 10):
        ids = range(first, first + 10, 2)
        driver.data_received(wire(*(kind(each, payload=Payload(b"", metadata)) for each in ids)))
        driver.resume_writing()
        await turns()
        driver.data_received(wire(*map(Cancel, ids)))
        await turns()
    assert 10 <= cleaning.most <= 20
    assert driver.intake.ending == cleaning.running
    cleaning.may_end.set()
    await turns()
    assert (driver.intake.ending, cleaning.running) == (0, 0)
    driver.data_received(wire(kind(201, payload=Payload(b"", metadata))))
    await turns()
    assert cleaning.running == 1
    driver.connection_lost()
    await turns()


async def test_requests_wait_for_the_handlers_of_cancelled_ones() -> None:
    cleaning = Cleaning()
    cleaning.router.route("echo")(lambda payload: payload)
    driver, peer = slow_peer(cleaning.router, Limits(max_streams=2))
    driver.data_received(asked("coroutine", 1, 3))
    await turns()
    driver.data_received(wire(Cancel(1), Cancel(3)) + asked("echo", 5))
    await turns()
    assert not driver.connection.has_output
    cleaning.may_end.set()
    await turns()
    assert [each.stream_id for each in await peer.read_all() if each.stream_id] == [5]


@pytest.mark.virtual_time
async def test_a_handler_whose_deadline_has_passed_keeps_its_place() -> None:
    cleaning = Cleaning()
    async with loopback(cleaning.router, limits=Limits(max_streams=2)) as peer:
        for _ in range(2):
            with pytest.raises((TimeoutError, RequestCanceled)):
                await peer.request_response(b"", route="request", timeout=1)
        with pytest.raises((TimeoutError, RequestCanceled)):
            await peer.request_response(b"", route="request", timeout=1)
        assert cleaning.most == 2
        cleaning.may_end.set()
        await turns()


@pytest.mark.parametrize("route", ["coroutine", "request", "stream"])
async def test_handlers_count_for_the_server_when_their_connections_have_ended(route: str) -> None:
    cleaning = Cleaning()
    cleaning.router.route("echo")(lambda payload: payload)
    one_server = Server(cleaning.router)
    one_server._responder.ending_handlers.most = 20
    metadata = write_composite([MetadataItem(ROUTING, write_routing(route))])
    kind = partial(RequestStream, n=2) if route == "stream" else RequestResponse
    for _ in range(40):
        driver, _ = slow_peer_of(one_server)
        driver.data_received(
            wire(*(kind(each, payload=Payload(b"", metadata)) for each in range(1, 31, 2)))
        )
        driver.resume_writing()
        await turns()
        driver.connection_lost()
        await turns()
    most_each, few_each = 15, 8
    assert 20 + most_each + 10 * few_each <= cleaning.running <= 20 * 8 + few_each
    assert one_server._responder.ending_handlers.count == cleaning.running
    healthy, peer = slow_peer_of(one_server)
    healthy.data_received(asked("echo", *IDS) + asked(route, 201, 203))
    answers = await peer.read_all()
    assert len([each for each in answers if each.stream_id in IDS]) == len(IDS)
    cleaning.may_end.set()
    await turns()
    healthy.connection_lost()
    await turns()
    assert (one_server._responder.ending_handlers.count, cleaning.running) == (0, 0)


# -- what leads to nothing -------------------------------------------------------------------------
@pytest.mark.virtual_time
@pytest.mark.parametrize("route", ["coroutine", "request", "quiet"])
async def test_requests_in_vain_are_read_more_slowly(route: str) -> None:
    cleaning = Cleaning()
    cleaning.may_end.set()
    cleaning.router.route("quiet")(lambda: never())
    driver, peer = slow_peer(cleaning.router, Limits())
    metadata = write_composite([MetadataItem(ROUTING, write_routing(route))])
    kind = partial(RequestStream, n=2) if route == "quiet" else RequestResponse
    batches = 0
    while peer.is_reading:
        batches += 1
        ids = range(1000 * batches + 1, 1000 * batches + 401, 2)
        driver.data_received(wire(*(kind(each, payload=Payload(b"", metadata)) for each in ids)))
        await turns(2)
        driver.data_received(wire(*map(Cancel, ids)))
    assert batches == 6, "1000 of them at once are read as they come"
    await asyncio.sleep(0.15)
    assert [peer.is_reading] == [False]
    await asyncio.sleep(0.1)
    assert [peer.is_reading] == [True]
    driver.connection_lost()
    await turns()


@pytest.mark.virtual_time
async def test_requests_whose_deadline_is_too_near_are_read_more_slowly() -> None:
    router = Router()
    router.route("stuck")(lambda request: never())
    async with loopback(router) as peer:
        server: Driver = vars(peer)["_server"]
        for _ in range(2):
            assert not server.line.is_paused
            requests = (peer.request_response(route="stuck", timeout=0.001) for _ in range(600))
            await asyncio.gather(*requests, return_exceptions=True)
            await turns()
        assert server.line.is_paused


@pytest.mark.virtual_time
async def test_a_stream_that_is_cancelled_after_an_element_was_not_in_vain() -> None:
    async with loopback({"n": lambda: iter(range(9))}, codec=JSON) as peer:
        for _ in range(9):
            assert await peer.request_stream(route="n").first() == 0
        assert not vars(peer)["_server"].connection.flood._spent.level


@pytest.mark.virtual_time
async def test_keepalives_that_come_too_often_are_read_more_slowly() -> None:
    driver, peer = slow_peer(Router(), Limits())
    driver.data_received(wire(KeepAlive(True)) * 49)
    await turns()
    assert [peer.is_reading] == [True]
    driver.data_received(wire(KeepAlive(True)) * 30)
    await turns()
    assert [peer.is_reading] == [False]
    await asyncio.sleep(1.1)
    assert [peer.is_reading] == [True]
    assert driver.ending.reason is None
    driver.connection_lost()


async def test_keepalives_that_ask_for_no_answer_are_useless_and_end_the_connection() -> None:
    driver, _ = slow_peer(Router(), Limits())
    driver.data_received(wire(KeepAlive(False)) * 2000)
    await turns(20)
    assert "lead to nothing" in str(driver.ending.reason)
    driver.connection_lost()


# -- the time of a turn ----------------------------------------------------------------------------
async def test_many_requests_of_one_read_are_served_in_several_turns() -> None:
    router, calls, now = Router(), list[int](), 0.0

    @router.route("direct")
    def slow() -> bytes:
        nonlocal now
        now += TIME_SLICE / 4
        calls.append(1)
        return b""

    driver, peer = slow_peer(router, Limits())
    before = set_clock(lambda: now)
    try:
        driver.data_received(asked("direct", *IDS))
        assert 4 <= len(calls) <= 16
        await peer.read_all()
        await turns(100)
    finally:
        set_clock(before)
    assert len(calls) == len(IDS)
    assert not driver.intake.held


class Busy:
    """A driver whose turns take as long as they are told to."""

    def __init__(self, turns: Turns, log: list[str], name: str, took: float) -> None:
        self.turns, self.log, self.name, self.took = turns, log, name, took
        self.is_heavy = self.is_paused = False
        self.unread = b""
        self.loop_handle = LoopHandle()

    def read(self, _: bytes) -> None:
        self.take_turn()

    def take_turn(self) -> None:
        self.unread = b""
        self.log.append(self.name)
        before = self.turns.clock()
        self.turns.clock = lambda: before + self.took
        self.is_paused = False

    def wait_for_turn(self) -> None:
        self.is_paused = True


async def test_busy_connections_take_turns_and_others_do_not_wait_for_them() -> None:
    shared, log = Turns(), list[str]()
    shared.clock = lambda: 0.0
    busy: list[Any] = [Busy(shared, log, f"busy {n}", 0.004) for n in range(6)]
    healthy: Any = Busy(shared, log, "healthy", 0.0001)
    for each in busy:
        shared.run(each)  # the first turn of each
    await turns(1)
    log.clear()
    for each in [*busy, healthy]:
        shared.run(each)
    assert log == ["busy 0", "busy 1", "busy 2", "healthy"]
    assert [each.is_paused for each in busy] == [False] * 3 + [True] * 3
    shared.run(busy[0])
    await turns(1)
    assert log[4:] == ["busy 3", "busy 4", "busy 5"]
    await turns(1)
    assert log[7:] == ["busy 0"]
    assert not any(each.is_paused for each in busy)


async def test_what_peers_ask_for_in_one_read_counts_for_their_turns() -> None:
    shared, log = Turns(), list[str]()
    shared.clock = lambda: 0.0
    busy: list[Any] = [Busy(shared, log, f"busy {n}", 0.02) for n in range(4)]
    healthy: Any = Busy(shared, log, "healthy", 0.0001)
    for each in [*busy, healthy]:  # which become readable at the same time
        shared.read(each, b"x")
    assert log == ["busy 0", "busy 1"]
    assert [each.is_paused for each in (*busy, healthy)] == [False] * 2 + [True] * 3
    shared.read(healthy, b"y")  # what TLS has decrypted already
    assert healthy.unread == b"xy"
    for more in ["busy 2"], ["busy 3"], ["healthy"]:
        log.clear()
        await turns(1)
        assert log == more


async def test_what_a_peer_has_sent_while_others_had_their_turns_is_read() -> None:
    router = Router()
    router.route("echo")(lambda payload: payload)
    driver, peer = slow_peer(router, Limits())
    shared: Turns = vars(driver)["_responder"].turns
    await peer.read_all()
    for ending in (False, True):
        shared._spent = 1.0
        driver.data_received(asked("echo", 1 + 2 * ending))
        assert not driver.connection.has_output
        assert [peer.is_reading] == [False]
        if ending:
            driver.connection_lost()
        await turns()
    answers = [each.stream_id for each in read(peer.written) if isinstance(each, PayloadFrame)]
    assert answers == [1]
    assert driver.connection.streams.highest_remote_id == 3, "it was read before the end"


async def test_a_connection_that_waits_for_its_turn_is_not_read() -> None:
    router = Router()
    router.route("echo")(lambda payload: payload)
    driver, peer = slow_peer(router, Limits())
    shared: Turns = vars(driver)["_responder"].turns
    await peer.read_all()
    driver.is_heavy, shared._spent = True, ROUND
    driver.schedule_turn()
    shared._schedule(driver)
    await turns(1)
    assert [peer.is_reading] == [True], "the next iteration has begun"
    driver.is_heavy, shared._spent = True, ROUND
    shared.run(driver)
    assert [peer.is_reading] == [False]
    driver.data_received(asked("echo", 1))
    await turns()
    assert [peer.is_reading] == [True]
    assert [each.stream_id for each in read(peer.written) if isinstance(each, PayloadFrame)] == [1]
    driver.schedule_turn()
    driver.data_received(wire(KeepAlive(True)))  # which runs the turn that is scheduled
    driver.is_heavy, shared._spent = True, ROUND
    await turns()
    assert [peer.is_reading] == [True]
    driver.connection_lost()


async def test_many_frames_of_one_read_are_read_in_several_turns() -> None:
    driver, peer = slow_peer(Router(), Limits())
    frames = wire(Cancel(1)) * 450
    driver.data_received(frames)
    assert driver.connection.has_more
    assert [peer.is_reading] == [False]
    await turns(6)
    assert [driver.connection.has_more, peer.is_reading] == [False, True]
    driver.data_received(frames)
    assert driver.connection.has_more
    driver.connection_lost()
    assert [driver.connection.has_more] == [False], "what has come before the end is read"
