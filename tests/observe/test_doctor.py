"""observe.watch: flows that stall, calls that block the event loop, and reports by a signal."""

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import observe
from reactive_aio._core.observation import registry
from reactive_aio._core.unwinding import suspended_frames
from reactive_aio.delivery import deliveries
from reactive_aio.observe import blocked_loop
from reactive_aio.testing import SubscriberProbe
from tests.harness.leftover_checks import Context
from tests.harness.outages import frozen


@pytest.fixture(autouse=True)
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_names", {})


async def hangs(_: int) -> int:
    await asyncio.Event().wait()
    return 1


@pytest.mark.virtual_time
class TestStalls:
    async def test_a_flow_that_holds_and_does_not_deliver_is_reported_once(self) -> None:
        reports: list[str] = []
        flow = r.interval(1).boundary(4).map_async(hangs, concurrency=2).name("orders")
        async with observe.watch(stall=10, block=None, on_report=reports.append), flow.running():
            await asyncio.sleep(9)
            assert not reports
            await asyncio.sleep(60)
        [report] = reports
        lines = report.splitlines()
        assert lines[0].startswith("orders: nothing was delivered for 1")
        assert "waits for elements of map_async(hangs, concurrency=2)" in lines[2]
        assert lines[3].endswith("2 calls run, its oldest element is 10.0 s old")
        assert "in hangs (" in lines[4]
        assert "boundary(4): holds 2" in lines[5]

    async def test_it_is_reported_again_after_it_has_made_progress(self) -> None:
        reports: list[str] = []

        async def slow(x: int) -> int:
            await asyncio.sleep(15)
            return x

        flow = r.range(3).map_async(slow).name("slow")
        async with observe.watch(stall=5, block=None, on_report=reports.append):
            await flow.run()
        assert len(reports) == 3
        assert all("waits for test_it_is" in each or "slow (" in each for each in reports)

    async def test_a_flow_that_waits_for_its_source_does_not_stall(self) -> None:
        reports: list[str] = []
        flow = r.interval(60).boundary(4).name("quiet")
        async with observe.watch(stall=1, block=None, on_report=reports.append), flow.running():
            await asyncio.sleep(600)
        assert not reports

    async def test_a_look_does_not_change_the_rates_of_others(self) -> None:
        flow = r.interval(1).name("ticks")
        async with observe.watch(stall=1, block=None), flow.running():
            await asyncio.sleep(10.5)
            assert flow.stats().subscriptions[0].rate == pytest.approx(10 / 10.5)

    async def test_an_error_of_the_block_is_raised_as_it_is(self) -> None:
        with pytest.raises(KeyError, match="of the block"):
            async with observe.watch(block=None):
                raise KeyError("of the block")

    async def test_an_on_report_that_raises_does_not_end_the_block(
        self, expects_loop_errors: list[Context]
    ) -> None:
        reports: list[str] = []

        def broken(report: str) -> None:
            reports.append(report)
            raise OSError("the pager is down")

        flows = [r.just(1).map_async(hangs).name(name) for name in ("first", "second")]
        async with observe.watch(stall=1, block=None, on_report=broken):
            async with flows[0].running():
                await asyncio.sleep(5)
            async with flows[1].running():
                await asyncio.sleep(5)
        assert [each.partition(":")[0] for each in reports] == ["first", "second"]
        assert [str(each["exception"]) for each in expects_loop_errors] == ["the pager is down"] * 2

    async def test_without_a_receiver_a_report_is_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "reactive_aio"):
            flow = r.just(1).map_async(hangs).name("stuck")
            async with observe.watch(stall=1, block=None), flow.running():
                await asyncio.sleep(5)
        assert caplog.records[0].getMessage().startswith("stuck: nothing was delivered")


