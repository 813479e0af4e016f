"""Requests that are balanced over several servers."""

import asyncio
import socket
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest
from anyio import CancelScope

from reactive_aio import Flow, RetryPolicy, from_iterable, just, never
from reactive_aio.errors import TimedOut
from reactive_aio.rsocket import (
    JSON,
    BalancedClient,
    BearerToken,
    Client,
    ConnectionLost,
    Request,
    RequestRejected,
    Router,
    Server,
    ServerState,
    SetupRejected,
    connect_balanced,
    serve,
)
from reactive_aio.rsocket.balance import Member, choose
from reactive_aio.rsocket.protocol.errors import ApplicationError
from reactive_aio.testing.probes import SubscriberProbe

SOON = RetryPolicy(attempts=None, delay=0.001, factor=1)
LOST = ConnectionLost(0x101, b"gone")


# -- the decision ----------------------------------------------------------------------------------
class Fake:
    """The part of a client that the decision sees."""

    def __init__(self) -> None:
        self.is_closed = False
        self.may_request = True


def member(name: str, *, is_checked: bool = False) -> tuple[Member[Any], Fake]:
    found: Member[Any] = Member(name, is_checked=is_checked)
    fake: Any = Fake()
    found.connected(fake)
    return found, fake


def picks(members: list[Member[Any]], now: float = 0.0) -> Counter[str]:
    """The servers chosen by all pairs of random numbers."""
    numbers = [n / 12 for n in range(12)]
    chosen = [choose(members, now, one, two) for one in numbers for two in numbers]
    return Counter(each.uri for each in chosen if each is not None)


def test_the_one_with_less_to_do_is_chosen_of_two() -> None:
    (one, _), (two, _) = member("one"), member("two")
    one.begin()
    assert picks([one, two]) == {"two": 144}
    two.begin()
    two.begin()
    assert picks([one, two]) == {"one": 144}


def test_the_faster_one_is_chosen_of_two() -> None:
    (one, _), (two, _) = member("one"), member("two")
    one.responded(1.0, 0.0)
    two.responded(0.1, 0.0)
    for _ in range(8):
        two.begin()
    assert picks([one, two]) == {"two": 144}
    two.begin()
    two.begin()
    assert picks([one, two]) == {"one": 144}


def test_equal_servers_are_chosen_equally() -> None:
    members = [member(name)[0] for name in ("one", "two", "three", "four")]
    assert sorted(picks(members).values()) == [36, 36, 36, 36]


def test_recent_responses_count_most() -> None:
    one, _ = member("one")
    one.responded(1.0, 0.0)
    assert one.latency == 1.0
    one.responded(2.0, 0.0)
    assert one.latency == pytest.approx(1.2)


def test_a_server_that_was_slow_once_is_tried_again() -> None:
    (one, _), (two, _) = member("one"), member("two")
    one.responded(1.0, 0.0)
    for now in range(40):
        two.responded(0.1, float(now))
        expected = {"two": 144} if now < 34 else {"one": 144}
        assert picks([one, two], float(now)) == expected
    one.responded(0.1, 39.0)
    assert one.latency is not None
    assert one.latency < 0.2, "one response is enough, since those before are old"


def test_a_server_that_is_closing_or_closed_gets_nothing() -> None:
    (one, first), (two, second) = member("one"), member("two")
    first.may_request = False
    assert picks([one, two]) == {"two": 144}
    assert one.state(0) is ServerState.DRAINING
    second.is_closed = True
    assert picks([one, two]) == {}
    assert two.state(0) is ServerState.CONNECTING


def test_a_server_whose_requests_fail_rests_for_a_time() -> None:
    (one, _), (two, _) = member("one"), member("two")
    for _ in range(2):
        one.failed(LOST, 10.0)
    assert one.state(10.0) is ServerState.READY
    one.failed(TimedOut("late"), 10.0)
    assert one.state(10.5) is ServerState.RESTING
    assert picks([one, two], 10.5) == {"two": 144}
    assert one.state(11.0) is ServerState.READY
    one.failed(LOST, 11.0)
    assert one.state(12.5) is ServerState.RESTING
    assert one.state(13.0) is ServerState.READY
    one.responded(0.1, 13.0)
    one.failed(LOST, 13.0)
    assert one.state(13.0) is ServerState.READY


