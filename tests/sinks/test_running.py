"""running: the block around a flow that runs, its errors, and what a drain reports.

What a drain does with each kind of source and operator is in `tests/contract/test_drain.py`.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import DrainReport, Flow
from reactive_aio.errors import WrongLoop
from tests.cases import Needs, Sinks
from tests.sinks.test_terminal import later


async def run_to_end(flow: Flow[Any]) -> None:
    async with flow.running() as run:
        await run.wait()


async def drain_at_once(flow: Flow[Any]) -> DrainReport:
    async with flow.running() as run:
        return await run.drain(timeout=None)


SINKS: Sinks = {
    "running": run_to_end,
    "running: drained": drain_at_once,
}


async def fails_later() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(1)
    raise OSError("lost")


class TestBlock:
    @pytest.mark.virtual_time
    async def test_the_flow_runs_beside_the_block_until_it_is_left(self) -> None:
        ended: list[str] = []
        async with r.interval(1).do_finally(ended.append).running() as run:
            await asyncio.sleep(3.5)
            assert run.delivered == 3
            assert not ended
        assert ended == ["cancelled"]
        assert run.is_done

    @pytest.mark.virtual_time
    async def test_leaving_the_block_waits_for_the_cleanup_and_raises_its_error(self) -> None:
        async def source() -> AsyncIterator[int]:
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                raise OSError("cannot close")

        with pytest.raises(OSError, match="cannot close"):
            async with r.from_aiter(source).running():
                await asyncio.sleep(1)

    @pytest.mark.virtual_time
    async def test_a_flow_that_fails_cancels_the_block_which_raises_its_error(self) -> None:
        with pytest.raises(OSError, match="lost"):
            async with r.from_aiter(fails_later).running():
                await asyncio.Event().wait()
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    async def test_a_flow_that_fails_at_once_fails_a_block_without_an_await(self) -> None:
        with pytest.raises(OSError, match="at once"):
            async with r.error(OSError("at once")).running():
                pass
        await asyncio.sleep(0)

    @pytest.mark.virtual_time
    async def test_a_cancellation_from_outside_stays_one(self) -> None:
        async def block() -> None:
            async with r.from_aiter(fails_later).running():
                await asyncio.Event().wait()

        task = asyncio.create_task(block())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    @pytest.mark.virtual_time
    async def test_a_failure_beside_an_error_of_the_block_is_reported(
        self, expects_loop_errors: list[dict[str, Any]]
    ) -> None:
        async def block() -> None:
            async with r.from_aiter(fails_later).running():
                try:
                    await asyncio.Event().wait()
                finally:
                    raise KeyError("of the block")

        with pytest.raises(KeyError):
            await block()
        [report] = expects_loop_errors
        assert str(report["exception"]) == "lost"
        expects_loop_errors.clear()

    async def test_wait_raises_the_error_once(self) -> None:
        async with r.error(OSError("lost")).running() as run:
            with pytest.raises(OSError, match="lost"):
                await run.wait()
            await run.wait()

    async def test_a_run_runs_once(self) -> None:
        run = r.just(1).running()
        async with run:
            await run.wait()
        with pytest.raises(RuntimeError, match=r"a Run runs once; call flow\.running\(\)"):
            async with run:
                pass

    async def test_it_has_to_be_entered_before_it_is_drained(self) -> None:
        run = r.just(1).running()
        assert repr(run) == "<Run not started>"
        for call in (run.drain, run.wait):
            with pytest.raises(RuntimeError, match=r"async with flow\.running\(\) as run:"):
                await call()


class TestFunction:
    @pytest.mark.parametrize("concurrency", [1, 3])
    async def test_a_function_is_called_with_each_element(self, concurrency: int) -> None:
        seen: list[int] = []

        async def see(x: int) -> None:
            await asyncio.sleep(0)
            seen.append(x)

        async with r.range(9).running(see, concurrency=concurrency) as run:
            await run.wait()
        assert sorted(seen) == list(range(9))
        assert run.delivered == 9

    async def test_a_plain_function_is_called_as_well(self) -> None:
        seen: list[int] = []
        async with r.range(3).running(seen.append) as run:
            await run.wait()
        assert seen == [0, 1, 2]

    async def test_the_options_are_those_of_for_each(self) -> None:
        async def fails(x: int) -> None:
            if x == 1:
                raise OSError("one")

        async with r.range(3).running(fails, concurrency=2, on_error="skip", timeout=9) as run:
            await run.wait()
        assert run.delivered == 2

    def test_options_without_a_function_are_refused(self) -> None:
        with pytest.raises(TypeError, match="options such as concurrency are for a function"):
            r.just(1).running(concurrency=2)

    async def test_a_function_that_returns_an_awaitable_is_refused(self) -> None:
        with pytest.raises(TypeError, match="write it with async def"):
            async with r.just(1).running(lambda x: later(x)) as run:
                await run.wait()

    def test_errors_name_running(self) -> None:
        with pytest.raises(ValueError, match="running: concurrency must be at least 1"):
            r.just(1).running(later, concurrency=0)
        with pytest.raises(TypeError, match="running: function"):
            r.just(1).running(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class TestDrain:
    async def test_a_flow_that_has_ended_is_drained(self) -> None:
        async with r.range(3).running() as run:
            await run.wait()
            report = await run.drain()
        assert report == DrainReport(3, 0, 0, 0, 0, True, report.seconds)
        assert repr(run) == "<Run ended, 3 delivered>"

    @pytest.mark.virtual_time
    async def test_two_drains_at_the_same_time_report_the_same(self) -> None:
        async with r.interval(1).map_async(later).running() as run:
            await asyncio.sleep(2.5)
            first, second = await asyncio.gather(run.drain(), run.drain())
        assert first == second

    @pytest.mark.virtual_time
    async def test_it_cancels_what_is_left_after_the_time(self) -> None:
        ended: list[str] = []
        flow = r.just(1, 2).map_async(lambda x: asyncio.sleep(60, x)).do_finally(ended.append)
        async with flow.running() as run:
            await asyncio.sleep(1)
            report = await run.drain(timeout=5)
            assert ended == ["cancelled"]
            await run.wait()
        assert str(report) == (
            "not drained in 4.5 s: 0 delivered (0 of them since the drain began), 1 in flight, "
            "0 discarded, 0 unacknowledged; when it was cut, it waited for: "
            "just(1, 2) → map_async(<lambda>) → do_finally(list.append)"
        )

    @pytest.mark.virtual_time
    async def test_it_ends_in_time_and_names_a_cleanup_that_hangs(self) -> None:
        released = asyncio.Event()

        async def stubborn(x: int) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await released.wait()

        other = r.range(9).name("fine").running(stubborn)
        async with other, r.range(9).name("orders").running(stubborn, concurrency=2) as run:
            await asyncio.sleep(1)
            report = await run.drain(timeout=5)
            assert not report.is_complete
            assert (report.is_clean, report.seconds) == (False, 5)
            named = "2 × orders: a worker of range(0, 9) → stubborn: "
            assert report.waits_for.startswith(named), report
            assert "test_running.py" in report.waits_for
            assert ";" not in report.waits_for, "each call is named once"
            assert "fine" not in report.waits_for, "another flow is not to blame"
            assert f"; still waiting: {report.waits_for}" in str(report)
            assert (await run.drain(timeout=5)).waits_for == report.waits_for
            released.set()

    @pytest.mark.virtual_time
    async def test_a_cleanup_has_the_time_that_the_work_has_left(self) -> None:
        async def closes_late() -> AsyncIterator[int]:
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(8)

        async with r.from_aiter(closes_late).running() as run:
            await asyncio.sleep(1)
            report = await run.drain(timeout=10)
        assert report.is_complete
        assert report.seconds == 8

    @pytest.mark.virtual_time
    async def test_a_failure_while_it_drains_has_the_report_as_a_note(self) -> None:
        async def fails(_: int) -> int:
            await asyncio.sleep(9)
            raise OSError("lost")

        async with r.just(1).map_async(fails).running() as run:
            await asyncio.sleep(1)
            with pytest.raises(OSError, match="lost") as caught:
                await run.drain()
            assert not run.is_complete
        assert caught.value.__notes__[-1].startswith("not drained in 8 s: 0 delivered")

    @pytest.mark.virtual_time
    async def test_a_drain_that_another_one_cuts_is_not_complete(self) -> None:
        async with r.just(1, 2).map_async(lambda x: asyncio.sleep(60, x)).running() as run:
            await asyncio.sleep(1)
            waiting = asyncio.create_task(run.wait())
            both = await asyncio.gather(run.drain(timeout=600), run.drain(timeout=3))
            await waiting
            assert run.is_done
            assert not run.is_complete
            reports = [*both, await run.drain(timeout=5)]
        for report in reports:
            assert str(report).startswith("not drained in ")
            assert (report.is_complete, report.is_clean, report.in_flight) == (False, True, 1)
            assert report.waits_for == reports[1].waits_for != ""

    @pytest.mark.virtual_time
    async def test_a_drain_that_the_end_of_the_block_cuts_is_not_complete(self) -> None:
        released = asyncio.Event()

        async def stubborn(_: int) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await released.wait()

        drains: list[asyncio.Task[DrainReport]] = []

        async def block() -> None:
            async with r.range(3).name("orders").running(stubborn) as run:
                await asyncio.sleep(1)
                drains.extend(asyncio.create_task(run.drain(timeout=each)) for each in (9, 600))
                await asyncio.sleep(1)

        leaving = asyncio.create_task(block())
        await asyncio.sleep(30)
        report = await drains[0]
        assert (report.is_complete, report.is_clean) == (False, False)
        assert "stubborn" in report.waits_for
        released.set()
        await leaving
        report = await drains[1]
        assert (report.is_complete, report.is_clean, report.in_flight) == (False, True, 1)
        assert report.waits_for.startswith("orders: range(0, 3)")

    @pytest.mark.virtual_time
    async def test_an_operator_that_holds_elements_for_a_time_is_named(self) -> None:
        async with r.range(3).delay(60).name("later").running() as run:
            await asyncio.sleep(1)
            report = await run.drain(timeout=5)
        assert report.waits_for == "later: delay(60): waits for the end of its delay"

    @pytest.mark.virtual_time
    async def test_a_failure_is_raised_in_each_call_that_waits_for_the_end(self) -> None:
        async def fails(_: int) -> int:
            await asyncio.sleep(9)
            raise OSError("lost")

        async with r.just(1).map_async(fails).running() as run:
            calls = run.drain(timeout=600), run.drain(timeout=None), run.wait()
            raised = await asyncio.gather(*calls, return_exceptions=True)
        assert [repr(each) for each in raised] == ["OSError('lost')"] * 3

    async def test_a_time_below_zero_is_refused(self) -> None:
        async with r.never().running() as run:
            with pytest.raises(ValueError, match="drain: timeout"):
                await run.drain(timeout=-1)

    @pytest.mark.virtual_time
    async def test_a_cancelled_drain_leaves_the_rest_to_the_block(self) -> None:
        async with r.just(1).map_async(lambda x: asyncio.sleep(9, x)).running() as run:
            await asyncio.sleep(1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await run.drain()
            assert not run.is_done
        assert run.delivered == 0


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Run a service": {
        "run a flow beside other work, and drain it": "running",
    },
}


async def example_running() -> None:
    async def save(order: int) -> None:
        await asyncio.sleep(0.1)
        print("saved", order)

    async with r.interval(0.3).running(save) as run:
        await asyncio.sleep(1)
        report = await run.drain(timeout=10)
    print(report.delivered, "delivered,", report.discarded, "discarded")


async def ticking() -> AsyncIterator[int]:
    while True:
        await asyncio.sleep(0)
        yield 1


@pytest.mark.parametrize("boundaries", [0, 1])
def test_the_end_of_the_program_is_no_failure(boundaries: int) -> None:
    reports: list[dict[str, Any]] = []
    kept: list[asyncio.Future[Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context))
        delivered = asyncio.Event()
        flow = r.from_aiter(ticking).do_on_next(lambda _: delivered.set())
        for _ in range(boundaries):
            flow = flow.boundary(3)

        async def service() -> None:
            async with flow.running() as run:
                await run.wait()

        kept.append(asyncio.ensure_future(service()))
        await delivered.wait()

    for _ in range(5):  # the order in which asyncio cancels tasks varies
        asyncio.run(main())
    assert not reports
    assert all(each.cancelled() for each in kept)


@pytest.mark.parametrize("call", ["wait", "drain"])
async def test_it_is_waited_for_where_it_runs(call: str) -> None:
    async with r.never().running() as run:

        def elsewhere() -> None:
            with pytest.raises(WrongLoop, match=rf"run\.{call}\(\).*run_coroutine_threadsafe"):
                asyncio.run(getattr(run, call)())

        await asyncio.to_thread(elsewhere)
        assert not run.is_done
