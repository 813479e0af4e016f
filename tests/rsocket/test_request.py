"""The metadata of requests: items, caching, deadlines."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow, just, never
from reactive_aio.errors import TimedOut
from reactive_aio.rsocket import (
    JSON,
    ClientOptions,
    MetadataItem,
    Request,
    RequestCanceled,
    Requester,
    RequestInvalid,
    Router,
    loopback,
)
from reactive_aio.rsocket.protocol.metadata import (
    AUTHENTICATION,
    ROUTING,
    TRACING_ZIPKIN,
    write_composite,
    write_routing,
)
from reactive_aio.rsocket.protocol.request_metadata import DEADLINE
from reactive_aio.rsocket.serving.plans import Plans
from reactive_aio.rsocket.serving.responder import CODECS
from reactive_aio.rsocket.serving.route_stats import Counters
from reactive_aio.testing.probes import SubscriberProbe

from .loop_turns import turns

either = Router()


@either.route("echo")
def echo(payload: Any) -> Any:
    return payload


async def test_handlers_read_metadata_and_forward_it() -> None:
    behind, front = Router(), Router()
    seen: list[Any] = []

    @behind.route("end")
    def end(request: Request) -> int:
        seen.append(request.tracing)
        return 1

    async with loopback(behind, codec=JSON) as other:

        @front.route("begin")
        async def begin(request: Request) -> Any:
            seen.append(request.item("application/x.tenant"))
            return await other.request_response(route="end", metadata=request.tracing)

        trace = MetadataItem(TRACING_ZIPKIN, b"\x80\0\0\0\0\0\0\0\1")
        async with loopback(front, codec=JSON) as requester:
            tenant = ("application/x.tenant", b"me")
            await requester.request_response(route="begin", metadata=[trace, tenant])
    assert seen == [b"me", (trace,)]


async def test_metadata_push_calls_the_registered_function() -> None:
    got: asyncio.Queue[Any] = asyncio.Queue()
    routes, answers = Router(), Router()

    @routes.on_metadata_push
    async def pushed(metadata: tuple[MetadataItem, ...], user: Any, peer: Requester[Any]) -> None:
        await got.put((metadata, user))
        peer.metadata_push(("application/x.back", b"2"))

    @answers.on_metadata_push
    def pushed_back(metadata: tuple[MetadataItem, ...]) -> None:
        got.put_nowait(metadata)

    with pytest.raises(ValueError, match="already"):
        routes.on_metadata_push(pushed_back)
    with pytest.raises(ValueError, match="unknown iterable, self"):
        Router().on_metadata_push(str.join)
    async with loopback(
        routes, client=ClientOptions(router=answers), authenticate=lambda _: "ann", codec=JSON
    ) as requester:
        requester.metadata_push(("application/x.there", b"1"))
        assert await got.get() == ((MetadataItem("application/x.there", b"1"),), "ann")
        assert await got.get() == (MetadataItem("application/x.back", b"2"),)


async def test_without_composite_metadata_a_request_has_one_item() -> None:
    async with loopback(
        either, codec=JSON, client=ClientOptions(metadata_mime=ROUTING)
    ) as requester:
        assert await requester.request_response(5, route="echo") == 5
        with pytest.raises(ValueError, match="whose metadata is"):
            await requester.request_response(5, route="echo", timeout=3)


async def test_what_metadata_mean_is_kept_without_credentials() -> None:
    plans = Plans(either, CODECS, Counters())
    async with loopback(either) as requester:
        connection = requester._driver.connection
        for number in range(300):
            metadata = write_composite([(ROUTING, write_routing(f"r{number}"))])
            assert plans.find(connection, metadata).envelope.route == f"r{number}"
        known = plans.known(connection.setup)
        assert len(known) < 300
        before = len(known)
        secret = write_composite([(AUTHENTICATION, b"\x81token")])
        assert plans.find(connection, secret).envelope.items[0].content == b"\x81token"
        plans.find(connection, write_composite([("application/x.long", bytes(300))]))
        assert len(known) == before


# -- deadlines -------------------------------------------------------------------------------------
class Slow:
    """A router whose handlers never end by themselves."""

    def __init__(self) -> None:
        self.router = Router()
        self.ended_handlers: list[str] = []
        self.seen: list[float | None] = []
        self.router.route("task")(self.task)
        self.router.route("flow")(self.flow)
        self.router.route("deaf")(self.deaf)

    async def task(self, request: Request) -> int:
        self.seen.append(request.remaining)
        try:
            await asyncio.Event().wait()
        finally:
            self.ended_handlers.append("task")
        return 1

    def flow(self, request: Request) -> Flow[int]:
        return just(1).concat_with(never()).do_on_cancel(lambda: self.ended_handlers.append("flow"))

    async def deaf(self, request: Request) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            self.ended_handlers.append("deaf")


@pytest.mark.virtual_time
async def test_a_timeout_cancels_the_request() -> None:
    slow = Slow()
    clock = asyncio.get_running_loop().time
    async with loopback(slow.router, codec=JSON) as requester:
        began = clock()
        with pytest.raises(TimedOut, match="within 2 s"):
            await requester.request_response(route="task", timeout=2)
        assert clock() - began == pytest.approx(2)
        assert slow.seen == [pytest.approx(2)]
        with pytest.raises(TimedOut, match="did not end within 3 s"):
            await requester.request_stream(route="flow", timeout=3).to_list(limit=9)
        with pytest.raises(TimedOut):
            await requester.request_channel([1, 2], route="deaf", timeout=3).to_list(limit=9)
        await turns()
        assert slow.ended_handlers == ["task", "flow", "deaf"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("route", ["task", "flow", "deaf"])
async def test_the_responder_enforces_the_deadline_by_itself(route: str) -> None:
    slow = Slow()
    metadata = [MetadataItem(DEADLINE, (1500).to_bytes(4, "big"))]  # the client does not enforce it
    async with loopback(slow.router, codec=JSON) as requester:
        probe: SubscriberProbe[Any] = SubscriberProbe(request=9)
        requester.request_stream(route=route, metadata=metadata).subscribe(probe)
        await probe.end()
        assert isinstance(probe.error, RequestCanceled)
        assert probe.error.data == b"the deadline has passed"
        assert slow.ended_handlers == [route]


@pytest.mark.virtual_time
async def test_a_request_that_ends_in_time_cancels_its_timer() -> None:
    async with loopback(either, codec=JSON, authorize=lambda _: True) as requester:
        assert await requester.request_response(1, route="echo", timeout=1) == 1
        assert await requester.request_stream(1, route="echo", timeout=1).to_list(limit=2) == [1]
        await asyncio.sleep(5)
        assert await requester.request_response(1, route="echo") == 1


async def test_a_malformed_deadline_is_an_invalid_request() -> None:
    async with loopback(either, codec=JSON) as requester:
        with pytest.raises(RequestInvalid, match="a deadline of 3 bytes"):
            await requester.request_response(1, route="echo", metadata=[(DEADLINE, b"abc")])
        with pytest.raises(ValueError, match="timeout"):
            await requester.request_response(1, route="echo", timeout=-1)
