"""The schedule explorer finds races, reduces and replays them, and passes correct scenarios."""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from reactive_aio.testing.schedules import (
    Exploration,
    NotDeterministic,
    Schedule,
    ScheduleFailure,
    explore,
    replay,
)

Scenario = Callable[[Schedule], Coroutine[Any, Any, object]]


def broken(scenario: Scenario, **options: Any) -> ScheduleFailure:
    with pytest.raises(ScheduleFailure) as failure:
        explore(scenario, **options)
    return failure.value


def departures(failure: ScheduleFailure) -> int:
    return len(failure.order.split())


# --- races ----------------------------------------------------------------------------------------


class Account:
    def __init__(self) -> None:
        self.balance = 10
        self.lock = asyncio.Lock()

    async def withdraw(self, amount: int) -> None:
        """Tests, waits, acts."""
        if self.balance >= amount:
            await asyncio.sleep(0)
            self.balance -= amount

    async def withdraw_locked(self, amount: int) -> None:
        async with self.lock:
            await self.withdraw(amount)


async def check_then_act(_: Schedule) -> None:
    account = Account()
    await asyncio.gather(account.withdraw(8), account.withdraw(8))
    assert account.balance >= 0


async def check_then_act_later(_: Schedule) -> None:
    """Under asyncio's own order the first is done before the second looks."""
    account = Account()

    async def second() -> None:
        for _ in range(2):
            await asyncio.sleep(0)
        await account.withdraw(8)

    await asyncio.gather(account.withdraw(8), second())
    assert account.balance >= 0


async def locked(_: Schedule) -> None:
    account = Account()
    await asyncio.gather(account.withdraw_locked(8), account.withdraw_locked(8))
    assert account.balance == 2


class Flag:
    """Set by a thread, awaited by a task."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.value = False
        self.waiter: asyncio.Event | None = None

    def set(self) -> None:
        self.value = True
        waiter = self.waiter
        if waiter is not None:
            self.loop.call_soon_threadsafe(waiter.set)

    async def wait_forgetful(self) -> None:
        if not self.value:
            self.waiter = asyncio.Event()
            await self.waiter.wait()

    async def wait(self) -> None:
        self.waiter = asyncio.Event()
        if not self.value:
            await self.waiter.wait()


async def lost_wake_up(schedule: Schedule) -> None:
    flag = Flag()
    schedule.thread(flag.set, "setter")
    await flag.wait_forgetful()


async def kept_wake_up(schedule: Schedule) -> None:
    flag = Flag()
    schedule.thread(flag.set, "setter")
    await flag.wait()


class Counter:
    def __init__(self) -> None:
        self.value = 0
        self.lock = threading.Lock()

    def increase(self) -> None:
        value = self.value
        self.value = value + 1

    def increase_locked(self) -> None:
        with self.lock:
            self.increase()


async def torn(schedule: Schedule) -> None:
    counter = Counter()
    schedule.thread(counter.increase)
    counter.increase()
    await schedule.wait_until_idle()
    assert counter.value == 2


async def torn_between_threads(schedule: Schedule) -> None:
    counter = Counter()
    schedule.thread(counter.increase)
    schedule.thread(counter.increase)
    await schedule.wait_until_idle()
    assert counter.value == 2


async def late_timer(_: Schedule) -> None:
    """Believes that of two timers of one time the first set fires first."""
    loop = asyncio.get_running_loop()
    fired: list[str] = []
    loop.call_at(1, fired.append, "a")
    loop.call_at(1, fired.append, "b")
    await asyncio.sleep(2)
    assert fired == ["a", "b"]


async def timer_on_a_slow_machine(_: Schedule) -> None:
    """Believes that three turns of the loop take less than five milliseconds."""

    async def turns() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async with asyncio.timeout(0.005):
        await turns()


async def executor_result(_: Schedule) -> None:
    """Believes that a function in an executor takes longer than a turn of the loop."""
    loop = asyncio.get_running_loop()
    result = loop.run_in_executor(None, int, "1")
    await asyncio.sleep(0)
    assert not result.done()
    await result


RACES: dict[str, tuple[Scenario, int, str]] = {
    "a check then an act across an await": (check_then_act, 0, "AssertionError"),
    "one that needs another order than asyncio's": (check_then_act_later, 2, "AssertionError"),
    "a thread between the test and the set": (lost_wake_up, 1, "deadlock at 0 s"),
    "a thread inside a read and write": (torn, 1, "interrupts"),
    "two threads": (torn_between_threads, 2, "thread 1 is held up"),
    "timers of one time": (late_timer, 1, "AssertionError"),
    "a timer before what is ready": (timer_on_a_slow_machine, 1, "time passes"),
    "a quick executor": (executor_result, 2, "int arrives"),
}
"""With how many departures from asyncio's order each is found, and what the failure says."""


