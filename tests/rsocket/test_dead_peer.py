"""A peer that neither reads nor sends: nothing waits for it longer than it has to."""

import asyncio
from typing import Any

import pytest

from reactive_aio import RetryPolicy
from reactive_aio.rsocket import JSON, Client, ConnectionLost, Resumption, Router, Server, connect
from reactive_aio.rsocket.link import connecting
from reactive_aio.rsocket.link.driver import Driver
from reactive_aio.rsocket.link.transports.memory import MemoryTransport
from reactive_aio.rsocket.protocol.frames import Setup

from .cut_transport import Bench
from .loop_turns import turns
from .wire import wire

LIFETIME = 3.0
router = Router()


@router.route("echo")
async def echo(payload: Any) -> Any:
    return payload


def freeze(bench: Bench) -> None:
    """Let the network lose all bytes of the connection, in both directions."""
    for end in bench.ends[-1]:
        vars(end)["_deliver"] = lambda: None


@pytest.mark.virtual_time
async def test_a_client_reconnects_as_soon_as_its_server_is_silent() -> None:
    bench = Bench(router, policy=RetryPolicy(attempts=3, delay=0.1, jitter=0))
    bench.options["keepalive"], bench.options["lifetime"] = 1.0, LIFETIME
    loop = asyncio.get_running_loop()
    client = await bench.client()
    began = loop.time()
    freeze(bench)
    with pytest.raises(ConnectionLost, match="no sign of life"):
        await client.request_response(1, route="echo")
    await client.ready()
    assert loop.time() - began < LIFETIME + 0.5
    assert await client.request_response(2, route="echo") == 2
    await client.aclose()
    await bench.server.aclose()


@pytest.mark.virtual_time
async def test_closing_waits_once_for_a_peer_that_does_not_read() -> None:
    bench = Bench(router)
    loop = asyncio.get_running_loop()
    client = await bench.client()
    freeze(bench)
    client._driver.pause_writing()  # as a full socket does
    client.metadata_push(("text/plain", b"the last words"))
    began = loop.time()
    await client.aclose()
    assert loop.time() - began == pytest.approx(5.0)
    assert client.is_closed
    for end in bench.ends[-1]:
        end.abort()
    await turns()
    await bench.server.aclose()


@pytest.mark.virtual_time
async def test_a_lifetime_shorter_than_the_time_for_setup_is_kept() -> None:
    server = Server(router)
    driver = server.new_driver()
    driver.attach(MemoryTransport(driver))
    await turns()  # the deadline for SETUP, in 5 seconds, has its timer
    driver.data_received(wire(Setup(keepalive=1000, lifetime=2000)))
    await asyncio.sleep(1.9)
    assert server.connections == 1
    await asyncio.sleep(0.3)
    assert server.connections == 0


@pytest.mark.virtual_time
async def test_keepalives_are_sent_after_a_session_was_resumed() -> None:
    bench = Bench(router, resume=Resumption(timeout=60))
    bench.options["keepalive"], bench.options["lifetime"] = 1.0, 2.0
    client = await bench.client()
    await asyncio.sleep(1.5)
    bench.lose()
    await asyncio.sleep(20)
    assert bench.server.connections == 1
    assert await client.request_response(1, route="echo") == 1
    assert len(bench.ends) == 2, "the connection was not lost again"
    await client.aclose()
    await bench.server.aclose()


async def resuming(
    bench: Bench, patch: pytest.MonkeyPatch, *, silent: int, retry: RetryPolicy | None = None
) -> Client[Any]:
    """A client whose session has lost its transport; the next *silent* ones lead nowhere."""

    async def dial(_loop: object, _address: object, driver: Driver, _ssl: object) -> None:
        await bench.dial(driver)
        if 1 < len(bench.ends) <= 1 + silent:
            freeze(bench)

    patch.setattr(connecting, "dial", dial)
    client = await connect(
        "tcp://server:1", codec=JSON, resume=bench.resume, timeout=4, retry=retry
    )
    bench.lose()
    return client


@pytest.mark.virtual_time
async def test_a_transport_on_which_nobody_answers_resume_gives_way_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(router, resume=Resumption(timeout=60))
    client = await resuming(bench, monkeypatch, silent=2)
    assert await client.request_response(1, route="echo") == 1
    assert len(bench.ends) == 4
    assert asyncio.get_running_loop().time() == pytest.approx(8, abs=0.5)
    await asyncio.sleep(30)
    assert len(bench.ends) == 4, "the session has kept the transport on which it was resumed"
    await client.aclose()
    await bench.server.aclose()


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("within", "retry", "error", "seconds"),
    [
        (30, RetryPolicy(attempts=None), "the session was not resumed in time", 30),
        (
            60,
            RetryPolicy(attempts=3, delay=1, factor=1, jitter=0),
            r"given up.*no answer to RESUME within 4 s",
            2 * (1 + 4),
        ),
    ],
    ids=["by time", "by the policy"],
)
async def test_a_session_that_nobody_resumes_ends(
    monkeypatch: pytest.MonkeyPatch, within: float, retry: RetryPolicy, error: str, seconds: float
) -> None:
    bench = Bench(router, resume=Resumption(timeout=within))
    client = await resuming(bench, monkeypatch, silent=99, retry=retry)
    with pytest.raises(ConnectionLost, match=error):
        await client.request_response(1, route="echo")
    assert asyncio.get_running_loop().time() == pytest.approx(seconds, abs=0.1)
    await client.aclose()
    await bench.server.aclose()


@pytest.mark.virtual_time
async def test_a_client_closes_while_it_waits_for_the_answer_to_resume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(router, resume=Resumption(timeout=60))
    client = await resuming(bench, monkeypatch, silent=1)
    await asyncio.sleep(1)
    assert len(bench.ends) == 2
    await client.aclose()
    assert asyncio.get_running_loop().time() == pytest.approx(1 + 5), "the peer had its time"
    assert len(bench.ends) == 2
    await bench.server.aclose()
