"""The loop whose clock jumps: time, order, threads, sockets, and deadlocks."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import pytest

from reactive_aio._sources.thread import ReentrantEvent
from reactive_aio.testing import Parkable
from reactive_aio.testing.thread_frames import frame_of
from reactive_aio.testing.virtual_time import (
    Deadlock,
    ExecutorCall,
    TooManyTurns,
    VirtualTimeLoop,
    is_parked as is_parked_in,
)

pytestmark = pytest.mark.virtual_time

DAY = 24 * 3600.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield pool


def now() -> float:
    return asyncio.get_running_loop().time()


def is_parked(thing: Parkable) -> bool:
    return thing.is_parked()


def deadlock_of(main: Callable[[], Coroutine[Any, Any, object]]) -> str:
    """The message of the deadlock of *main*."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, pytest.raises(Deadlock) as caught:
        runner.run(main())
    return str(caught.value)


class TestTime:
    async def test_starts_at_zero_and_jumps_to_the_next_timer(self) -> None:
        assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
        began = time.monotonic()
        assert now() == 0
        await asyncio.sleep(3600)
        assert now() == 3600
        assert time.monotonic() - began < 60

    async def test_jumps_over_more_than_the_longest_single_wait(self) -> None:
        await asyncio.sleep(400 * DAY)
        assert now() == pytest.approx(400 * DAY)

    async def test_small_steps_on_a_large_clock_arrive(self) -> None:
        await asyncio.sleep(1e9)
        for _ in range(100):
            await asyncio.sleep(0.1)
        assert now() == pytest.approx(1e9 + 10, abs=1e-3)

    async def test_timers_fire_in_order_of_their_time(self) -> None:
        fired: list[tuple[str, float]] = []
        loop = asyncio.get_running_loop()

        def fire(name: str) -> None:
            fired.append((name, now()))

        for name, delay in [("c", 3.0), ("a", 1.0), ("b", 2.0)]:
            loop.call_later(delay, fire, name)
        await asyncio.sleep(5)
        assert fired == [("a", 1.0), ("b", 2.0), ("c", 3.0)]

    async def test_a_busy_loop_makes_no_time_pass(self) -> None:
        for _ in range(1000):
            await asyncio.sleep(0)
        assert now() == 0

    async def test_timeouts_expire_in_virtual_time(self) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.Event().wait()
        assert now() == 90