@pytest.mark.parametrize("race", RACES)
def test_a_race_is_found_with_as_few_departures_as_it_needs(race: str) -> None:
    scenario, count, words = RACES[race]
    failure = broken(scenario)
    assert departures(failure) == count
    assert words in str(failure)
    assert isinstance(failure.error, TimeoutError) == (scenario is timer_on_a_slow_machine)


@pytest.mark.parametrize(
    ("scenario", "option"),
    [
        (check_then_act_later, {"fifo": True}),
        (lost_wake_up, {"preemptions": 0}),
        (timer_on_a_slow_machine, {"slack": 0}),
    ],
)
def test_a_race_is_not_found_where_an_option_excludes_its_order(
    scenario: Scenario, option: dict[str, Any]
) -> None:
    assert explore(scenario, **option).exhaustive


class TestCorrectScenariosPass:
    @pytest.mark.parametrize("scenario", [locked, kept_wake_up])
    def test_a_lock_around_the_check_and_a_waiter_that_is_set_before_it(
        self, scenario: Scenario
    ) -> None:
        assert explore(scenario).exhaustive

    def test_locks_between_threads_and_loop(self) -> None:
        async def scenario(schedule: Schedule) -> None:
            counter = Counter()
            schedule.thread(counter.increase_locked)
            schedule.thread(counter.increase_locked)
            counter.increase_locked()
            await schedule.wait_until_idle()
            assert counter.value == 3

        assert explore(scenario, max_orders=3000).exhaustive

    def test_callbacks_of_one_actor_keep_their_order(self) -> None:
        async def scenario(_: Schedule) -> None:
            seen: list[int] = []
            loop = asyncio.get_running_loop()
            for n in range(5):
                loop.call_soon(seen.append, n)
            await asyncio.sleep(0.1)
            assert seen == [0, 1, 2, 3, 4]

        assert explore(scenario) == Exploration(1, 0, 1, exhaustive=True)

    def test_tasks_start_in_the_order_in_which_they_were_made(self) -> None:
        async def scenario(_: Schedule) -> None:
            seen: list[int] = []

            async def start(n: int) -> None:
                seen.append(n)
                await asyncio.sleep(0)

            await asyncio.gather(*(start(n) for n in range(3)))
            assert seen == [0, 1, 2]

        assert explore(scenario).exhaustive

    def test_a_timer_is_never_early(self) -> None:
        async def scenario(_: Schedule) -> None:
            loop = asyncio.get_running_loop()
            seen: list[str] = []
            loop.call_later(0, seen.append, "timer")
            loop.call_soon(lambda: seen.append("ready before"))
            await asyncio.sleep(1)
            assert seen == ["ready before", "timer"]

        assert explore(scenario).exhaustive

    def test_timers_of_different_times_keep_their_order(self) -> None:
        async def scenario(_: Schedule) -> None:
            loop = asyncio.get_running_loop()
            seen: list[int] = []
            loop.call_later(0.002, seen.append, 2)
            loop.call_later(0.001, seen.append, 1)
            await asyncio.sleep(1)
            assert seen == [1, 2]

        assert explore(scenario).exhaustive


# --- other failures -------------------------------------------------------------------------------


