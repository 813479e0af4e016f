"""Sessions outlive their transports: wherever they are cut, nothing is lost or duplicated."""

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from anyio import CancelScope
from hypothesis import given, settings, strategies as st

from reactive_aio import RetryPolicy, from_iterable, just, never
from reactive_aio.rsocket import (
    JSON,
    ConnectionLost,
    Lease,
    Limits,
    ResumeRejected,
    Resumption,
    Router,
    SetupRejected,
    connect,
    serve,
)
from reactive_aio.rsocket.link.connecting import TimeLimit
from reactive_aio.rsocket.link.driver import Driver
from reactive_aio.rsocket.link.transports.endpoints import DriverProtocol
from reactive_aio.testing.probes import SubscriberProbe
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.harness.outages import proxy_of

from .cut_transport import WHOLE, Bench, Budget, Cut, converse, talkative
from .loop_turns import turns

SMALL = Limits(mtu=64)  # so that payloads are sent in fragments
ROUTES = ("range", "slow", "plus", "large", "log 0", "log 1", "log 2")
ONCE = dict.fromkeys(ROUTES, 1) | {"twice": 3}


async def talk(*cuts: Budget) -> list[Budget]:
    """Converse over transports with these cuts; return the bytes that each transferred."""
    router, calls = talkative()
    bench = Bench(router, cuts, resume=Resumption(), limits=SMALL)
    async with bench.server, await bench.client() as client:
        await converse(client)
        for _ in range(1000):  # fire-and-forget requests may be in transit
            if calls.total() >= sum(ONCE.values()):
                break
            await asyncio.sleep(0)
        assert calls == ONCE
        return [(near.taken, far.taken) for near, far in bench.ends]


def run(*cuts: Budget) -> list[Budget]:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(talk(*cuts))


@cache
def sizes() -> Budget:
    """The number of bytes in each direction without a cut."""
    [whole] = run()
    return whole


STEP = 7  # 1 tests every byte; frames of many lengths hit all positions anyway
SETUP_LENGTH = 150  # longer than SETUP: before SETUP is received there is no session


@pytest.mark.parametrize("side", [0, 1], ids=["from the client", "from the server"])
def test_a_session_survives_a_cut_after_any_byte(side: int) -> None:
    begin = SETUP_LENGTH if side == 0 else 0
    for at in range(begin, (sizes()[side] or 0) - 10, STEP):
        used = run((at, None) if side == 0 else (None, at))
        assert len(used) == 2, at


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 900)), max_size=12))
def test_a_session_survives_many_cuts(cuts: list[tuple[int, int]]) -> None:
    budgets: list[Budget] = [(at, None) if side % 2 else (None, at) for side, at in cuts]
    if budgets and budgets[0][0] is not None:
        budgets[0] = (max(budgets[0][0], SETUP_LENGTH), None)
    run(*budgets)


@pytest.mark.parametrize("transport", ["tcp", "ws"])
async def test_sessions_outlive_sockets(transport: str) -> None:
    router, calls = talkative()
    resume = Resumption()
    server = await serve(f"{transport}://127.0.0.1:0", router, resume=resume)
    assert server.address is not None
    async with (
        server,
        proxy_of(server.uri) as proxy,
        await connect(proxy.url, codec=JSON, resume=resume) as client,
    ):
        stream = (
            client.request_stream(route="slow.300")
            .boundary(8)
            .do_on_next(lambda n: proxy.cut() if n % 100 == 50 else None)
        )
        assert await stream.to_list(limit=301) == [*range(300)]
        assert proxy.connections == 4
        assert calls == {"slow": 1}
        assert server.connections == 1
        proxy.cut()
        assert await client.request_response(4, route="twice") == 8


# -- failures --------------------------------------------------------------------------------------
def numbers() -> Router:
    router = Router()
    router.route("n")(lambda: from_iterable(range(10**6)))
    router.route("one")(lambda: just(1).concat_with(never()))
    router.route("two")(lambda: 2)
    return router


