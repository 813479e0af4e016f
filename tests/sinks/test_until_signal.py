"""run_until_signal: signals drain and cancel, and the exit status says how it ended."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import DrainReport
from tests.cases import Needs


@pytest.fixture(autouse=True)
def handlers_are_restored() -> Iterator[None]:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


class Work:
    """A flow that waits, once started, for signals of this process."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()
        self.reports: list[DrainReport] = []

    async def source(self) -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    async def work(self, element: int) -> int:
        self.started.set()
        await self.may_end.wait()
        return element

    def start(self, timeout: float | None = None) -> "asyncio.Task[int]":
        flow = r.from_aiter(self.source).map_async(self.work)
        return asyncio.create_task(
            r.run_until_signal(flow, timeout=timeout, on_drained=self.reports.append)
        )


async def received(number: int) -> None:
    """Send a signal to this process, and let the loop receive it."""
    os.kill(os.getpid(), number)
    for _ in range(5):
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_drains(number: int) -> None:
    work = Work()
    task = work.start()
    await work.started.wait()
    await received(number)
    assert not task.done()
    work.may_end.set()
    assert await task == 0
    [report] = work.reports
    assert (report.delivered, report.is_complete) == (1, True)


async def test_the_second_signal_cancels_at_once() -> None:
    work = Work()
    task = work.start()
    await work.started.wait()
    await received(signal.SIGINT)
    await received(signal.SIGTERM)
    assert await task == 128 + signal.SIGTERM
    assert not work.reports


async def test_the_status_says_that_the_time_was_over() -> None:
    work = Work()
    task = work.start(timeout=0)
    await work.started.wait()
    await received(signal.SIGTERM)
    assert await task == 75
    [report] = work.reports
    assert (report.in_flight, report.is_complete) == (1, False)


async def test_a_flow_that_completes_needs_no_signal() -> None:
    seen: list[int] = []
    assert await r.run_until_signal(r.range(3).running(seen.append)) == 0
    assert seen == [0, 1, 2]


async def test_the_error_of_the_flow_is_raised() -> None:
    with pytest.raises(OSError, match="lost"):
        await r.run_until_signal(r.error(OSError("lost")))


async def test_cancelling_its_task_cancels_the_flow() -> None:
    work = Work()
    task = work.start()
    await work.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("given", [[1], None, lambda: r.just(1)])
async def test_only_a_flow_or_a_run_is_accepted(given: Any) -> None:
    with pytest.raises(TypeError, match="neither a flow nor what"):
        await r.run_until_signal(given)


def test_in_another_thread_the_error_names_what_to_write_there() -> None:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(r.run_until_signal(r.just(1)))
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    [error] = caught
    assert "await run.drain()" in str(error)


PROGRAM = """
import asyncio, sys
import reactive_aio as rx

async def main() -> int:
    async def save(n: int) -> None:
        print("began", n, flush=True)
        await asyncio.sleep({seconds})
        print("saved", n, flush=True)
    flow = rx.merge(rx.just(1), rx.never()).running(save, concurrency=2)
    return await rx.run_until_signal(flow, timeout=60)

sys.exit(asyncio.run(main()))
"""


def run_program(seconds: float, signals: list[int]) -> tuple[int, str]:
    """The exit status and the output of a process that receives *signals* while it works."""
    program = [sys.executable, "-c", PROGRAM.format(seconds=seconds)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began 1\n"
        for number in signals:
            process.send_signal(number)
        rest = process.stdout.read()
    return process.returncode, rest


@pytest.mark.slow
def test_a_process_that_is_drained_exits_with_status_0() -> None:
    assert run_program(0.2, [signal.SIGTERM]) == (0, "saved 1\n")


@pytest.mark.slow
def test_a_process_that_is_cancelled_exits_with_the_status_of_a_signal() -> None:
    status, rest = run_program(60, [signal.SIGTERM, signal.SIGINT])
    assert status in (128 + signal.SIGTERM, 128 + signal.SIGINT)  # the system may reorder them
    assert not rest


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Run a service": {
        "run until SIGTERM or SIGINT, then drain": "run_until_signal",
    },
}


async def example_run_until_signal() -> None:
    async def save(order: int) -> None:
        print("saved", order)

    status = await r.run_until_signal(r.range(2).running(save), timeout=25)
    print("exit status", status)
