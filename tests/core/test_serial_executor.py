"""SerialExecutor: signals, plain or coroutines, one at a time, in order, each to its end."""

import asyncio
import contextvars
import gc
import sys
import threading
import time
import weakref
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from reactive_aio import SerialExecutor
from reactive_aio.errors import Interrupted, NoRunningLoop, Overflow
from reactive_aio.testing.virtual_time import VirtualTimeLoop

VALUE: contextvars.ContextVar[str] = contextvars.ContextVar("value", default="unset")


async def test_a_plain_signal_runs_inside_submit() -> None:
    ran: list[int] = []
    SerialExecutor().submit(ran.append, 1)
    assert ran == [1]


async def test_a_signal_submitted_by_a_signal_runs_after_it() -> None:
    """3.3: the depth is one."""
    executor = SerialExecutor()
    seen: list[str] = []

    def outer() -> None:
        executor.submit(seen.append, "inner")
        seen.append("outer")

    executor.submit(outer)
    assert seen == ["outer", "inner"]


async def test_ten_thousand_signals_that_submit_each_other_do_not_recurse() -> None:
    executor = SerialExecutor()
    count = 0

    def again() -> None:
        nonlocal count
        count += 1
        if count < 10_000:
            executor.submit(again)

    executor.submit(again)
    await executor.drained()
    assert count == 10_000


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.booleans()), max_size=12))
def test_any_mixture_of_signals_keeps_its_order(signals: list[tuple[bool, int, bool]]) -> None:
    """Coroutines or not, quick or slow, submitted at once or a turn later."""

    async def main() -> None:
        executor = SerialExecutor()
        begun: list[int] = []
        inside = 0

        def plain(index: int) -> None:
            assert inside == 0
            begun.append(index)

        async def slow(index: int, turns: int) -> None:
            nonlocal inside
            assert inside == 0
            begun.append(index)
            inside += 1
            for _ in range(turns):
                await asyncio.sleep(0)
            inside -= 1

        for index, (is_async, turns, pause) in enumerate(signals):
            if is_async:
                executor.submit(slow, index, turns)
            else:
                executor.submit(plain, index)
            if pause:
                await asyncio.sleep(0)
        await executor.drained()
        assert begun == list(range(len(signals)))

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


async def test_a_signal_that_raises_does_not_stop_the_others(
    expects_loop_errors: list[Any],
) -> None:
    executor = SerialExecutor()
    ran: list[int] = []

    def wrong() -> None:
        raise ValueError("plain")

    async def late() -> None:
        await asyncio.sleep(0)
        raise ValueError("coroutine")

    executor.submit(wrong)
    executor.submit(late)
    executor.submit(wrong)
    executor.submit(ran.append, 1)
    await executor.drained()
    assert ran == [1]
    assert [str(each["exception"]) for each in expects_loop_errors] == [
        "plain",
        "coroutine",
        "plain",
    ]


async def test_errors_go_to_on_error_if_given() -> None:
    errors: list[BaseException] = []
    executor = SerialExecutor(on_error=errors.append)
    executor.submit(int, "x")
    assert [type(error) for error in errors] == [ValueError]


async def test_an_on_error_that_raises_does_not_stop_the_signals(
    expects_loop_errors: list[Any],
) -> None:
    def worse(error: BaseException) -> None:
        raise KeyError("worse") from error

    executor = SerialExecutor(on_error=worse)
    ran: list[int] = []
    executor.submit(int, "x")
    executor.submit(ran.append, 1)
    assert ran == [1]
    assert isinstance(expects_loop_errors[0]["exception"], KeyError)


async def test_a_program_stopping_error_is_raised_and_the_other_signals_run() -> None:
    executor = SerialExecutor()
    ran: list[int] = []

    def stop() -> None:
        executor.submit(ran.append, 1)
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        executor.submit(stop)
    await executor.drained()
    assert ran == [1]


async def test_a_signal_cancelled_from_outside_is_reported_and_the_others_run() -> None:
    """CancelledError is not an error of the signal; a waiting task must not wait for ever."""
    errors: list[BaseException] = []
    executor = SerialExecutor(on_error=errors.append)
    ran: list[int] = []
    for begun in (False, True):
        executor.submit(asyncio.sleep, 3600)
        executor.submit(ran.append, 1)
        if begun:
            await asyncio.sleep(0)
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        task.cancel()
        await executor.drained()
        assert task.cancelled()
    assert ran == [1, 1]
    assert [type(error) for error in errors] == [Interrupted, Interrupted]


async def test_one_signal_more_than_the_capacity_raises_in_the_caller() -> None:
    executor = SerialExecutor(capacity=2)
    held = asyncio.Event()
    executor.submit(held.wait)
    executor.submit(int)
    executor.submit(int)
    with pytest.raises(Overflow):
        executor.submit(int)
    assert len(executor) == 2
    held.set()
    await executor.drained()
    assert len(executor) == 0


