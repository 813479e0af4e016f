"""Honest clients are never a flood: what exceeds a limit waits, or is rejected one by one."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.errors import TimedOut
from reactive_aio.rsocket import (
    JSON,
    ConnectionLost,
    Limits,
    Requester,
    RequestRejected,
    Router,
    connect,
    loopback,
    serve,
)
from reactive_aio.rsocket.link.held_requests import HeldRequests
from reactive_aio.rsocket.protocol.errors import MustWait, TooManyRequests
from reactive_aio.rsocket.protocol.events import Closed
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    Error,
    ErrorCode,
    Payload,
    PayloadFrame,
    RequestN,
    RequestResponse,
    RequestStream,
)
from reactive_aio.testing.probes import SubscriberProbe

from .loop_turns import turns
from .wire import carry, client, pair, sent, server, wire

router = Router()
UNKNOWING = Limits(max_requests=1_000_000)
"""Of a client that does not know the limit of the server."""


@router.route("slow")
async def slow(payload: int) -> int:
    await asyncio.sleep(0)
    return payload


@router.route("stuck")
async def stuck() -> None:
    await asyncio.Event().wait()


@router.route("ticks")
async def ticks() -> AsyncIterator[int]:
    for number in range(10**9):
        yield number


@router.route("echo")
def echo(incoming: Flow[int]) -> Flow[int]:
    return incoming


class Bystander:
    """A stream that lives as long as its connection."""

    def __init__(self, requester: Requester[Any]) -> None:
        self.probe: SubscriberProbe[Any] = SubscriberProbe()
        requester.request_stream(route="ticks").subscribe(self.probe)

    async def is_alive(self) -> bool:
        self.probe.request(1)
        await self.probe.wait_for_signals(1)
        return self.probe.error is None


# -- the client holds requests back ----------------------------------------------------------------
async def test_gathered_requests_beyond_the_limit_wait_and_are_answered() -> None:
    async with (
        await serve("tcp://127.0.0.1:0", router) as served,
        await connect(served.uri, codec=JSON) as requester,
    ):
        bystander = Bystander(requester)
        requests = (requester.request_response(n, route="slow") for n in range(2500))
        assert await asyncio.gather(*requests) == [*range(2500)]
        assert await bystander.is_alive()


@pytest.mark.thorough
async def test_ten_thousand_gathered_requests_are_answered() -> None:
    async with (
        await serve("tcp://127.0.0.1:0", router) as served,
        await connect(served.uri, codec=JSON) as requester,
    ):
        requests = (requester.request_response(n, route="slow") for n in range(10_000))
        assert await asyncio.gather(*requests) == [*range(10_000)]


async def test_requests_of_all_models_are_held_back_in_their_order() -> None:
    order: list[int] = []
    routes, gate = Router(), asyncio.Event()

    @routes.route("first")
    async def first() -> None:
        await gate.wait()

    @routes.route("log")
    def log(payload: int) -> int:
        order.append(payload)
        return payload

    @routes.route("channel")
    def channel(payload: int, incoming: Flow[int]) -> Flow[int]:
        order.append(payload)
        return incoming

    async with loopback(routes, codec=JSON, limits=Limits(max_requests=1)) as requester:
        waiting = asyncio.ensure_future(requester.request_response(route="first"))
        await turns()
        tasks: list[asyncio.Future[Any]] = []
        for at in range(0, 12, 4):
            calls: list[Any] = [
                requester.request_response(at, route="log"),
                requester.fire_and_forget(at + 1, route="log"),
                requester.request_stream(at + 2, route="log").to_list(limit=1),
                requester.request_channel([at + 3], route="channel").to_list(limit=1),
            ]
            for call in calls:
                tasks.append(asyncio.ensure_future(call))
                await turns()
        assert order == []
        gate.set()
        await asyncio.gather(*tasks)
        with pytest.raises(Exception, match="without an element"):
            await waiting
    assert sorted(order) == [*range(12)]
    assert [each for each in order if each % 4 < 3] == [n for n in range(12) if n % 4 < 3]


@pytest.mark.virtual_time
async def test_a_request_that_is_held_can_be_given_up() -> None:
    async with loopback(router, codec=JSON, limits=Limits(max_requests=1)) as requester:
        first = asyncio.ensure_future(requester.request_response(route="stuck"))
        await turns()
        with pytest.raises(TimedOut, match="within 3 s"):
            await requester.request_response(1, route="slow", timeout=3)
        with pytest.raises(TimedOut):
            await requester.request_stream(route="ticks", timeout=3).first()
        cancelled = asyncio.ensure_future(requester.fire_and_forget(1, route="slow"))
        probe: SubscriberProbe[Any] = SubscriberProbe(request=1)
        requester.request_channel([1], route="echo").subscribe(probe)
        await turns()
        cancelled.cancel()
        probe.cancel()
        await turns()
        assert not requester._driver.held_requests
        first.cancel()
        await turns()
        assert await requester.request_response(1, route="slow") == 1


async def test_the_end_of_the_connection_fails_requests_that_are_held() -> None:
    requester = loopback(router, codec=JSON, limits=Limits(max_requests=1))
    tasks: list[asyncio.Future[Any]] = [
        asyncio.ensure_future(requester.request_response(route="stuck"))
    ]
    await turns()
    calls: list[Any] = [
        requester.request_response(1, route="slow"),
        requester.fire_and_forget(1, route="slow"),
        requester.request_stream(route="ticks").first(),
        requester.request_channel([1], route="echo").first(),
    ]
    tasks += [asyncio.ensure_future(call) for call in calls]
    await turns()
    assert len(requester._driver.held_requests) == 4
    await requester.aclose()
    for task in tasks:
        with pytest.raises(ConnectionLost):
            await task


async def test_a_channel_whose_first_element_comes_late_waits_for_room() -> None:
    async def later() -> AsyncIterator[int]:
        await turns(20)
        yield 1

    async with loopback(router, codec=JSON, limits=Limits(max_requests=1)) as requester:
        channel = asyncio.ensure_future(
            requester.request_channel(later(), route="echo").to_list(limit=9)
        )
        await turns(10)
        stuck = asyncio.ensure_future(requester.request_response(route="stuck"))
        await turns(60)
        assert not channel.done()
        assert len(requester._driver.held_requests) == 1
        stuck.cancel()
        assert await channel == [1]


def test_a_request_beyond_the_limit_must_wait() -> None:
    connection = client(limits=Limits(max_requests=2))
    connection.request_response(Payload())
    connection.request_stream(Payload(), 1)
    for request in (connection.request_response, connection.fire_and_forget):
        with pytest.raises(TooManyRequests, match="2 requests are open"):
            request(Payload())
    connection.cancel(1)
    assert connection.request_response(Payload()) == 5


def test_requests_are_released_in_their_order_until_one_must_wait() -> None:
    held, room, done = HeldRequests(), [0], list[str]()
    failed: list[BaseException] = []

    def request(name: str) -> Any:
        def send() -> None:
            if name == "broken":
                raise ValueError(name)
            if not room[0]:
                raise MustWait(name)
            room[0] -= 1
            done.append(name)

        return send

    assert not held.send("a", request("a"), failed.append)
    room[0] = 2
    broken = request("broken")
    assert not held.send("broken", broken, failed.append), "behind the first"
    for name in "bc":
        assert not held.send(name, request(name), failed.append)
    assert held.release()
    assert (done, len(held)) == (["a", "b"], 1)
    assert [str(error) for error in failed] == ["broken"]
    assert not held.release()
    held.fail_all(OSError("end"))
    assert [str(error) for error in failed] == ["broken", "end"]
    room[0] = 1
    assert held.send("d", request("d"), failed.append)
    with pytest.raises(ValueError, match="broken"):
        held.send("broken", broken, failed.append)


# -- the server stays, whatever an honest client does ----------------------------------------------
async def test_requests_beyond_the_limit_of_the_server_are_rejected_one_by_one() -> None:
    async with (
        await serve("tcp://127.0.0.1:0", router) as served,
        await connect(served.uri, codec=JSON, limits=UNKNOWING) as requester,
    ):
        bystander = Bystander(requester)
        requests = (requester.request_response(n, route="slow") for n in range(4000))
        results: list[Any] = await asyncio.gather(*requests, return_exceptions=True)
        failed = [each for each in results if isinstance(each, BaseException)]
        assert len(failed) > 1000
        assert {type(each) for each in failed} == {RequestRejected}
        assert await bystander.is_alive()


async def test_all_streams_may_be_cancelled_together() -> None:
    async with (
        await serve("tcp://127.0.0.1:0", router) as served,
        await connect(served.uri, codec=JSON) as requester,
    ):
        bystander = Bystander(requester)
        for _ in range(2):
            probes = [SubscriberProbe[Any](request=3) for _ in range(1020)]
            for probe in probes:
                requester.request_stream(route="ticks").subscribe(probe)
            await probes[-1].wait_for_signals(2)
            for probe in probes:
                probe.cancel()
        assert await bystander.is_alive()


@pytest.mark.virtual_time
async def test_requests_may_time_out_together() -> None:
    async with loopback(router, codec=JSON) as requester:
        bystander = Bystander(requester)
        for _ in range(6):
            requests = (requester.request_response(route="stuck", timeout=0.1) for _ in range(600))
            results: list[Any] = await asyncio.gather(*requests, return_exceptions=True)
            assert {type(each) for each in results} == {TimedOut}
        await asyncio.sleep(2)  # the connection is read more slowly after so many of them
        assert await bystander.is_alive()


def test_rejected_requests_are_not_a_flood() -> None:
    connection = server(limits=Limits(max_streams=1))
    frames = [RequestResponse(number) for number in range(1, 10_001, 2)]
    events = connection.receive(wire(*frames), 0.0)
    assert not [each for each in events if isinstance(each, Closed)]
    rejected = [each for each in sent(connection) if isinstance(each, Error)]
    assert len(rejected) == len(frames) - 1
    assert {each.code for each in rejected} == {ErrorCode.REJECTED}


def test_cancelled_streams_are_not_a_flood() -> None:
    connection = server(limits=Limits(max_streams=5000))
    ids = range(1, 10_001, 2)
    connection.receive(wire(*(RequestStream(each, 9) for each in ids)), 0.0)
    events = connection.receive(wire(*(Cancel(each) for each in ids)), 0.0)
    assert not [each for each in events if isinstance(each, Closed)]
    assert not connection.streams.by_id


def test_demand_that_is_late_is_not_a_flood() -> None:
    connection = server(limits=Limits(max_streams=5000))
    ids = range(1, 1001, 2)
    connection.receive(wire(*(RequestStream(each, 9) for each in ids)), 0.0)
    for each in ids:
        connection.fail_stream(each, 0x201)
    sent(connection)
    late = [RequestN(each, 1) for each in ids for _ in range(20)]
    assert connection.receive(wire(*late), 0.0) == []


def test_a_client_may_cancel_what_it_has_just_requested() -> None:
    connection = server()
    pairs = b"".join(wire(RequestStream(each, 1), Cancel(each)) for each in range(1, 8001, 2))
    events = connection.receive(pairs, 0.0)
    assert not [each for each in events if isinstance(each, Closed)]


def test_fragments_of_a_cancelled_download_are_not_a_flood() -> None:
    connection = client()
    stream_id = connection.request_response(Payload())
    sent(connection)
    connection.cancel(stream_id)
    late = [PayloadFrame(stream_id, Payload(b"x"), follows=True)] * 5000
    events = connection.receive(wire(*late, PayloadFrame(stream_id, complete=True)), 0.0)
    assert events == []


def test_ids_may_begin_again() -> None:
    connection = server()
    connection.receive(wire(RequestResponse(2**31 - 1)), 0.0)
    events = connection.receive(wire(*(RequestResponse(n) for n in range(1, 4001, 2))), 0.0)
    assert not [each for each in events if isinstance(each, Closed)]
    assert connection.streams.highest_remote_id == 3999


def test_a_client_below_the_limit_is_never_rejected() -> None:
    """What this side counts as open is at least what the peer does."""
    limits = Limits(max_streams=4, max_requests=4)
    asking, answering = pair(limits=limits)
    opened: list[int] = []
    for turn in range(60):
        try:
            while True:
                opened.append(asking.request_stream(Payload(), 1))
        except MustWait:
            pass
        if turn % 3 == 0:
            asking.cancel(opened[-1])
        carry(asking, answering)
        for stream_id in opened[: 1 + turn % 2]:
            answering.complete(stream_id)
        del opened[: 1 + turn % 2]
        events = carry(answering, asking)
        assert not [each for each in events if getattr(each, "code", 0) == ErrorCode.REJECTED]
