"""The listener of serve_flow and serve_writes, and clients that do not know its token."""

import asyncio
import errno
from contextlib import suppress
from typing import Any

import pytest
from anyio._backends import _asyncio as backend

from reactive_aio._shared import connections
from reactive_aio.spark import serve_writes
from reactive_aio.spark.datasource import listener
from reactive_aio.spark.datasource.wire_protocol import HEAD, Refused, ask

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "sent",
    [
        b"[" * 900,
        b'{"token": "\\ud800"}',
        b"\xff\xfe",
        b"",
        b"x" * 100_000,  # longer than any token
    ],
)
async def test_nothing_is_reported_and_little_held_of_clients_without_the_token(
    sent: bytes,
) -> None:
    """The checks of leftovers fail for a report."""
    async with serve_writes() as served:
        host, _, port = served.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(HEAD.pack(len(sent)) + sent)
        with suppress(ConnectionError):
            assert await reader.read() == b"", "it is closed"
        writer.close()


async def test_the_oldest_client_without_a_token_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "_MOST_UNKNOWN", 2)
    async with serve_writes(token="right") as served:
        host, _, port = served.address.rpartition(":")
        waiting = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        assert await waiting[0][0].read() == b""

        with pytest.raises(Refused, match="this takes writes"):
            await asyncio.to_thread(ask, served.options, "nothing")
        for _, writer in waiting:
            writer.close()


async def test_a_listener_without_descriptors_goes_on(
    monkeypatch: pytest.MonkeyPatch, expects_loop_errors: list[Any]
) -> None:
    accept, failures = backend.TCPSocketListener.accept, [OSError(errno.EMFILE, "too many")]

    async def accept_or_fail(self: Any) -> Any:
        if failures:
            raise failures.pop()
        return await accept(self)

    monkeypatch.setattr(backend.TCPSocketListener, "accept", accept_or_fail)
    monkeypatch.setattr(connections, "_PAUSE", 0)
    async with serve_writes() as served:
        with pytest.raises(Refused, match="this takes writes"):
            await asyncio.to_thread(ask, served.options, "nothing")
    assert [each["message"] for each in expects_loop_errors] == [
        "serve_writes cannot accept a connection"
    ]


@pytest.mark.parametrize("token", ["", "x" * 1025, 5])
async def test_a_token_is_a_text_of_limited_length(token: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"serve_writes: .*token"):
        async with serve_writes(token=token):
            pass