def test_all_rest_but_one_is_chosen_all_the_same() -> None:
    (one, _), (two, _) = member("one"), member("two")
    for each in (one, two):
        for _ in range(3):
            each.failed(LOST, 0.0)
    assert picks([one, two]).total() == 144


def test_an_error_that_the_server_sends_is_not_a_failure_of_the_server() -> None:
    one, _ = member("one")
    for _ in range(2):
        one.failed(LOST, 0.0)
    one.failed(ApplicationError(0x400), 0.0)
    one.failed(LOST, 0.0)
    assert one.snapshot(0.0).failures == 1


def test_a_checked_server_is_unhealthy_until_its_check_has_passed() -> None:
    one, _ = member("one", is_checked=True)
    assert one.state(0) is ServerState.UNHEALTHY
    one.checked(None)
    assert one.state(0) is ServerState.READY
    one.checked(RuntimeError("no disk"))
    assert one.state(0) is ServerState.UNHEALTHY
    assert str(one.snapshot(0).error) == "no disk"


# -- servers ---------------------------------------------------------------------------------------
class Servers:
    """Servers that say which one they are."""

    def __init__(self) -> None:
        self.healthy: dict[str, bool] = {}
        self.requested: Counter[str] = Counter()
        self.uris: list[str] = []
        self.servers: list[Server] = []
        self._stack = AsyncExitStack()

    async def start(self, count: int, **options: Any) -> None:
        for _ in range(count):
            await self.add("tcp://127.0.0.1:0", **options)

    async def add(self, uri: str, **options: Any) -> None:
        name = f"server {len(self.uris)}"
        router = Router()

        @router.route("name")
        def tell() -> str:
            self.requested[name] += 1
            return name

        router.route("healthy")(lambda: self.healthy.get(name, True))
        router.route("open")(lambda: just(name).concat_with(never()))
        router.route("range")(lambda: from_iterable(range(1000)))

        @router.route("sum")
        async def total(incoming: Flow[int]) -> int:
            return await incoming.sum()

        server = await serve(uri, router, **options)
        await self._stack.enter_async_context(server)
        self.servers.append(server)
        self.uris.append(server.uri)

    async def __aenter__(self) -> "Servers":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()


def states(client: BalancedClient[Any]) -> list[str]:
    return [each.state.value for each in client.servers()]


async def until(client: BalancedClient[Any], *expected: str) -> None:
    async with asyncio.timeout(5):
        while states(client) != [*expected]:  # noqa: ASYNC110 - sockets take a few turns
            await asyncio.sleep(0.001)


async def test_requests_go_to_all_servers() -> None:
    async with Servers() as servers:
        await servers.start(3)
        async with await connect_balanced(servers.uris, codec=JSON) as client:
            await until(client, "ready", "ready", "ready")
            # At once: one after the other, they may all avoid a server that had a slow start.
            await asyncio.gather(*(client.request_response(route="name") for _ in range(60)))
            assert len(servers.requested) == 3
            assert await client.request_stream(route="range").to_list(limit=1000) == [*range(1000)]
            assert await client.request_channel([1, 2], route="sum").to_list(limit=2) == [3]
            await client.fire_and_forget(1, route="range")
            assert [each.outstanding for each in client.servers()] == [0, 0, 0]
            assert repr(client) == "<BalancedClient 3 of 3 servers ready>"


async def test_each_subscription_of_a_stream_chooses_a_server() -> None:
    async with Servers() as servers:
        await servers.start(2)
        async with await connect_balanced(servers.uris, codec=JSON) as client:
            await until(client, "ready", "ready")
            stream = client.request_stream(route="open")
            probes: list[SubscriberProbe[str]] = [SubscriberProbe(request=2) for _ in range(4)]
            for probe in probes:  # a stream that stays open counts: each goes to the other server
                stream.subscribe(probe)
                await probe.wait_for_signals(1)
            assert Counter(probe.elements[0] for probe in probes) == {"server 0": 2, "server 1": 2}
            assert [each.outstanding for each in client.servers()] == [2, 2]
            for probe in probes:
                probe.cancel()
            assert [each.outstanding for each in client.servers()] == [0, 0]