@pytest.mark.virtual_time
async def test_a_session_expires_after_its_timeout() -> None:
    bench = Bench(numbers(), resume=Resumption(timeout=30))
    async with bench.server, await bench.client() as client:
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        client.request_stream(route="one").subscribe(probe)
        await probe.wait_for_signals(1)
        bench.down = True
        bench.lose()
        await turns()
        assert bench.server.connections == 1
        assert not probe.is_terminated
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        assert asyncio.get_running_loop().time() == pytest.approx(30, abs=6)
        await asyncio.sleep(6)
        assert bench.server.connections == 0


@pytest.mark.virtual_time
async def test_an_expired_session_is_rejected_and_the_client_reconnects() -> None:
    policy = RetryPolicy(attempts=5, delay=40, jitter=0)
    bench = Bench(numbers(), resume=Resumption(timeout=30), policy=policy)
    bench.options["resume"] = Resumption(timeout=300)  # the client waits longer than the server
    async with bench.server, await bench.client() as client:
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        client.request_stream(route="one").subscribe(probe)
        await probe.wait_for_signals(1)
        bench.lose()
        await probe.end()
        assert isinstance(probe.error, ResumeRejected)
        await client.ready()
        assert await client.request_response(route="two") == 2


@pytest.mark.virtual_time
async def test_a_full_resume_buffer_ends_the_session() -> None:
    resume = Resumption(timeout=30, max_store=200)
    bench = Bench(numbers(), resume=resume)
    async with bench.server, await bench.client() as client:
        probe: SubscriberProbe[int] = SubscriberProbe(request=1000)
        client.request_stream(route="n").subscribe(probe)
        near, far = bench.ends[-1]
        far.resume_reading()
        near.pause_reading()  # more is in transit than the server buffers
        await turns()
        near.abort()
        await probe.end()
        assert isinstance(probe.error, ResumeRejected)


@pytest.mark.virtual_time
async def test_closing_a_suspended_session_ends_it() -> None:
    bench = Bench(numbers(), resume=Resumption(timeout=30))
    async with bench.server:
        client = await bench.client()
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        client.request_stream(route="one").subscribe(probe)
        await probe.wait_for_signals(1)
        bench.down = True
        bench.lose()
        await turns()
        await client.aclose()
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        assert client.is_closed
        assert bench.server.connections == 1  # the server has not noticed
    assert bench.server.connections == 0


async def test_a_token_resumes_only_its_own_session() -> None:
    bench = Bench(numbers(), resume=Resumption())
    async with bench.server, await bench.client() as one, await bench.client() as two:
        first, second = (each._driver.connection.setup for each in (one, two))
        assert first is not None
        assert second is not None
        assert len(first.token or b"") == 16
        assert first.token != second.token


def lose_silently(near: Cut, far: Cut) -> None:
    """Cut the connection: the client notices, the server does not."""
    near.other = far.other = None
    near._is_closing = True
    near._end()


@pytest.mark.virtual_time
async def test_a_session_resumes_before_the_server_notices_the_loss() -> None:
    bench = Bench(numbers(), resume=Resumption())
    async with bench.server, await bench.client() as client:
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        client.request_stream(route="n").subscribe(probe)
        await probe.wait_for_signals(5)
        near, far = bench.ends[0]
        lose_silently(near, far)
        probe.request(5)
        assert await probe.wait_until(lambda: probe.elements == [*range(10)])
        assert len(bench.ends) == 2
        assert bench.server.connections == 1
        await turns()
        assert far.is_closed or far._is_closing


@pytest.mark.virtual_time
async def test_suspended_sessions_do_not_count_as_connections() -> None:
    bench = Bench(numbers(), resume=Resumption())
    bench.server._admission.most = 3
    async with bench.server:
        clients = [await bench.client() for _ in range(3)]
        for client in clients:
            assert await client.request_response(route="two") == 2
        for near, _ in list(bench.ends):
            near.close()
        for client in clients:
            assert await client.request_response(route="two") == 2
        assert bench.server.connections == 3
        assert bench.server.refused_connections == 0
        for client in clients:
            await client.aclose()


