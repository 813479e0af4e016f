"""The example of a service ends in good order on SIGTERM."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from reactive_aio.rsocket import TEXT, ConnectionLost, connect

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "rsocket_service.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signal handlers are for POSIX"),
]


@asynccontextmanager
async def service(*arguments: str) -> AsyncGenerator[tuple[Process, str]]:
    """The program, and the URI at which it serves."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", str(PROGRAM), *arguments),
        stdout=PIPE,
        stderr=PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        assert program.stdout is not None
        yield program, (await program.stdout.readline()).decode().split()[0]
    finally:
        with suppress(ProcessLookupError):
            program.kill()
        await program.communicate()


async def test_open_streams_end_before_the_service_does() -> None:
    async with service("--port", "0") as (program, uri):
        async with await connect(uri, codec=TEXT) as client:
            came: list[str] = []
            async for tick in client.request_stream(route="ticks.3"):
                came.append(tick)
                if tick == "tick 0":
                    program.send_signal(signal.SIGTERM)
            assert came == ["tick 0", "tick 1", "tick 2"]
        out, err = await program.communicate()
    assert program.returncode == 0
    assert out == b"ticks.{count}: 1 requests, 3 elements, 0 refused, 0 failed, 0 lost\n"
    assert b"SIGTERM: open streams may end within 10 s" in err
    assert re.search(rb"STREAM 'ticks.3' of \('127.0.0.1', \d+\) completed after", err)
    assert b"a client has disconnected: CONNECTION_CLOSE" in err


async def test_a_second_signal_ends_the_service_at_once() -> None:
    async with service("--port", "0", "--grace", "600") as (program, uri):
        async with await connect(uri, codec=TEXT) as client:
            assert await client.request_response() == "there is no ''; try ticks.5"
            ticks = client.request_stream(route="ticks.1000")
            endless = ticks.do_on_next(lambda _: program.send_signal(signal.SIGTERM))
            with pytest.raises(ConnectionLost, match="the server is closing"):
                await endless.count()
        out, err = await program.communicate()
    assert program.returncode == 0
    assert out.startswith(b"(no route): 1 requests, 1 elements")
    assert re.search(rb"STREAM 'ticks.1000' of .* cancelled after", err)