class TestFailures:
    def test_by_an_error_that_reaches_the_loop(self) -> None:
        async def scenario(_: Schedule) -> None:
            asyncio.get_running_loop().call_soon(int, "x")
            await asyncio.sleep(0)

        assert "invalid literal" in str(broken(scenario))

    def test_unless_the_scenario_removes_it(self) -> None:
        async def scenario(schedule: Schedule) -> None:
            asyncio.get_running_loop().call_soon(int, "x")
            await asyncio.sleep(0)
            assert isinstance(schedule.errors.pop()["exception"], ValueError)

        assert explore(scenario).exhaustive

    def test_by_an_exception_that_is_never_retrieved(self) -> None:
        async def fail() -> None:
            raise ValueError("lost")

        async def scenario(_: Schedule) -> None:
            await asyncio.wait([asyncio.ensure_future(fail())])

        assert "never retrieved" in str(broken(scenario))

    def test_by_a_task_that_has_not_ended(self) -> None:
        async def endless() -> None:
            await asyncio.Event().wait()

        async def scenario(_: Schedule) -> None:
            scenario.task = asyncio.ensure_future(endless())  # type: ignore[attr-defined]
            await asyncio.sleep(0)

        assert "left over when the scenario has ended" in str(broken(scenario))

    def test_by_a_deadlock(self) -> None:
        async def scenario(_: Schedule) -> None:
            await asyncio.Event().wait()

        message = str(broken(scenario))
        assert "deadlock at 0 s of virtual time" in message
        assert "await asyncio.Event().wait()" in message

    def test_by_running_forever(self) -> None:
        async def scenario(_: Schedule) -> None:
            while True:  # noqa: ASYNC110 - the fault
                await asyncio.sleep(0)

        assert "goes on after 50 steps" in str(broken(scenario, max_steps=50))

    def test_by_an_exception_of_a_thread(self) -> None:
        async def scenario(schedule: Schedule) -> None:
            schedule.thread(lambda: int("x"))

        assert "invalid literal" in str(broken(scenario))

    def test_by_a_lock_that_is_never_released(self) -> None:
        async def scenario(schedule: Schedule) -> None:
            lock = threading.Lock()
            lock.acquire()
            schedule.thread(lock.acquire, "the waiting one")

        message = str(broken(scenario))
        assert "left over" in message
        assert "the waiting one waits" in message

    def test_by_a_lock_for_which_the_loop_waits_forever(self) -> None:
        async def scenario(_: Schedule) -> None:
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()

        assert "no thread will release" in str(broken(scenario))


# --- reports --------------------------------------------------------------------------------------


async def two_races(schedule: Schedule) -> None:
    """Fails when both threads arrive between the two halves of the task's work."""
    seen: list[str] = []
    for name in ("one", "two"):
        schedule.thread(lambda name=name: seen.append(name))  # type: ignore[misc]
    for _ in range(6):
        await asyncio.sleep(0)
    early = len(seen)
    await schedule.wait_until_idle()
    assert early < 2


class TestReports:
    def test_a_failure_lists_the_steps_and_the_call_of_replay(self) -> None:
        failure = broken(lost_wake_up)
        message = str(failure)
        assert message.startswith("Deadlock: ")
        assert f"replay(lost_wake_up, {failure.order!r})" in message
        assert f"{__name__.replace('.', '/')}.py:" in message
        assert failure.__cause__ is failure.error

    def test_replay_reproduces_the_same_steps(self) -> None:
        failure = broken(lost_wake_up)
        for _ in range(2):
            with pytest.raises(ScheduleFailure) as again:
                replay(lost_wake_up, failure.order)
            assert str(again.value) == str(failure)

    def test_replay_of_an_order_that_passes_returns_its_steps(self) -> None:
        steps = replay(kept_wake_up, "p1=1")
        assert any("setter interrupts" in step for step in steps)

    def test_a_failure_of_a_random_order_is_reduced(self) -> None:
        found = broken(two_races, preemptions=0, max_orders=1, random_orders=500)
        assert departures(found) == departures(broken(two_races, preemptions=0)) == 2

    @pytest.mark.parametrize("order", ["x", "1", "1=", "p=1", "1=1,2=1"])
    def test_an_invalid_order_is_refused(self, order: str) -> None:
        with pytest.raises(ValueError, match="not an order"):
            replay(locked, order)


class TestBudget:
    async def many(self, _: Schedule) -> None:
        async def steps() -> None:
            for _ in range(4):
                await asyncio.sleep(0)

        await asyncio.gather(steps(), steps(), steps())

    def test_it_is_respected_and_reported(self) -> None:
        explored = explore(self.many, max_orders=60, random_orders=7)
        assert explored == Exploration(67, 7, 1, exhaustive=False)
        assert str(explored) == (
            "67 orders: all with up to 1 departures, some with more, 7 at random"
        )

    def test_all_orders_within_it_are_exhaustive(self) -> None:
        runs: list[tuple[int, ...]] = []

        async def scenario(_: Schedule) -> None:
            seen: list[int] = []

            async def step(n: int) -> None:
                await asyncio.sleep(0)
                for _ in range(2):
                    seen.append(n)
                    await asyncio.sleep(0)

            await asyncio.gather(step(0), step(1))
            runs.append(tuple(seen))

        explored = explore(scenario, max_orders=100_000)
        assert explored.exhaustive
        assert str(explored) == f"{explored.orders} orders: all"
        # Twice two steps, each of the two in its own order: 4! / (2! 2!)
        assert len(set(runs)) == 6

    def test_the_same_orders_each_time(self) -> None:
        courses: list[list[str]] = [[], []]
        for course in courses:

            async def scenario(schedule: Schedule, course: list[str] = course) -> None:
                seen: list[str] = []
                schedule.thread(lambda: seen.append("thread"))
                await asyncio.gather(self.many(schedule), asyncio.sleep(0.001))
                course.append("".join(seen))

            explore(scenario, max_orders=100, random_orders=50, seed=3)
        assert courses[0] == courses[1]

    def test_a_scenario_that_is_not_deterministic_is_reported(self) -> None:
        runs: list[int] = []

        async def scenario(schedule: Schedule) -> None:
            runs.append(1)
            if len(runs) < 3:
                await self.many(schedule)

        with pytest.raises(NotDeterministic):
            explore(scenario)

    async def test_it_cannot_be_called_inside_a_loop(self) -> None:
        with pytest.raises(RuntimeError, match="inside one"):
            explore(locked)