class TestThreads:
    async def test_executor_work_holds_the_clock(self) -> None:
        late = asyncio.create_task(asyncio.sleep(60))
        assert await asyncio.to_thread(work_for_a_while) == "done"
        assert now() == 0
        late.cancel()

    async def test_a_thread_of_the_test_holds_the_clock(self) -> None:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def run() -> None:
            time.sleep(0.02)
            loop.call_soon_threadsafe(woken.set)

        threading.Thread(target=run).start()
        async with asyncio.timeout(1):
            await woken.wait()
        assert now() == 0

    async def test_a_thread_that_waits_for_the_loop_does_not_hold_the_clock(self) -> None:
        go = threading.Event()
        waiter = asyncio.create_task(asyncio.to_thread(go.wait))
        await asyncio.sleep(60)
        assert now() == 60
        go.set()
        assert await waiter

    async def test_a_parked_thread_does_not_hold_the_clock(self) -> None:
        event = ReentrantEvent()
        event.clear()
        waiter = asyncio.create_task(asyncio.to_thread(event.wait))
        await asyncio.sleep(60)
        assert now() == 60
        assert is_parked(event)
        event.set()
        async with asyncio.timeout(1):
            await waiter
        assert now() == 60

    async def test_a_thread_that_was_just_woken_holds_the_clock(self) -> None:
        go = threading.Event()

        def run() -> str:
            go.wait()
            return work_for_a_while()

        waiter = asyncio.create_task(asyncio.to_thread(run))
        await asyncio.sleep(60)
        go.set()
        async with asyncio.timeout(1):
            assert await waiter == "done"
        assert now() == 60

    def test_a_thread_that_has_woken_and_not_returned_is_running(self) -> None:
        """It holds the lock of its own wait again, and waits for that of the condition."""
        condition: Any = threading.Condition()

        def run() -> None:
            with condition:
                condition.wait()

        thread = threading.Thread(target=run)
        thread.start()
        while not condition._waiters:
            pass
        with condition:
            [waiter] = condition._waiters
            assert is_parked_in(cast("Any", frame_of(thread)))
            condition.notify()
            while not waiter.locked():
                pass
            assert not is_parked_in(cast("Any", frame_of(thread)))
        thread.join()

    async def test_attributes_of_a_running_object_are_not_accessed(self) -> None:
        """An attribute of py4j's objects may be a blocking call to a JVM."""
        accessed: list[str] = []

        class Foreign:
            def work(self) -> str:
                time.sleep(0.02)
                return "done"

            def __getattr__(self, name: str) -> object:
                accessed.append(name)
                return lambda: True

        async with asyncio.timeout(1):
            assert await asyncio.to_thread(Foreign().work) == "done"
        assert accessed == []

    async def test_the_idle_workers_of_a_pool_do_not_hold_the_clock(
        self, pool: ThreadPoolExecutor
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(pool, work_for_a_while)
        await asyncio.sleep(60)
        assert now() == 60

    async def test_a_cancelled_call_holds_the_clock_until_its_thread_is_done(self) -> None:
        begun, done = threading.Event(), threading.Event()

        def run() -> None:
            begun.set()
            time.sleep(0.02)
            done.set()

        call = asyncio.get_running_loop().run_in_executor(None, run)
        while not begun.is_set():  # noqa: ASYNC110 - set by a thread; and no time may pass
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.sleep(60)
        assert done.is_set()

    def test_a_call_that_has_just_reached_its_thread_is_running(self) -> None:
        call, gate = ExecutorCall(), threading.Lock()
        gate.acquire()
        # A lock leaves no frame of its own: the innermost is that of `wrap`.
        thread = threading.Thread(target=call.wrap(gate.acquire))
        thread.start()
        try:
            for _ in range(1000):
                assert not call.is_parked()
        finally:
            gate.release()
            thread.join()

    async def test_work_that_was_given_to_a_pool_directly_holds_the_clock(
        self, pool: ThreadPoolExecutor
    ) -> None:
        loop = asyncio.get_running_loop()

        def work(done: asyncio.Future[None]) -> None:
            loop.call_soon_threadsafe(done.set_result, None)

        for _ in range(100):
            done: asyncio.Future[None] = loop.create_future()
            pool.submit(work, done)
            await asyncio.wait_for(done, DAY)
        assert now() == 0

    async def test_a_pool_that_counts_too_few_idle_workers_does_not_stop_the_clock(
        self, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("reactive_aio.testing.virtual_time.LONGEST_HANDOVER", 0.01)
        await asyncio.wrap_future(pool.submit(int))
        idle_workers: threading.Semaphore = cast("Any", pool)._idle_semaphore
        while not idle_workers.acquire(blocking=False):  # noqa: ASYNC110 - released by a thread
            await asyncio.sleep(0)
        for _ in range(2):
            await asyncio.sleep(60)
        assert now() == 120

    async def test_errors_of_the_executor_come_back(self) -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(divmod, 1, 0)
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        with pytest.raises(RuntimeError, match="shutdown"):
            await asyncio.get_running_loop().run_in_executor(pool, work_for_a_while)
        await asyncio.sleep(60)
        assert now() == 60

    async def test_calls_that_queue_for_a_worker_hold_the_clock(
        self, pool: ThreadPoolExecutor
    ) -> None:
        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(pool, work_for_a_while) for _ in range(10)]
        async with asyncio.timeout(1):
            await asyncio.gather(*calls)
        assert now() == 0

    async def test_a_process_pool_is_waited_for(self, processes: ProcessPoolExecutor) -> None:
        async with asyncio.timeout(1):
            call = asyncio.get_running_loop().run_in_executor(processes, divmod, 7, 2)
            assert await call == (3, 1)
        assert now() == 0


class TestSockets:
    async def test_data_from_the_same_loop_needs_no_time(self) -> None:
        left, right = socket.socketpair()
        reader, back = await asyncio.open_connection(sock=left)
        _, writer = await asyncio.open_connection(sock=right)
        for _ in range(10):
            writer.write(b"ping\n")
            async with asyncio.timeout(1):
                assert await reader.readline() == b"ping\n"
        assert now() == 0
        for end in (writer, back):
            end.close()
            await end.wait_closed()

    async def test_without_a_timer_a_socket_is_waited_for(self) -> None:
        left, right = socket.socketpair()
        left.setblocking(False)

        def send() -> None:
            time.sleep(0.02)
            right.sendall(b"x")

        with left, right:
            threading.Thread(target=send).start()
            assert await asyncio.get_running_loop().sock_recv(left, 1) == b"x"


class TestDeadlock:
    def test_names_each_waiting_task_and_its_place(self) -> None:
        async def inner() -> None:
            await asyncio.Event().wait()

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(inner(), name="the waiting one")

        message = deadlock_of(main)
        assert message.startswith("deadlock at 0 s of virtual time")
        assert "the waiting one: " in message
        assert "inner: await asyncio.Event().wait()" in message
        assert str(Path(__file__).relative_to(Path.cwd())) in message

    def test_comes_after_the_last_timer(self) -> None:
        async def main() -> None:
            await asyncio.sleep(30)
            await asyncio.Event().wait()

        assert deadlock_of(main).startswith("deadlock at 30 s")

    def test_names_the_threads_that_wait_for_the_loop(self) -> None:
        go = threading.Event()

        def produce() -> None:
            go.wait()

        thread = threading.Thread(target=produce, name="producer")

        async def main() -> None:
            thread.start()
            await asyncio.Event().wait()

        try:
            message = deadlock_of(main)
            assert "threads that wait for the loop:\n  producer\n" in message
            assert "produce: go.wait()" in message.splitlines()[-1]
        finally:
            go.set()
            thread.join()

    def test_of_a_loop_without_tasks(self) -> None:
        loop = VirtualTimeLoop()
        with pytest.raises(Deadlock, match="the loop has no task"):
            loop.run_forever()
        loop.close()

    def test_leaves_a_loop_that_can_be_cleaned_up(self) -> None:
        cleaned: list[str] = []

        async def main() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
                cleaned.append("yes")

        deadlock_of(main)
        assert cleaned == ["yes"]


def work_for_a_while() -> str:
    time.sleep(0.02)
    return "done"


def test_a_thread_that_has_the_number_of_an_older_one_is_waited_for() -> None:
    """The system gives the number of a thread that has ended to one that begins."""
    go = threading.Event()
    old = [threading.Thread(target=go.wait) for _ in range(20)]
    for each in old:
        each.start()
    loop = VirtualTimeLoop()
    go.set()
    numbers = {each.ident for each in old}
    for each in old:
        each.join()
    news = asyncio.Event()

    def work() -> None:
        if threading.get_ident() in numbers:
            work_for_a_while()
            loop.call_soon_threadsafe(news.set)

    async def main() -> float:
        for _ in range(100):
            young = threading.Thread(target=work)
            young.start()
            if young.ident in numbers:
                break  # it ends with its work
        async with asyncio.timeout(DAY):
            await news.wait()
        return now()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(main()) == 0


@pytest.mark.parametrize("pause", [0, 0.1])
def test_a_program_without_an_end_is_stopped_after_some_turns(pause: float) -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110 - that is the program
            await asyncio.sleep(pause)

    def new_loop() -> VirtualTimeLoop:
        return VirtualTimeLoop(most_turns=100)

    with (
        asyncio.Runner(loop_factory=new_loop) as runner,
        pytest.raises(TooManyTurns, match=r"^100 turns of the loop .*(.|\n)*spin: .*sleep"),
    ):
        runner.run(spin())


@pytest.mark.parametrize("turns", [0, -1, 1.5, True, "9"])
def test_no_turns_are_refused(turns: Any) -> None:
    with pytest.raises(ValueError, match="most_turns must be an int from 1, not "):
        VirtualTimeLoop(most_turns=turns)
