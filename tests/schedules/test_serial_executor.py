"""The serial executor, and requests from threads, under every legal order."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from reactive_aio import Flow, SerialExecutor, from_iterable, range as numbers
from reactive_aio.testing.schedules import Schedule
from tests.schedules.checks import UNLIMITED, AsyncCheckedSubscriber, CheckedSubscriber, Interleaved
from tests.schedules.explored import explored


@explored(max_orders=200)
async def test_signals_of_threads_and_tasks_run_one_at_a_time_each_once(schedule: Schedule) -> None:
    serial = SerialExecutor()
    seen: list[str] = []
    inside: list[str] = []

    async def awaited(name: str) -> None:
        assert not inside
        inside.append(name)
        await asyncio.sleep(0)
        inside.remove(name)
        seen.append(name)

    def plain(name: str) -> None:
        assert not inside
        assert threading.get_ident() == here
        seen.append(name)

    here = threading.get_ident()

    def from_a_thread() -> None:
        serial.submit(plain, "t1")
        serial.submit(awaited, "t2")

    schedule.thread(from_a_thread, "submit()")
    serial.submit(awaited, "a")
    await asyncio.sleep(0)
    serial.submit(plain, "b")
    await schedule.wait_until_idle()
    await serial.drained()
    assert sorted(seen) == ["a", "b", "t1", "t2"]
    assert seen.index("t1") < seen.index("t2")
    assert seen.index("a") < seen.index("b")


@explored(max_orders=200)
async def test_closing_it_drops_waiting_signals_and_ends(schedule: Schedule) -> None:
    serial = SerialExecutor()
    seen: list[int] = []

    async def awaited(n: int) -> None:
        await asyncio.sleep(0)
        seen.append(n)

    schedule.thread(lambda: serial.submit(awaited, 2), "submit()")
    serial.submit(awaited, 1)
    await asyncio.sleep(0)
    await serial.aclose()
    count = len(seen)
    await schedule.wait_until_idle()
    assert seen in ([], [1], [2], [1, 2], [2, 1])
    assert len(seen) == count
    assert len(serial) == 0


ISLANDS: dict[str, Callable[[], Flow[int]]] = {
    "pulled": lambda: numbers(10),
    "pushed": lambda: from_iterable(range(10)).map(abs).boundary(2),
}
EACH = pytest.mark.parametrize("make", ISLANDS.values(), ids=ISLANDS)


@EACH
@explored(max_orders=200)
async def test_requests_of_three_threads_add_up(
    schedule: Schedule, make: Callable[[], Flow[int]]
) -> None:
    subscriber = CheckedSubscriber()
    make().subscribe(subscriber)
    for n in (1, 2, 3):
        schedule.thread(partial(subscriber.request, n), f"request({n})")
    await schedule.wait_until_idle()
    assert subscriber.violations == []
    assert subscriber.elements == [0, 1, 2, 3, 4, 5]
    subscriber.cancel()


@EACH
@explored(max_orders=200)
async def test_a_request_and_a_cancellation_of_two_threads_while_the_loop_requests(
    schedule: Schedule, make: Callable[[], Flow[int]]
) -> None:
    subscriber = AsyncCheckedSubscriber(1)
    make().subscribe(subscriber)
    schedule.thread(lambda: subscriber.request(2), "request(2)")
    schedule.thread(subscriber.cancel, "cancel()")
    subscriber.request(1)
    await schedule.wait_until_idle()
    subscriber.must_be_silent = True
    subscriber.request(UNLIMITED)
    await schedule.wait_until_idle()
    Interleaved(list(range(5))).check(subscriber)