def test_clocks_stand_still_with_the_loop() -> None:
    async def scenario(_: Schedule) -> None:
        before = asyncio.get_running_loop().time()
        await asyncio.sleep(3600)
        assert asyncio.get_running_loop().time() == before + 3600

    started = time.perf_counter()
    explore(scenario)
    assert time.perf_counter() - started < 60


class TestThreads:
    def test_to_thread_is_an_arrival_on_another_thread(self) -> None:
        async def scenario(_: Schedule) -> None:
            here = threading.get_ident()
            assert await asyncio.to_thread(threading.get_ident) != here

        assert explore(scenario).exhaustive

    def test_an_exception_in_an_executor_reaches_the_awaiting_task(self) -> None:
        async def scenario(_: Schedule) -> None:
            with pytest.raises(ValueError, match="invalid literal"):
                await asyncio.to_thread(int, "x")

        assert explore(scenario).exhaustive

    def test_a_call_in_an_executor_that_was_cancelled_does_not_run(self) -> None:
        async def scenario(schedule: Schedule) -> None:
            calls: list[int] = []
            future = asyncio.get_running_loop().run_in_executor(None, calls.append, 1)
            future.cancel()
            await schedule.wait_until_idle()
            assert calls in ([], [1])

        assert explore(scenario).exhaustive

    def test_threads_of_the_package_are_scheduled_as_well(self) -> None:
        async def scenario(schedule: Schedule) -> None:
            counter = Counter()
            threads = [threading.Thread(target=counter.increase) for _ in range(2)]
            for thread in threads:
                thread.start()
            joiner = schedule.thread(threads[0].join)
            await schedule.wait_until_idle()
            assert not joiner.is_alive()
            assert counter.value == 2

        assert "is held up" in str(broken(scenario))

    def test_clocks_of_the_package_are_the_loops(self) -> None:
        async def scenario(_: Schedule) -> None:
            before = time.monotonic(), time.perf_counter()
            await asyncio.sleep(100)
            assert (time.monotonic(), time.perf_counter()) == (before[0] + 100, before[1] + 100)

        assert explore(scenario).exhaustive
        assert time.monotonic is asyncio.base_events.time.monotonic  # type: ignore[attr-defined]

    def test_an_earlier_trace_function_is_restored(self) -> None:
        before = sys.gettrace()

        def trace(*_: object) -> None:
            """The trace function of a debugger."""

        sys.settrace(trace)
        try:
            explore(kept_wake_up)
            assert sys.gettrace() is trace
        finally:
            sys.settrace(before)

    def test_other_modules_are_not_interrupted(self) -> None:
        assert explore(lost_wake_up, package="reactive_aio").exhaustive
        assert "interrupts" in str(broken(lost_wake_up, package=("reactive_aio", __name__)))


class TestGenerators:
    def test_an_asynchronous_generator_that_is_dropped_is_closed(self) -> None:
        async def scenario(schedule: Schedule) -> None:
            closed: list[int] = []

            async def elements() -> AsyncIterator[int]:
                try:
                    yield 1
                finally:
                    await asyncio.sleep(0)
                    closed.append(1)

            generator = elements()
            await anext(generator)
            del generator
            await schedule.wait_until_idle()
            assert closed == [1]

        assert explore(scenario).exhaustive


def test_what_was_frozen_stays_frozen_and_nothing_else() -> None:
    async def scenario(_: Schedule) -> None:
        await asyncio.sleep(0)

    gc.freeze()
    frozen = gc.get_freeze_count()
    explore(scenario, max_orders=2)
    assert gc.get_freeze_count() >= frozen
    gc.unfreeze()
    explore(scenario, max_orders=2)
    assert gc.get_freeze_count() == 0
    gc.freeze()