async def test_signals_from_threads_run_on_the_loop_in_the_order_of_each_thread() -> None:
    executor = SerialExecutor(capacity=None)
    here = threading.get_ident()
    ran: list[tuple[int, int]] = []

    def signal(thread: int, n: int) -> None:
        assert threading.get_ident() == here
        ran.append((thread, n))

    def submit(thread: int) -> None:
        for n in range(300):
            executor.submit(signal, thread, n)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        await asyncio.gather(*(asyncio.to_thread(submit, index) for index in range(3)))
    finally:
        sys.setswitchinterval(before)
    await executor.drained()
    assert sorted(ran) == [(thread, n) for thread in range(3) for n in range(300)]
    for index in range(3):
        assert [n for thread, n in ran if thread == index] == list(range(300))


async def test_signals_run_in_the_context_of_the_executor() -> None:
    VALUE.set("the executor's")
    executor = SerialExecutor()
    seen: list[str] = []

    def plain() -> None:
        seen.append(VALUE.get())

    async def slow() -> None:
        await asyncio.sleep(0)
        seen.append(VALUE.get())

    def elsewhere() -> None:
        VALUE.set("another caller's")
        executor.submit(plain)
        executor.submit(slow)
        executor.submit(plain)

    contextvars.copy_context().run(elsewhere)
    await executor.drained()
    await asyncio.to_thread(elsewhere)
    await executor.drained()
    assert seen == ["the executor's"] * 6


async def test_a_long_queue_yields_to_the_loop() -> None:
    executor = SerialExecutor(capacity=None)
    gaps: list[float] = []

    async def heartbeat() -> None:
        last = time.thread_time()  # a machine that pauses must not fail the test
        while True:
            await asyncio.sleep(0)
            gaps.append(time.thread_time() - last)
            last = time.thread_time()

    beat = asyncio.create_task(heartbeat())
    await asyncio.sleep(0)

    def busy() -> None:
        sum(range(2000))

    def many() -> None:
        for _ in range(5000):
            executor.submit(busy)

    executor.submit(many)
    await executor.drained()
    beat.cancel()
    assert len(gaps) > 10
    assert max(gaps) < sum(gaps) / 5


async def test_coroutines_that_never_suspend_yield_to_the_loop() -> None:
    executor = SerialExecutor(capacity=None)
    turns = 0

    async def ready() -> None:
        sum(range(2000))

    for _ in range(3000):
        executor.submit(ready)
    waiting = asyncio.create_task(executor.drained())
    while not waiting.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 5


async def test_closing_drops_waiting_signals_and_awaits_the_running_one() -> None:
    executor = SerialExecutor()
    seen: list[str] = []

    async def slow() -> None:
        await asyncio.sleep(0)
        seen.append("ended")

    executor.submit(slow)
    executor.submit(seen.append, "dropped")
    await executor.aclose()
    assert seen == ["ended"]
    executor.submit(seen.append, "too late")
    await executor.drained()
    assert seen == ["ended"]


async def test_a_signal_may_close_the_executor_it_runs_on() -> None:
    executor = SerialExecutor()
    seen: list[str] = []

    async def last() -> None:
        await executor.aclose()
        seen.append("ended")

    executor.submit(last)
    executor.submit(seen.append, "dropped")
    await executor.drained()
    assert seen == ["ended"]


async def test_cancelling_one_waiter_cancels_neither_signals_nor_other_waiters() -> None:
    executor = SerialExecutor()
    seen: list[str] = []
    go = asyncio.Event()

    async def slow() -> None:
        await go.wait()
        seen.append("ended")

    executor.submit(slow)
    one, other = asyncio.create_task(executor.drained()), asyncio.create_task(executor.drained())
    closing = asyncio.create_task(executor.aclose())
    await asyncio.sleep(0)
    one.cancel()
    closing.cancel()
    await asyncio.sleep(0)
    assert one.cancelled()
    go.set()
    await other
    assert seen == ["ended"]


async def test_an_idle_executor_keeps_nothing() -> None:
    executor = SerialExecutor()

    class Signal:
        async def __call__(self) -> None:
            await asyncio.sleep(0)

    signal = Signal()
    gone = weakref.ref(signal)
    executor.submit(signal)
    del signal
    await executor.drained()
    await asyncio.sleep(0)
    gc.collect()
    assert gone() is None


def test_it_needs_a_running_loop() -> None:
    with pytest.raises(NoRunningLoop, match=r"SerialExecutor\(\) needs a running asyncio"):
        SerialExecutor()


async def test_its_repr_shows_its_state() -> None:
    executor = SerialExecutor()
    executor.submit(asyncio.sleep, 0)
    executor.submit(int)
    assert repr(executor) == "<SerialExecutor running, 1 waiting>"
    await executor.drained()
    assert repr(executor) == "<SerialExecutor idle, 0 waiting>"
