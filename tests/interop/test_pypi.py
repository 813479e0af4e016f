"""PyPI's rsocket 0.4.20 as client and as server; its faults are named where they matter."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any

import pytest
import pytest_asyncio

from reactive_aio.rsocket import SetupRejected, SimpleAuth, StreamFailed, connect, serve
from tests.interop.our_client import receive_what_is_requested, use_every_model
from tests.interop.pypi_server import Payload, Tcp, composite, listen
from tests.interop.recording_routes import RecordingRoutes

pytestmark = pytest.mark.slow

Client: Any = import_module("rsocket.rsocket_client").RSocketClient
single_transport: Any = import_module("rsocket.helpers").single_transport_provider
Awaitable_: Any = import_module("rsocket.awaitable.awaitable_rsocket").AwaitableRSocket

Failed: Any = import_module("rsocket.exceptions").RSocketProtocolError


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """It also logs the errors that it sends."""
    logger = logging.getLogger("pyrsocket")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(level)


# -- our client, its server ------------------------------------------------------------------------
@pytest_asyncio.fixture
async def theirs() -> AsyncIterator[str]:
    """Its server, in this process."""
    server = await listen(0)
    async with server:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_our_client_uses_every_model(theirs: str) -> None:
    await use_every_model(theirs, letters=20)


async def test_its_server_sends_what_we_request_and_no_more(theirs: str) -> None:
    await receive_what_is_requested(theirs)


async def test_its_errors_arrive_with_their_code(theirs: str) -> None:
    async with await connect(theirs) as client:
        with pytest.raises(StreamFailed) as caught:
            await client.request_response(route="no such route")
        assert caught.value.code == 0x201


async def test_its_server_refuses_our_credentials(theirs: str) -> None:
    # Its server sends the error and continues to serve (N.3); our client disconnects.
    with pytest.raises(SetupRejected):
        await connect(theirs, credentials=SimpleAuth("me", "wrong"))


async def test_half_a_megabyte_is_sent_in_fragments(theirs: str) -> None:
    # At most 16 MiB: it does not fragment, and larger responses are corrupted (N.31).
    data = bytes(range(256)) * 2000
    async with await connect(theirs) as client:
        assert await client.request_response(data, route="tck.echo") == data


# -- its client, our server ------------------------------------------------------------------------
@pytest_asyncio.fixture
async def served() -> AsyncIterator[tuple[RecordingRoutes, Any]]:
    """Our server, and its client connected to it."""
    seen = RecordingRoutes()
    async with await serve("tcp://127.0.0.1:0", seen.router, on_error=str) as server:
        assert server.address is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        mime = b"message/x.rsocket.composite-metadata.v0"
        there = single_transport(Tcp(reader, writer))
        async with Client(
            there, data_encoding=b"application/octet-stream", metadata_encoding=mime
        ) as client:
            yield seen, client


def asking(route: str, data: bytes = b"") -> Any:
    return Payload(data, composite(route))


async def test_its_client_uses_every_model(served: tuple[RecordingRoutes, Any]) -> None:
    seen, client = served
    asked = Awaitable_(client)
    assert (await asked.request_response(asking("echo", b"hello"))).data == b"hello"
    # By default it requests 2**31-1 elements whatever the demand (N.39); a limit is passed on.
    elements = await asked.request_stream(asking("counted.10"), limit_rate=3)
    assert [each.data for each in elements] == [b"%d" % each for each in range(10)]
    assert seen.requests[0] == 3
    client.fire_and_forget(asking("forget", b"never mind"))
    assert await asyncio.wait_for(seen.forgotten.get(), 20) == b"never mind"


async def test_it_receives_errors_of_the_protocol(served: tuple[RecordingRoutes, Any]) -> None:
    _, client = served
    # Not application errors, from 0x301 on: it does not read them and waits forever (N.43).
    for route in ("fail", "no.such.route"):
        with pytest.raises((Failed, RuntimeError)) as caught:
            await asyncio.wait_for(Awaitable_(client).request_response(asking(route)), 20)
        assert "secret" not in str(caught.value)


async def test_it_reassembles_our_fragments(served: tuple[RecordingRoutes, Any]) -> None:
    _, client = served
    answer = await Awaitable_(client).request_response(asking("large.300000"))
    assert len(answer.data) == 300_000