class TestBlockedLoop:
    async def test_a_call_is_reported_with_its_stage(self) -> None:
        found: list[str | None] = []

        def looks(x: int) -> int:
            found.append(blocked_loop.blocking_call(sys._getframe()))
            return x

        await r.range(1).boundary(1).filter(lambda x: x == 0).map(looks).boundary(1).run()
        [call] = found
        assert call is not None
        assert "test_a_call_is_reported_with_its_stage.<locals>.looks (" in call
        assert "test_doctor.py:" in call
        trail = "range(0, 1) → boundary(1) → filter("
        assert ") in map(" in call
        assert f") of the flow {trail}" in call

    async def test_a_call_of_a_pulled_flow_is_reported(self) -> None:
        found: list[str | None] = []

        def looks(x: int) -> int:
            found.append(blocked_loop.blocking_call(sys._getframe()))
            return x

        assert [x async for x in r.just(1).map(looks)] == [1]
        assert found[0] is not None
        assert found[0].startswith("TestBlockedLoop.test_a_call_of_a_pulled_flow_is_reported.")

    async def test_a_call_is_reported_with_its_operator_and_flow_wherever_it_is_made(self) -> None:
        found: list[str] = []

        def looks(x: int) -> int:
            found.append(blocked_loop.blocking_call(sys._getframe()) or "")
            return x

        async def enriches(x: int) -> int:
            return looks(x)

        flows = {
            "map(looks)": r.range(1).map(looks).map_async(enriches, concurrency=2),
            "filter(looks)": r.range(1).filter(looks).map(str).flat_map(lambda x: [x]),
            "map_async(enriches)": r.range(1).map_async(enriches),
            "deliveries(limit=256)": deliveries(r.range(1), ack=enriches).ack_after(int),
            "flat_map(": r.range(1).flat_map(lambda x: r.just(looks(x)).boundary(1)),
            "map(looks) ": r.merge(r.range(1).map(looks).boundary(1), r.range(1)).name("orders"),
        }
        for operator, flow in flows.items():
            found.clear()
            await flow.run()
            assert found[0].startswith("TestBlockedLoop.test_a_call_is_reported_with_its_operator")
            assert f" in {operator}" in found[0], found[0]
            assert " of the flow " in found[0]
        assert found[0].endswith(", a part of 'orders'")
        found.clear()
        await r.range(1).map(str).map_async(lambda _: enriches(1), concurrency=2).run()
        assert "in map_async(<lambda>, concurrency=2) of the flow range(0, 1) → map(str" in found[0]

    async def test_a_loop_that_is_in_no_stage_is_named_by_its_source(self) -> None:
        """As the thread that looks may find it, between two elements that a stage emits."""
        flow = r.just(1).map_async(hangs).start_with(6, 7)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        assert await probe.wait_for_signals(1) == [6]
        [task] = asyncio.all_tasks() - {asyncio.current_task()}
        frames = suspended_frames(task.get_coro())
        [loop] = [each for each in frames if each.f_code.co_filename.startswith("<reactive_aio")]
        assert blocked_loop.blocking_call(loop) == f"just(1) of the flow {flow.chain.trail()}"
        probe.cancel()

    @pytest.mark.slow
    async def test_a_process_that_is_stopped_is_not_blocked_by_what_it_does(self) -> None:
        program = """
import asyncio, time
from reactive_aio import observe
async def main():
    async with observe.watch(block=0.1, on_report=lambda text: print(text, flush=True)):
        await asyncio.sleep(0.1)
        print("up", flush=True)
        while True:  # busy, so that the process is stopped in the middle of it
            until = time.monotonic() + 0.01
            while time.monotonic() < until:
                pass
            await asyncio.sleep(0)
asyncio.run(main())
"""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert process.stdout is not None
        while await process.stdout.readline() != b"up\n":
            pass  # on a busy machine, the start is reported as well
        with frozen(process.pid):
            await asyncio.sleep(0.7)
        async with asyncio.timeout(30):
            report = (await process.stdout.readline()).decode()
        process.kill()
        await process.wait()
        assert report.startswith("the process did not run for 0."), report
        assert "no call of this program blocks the event loop" in report

    async def test_what_runs_the_loop_is_not_to_blame_for_what_it_does(self) -> None:
        """Such as ``asyncio.run(main())`` of a program, while the loop itself is slow."""
        found: list[str | None] = []

        def looks() -> None:
            frame = sys._getframe()
            found.append(blocked_loop.blocking_call(frame))
            found.append(blocked_loop.blocking_call(frame.f_back))

        asyncio.get_running_loop().call_soon(looks)
        await asyncio.sleep(0.01)
        assert found[0] is not None
        assert "looks (" in found[0]
        assert found[1] is None

    async def test_the_loop_itself_is_not_reported(self) -> None:
        assert blocked_loop.blocking_call(None) is None

    async def test_a_thread_finds_what_blocks_the_loop(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        is_found = threading.Event()
        reports: list[str] = []
        find = blocked_loop.blocking_call

        def finding(frame: object) -> str | None:
            call = find(frame)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            if call is None or "in map(" not in call:
                return None  # on a busy machine, anything may take as long
            is_found.set()
            return call

        monkeypatch.setattr(blocked_loop, "blocking_call", finding)

        def blocks(x: int) -> int:
            while not is_found.is_set():
                pass
            return x

        async with observe.watch(block=0.01, on_report=reports.append):
            await r.just(1).boundary(1).map(blocks).boundary(1).run()
            while not reports:  # noqa: ASYNC110 - one turn at a time
                await asyncio.sleep(0)
        assert reports[0].startswith("the event loop is blocked for more than 0.01 s by ")
        assert "in map(" in reports[0]
        assert "of the flow just(1) → boundary(1) → map(" in reports[0]


async def on_report_later(report: str) -> None:
    pytest.fail("it is refused")


@pytest.mark.parametrize("wrong", [on_report_later, 5, lambda: 1], ids=["async", "int", "arity"])
async def test_an_on_report_that_cannot_be_called_with_a_report_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"observe\.watch: on_report (must be|is called with 1)"):
        async with observe.watch(on_report=wrong):
            pass


async def test_a_signal_makes_a_report() -> None:
    reports: list[str] = []
    before = signal.getsignal(signal.SIGUSR1)
    watching = observe.watch(block=None, on_report=reports.append)
    async with watching, r.never().name("shown").running():
        os.kill(os.getpid(), signal.SIGUSR1)
        while not reports:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
    assert "shown: 1 running" in reports[0]
    assert signal.getsignal(signal.SIGUSR1) == before


@pytest.mark.virtual_time
async def test_tasks_of_workers_have_the_name_of_their_flow() -> None:
    flow = r.range(9).filter(bool).map_async(hangs, concurrency=2)
    inner = r.range(9).flat_map(lambda x: r.from_awaitable(lambda: hangs(x)))
    async with flow.running(), inner.running():
        await asyncio.sleep(1)
        names = {task.get_name() for task in asyncio.all_tasks()}
    assert "a worker of range(0, 9) → filter(bool) → hangs" in names
    assert "a task of range(0, 9) → flat_map" in names
