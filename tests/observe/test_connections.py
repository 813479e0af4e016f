"""Connections of observe.serve and observe.inspector that fail: the program goes on."""

import asyncio
import errno
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio._backends import _asyncio as backend

import reactive_aio as r
from reactive_aio import observe
from reactive_aio._core.observation import registry
from reactive_aio._shared import connections
from reactive_aio._shared.connections import serve_connections
from reactive_aio.observe import background, inspector_endpoint, page_server, server
from tests.harness.leftover_checks import Context

NO_DESCRIPTORS = OSError(errno.EMFILE, "Too many open files")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(registry, "_names", {})
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 bytes
    return "flows.sock"


@pytest.fixture
def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first `accept` of each kind of socket fails, and the next one follows at once."""
    broken = anyio.BrokenResourceError()  # what anyio makes of it for a Unix socket
    broken.__cause__ = NO_DESCRIPTORS
    for kind, error in {
        backend.TCPSocketListener: NO_DESCRIPTORS,
        backend.UNIXSocketListener: broken,
    }.items():
        errors: list[Exception] = [error]
        accept = kind.accept

        async def accept_later(
            self: Any, errors: list[Exception] = errors, accept: Any = accept
        ) -> Any:
            if errors:
                raise errors.pop()
            return await accept(self)

        monkeypatch.setattr(kind, "accept", accept_later)
    monkeypatch.setattr(connections, "_PAUSE", 0.001)


async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    pieces = list[bytes]()
    while piece := await reader.read(1 << 20):  # read() would ask for as little as its limit
        pieces.append(piece)
    writer.close()
    await writer.wait_closed()
    return b"".join(pieces)


@pytest.mark.usefixtures("fails_once")
async def test_a_report_is_served_when_file_descriptors_are_free_again(
    path: str, expects_loop_errors: list[Context]
) -> None:
    async with observe.serve(path):
        assert await read(*await asyncio.open_unix_connection(path))
    [context] = expects_loop_errors
    assert context["message"] == "observe.serve() cannot accept a connection"
    assert context["exception"] is NO_DESCRIPTORS


@pytest.mark.usefixtures("fails_once")
async def test_the_page_is_served_when_file_descriptors_are_free_again(
    expects_loop_errors: list[Context],
) -> None:
    async with observe.inspector() as page:
        reader, writer = await asyncio.open_connection(page.host, page.port)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert (await read(reader, writer)).startswith(b"HTTP/1.1 200")
    assert [each["exception"] for each in expects_loop_errors] == [NO_DESCRIPTORS]


async def test_the_report_of_a_name_that_utf_8_cannot_encode_has_an_escape(path: str) -> None:
    async with observe.serve(path), r.never().name("half \ud83d").running():
        assert b"half \\ud83d" in await read(*await asyncio.open_unix_connection(path))


@pytest.mark.virtual_time
async def test_a_connection_that_fails_ends_no_other(expects_loop_errors: list[Context]) -> None:
    served: list[Any] = []

    class Listener:
        def __init__(self) -> None:
            self.streams: list[Any] = [1, OSError(errno.ECONNABORTED, "gone"), 2, 3]

        async def accept(self) -> Any:
            if not self.streams:
                await anyio.sleep_forever()
            if isinstance(found := self.streams.pop(0), OSError):
                raise found
            return found

    async def answer(stream: Any) -> None:
        await asyncio.sleep(9)
        served.append(stream)
        if stream == 2:
            raise LookupError("a bug")

    listeners: Any = [Listener(), Listener()]
    async with background.in_background(serve_connections, listeners, answer, "a test"):
        await asyncio.sleep(20)
    assert sorted(served) == [1, 1, 2, 2, 3, 3]
    assert sorted(each["message"] for each in expects_loop_errors) == [
        *["a connection of a test failed"] * 2,
        *["a test cannot accept a connection"] * 2,
    ]


@pytest.mark.parametrize("is_page", [False, True], ids=["a report", "a page"])
async def test_a_client_that_reads_nothing_loses_its_connection(
    path: str, is_page: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system buffers some of it, and the rest would be held for ever."""
    text = "x" * 20_000_000
    for module in (server, page_server):
        monkeypatch.setattr(module, "_SECONDS_FOR_READING", 0.05)
    monkeypatch.setattr(server, "report", lambda: text)
    monkeypatch.setattr(inspector_endpoint, "page", lambda: (text.encode(), list[Any]()))
    closed = asyncio.Event()
    kind = backend.SocketStream if is_page else backend.UNIXSocketStream
    aclose = kind.aclose

    async def close(self: Any) -> None:
        closed.set()
        await aclose(self)

    monkeypatch.setattr(kind, "aclose", close)
    async with observe.serve(path), observe.inspector(port=0) as page:
        if is_page:
            reader, writer = await asyncio.open_connection(page.host, page.port, limit=2)
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        else:
            reader, writer = await asyncio.open_unix_connection(path, limit=2)
        await asyncio.wait_for(closed.wait(), 20)
        with suppress(ConnectionError):
            assert len(await read(reader, writer)) < len(text)
