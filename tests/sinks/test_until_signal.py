"""run_until_signal: signals drain and cancel, and the exit status says how it ended."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

import reactive_aio as r
from reactive_aio import DrainReport
from reactive_aio._core import process_end
from reactive_aio._core.loop import LoopHandle
from tests.cases import Needs

pytestmark = pytest.mark.usefixtures("process_goes_on")

BOTH: Final = (signal.SIGTERM, signal.SIGINT)


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


def fail(_: object) -> int:
    raise OSError("lost")


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


@pytest.mark.parametrize("handler", [None, signal.default_int_handler])
async def test_ctrl_c_drains_although_a_server_watches_it(handler: Any) -> None:
    if handler is not None:  # else that of `asyncio.run`
        signal.signal(signal.SIGINT, handler)
    told = asyncio.Event()
    end_watching = LoopHandle("a server").watch_signal(signal.SIGINT, told.set)
    work = Work()
    task = work.start()
    await work.started.wait()
    await received(signal.SIGINT)
    end_watching()
    assert told.is_set()
    assert not task.done()
    work.may_end.set()
    assert await task == 0


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("is_interactive", [True, False])
async def test_only_a_program_with_a_time_that_nobody_types_is_ended(
    timeout: float | None, is_interactive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(process_end, "called_off", is_over := threading.Event())
    work = Work()
    task = work.start(timeout)
    await work.started.wait()
    await received(signal.SIGTERM)
    ending = [each for each in threading.enumerate() if each.name == "reactive_aio-process-end"]
    is_over.set()
    assert len(ending) == (timeout is not None and not is_interactive)
    work.may_end.set()
    assert await task == 0


async def test_the_status_says_that_the_time_was_over() -> None:
    work = Work()
    task = work.start(timeout=0)
    await work.started.wait()
    await received(signal.SIGTERM)
    assert await task == 75
    [report] = work.reports
    assert (report.in_flight, report.is_complete) == (1, False)


async def test_a_signal_drains_all_flows_that_run() -> None:
    before = [signal.getsignal(number) for number in BOTH]
    first, second, late = works = Work(), Work(), Work()
    tasks = [first.start(timeout=60), second.start()]
    await first.started.wait()
    await second.started.wait()
    assert await r.run_until_signal(r.just(1)) == 0, "the others still receive the signal"
    await received(signal.SIGTERM)
    assert [signal.getsignal(number) for number in BOTH] == [signal.SIG_DFL] * 2
    tasks.append(late.start())
    await late.started.wait()
    for work in works:
        work.may_end.set()
    assert await asyncio.gather(*tasks) == [0, 0, 0]
    assert [len(work.reports) for work in works] == [1, 1, 1]
    for number, handler in zip(BOTH, before, strict=True):
        signal.signal(number, handler)
    assert await r.run_until_signal(r.just(1)) == 0, "a signal counts for those that run"
    assert [signal.getsignal(number) for number in BOTH] == before


async def test_a_handler_that_is_set_meanwhile_is_kept() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    work = Work()
    task = work.start()
    await work.started.wait()
    ours: Any = signal.signal(signal.SIGTERM, lambda number, frame: ours(number, frame))
    work.may_end.set()
    task.cancel()
    await asyncio.wait([task])
    await received(signal.SIGTERM)
    assert seen == [signal.SIGTERM]
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("is_signalled", [False, True])
async def test_the_status_says_that_another_drain_has_cut_the_work(
    is_signalled: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Work()
    run = r.from_aiter(work.source).map_async(work.work).running()
    task = asyncio.create_task(r.run_until_signal(run, timeout=60, on_drained=work.reports.append))
    await work.started.wait()
    drain = asyncio.create_task(run.drain(timeout=0.05 if is_signalled else 0))
    if is_signalled:
        await received(signal.SIGTERM)
    assert await task == 75
    assert not (await drain).is_complete
    assert [each.is_complete for each in work.reports] == [False] * is_signalled
    lines = capsys.readouterr().err.splitlines()
    assert ["its work was cut: " in each for each in lines] == [True] * is_signalled


async def test_an_error_that_another_drain_has_raised_is_raised_as_well() -> None:
    run = r.never().merge_with(r.timer(0.01).map(fail)).running()
    task = asyncio.create_task(r.run_until_signal(run))
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="lost"):
        await run.wait()
    with pytest.raises(OSError, match="lost"):
        await task


async def test_without_a_signal_the_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in BOTH]
    assert await r.run_until_signal(r.just(1)) == 0
    assert [signal.getsignal(number) for number in BOTH] == before


async def test_after_a_signal_the_next_one_is_for_the_system() -> None:
    work = Work()
    task = work.start(timeout=60)
    await work.started.wait()
    await received(signal.SIGTERM)
    assert [signal.getsignal(number) for number in BOTH] == [signal.SIG_DFL] * 2
    work.may_end.set()
    assert await task == 0
    assert [signal.getsignal(number) for number in BOTH] == [signal.SIG_DFL] * 2


async def test_a_cleanup_that_hangs_is_named_and_not_awaited(
    capsys: pytest.CaptureFixture[str],
) -> None:
    may_clean_up, started = asyncio.Event(), asyncio.Event()

    async def save(_: int) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await may_clean_up.wait()

    orders = r.range(3).map_async(save, concurrency=2).name("orders")
    reports: list[DrainReport] = []
    task = asyncio.create_task(r.run_until_signal(orders, timeout=0.01, on_drained=reports.append))
    await started.wait()
    try:
        await received(signal.SIGTERM)
        status = await task
    finally:
        may_clean_up.set()
        await asyncio.sleep(0.01)
    assert status == 75
    [report] = reports
    assert not report.is_complete
    [line] = capsys.readouterr().err.splitlines()
    assert re.match(r"run_until_signal: 0\.\d s after SIGTERM, still waiting: 2 × orders: ", line)
    assert re.search(r"save \(.*test_until_signal\.py:\d+\)", line)


async def test_what_is_cut_is_named_if_it_ends_when_it_is_cancelled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def client_of_a_broker() -> None:
        await asyncio.Event().wait()

    others = [asyncio.create_task(client_of_a_broker()) for _ in range(5)]
    started = asyncio.Event()

    async def save(number: int) -> int:
        if number == 1:
            started.set()
            raise OSError("not now")
        await asyncio.Event().wait()
        return number

    again = r.RetryPolicy(attempts=None, delay=60)
    orders = r.range(2).map_async(save, concurrency=2, retry=again).name("orders")
    task = asyncio.create_task(r.run_until_signal(orders, timeout=0.01))
    await started.wait()
    await received(signal.SIGTERM)
    assert await task == 75
    for each in others:
        each.cancel()
    [line] = capsys.readouterr().err.splitlines()
    assert re.match(r"run_until_signal: 0\.\d s after SIGTERM, its work was cut: orders: ", line)
    assert "orders: a worker of range(0, 2) → save: " in line
    assert re.search(r"save \(\S*test_until_signal\.py:\d+\)", line)
    assert "waits for the delay before attempt 2, after OSError" in line


async def test_a_task_that_awaits_the_call_is_not_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    work = Work()

    async def main(call: "asyncio.Task[int]") -> int:
        return await call

    task = asyncio.create_task(main(work.start(timeout=0)), name="main")
    await work.started.wait()
    await received(signal.SIGTERM)
    assert await task == 75
    assert "main: " not in capsys.readouterr().err


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


PROGRAM: Final = """
import asyncio, sys, threading
import reactive_aio as rx
from reactive_aio.delivery import deliveries