async def test_a_server_that_is_down_gets_nothing_until_it_is_back() -> None:
    async with Servers() as servers:
        await servers.start(2)
        uris = servers.uris[:]
        async with await connect_balanced(uris, codec=JSON, retry=SOON) as client:
            await until(client, "ready", "ready")
            await servers.servers[0].aclose()
            await until(client, "connecting", "ready")
            for _ in range(20):
                assert await client.request_response(route="name") == "server 1"
            await servers.add(uris[0])
            await until(client, "ready", "ready")


async def test_a_server_that_closes_in_good_order_gets_no_more_requests() -> None:
    async with Servers() as servers:
        await servers.start(2)
        async with await connect_balanced(servers.uris, codec=JSON, retry=SOON) as client:
            await until(client, "ready", "ready")
            probes: list[SubscriberProbe[str]] = [SubscriberProbe(request=2) for _ in range(2)]
            for probe in probes:
                client.request_stream(route="open").subscribe(probe)
                await probe.wait_for_signals(1)
            closing = asyncio.create_task(servers.servers[0].aclose(grace=30))
            await until(client, "draining", "ready")
            for _ in range(20):
                assert await client.request_response(route="name") == "server 1"
            assert not any(probe.is_terminated for probe in probes)
            for probe in probes:
                probe.cancel()
            await closing


async def test_no_response_fails_because_a_server_closes_in_good_order() -> None:
    async with Servers() as servers:
        await servers.start(2)
        uris = servers.uris[:]
        async with await connect_balanced(uris, codec=JSON, retry=SOON) as client:
            await until(client, "ready", "ready")
            stopped = asyncio.Event()

            async def work() -> int:
                count = 0
                while not stopped.is_set():
                    await client.request_response(route="name")
                    count += 1
                return count

            workers = [asyncio.create_task(work()) for _ in range(20)]
            for place in (0, 1, 0):
                await servers.servers[place].aclose(grace=30)
                await servers.add(uris[place])
                servers.servers[place] = servers.servers[-1]
                await until(client, "ready", "ready")
            stopped.set()
            assert all(await asyncio.gather(*workers))


def refuse_all(request: Request) -> bool:
    return False


async def test_a_server_that_rejects_requests_for_another_reason_is_not_left() -> None:
    async with Servers() as servers:
        await servers.start(2, authorize=refuse_all)
        async with await connect_balanced(servers.uris, codec=JSON) as client:
            with pytest.raises(RequestRejected, match="not authorized"):
                await client.request_response(route="name")


async def test_without_a_server_requests_fail_with_the_reason_for_each() -> None:
    async with Servers() as servers:
        await servers.start(2)
        async with await connect_balanced(servers.uris, codec=JSON) as client:
            await until(client, "ready", "ready")
            for each in servers.servers:
                await each.aclose()
            await until(client, "connecting", "connecting")
            with pytest.raises(ConnectionLost, match=r"no server is ready: .*; tcp://.* is connec"):
                await client.request_response(route="name")
            with pytest.raises(ConnectionLost, match="no server is ready"):
                await client.request_stream(route="range").to_list(limit=9)


async def test_one_server_is_enough_to_begin() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with Servers() as servers:
        await servers.start(1)
        uris = [f"tcp://127.0.0.1:{port}", *servers.uris]
        async with await connect_balanced(uris, codec=JSON) as client:
            assert await client.request_response(route="name") == "server 0"
            await until(client, "connecting", "ready")
            assert isinstance(client.servers()[0].error, ConnectionLost)


async def test_without_any_server_in_time_connecting_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(
        ConnectionLost, match=r"no server is ready: tcp://.* is connecting .*Errno 111"
    ):
        await connect_balanced([f"tcp://127.0.0.1:{port}"], timeout=0.05)