@pytest.mark.virtual_time
async def test_a_full_server_resumes_sessions_but_accepts_no_new_ones() -> None:
    bench = Bench(numbers(), resume=Resumption())
    bench.server._admission.most = 1
    async with bench.server, await bench.client() as client:
        assert await client.request_response(route="two") == 2
        lose_silently(*bench.ends[0])
        assert await client.request_response(route="two") == 2
        assert len(bench.ends) == 2
        async with await bench.client() as late:
            with pytest.raises(ConnectionLost, match="too many connections"):
                await late.request_response(route="two")
        assert await client.request_response(route="two") == 2


@pytest.mark.virtual_time
async def test_repeated_cuts_increase_the_reconnect_delay() -> None:
    bench = Bench(numbers(), [WHOLE, *[(1, None)] * 8], resume=Resumption(timeout=60))
    async with bench.server, await bench.client() as client:
        assert await client.request_response(route="two") == 2
        bench.lose()
        assert await client.request_response(route="two") == 2
        assert len(bench.ends) == 10
        assert asyncio.get_running_loop().time() > 4  # 0.05, 0.1, 0.2 … seconds, or half as long


@pytest.mark.virtual_time
async def test_leases_end_with_the_transport_and_are_granted_again() -> None:
    granted: list[int] = []
    leases = from_iterable(Lease(2, ttl=1000) for _ in range(9)).do_on_request(granted.append)
    bench = Bench(numbers(), resume=Resumption(), leases=leases)
    async with bench.server, await bench.client() as client:
        assert await client.request_response(route="two") == 2
        bench.lose()
        for _ in range(3):
            assert await client.request_response(route="two") == 2
        assert len(bench.ends) == 2
        assert granted == [1, 1, 1]  # at first, after the loss, and when two were used up


# -- attempts that fail as soon as their transport has connected -----------------------------------
def on_connected(patch: pytest.MonkeyPatch, driver: Driver, act: Callable[[], object]) -> None:
    """Call *act* once, as soon as the loop has connected another transport for *driver*."""
    connection_made = DriverProtocol.connection_made

    def made(self: DriverProtocol, transport: Any) -> None:
        connection_made(self, transport)
        if self.driver is driver:
            patch.setattr(DriverProtocol, "connection_made", connection_made)
            act()

    patch.setattr(DriverProtocol, "connection_made", made)