async def hang(*_):
    await asyncio.sleep(3600)

async def save(n):
    await asyncio.sleep(0.2)
    print("saved", n)

async def ignore(n):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def clean_up(n):
    try:
        await hang()
    finally:
        await hang()

def block(n):
    threading.Event().wait()

async def in_thread(n):
    await asyncio.to_thread(block, n)

class Resource:
    async def __aenter__(self): pass
    async def __aexit__(self, *_): await hang()

async def after_that(flow):
    async with Resource():
        return await serve(flow)

async def serve(flow):
    threading.Timer(0.05, print, ["up"], {{"flush": True}}).start()
    show = lambda report: print("drained")
    return await rx.run_until_signal(flow, timeout={timeout}, on_drained=show)

async def main():
    return await {work}

sys.exit(asyncio.run(main()))
"""
ACKS: Final = "serve(deliveries(rx.range(9), ack=hang).ack_after(lambda n: None))"
CLEANUP: Final = "serve(rx.range(9).name('orders').running(clean_up))"
HANGS: Final = {
    "acknowledgements": (ACKS, "an acknowledgement: hang"),
    "a cleanup": (CLEANUP, "orders: range(0, 9) → name('orders')"),
    "the event loop": ("serve(rx.range(9).map(block))", "the event loop is blocked by block"),
    "a call that ignores it": ("serve(rx.range(9).running(ignore))", ": ignore (<string>:"),
    "a thread": ("serve(rx.range(9).running(in_thread))", "in the thread asyncio_0"),
    "what the program does then": ("after_that(rx.never())", "hang (<string>:"),
}


def run_program(work: str, timeout: float, signals: list[int]) -> tuple[int, str, str]:
    """The exit status, the output and the errors of a process that receives *signals*."""
    program = [sys.executable, "-c", PROGRAM.format(work=work, timeout=timeout)]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        for number in signals:
            process.send_signal(number)
            time.sleep(0.05)  # two at the same time are one for the system
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.slow
def test_a_process_that_is_drained_exits_with_status_0() -> None:
    flow = "serve(rx.merge(rx.just(1), rx.never()).running(save))"
    assert run_program(flow, 60, [signal.SIGTERM]) == (0, "saved 1\ndrained\n", "")


def hangs(quick: str) -> list[Any]:
    """Each thing that may hang; only the quick one outside of the thorough tests."""
    marks = {name: () if name == quick else (pytest.mark.thorough,) for name in HANGS}
    return [pytest.param(name, marks=marks[name]) for name in HANGS]


@pytest.mark.slow
@pytest.mark.parametrize("what", hangs("a thread"))
def test_a_process_ends_when_the_time_is_over_whatever_hangs(what: str) -> None:
    work, named = HANGS[what]
    status, _, err = run_program(work, 0.3, [signal.SIGTERM])
    assert status == 75
    [line] = err.splitlines()
    assert line.startswith("run_until_signal: ")
    assert named in line


@pytest.mark.slow
@pytest.mark.thorough
def test_a_process_with_several_flows_ends_with_the_longest_time() -> None:
    work = "asyncio.gather(serve(rx.range(9).running(ignore)), rx.run_until_signal({}, timeout=3))"
    slow = "rx.just(1).map_async(lambda x: asyncio.sleep(1.5, x)).running(save)"
    status, out, _ = run_program(work.format(slow), 0.3, [signal.SIGTERM])
    assert (status, out) == (75, "drained\nsaved 1\n")


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [BOTH, pytest.param(BOTH[::-1], marks=pytest.mark.thorough)])
@pytest.mark.parametrize("what", hangs("the event loop"))
def test_the_second_signal_ends_a_process_whatever_hangs(what: str, numbers: list[int]) -> None:
    status, _, err = run_program(HANGS[what][0], 60, list(numbers))
    assert (status, err) == (-numbers[1], "")


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
