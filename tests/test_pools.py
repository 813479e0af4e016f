"""ProcessPool: its calls, the death of its processes, and the end of its program."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from textwrap import dedent

import pytest

from reactive_aio import ProcessPool
from reactive_aio.pools import _serve
from tests.harness.leftover_checks import SHARED_NAMES
from tests.harness.outages import is_gone

pytestmark = pytest.mark.slow


BEGINNING = b"\0\0\1\0the beginning"
"""Of a message, as a pipe of multiprocessing carries it: 256 bytes follow, or would."""


def add(a: int, b: int = 0) -> int:
    return a + b


def fail(text: str) -> int:
    raise LookupError(text)


def die(_: int) -> int:
    os._exit(4)


def die_while_it_answers(_: int) -> int:
    frame = sys._getframe()
    while "connection" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    os.write(frame.f_locals["connection"].fileno(), BEGINNING)
    os._exit(5)


def pid() -> int:
    return os.getpid()


class TestAnExecutor:
    def test_it_calls_functions_and_maps(self) -> None:
        with ProcessPool(2) as pool:
            assert pool.workers == 2
            assert pool.submit(add, 1, b=2).result() == 3
            assert [*pool.map(add, range(9), range(9), chunksize=4)] == [*range(0, 18, 2)]
            with pytest.raises(LookupError, match="no such thing") as caught:
                pool.submit(fail, "no such thing").result()
        assert "in fail" in "".join(caught.value.__notes__)
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(pid)

    def test_its_processes_end_with_it(self) -> None:
        with ProcessPool(1) as pool:
            process = pool.submit(pid).result()
            assert not is_gone(process)
        assert is_gone(process)

    def test_those_of_a_forgotten_pool_end(self) -> None:
        pool = ProcessPool(1)
        process = pool.submit(pid).result()
        pool.shutdown(wait=False)
        del pool
        os.waitpid(process, 0)

    def test_a_process_that_dies_fails_its_call_alone(self) -> None:
        from concurrent.futures.process import BrokenProcessPool

        with ProcessPool(1) as pool:
            dying, after = pool.submit(die, 1), pool.submit(add, 1)
            with pytest.raises(BrokenProcessPool, match="exit code 4 in the middle of a call"):
                dying.result()
            assert after.result() == 1

    def test_a_process_that_dies_while_it_answers_fails_its_call(self) -> None:
        from concurrent.futures.process import BrokenProcessPool

        with ProcessPool(1) as pool:
            with pytest.raises(BrokenProcessPool, match="exit code 5 in the middle of a call"):
                pool.submit(die_while_it_answers, 1).result()
            assert pool.submit(add, 1).result() == 1

    @pytest.mark.skipif(sys.platform != "linux", reason="descriptors are listed in /proc")
    def test_nothing_is_kept_of_a_process_that_has_died(self) -> None:
        descriptors: list[int] = []
        with ProcessPool(1) as pool:
            for _ in range(3):
                assert pool.submit(add, 1).result() == 1
                descriptors.append(len(os.listdir("/proc/self/fd")))
                assert pool.submit(die, 1).exception() is not None
        assert descriptors == descriptors[:1] * 3

    def test_a_process_whose_program_dies_while_it_sends_a_call_ends_without_an_error(self) -> None:
        context = get_context("spawn")
        connection, other = context.Pipe()
        process = context.Process(target=_serve, args=(other,))
        process.start()
        other.close()
        assert connection.recv_bytes() == b"ready"
        os.write(connection.fileno(), BEGINNING)
        connection.close()
        process.join()
        assert process.exitcode == 0

    def test_a_forked_program_makes_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with ProcessPool(1) as pool:
            owner = os.getpid()
            monkeypatch.setattr(os, "getpid", lambda: owner + 1)
            with pytest.raises(RuntimeError, match=f"belongs to the process {owner}.*forked"):
                pool.submit(pid)

    def test_mistakes_are_refused(self) -> None:
        with pytest.raises(ValueError, match="ProcessPool: workers must be at least 1"):
            ProcessPool(0)

    def test_the_checks_know_the_threads_of_the_shared_pool(self) -> None:
        from reactive_aio.pools import SHARED_NAME

        assert SHARED_NAME in SHARED_NAMES


# -- programs --------------------------------------------------------------------------------------
Program = Callable[[str], "subprocess.Popen[str]"]

FLOW = """
    import asyncio, os, signal, sys, time
    import reactive_aio as rx

    def work(x):
        time.sleep(0.01 if x < 20 else WAIT)
        return x

    async def main():
        async for x in rx.range(10**9).map_in_process(work, chunk=1):
            if x == 5:
                print("ready", flush=True)
"""
GUARDED = """
    if __name__ == "__main__":
        asyncio.run(main())
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def start(text: str) -> "subprocess.Popen[str]":
        path = tmp_path / "program.py"
        path.write_text(dedent(text))
        return subprocess.Popen(
            [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            start_new_session=True,
        )  # fmt: skip

    return start


def ended(running: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """The exit status of a program, and what it and its processes have printed to the end."""
    out, err = running.communicate(timeout=60)
    return running.returncode, out, err


@pytest.mark.parametrize("wait", ["600", "0.02"])
def test_the_processes_of_a_program_that_is_killed_end_at_once(program: Program, wait: str) -> None:
    """They would keep its standard output open: its reader would wait for ever."""
    running = program(FLOW.replace("WAIT", wait) + GUARDED)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.kill()
    begin = time.monotonic()
    assert ended(running)[0] == -signal.SIGKILL
    assert time.monotonic() - begin < 10


def test_ctrl_c_leaves_the_processes_to_the_program(program: Program) -> None:
    """One that drains when it is interrupted receives what they are working on."""
    running = program(
        FLOW.replace("WAIT", "0.05")
        + """
    async def drained():
        found = []
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopped.set)
        flow = rx.range(10**9).map_in_process(work, chunk=1, concurrency=2)
        async with flow.running(found.append) as run:
            os.killpg(0, signal.SIGINT)  # while the processes start
            await stopped.wait()
            while len(found) < 30:
                await asyncio.sleep(0.01)
            os.killpg(0, signal.SIGINT)
            report = await run.drain(timeout=30)
        print(report.in_flight, report.discarded, found == [*range(len(found))])

    if __name__ == "__main__":
        asyncio.run(drained())
"""
    )
    assert ended(running) == (0, "0 0 True\n", "")


def test_a_program_without_a_guard_is_told_about_it(program: Program) -> None:
    status, _, err = ended(program(FLOW.replace("WAIT", "1") + "\n    asyncio.run(main())\n"))
    assert status == 1
    assert 'let that run flows under `if __name__ == "__main__":` only' in err


def test_the_second_run_of_a_program_finds_the_processes(program: Program) -> None:
    running = program(
        """
    import asyncio, os
    import reactive_aio as rx

    def pid(_):
        return os.getpid()

    async def main():
        return {*await rx.just(1).map_in_process(pid).to_list()}

    if __name__ == "__main__":
        print(asyncio.run(main()) == asyncio.run(main()))
"""
    )
    assert ended(running) == (0, "True\n", "")


async def test_a_lambda_of_a_program_without_a_file_is_sent() -> None:
    code = """
import asyncio, reactive_aio as rx
def double(x): return 2 * x
async def main():
    print(await rx.range(3).map_in_process(double).map_in_process(lambda x: x + 1).to_list())
asyncio.run(main())
"""
    here = str(Path(__file__).parents[1])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": here}
    )
    out, _ = await process.communicate()
    assert out == b"[1, 3, 5]\n"
