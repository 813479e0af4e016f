"""Processors under every legal order of producers and subscribers."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import (
    Emission,
    LatestProcessor,
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
)
from reactive_aio.errors import Interrupted
from reactive_aio.testing.schedules import Schedule
from tests.schedules.checks import UNLIMITED, AsyncCheckedSubscriber, CheckedSubscriber, Interleaved
from tests.schedules.explored import explored
from tests.schedules.sources import SourceError, steps

Processor = UnicastProcessor[Any] | MulticastProcessor[Any]


class ReplayOfOne(ReplayProcessor[Any]):
    """It differs only for a later subscriber."""

    def __init__(self, capacity: int) -> None:
        super().__init__(1, capacity=capacity)


KINDS = pytest.mark.parametrize("kind", [UnicastProcessor, MulticastProcessor, ReplayOfOne])


def from_a_thread(processor: Processor, *elements: Any) -> Callable[[], None]:
    def work() -> None:
        for element in elements:
            assert processor.emit_threadsafe(element) is not Emission.REFUSED

    return work


async def from_a_task(processor: Processor, *elements: Any) -> None:
    for element in elements:
        assert await processor.emit(element) is not Emission.REFUSED
        await asyncio.sleep(0)


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_tasks_and_threads_emit_at_the_same_time(
    schedule: Schedule, kind: type[Processor]
) -> None:
    processor = kind(capacity=4)
    subscriber = AsyncCheckedSubscriber(1, again=1)
    processor.subscribe(subscriber)
    schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
    await from_a_task(processor, "a", "b")
    await schedule.wait_until_idle()
    processor.complete()
    await subscriber.end()
    Interleaved([1, 2], ["a", "b"]).check(subscriber)


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_two_threads_emit_and_one_of_them_completes(
    schedule: Schedule, kind: type[Processor]
) -> None:
    processor = kind(capacity=4)
    subscriber = CheckedSubscriber(UNLIMITED)
    processor.subscribe(subscriber)

    def emit_and_complete() -> None:
        processor.emit_threadsafe(1)
        processor.complete()

    schedule.thread(emit_and_complete, "one")
    schedule.thread(lambda: processor.emit_threadsafe("a"), "other")
    await subscriber.end()
    await schedule.wait_until_idle()
    assert subscriber.violations == []
    assert subscriber.elements in ([1], [1, "a"], ["a", 1])


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_elements_from_a_thread_wait_for_demand_from_another(
    schedule: Schedule, kind: type[Processor]
) -> None:
    processor = kind(capacity=2)
    subscriber = CheckedSubscriber()
    processor.subscribe(subscriber)
    schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
    schedule.thread(lambda: subscriber.request(1), "request(1)")
    schedule.thread(lambda: subscriber.request(1), "request(1) again")
    await schedule.wait_until_idle()
    assert subscriber.elements == [1, 2]
    processor.complete()
    await subscriber.end()
    Interleaved([1, 2]).check(subscriber)


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_waiting_producers_continue_in_their_order(
    schedule: Schedule, kind: type[Processor]
) -> None:
    processor = kind(capacity=1)
    subscriber = AsyncCheckedSubscriber()
    processor.subscribe(subscriber)
    tasks = [asyncio.ensure_future(from_a_task(processor, n)) for n in range(3)]
    schedule.thread(lambda: subscriber.request(1), "request(1)")
    schedule.thread(lambda: subscriber.request(UNLIMITED), "request(UNLIMITED)")
    await asyncio.gather(*tasks)
    processor.complete()
    await subscriber.end()
    Interleaved([0, 1, 2]).check(subscriber)


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_a_waiting_producer_is_cancelled(schedule: Schedule, kind: type[Processor]) -> None:
    """The next producer takes its place; its element comes once or not at all."""
    processor = kind(capacity=1)
    subscriber = CheckedSubscriber()
    processor.subscribe(subscriber)
    await processor.emit("first")
    tasks = [asyncio.ensure_future(processor.emit(n)) for n in range(2)]
    asyncio.get_running_loop().call_later(0.001, tasks[0].cancel)
    schedule.thread(lambda: subscriber.request(UNLIMITED), "request(UNLIMITED)")
    await asyncio.wait(tasks)
    await schedule.wait_until_idle()
    processor.complete()
    await subscriber.end()
    assert subscriber.violations == []
    emitted = [n for n, task in enumerate(tasks) if not task.cancelled()]
    # A task that is cancelled when its element has just gone through may not learn of that.
    assert subscriber.elements in (["first", *emitted], ["first", 0, 1])


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_cancelled_during_emission(schedule: Schedule, kind: type[Processor]) -> None:
    processor = kind(capacity=2)
    subscriber = AsyncCheckedSubscriber(1, again=1)
    processor.subscribe(subscriber)
    schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
    schedule.thread(subscriber.cancel, "cancel()")
    await from_a_task(processor, "a", "b")
    await schedule.wait_until_idle()
    subscriber.must_be_silent = True
    processor.complete()
    await schedule.wait_until_idle()
    Interleaved([1, 2], ["a", "b"]).check(subscriber)


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_fed_by_a_publisher(schedule: Schedule, kind: type[Processor]) -> None:
    processor = kind(capacity=2)
    subscriber = CheckedSubscriber()
    processor.subscribe(subscriber)
    steps(1, 2, 3).subscribe(processor)
    schedule.thread(lambda: subscriber.request(2), "request(2)")
    schedule.thread(lambda: subscriber.request(UNLIMITED), "request(UNLIMITED)")
    await subscriber.end()
    Interleaved([1, 2, 3]).check(subscriber)


@KINDS
@explored(max_orders=150, random_orders=50)
async def test_fed_by_a_publisher_that_fails_while_a_thread_emits(
    schedule: Schedule, kind: type[Processor]
) -> None:
    processor = kind(capacity=2)
    subscriber = CheckedSubscriber(UNLIMITED)
    processor.subscribe(subscriber)
    steps(1, error=SourceError()).subscribe(processor)
    schedule.thread(lambda: processor.emit_threadsafe("a"), "the emitter")
    await subscriber.end()
    await schedule.wait_until_idle()
    assert subscriber.violations == []
    assert isinstance(subscriber.error, SourceError)
    assert [x for x in subscriber.elements if x != "a"] == [1]


@explored(max_orders=150, random_orders=50)
async def test_all_subscribers_of_a_multicast_get_the_elements_after_their_subscription(
    schedule: Schedule,
) -> None:
    processor = MulticastProcessor[Any](capacity=4)
    early, late = CheckedSubscriber(UNLIMITED), AsyncCheckedSubscriber(1, again=1)
    processor.subscribe(early)
    schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
    await asyncio.sleep(0)
    processor.subscribe(late)
    await schedule.wait_until_idle()
    processor.complete()
    await early.end()
    await late.end()
    Interleaved([1, 2]).check(early)
    assert late.violations == []
    assert late.elements in ([1, 2], [2], [])


@explored(max_orders=150, random_orders=50)
async def test_one_subscriber_of_a_multicast_cancels_while_the_other_waits(
    schedule: Schedule,
) -> None:
    """The slowest holds the others back until it cancels."""
    processor = MulticastProcessor[Any](capacity=1)
    slow, fast = CheckedSubscriber(), CheckedSubscriber(UNLIMITED)
    processor.subscribe(slow)
    processor.subscribe(fast)
    task = asyncio.ensure_future(from_a_task(processor, 1, 2, 3))
    schedule.thread(slow.cancel, "cancel()")
    await task
    processor.complete()
    await fast.end()
    Interleaved([1, 2, 3]).check(fast)
    assert slow.elements == []


@explored(max_orders=150, random_orders=50)
async def test_an_error_of_the_publisher_reaches_all_subscribers_at_once(
    schedule: Schedule,
) -> None:
    """Rule 4.2: one of them requests late or not at all, from another thread."""
    processor = MulticastProcessor[Any](capacity=4)
    slow, fast = CheckedSubscriber(), CheckedSubscriber(UNLIMITED)
    processor.subscribe(slow)
    processor.subscribe(fast)
    steps(1, 2, error=SourceError()).subscribe(processor)
    schedule.thread(lambda: slow.request(1), "request(1)")
    await slow.end()
    await fast.end()
    assert slow.violations == fast.violations == []
    assert isinstance(slow.error, SourceError)
    assert slow.error is fast.error
    assert fast.elements == [1, 2]
    assert slow.elements in ([], [1])
    overtaken = processor.stats().dropped.get("overtaken", 0)
    assert overtaken == 2 - len(slow.elements)


@explored(max_orders=150, random_orders=50)
async def test_the_last_subscriber_cancels_the_publisher_from_a_thread(schedule: Schedule) -> None:
    processor = MulticastProcessor[Any](capacity=2)
    subscribers = [CheckedSubscriber(UNLIMITED), AsyncCheckedSubscriber(1, again=1)]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
        schedule.thread(subscriber.cancel, "cancel()")
    steps(*range(20)).subscribe(processor)
    await schedule.wait_until_idle()
    assert processor.stats().is_done
    late = CheckedSubscriber()
    processor.subscribe(late)
    await late.end()
    for subscriber in subscribers:
        assert subscriber.violations == []
        assert subscriber.elements == [*range(len(subscriber.elements))]
    assert isinstance(late.error, Interrupted | None)


@explored(max_orders=150, random_orders=50)
async def test_subscribed_returns_after_a_subscription_or_the_end(schedule: Schedule) -> None:
    processor = UnicastProcessor[int]()
    subscriber = CheckedSubscriber(UNLIMITED)
    waits = asyncio.ensure_future(processor.wait_for_subscribers())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(processor.subscribe, subscriber)
    schedule.thread(processor.complete, "complete()")
    await waits
    await schedule.wait_until_idle()
    assert subscriber.is_terminated
    assert subscriber.violations == []


@explored(max_orders=150, random_orders=50)
async def test_a_later_subscriber_receives_each_element_once(schedule: Schedule) -> None:
    processor = ReplayProcessor[Any](2, capacity=4)
    first, second = AsyncCheckedSubscriber(UNLIMITED), CheckedSubscriber(UNLIMITED)
    processor.subscribe(first)
    schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
    await asyncio.sleep(0)
    processor.subscribe(second)
    await schedule.wait_until_idle()
    processor.complete()
    await first.end()
    await second.end()
    assert first.violations == second.violations == []
    assert first.elements == second.elements == [1, 2]


@explored(max_orders=150, random_orders=50)
async def test_the_latest_value_reaches_every_subscriber(schedule: Schedule) -> None:
    processor = LatestProcessor[Any](0)
    subscriber = AsyncCheckedSubscriber(1, again=1)
    processor.subscribe(subscriber)
    schedule.thread(from_a_thread(processor, 1), "the emitter")
    found = await processor.wait_for(lambda value: value == 1)
    await schedule.wait_until_idle()
    processor.complete()
    await subscriber.end()
    assert subscriber.violations == []
    assert subscriber.elements in ([0, 1], [1])
    assert found == processor.value == 1
