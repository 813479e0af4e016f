"""observe.serve, and the command that reads from it: real sockets, in a folder of the test."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import reactive_aio as r
from reactive_aio import observe
from reactive_aio._core.observation import registry
from reactive_aio.observe import command
from reactive_aio.observe.command import main
from tests.harness.outages import frozen


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(registry, "_names", {})
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 bytes
    return "flows.sock"


async def read(path: str) -> str:
    reader, writer = await asyncio.open_unix_connection(path)
    text = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return text


async def test_each_client_receives_a_report(path: str) -> None:
    async with observe.serve(path), r.never().name("served").running():
        texts = await asyncio.gather(*(read(path) for _ in range(3)))
    for text in texts:
        assert "served: 1 running\n  never() → name('served')\n" in text
    assert not await anyio.Path(path).exists()


async def test_the_socket_is_for_its_user_alone(path: str) -> None:
    async with observe.serve(path):
        assert stat.S_IMODE((await anyio.Path(path).stat()).st_mode) == 0o600


async def test_a_client_that_leaves_at_once_harms_no_other(path: str) -> None:
    async with observe.serve(path):
        for _ in range(3):
            _, writer = await asyncio.open_unix_connection(path)
            writer.transport.abort()
        assert await read(path)


async def test_an_error_of_the_block_is_raised_as_it_is(path: str) -> None:
    with pytest.raises(KeyError, match="of the block"):
        async with observe.serve(path):
            raise KeyError("of the block")
    assert not await anyio.Path(path).exists()


async def test_a_socket_that_a_dead_process_has_left_is_replaced(path: str) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()
    async with observe.serve(path):
        assert await read(path)


async def test_a_socket_that_is_served_is_not_replaced(path: str) -> None:
    async with observe.serve(path):
        with pytest.raises(FileExistsError, match="another process serves there; give another"):
            async with observe.serve(path):
                pass
        assert await read(path)


async def test_another_file_is_not_replaced(path: str) -> None:
    await anyio.Path(path).write_text("mine")
    with pytest.raises(FileExistsError, match="it is not a socket; give another path"):
        async with observe.serve(path):
            pass
    assert await anyio.Path(path).read_text() == "mine"


async def test_the_command_shows_a_report(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with observe.serve(path), r.never().name("shown").running():
        status = await asyncio.to_thread(main, ["top", path, "--once"])
    assert status == 0
    assert "shown: 1 running" in capsys.readouterr().out


def test_the_command_says_what_the_process_has_to_run(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", path, "--once"]) == 1
    assert (
        "flows.sock: No such file or directory; the process has to run" in capsys.readouterr().err
    )


def test_the_command_says_that_a_file_is_no_socket(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(path).touch()
    assert main(["top", path, "--once"]) == 1
    assert "flows.sock: this is no socket; the process has to run" in capsys.readouterr().err


def test_the_command_says_that_a_loop_is_blocked(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_TIMEOUT", 0.05)
    with socket.socket(socket.AF_UNIX) as serving:  # as a loop does that accepts nothing
        serving.bind(path)
        serving.listen()
        assert main(["top", path, "--once"]) == 1
    said = capsys.readouterr().err
    assert f"the process {os.getpid()} has not answered for 0.05 s: its event loop is bl" in said


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="it is not told who serves")
def test_the_command_says_that_a_process_is_stopped_or_was_killed(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_TIMEOUT", 0.05)
    program = (
        "import socket, sys, time; serving = socket.socket(socket.AF_UNIX); "
        "serving.bind(sys.argv[1]); serving.listen(); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with frozen(process.pid):
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            assert main(["top", path, "--once"]) == 1
        assert f"the process {process.pid} is stopped (SIGSTOP" in capsys.readouterr().err
        process.kill()
    assert main(["top", path, "--once"]) == 1
    assert "the process that served there has ended" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["top"], ["top", "x", "--interval", "0"]])
def test_the_command_refuses_other_arguments(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m reactive_aio" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x", "0", "nan", "86400"])
def test_the_command_says_which_intervals_there_are(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["top", "x", "--interval", text])
    message = "--interval: must be a number of seconds, more than 0 and less than 86400, not "
    assert f"{message}{text!r}\n" in capsys.readouterr().err


@pytest.mark.slow
async def test_the_command_ends_without_a_word_when_nothing_reads_its_output(path: str) -> None:
    async with observe.serve(path):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "reactive_aio", "top", path, "--interval", "0.01"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert process.stdout is not None
        assert process.stderr is not None
        await process.stdout.readline()
        pipe: Any = process
        pipe._transport.get_pipe_transport(1).close()
        assert await process.stderr.read() == b""
        assert await process.wait() == 0


@pytest.mark.slow
async def test_the_command_looks_again_and_again_until_it_is_interrupted(path: str) -> None:
    async with observe.serve(path), r.interval(0.01).name("looked at").running():
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "reactive_aio", "top", path, "--interval", "0.01"),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert process.stdout is not None
        seen = 0
        while seen < 2:
            seen += b"looked at: 1 running" in await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        await process.stdout.read()
        assert await process.wait() == 0