async def test_a_server_that_refuses_the_client_is_not_tried_again() -> None:
    calls: list[Any] = []

    def refuse(credentials: Any) -> bool:
        calls.append(credentials)
        return False

    async with Servers() as servers:
        await servers.start(1, authenticate=refuse)
        await servers.start(1)
        async with await connect_balanced(
            servers.uris, codec=JSON, retry=SOON, credentials=BearerToken("x")
        ) as client:
            await until(client, "refused", "ready")
            assert isinstance(client.servers()[0].error, SetupRejected)
        assert len(calls) == 1
        with pytest.raises(ConnectionLost, match=r"is refused .*authentication failed"):
            await connect_balanced(servers.uris[:1], retry=SOON)


async def test_an_unhealthy_server_gets_nothing() -> None:
    async def check(client: Client[Any]) -> Any:
        return await client.request_response(route="healthy")

    async with Servers() as servers:
        servers.healthy["server 0"] = False
        await servers.start(2)
        async with await connect_balanced(
            servers.uris, codec=JSON, health=check, health_interval=0.01
        ) as client:
            await until(client, "unhealthy", "ready")
            assert "returned False" in str(client.servers()[0].error)
            for _ in range(20):
                assert await client.request_response(route="name") == "server 1"
            servers.healthy["server 0"] = True
            await until(client, "ready", "ready")


async def test_a_health_check_that_hangs_or_fails_is_a_failure() -> None:
    async def check(client: Client[Any]) -> Any:
        if await client.request_response(route="name") == "server 0":
            raise RuntimeError("no disk")
        await asyncio.Event().wait()

    async with Servers() as servers:
        await servers.start(2)
        with pytest.raises(ConnectionLost) as raised:
            await connect_balanced(
                servers.uris, codec=JSON, health=check, health_interval=0.01, timeout=0.1
            )
    assert "(no disk)" in str(raised.value)
    assert "took more than 0.01 s" in str(raised.value)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), BaseException("no")])
async def test_a_health_check_that_raises_a_base_exception_is_repeated(
    error: BaseException,
) -> None:
    checks: list[int] = []

    def check(_: Client[Any]) -> bool:
        checks.append(1)
        if len(checks) == 2:
            raise error
        return len(checks) != 3

    async with Servers() as servers:
        await servers.start(1)
        async with await connect_balanced(
            servers.uris, health=check, health_interval=0.1
        ) as client:
            await until(client, "unhealthy")
            await until(client, "ready")
    assert len(checks) >= 4


async def test_credentials_that_raise_a_base_exception_are_requested_again() -> None:
    calls: list[int] = []

    def credentials() -> BearerToken:
        calls.append(1)
        if len(calls) == 1:
            raise asyncio.CancelledError
        return BearerToken("x")

    async with Servers() as servers:
        await servers.start(1)
        async with await connect_balanced(servers.uris, retry=SOON, credentials=credentials):
            assert len(calls) == 2


async def test_closing_the_client_closes_all_connections() -> None:
    async with Servers() as servers:
        await servers.start(2)
        client = await connect_balanced(servers.uris, codec=JSON)
        await until(client, "ready", "ready")
        probe: SubscriberProbe[str] = SubscriberProbe(request=2)
        client.request_stream(route="open").subscribe(probe)
        await probe.wait_for_signals(1)
        await client.aclose()
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        with pytest.raises(ConnectionLost, match="the client is closed"):
            await client.request_response(route="name")
        with pytest.raises(ConnectionLost):
            await client.ready()
        await client.aclose()


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("tcp://a:1", TypeError, "a list of URIs"),
        ([], ValueError, "at least one"),
        (["tcp://a:1", "tcp://a:1"], ValueError, "twice"),
        (["http://a"], ValueError, "tcp://"),
    ],
)
async def test_wrong_addresses_are_refused(where: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        await connect_balanced(where)


async def test_the_connections_close_even_if_aclose_is_cancelled() -> None:
    async with Servers() as servers:
        await servers.start(2)
        client = await connect_balanced(servers.uris, codec=JSON)
        await until(client, "ready", "ready")
        with CancelScope() as scope:
            scope.cancel()
            await client.aclose()
        async with asyncio.timeout(4):  # less than the timeouts of the protocol
            while any(each.connections for each in servers.servers):  # noqa: ASYNC110 - sockets
                await asyncio.sleep(0.001)
