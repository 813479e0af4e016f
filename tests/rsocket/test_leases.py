"""Leases: requests wait for a lease, and are refused without one."""

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable, interval, just, never
from reactive_aio.errors import TimedOut
from reactive_aio.rsocket import (
    JSON,
    ClientOptions,
    ConnectionLost,
    Lease,
    Limits,
    Request,
    Requester,
    RequestRejected,
    ResponderOptions,
    Router,
    SetupRejected,
    connect,
    loopback,
)
from reactive_aio.testing.probes import PublisherProbe, SubscriberProbe

from .loop_turns import turns

router = Router()
WANTED = ClientOptions(lease=True)


@router.route("one")
def one() -> int:
    return 1


@router.route("range.{n}")
def count(n: int) -> Flow[int]:
    return from_iterable(range(n))


@router.route("plus")
def plus(incoming: Flow[int]) -> Flow[int]:
    return incoming.map(lambda n: n + 1)


@pytest.mark.virtual_time
async def test_requests_wait_for_a_lease_and_are_sent_in_order() -> None:
    leases = interval(10).map(lambda _: Lease(2, ttl=100))
    clock = asyncio.get_running_loop().time
    came: list[tuple[int, float]] = []

    async def ask(number: int) -> None:
        await requester.request_response(route="one")
        came.append((number, clock()))

    async with loopback(router, codec=JSON, client=WANTED, leases=lambda _: leases) as requester:
        await asyncio.gather(*map(ask, range(5)))
    assert came == [(0, 10), (1, 10), (2, 20), (3, 20), (4, 30)]


@pytest.mark.virtual_time
async def test_all_models_wait_for_a_lease() -> None:
    leases: PublisherProbe[Lease] = PublisherProbe()
    async with loopback(router, codec=JSON, client=WANTED, leases=lambda _: leases) as requester:
        stream = asyncio.create_task(requester.request_stream(route="range.3").to_list(limit=3))
        channel = asyncio.create_task(
            requester.request_channel([1, 2], route="plus").to_list(limit=3)
        )
        forgotten = asyncio.create_task(requester.fire_and_forget(route="one"))
        left: SubscriberProbe[int] = SubscriberProbe(request=1)
        requester.request_stream(route="range.3").subscribe(left)
        await asyncio.sleep(5)
        left.cancel()
        assert not (stream.done())
        assert not (channel.done())
        assert not (forgotten.done())
        leases.emit(Lease(3, ttl=100))
        assert await stream == [0, 1, 2]
        assert await channel == [2, 3]
        await forgotten
        assert left.elements == []


@pytest.mark.virtual_time
async def test_the_next_lease_is_requested_when_one_is_used_up_or_expired() -> None:
    asked: list[int] = []
    leases = from_iterable(Lease(1, ttl=10) for _ in range(9)).do_on_request(asked.append)
    async with loopback(router, codec=JSON, client=WANTED, leases=lambda _: leases) as requester:
        await requester.request_response(route="one")
        await turns()
        assert asked == [1, 1]
        await asyncio.sleep(25)
        assert asked == [1, 1, 1, 1]


@pytest.mark.virtual_time
async def test_the_timeout_includes_the_wait_for_a_lease() -> None:
    async with loopback(router, codec=JSON, client=WANTED, leases=lambda _: never()) as requester:
        with pytest.raises(TimedOut, match="within 3 s"):
            await requester.request_response(route="one", timeout=3)
        with pytest.raises(TimedOut):
            await requester.request_stream(route="range.3", timeout=3).to_list(limit=3)
        assert not requester._driver.held_requests


async def test_the_end_of_the_connection_fails_requests_that_wait_for_a_lease() -> None:
    requester = loopback(router, codec=JSON, client=WANTED, leases=lambda _: never())
    asks = (
        requester.request_response(route="one"),
        requester.fire_and_forget(route="one"),
        requester.request_stream(route="range.3").to_list(limit=3),
        requester.request_channel([1], route="plus").to_list(limit=3),
    )
    tasks = [asyncio.create_task(each) for each in asks]
    await turns()
    await requester.aclose()
    for task in tasks:
        with pytest.raises(ConnectionLost):
            await task


async def test_a_request_without_a_lease_is_rejected() -> None:
    async with loopback(
        router, codec=JSON, client=WANTED, leases=lambda _: just(Lease(1, ttl=100))
    ) as requester:
        held = requester._driver.connection.received_lease
        assert held is not None
        await requester.request_response(route="one")
        held.grant(5, 100, requester._driver.loop_handle.time())  # the client assumes a lease
        with pytest.raises(RequestRejected, match="no lease"):
            await requester.request_response(route="one")


async def test_a_server_without_leases_refuses_clients_that_require_them() -> None:
    async with loopback(router, codec=JSON, client=WANTED) as requester:
        with pytest.raises(SetupRejected, match="no leases"):
            await requester.request_stream(route="range.3").to_list(limit=3)


@pytest.mark.virtual_time
async def test_requests_of_the_server_need_leases_of_the_client() -> None:
    answers = Router()
    asked: list[float] = []

    @answers.route("name")
    def name(request: Request) -> str:
        asked.append(asyncio.get_running_loop().time())
        return "ann"

    got: asyncio.Queue[Any] = asyncio.Queue()

    async def hello(peer: Requester[Any]) -> None:
        for _ in range(2):
            await got.put(await peer.request_response(route="name"))

    granting = ResponderOptions(leases=lambda _: interval(7).map(lambda _: Lease(1, ttl=100)))
    async with loopback(
        router,
        codec=JSON,
        client=ClientOptions(lease=True, router=answers, responder_options=granting),
        leases=lambda _: never(),
        on_connect=hello,
    ):
        assert [await got.get(), await got.get()] == ["ann", "ann"]
    assert asked == [7, 14]


async def test_the_lease_publisher_is_cancelled_when_the_connection_ends() -> None:
    leases: PublisherProbe[Lease] = PublisherProbe()
    async with loopback(
        router, codec=JSON, client=WANTED, leases=lambda _: leases, limits=Limits()
    ):
        await turns()
    await leases.expect_cancel()


async def test_the_lease_publisher_is_cancelled_when_connecting_fails() -> None:
    leases: PublisherProbe[Lease] = PublisherProbe()
    granting = ResponderOptions(leases=lambda _: leases)
    with pytest.raises(ConnectionLost):
        await connect("tcp://127.0.0.1:1", lease=True, router=router, responder_options=granting)
    await leases.expect_cancel()


@pytest.mark.parametrize(("requests", "ttl"), [(0, 1), (2**31, 1), (1, 0), (1, 2**31)])
def test_an_invalid_lease_is_refused(requests: int, ttl: float) -> None:
    with pytest.raises(ValueError, match=r"requests|ttl"):
        Lease(requests, ttl)
