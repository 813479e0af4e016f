"""The harness of outages does what it says."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from tests.harness.outages import Lacking, Proxy, frozen, proxy_of
from tests.recipes.waiting import until


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(4096):
        writer.write(data)
    writer.close()


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[Proxy]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, proxy_of(f"scheme://name:secret@127.0.0.1:{port}/path") as made:
        yield made


class Peer:
    """A client of *proxy*."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    async def __aenter__(self) -> "Peer":
        self.reader, self._writer = await asyncio.open_connection("127.0.0.1", self._proxy.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def answers(self, text: bytes = b"hello") -> bool:
        self._writer.write(text)
        return await self.reader.readexactly(len(text)) == text


def test_its_address_is_that_of_the_server_but_for_the_port(proxy: Proxy) -> None:
    assert proxy.url == f"scheme://name:secret@127.0.0.1:{proxy.port}/path"


async def test_connections_are_cut_refused_and_accepted_again(proxy: Proxy) -> None:
    async with Peer(proxy) as peer:
        assert await peer.answers()
        proxy.cut()
        assert await peer.reader.read() == b""
    await proxy.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", proxy.port)
    await proxy.start()
    async with Peer(proxy) as peer:
        assert await peer.answers()
    assert proxy.connections == 2


async def test_a_connection_that_is_being_made_is_cut_as_well(proxy: Proxy) -> None:
    async with Peer(proxy) as peer:
        while not proxy.open:  # noqa: ASYNC110  # the very turn matters
            await asyncio.sleep(0)
        await asyncio.wait_for(proxy.stop(), 10)
        with suppress(ConnectionResetError):
            assert await peer.reader.read() == b""


async def test_an_end_does_not_pass_what_is_frozen(proxy: Proxy) -> None:
    async with Peer(proxy) as peer:
        assert await peer.answers()
        proxy.freeze()
    for _ in range(20):
        await asyncio.sleep(0)
    assert proxy.open == 1
    proxy.thaw()
    await until(lambda: not proxy.open)


async def test_what_is_frozen_arrives_later(proxy: Proxy) -> None:
    async with Peer(proxy) as peer:
        assert await peer.answers()
        proxy.freeze()
        waiting = asyncio.create_task(peer.answers())
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        proxy.thaw()
        assert await waiting


async def test_a_slow_link_delays_each_piece(proxy: Proxy) -> None:
    async with Peer(proxy) as peer:
        proxy.delay(0.002, piece=4)
        began = time.monotonic()
        assert await peer.answers(b"x" * 40)
        assert time.monotonic() - began >= 0.002 * 10
        proxy.delay(0)
        assert await peer.answers()


def run(code: str, lacking: Lacking) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lacking,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_process_may_lack_descriptors_memory_and_room_on_its_disk(tmp_path: Path) -> None:
    opened = "import socket; held = [socket.socket() for _ in range(40)]"
    assert "Too many open files" in run(opened, Lacking(descriptors=30)).stderr
    assert run(opened, Lacking(descriptors=80)).returncode == 0
    assert "MemoryError" in run("x = bytearray(2 << 30)", Lacking(memory=1 << 30)).stderr
    written = f"with open({str(tmp_path / 'x')!r}, 'wb') as file: file.write(b'x' * 9000)"
    assert "File too large" in run(written, Lacking(file_size=8000)).stderr


def test_a_frozen_process_goes_on_afterwards() -> None:
    code = "print('began', flush=True); input(); print('ended')"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        with frozen(process.pid), pytest.raises(subprocess.TimeoutExpired):
            process.communicate("\n", timeout=0.05)
        assert process.communicate()[0] == "ended\n"