@pytest.mark.parametrize("scheme", ["tcp", "unix"])
async def test_a_client_closes_while_a_transport_for_its_session_connects(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop closes a transport whose attempt is cancelled, and tells nobody."""
    uri = "tcp://127.0.0.1:0" if scheme == "tcp" else f"unix://{tmp_path}/server"
    async with await serve(uri, numbers(), resume=Resumption()) as server:
        client = await connect(server.uri, codec=JSON, resume=Resumption())
        closing: asyncio.Future[asyncio.Task[None]] = asyncio.Future()

        def close() -> None:
            closing.set_result(asyncio.create_task(client.aclose()))

        on_connected(monkeypatch, client._driver, close)
        client._driver.line.abort()
        async with asyncio.timeout(5):
            await (await closing)
        assert client.is_closed


async def test_another_transport_is_tried_if_the_time_ends_as_one_connects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scopes = list[CancelScope]()

    def scope(limit: TimeLimit) -> CancelScope:
        scopes.append(CancelScope())
        return scopes[-1]

    async with (
        await serve("tcp://127.0.0.1:0", numbers(), resume=Resumption()) as server,
        await connect(server.uri, codec=JSON, resume=Resumption()) as client,
    ):
        monkeypatch.setattr(TimeLimit, "scope", scope)
        on_connected(monkeypatch, client._driver, lambda: scopes[-1].cancel())
        client._driver.line.abort()
        async with asyncio.timeout(5):
            assert await client.request_response(route="two") == 2
        assert len(scopes) == 2


# -- clients that reconnect ------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_without_a_session_open_requests_fail_and_the_client_reconnects() -> None:
    bench = Bench(numbers(), policy=RetryPolicy(attempts=5, delay=2, factor=2, jitter=0))
    clock = asyncio.get_running_loop().time
    async with bench.server, await bench.client() as client:
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        client.request_stream(route="one").subscribe(probe)
        await probe.wait_for_signals(1)
        bench.down = True
        bench.lose()
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        with pytest.raises(ConnectionLost):  # at once
            await client.request_response(route="two")
        assert clock() == 0
        assert not client.is_closed
        waiting = asyncio.create_task(client.ready())
        await asyncio.sleep(7)  # attempts after 2 and after 4 more
        assert not waiting.done()
        bench.down = False
        await waiting
        assert clock() == pytest.approx(14)
        assert await client.request_response(route="two") == 2
        bench.lose()
        await turns()
        began = clock()
        await client.ready()  # the attempts start over
        assert clock() - began == pytest.approx(2)
        assert await client.request_response(route="two") == 2


async def test_a_client_reconnects_to_a_restarted_server() -> None:
    server = await serve("tcp://127.0.0.1:0", numbers())
    policy = RetryPolicy(attempts=1000, delay=0.01, factor=1)
    async with await connect(server.uri, codec=JSON, retry=policy) as client:
        assert await client.request_response(route="two") == 2
        await server.aclose()
        with pytest.raises(ConnectionLost):
            await client.request_response(route="two")
        async with await serve(server.uri, numbers()):
            await client.ready()
            assert await client.request_response(route="two") == 2


@pytest.mark.virtual_time
async def test_a_client_stops_reconnecting_as_its_policy_says() -> None:
    bench = Bench(numbers(), policy=RetryPolicy(attempts=3, delay=1, jitter=0))
    async with bench.server, await bench.client() as client:
        bench.down = True
        bench.lose()
        await turns()
        with pytest.raises(ConnectionLost):
            await client.ready()
        assert asyncio.get_running_loop().time() == pytest.approx(3)
        assert client.is_closed
        with pytest.raises(ConnectionLost):
            await client.ready()


@pytest.mark.virtual_time
async def test_a_server_that_drops_connections_is_retried_with_delays() -> None:
    bench = Bench(
        numbers(),
        [WHOLE, *[(1, None)] * 5],
        policy=RetryPolicy(attempts=6, delay=1, factor=2, jitter=0),
    )
    async with bench.server, await bench.client() as client:
        assert await client.request_response(route="two") == 2
        bench.lose()
        await asyncio.sleep(100)
        with pytest.raises(ConnectionLost):
            await client.ready()
        assert len(bench.ends) == 6
        assert client.is_closed


def again(error: BaseException) -> bool:
    return not isinstance(error, SetupRejected)


@pytest.mark.virtual_time
async def test_a_refused_client_does_not_reconnect() -> None:
    bench = Bench(numbers(), policy=RetryPolicy(attempts=6, delay=1, only=again))
    bench.server._responder.authenticate = lambda _: None
    async with bench.server, await bench.client() as client:
        with pytest.raises(SetupRejected):
            await client.request_response(route="two")
        await turns()
        assert client.is_closed


@pytest.mark.virtual_time
async def test_closing_a_client_ends_its_wait_for_a_connection() -> None:
    bench = Bench(numbers(), policy=RetryPolicy(attempts=3, delay=100, jitter=0))
    async with bench.server:
        client = await bench.client()
        bench.down = True
        bench.lose()
        await turns()
        waiting = asyncio.create_task(client.ready())
        await turns()
        await client.aclose()
        with pytest.raises(ConnectionLost):
            await waiting
        assert asyncio.get_running_loop().time() < 100
