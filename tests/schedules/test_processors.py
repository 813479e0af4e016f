"""Processors under every legal order: producers of all kinds, subscribers that come and go."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from reactive_aio import Emission, MulticastProcessor, UnicastProcessor
from reactive_aio.testing.schedules import Exploration, Schedule, explore
from tests.harness.effort import scaled
from tests.schedules.laws import ALL, AsyncWitness, Orders, Witness
from tests.schedules.sources import Oops, steps

Processor = UnicastProcessor[Any] | MulticastProcessor[Any]
Scenario = Callable[[Schedule], Coroutine[Any, Any, None]]

KINDS = pytest.mark.parametrize("kind", [UnicastProcessor, MulticastProcessor])


def explored(scenario: Scenario) -> Exploration:
    return explore(
        scenario, package="reactive_aio", max_orders=scaled(150), random_orders=scaled(50)
    )


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
def test_tasks_and_threads_emit_at_the_same_time(kind: type[Processor]) -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=4)
        witness = AsyncWitness(1, again=1)
        processor.subscribe(witness)
        schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
        await from_a_task(processor, "a", "b")
        await schedule.wait_until_idle()
        processor.complete()
        await witness.end()
        Orders([1, 2], ["a", "b"]).judge(witness)

    explored(scenario)


@KINDS
def test_two_threads_emit_and_one_of_them_completes(kind: type[Processor]) -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=4)
        witness = Witness(ALL)
        processor.subscribe(witness)

        def emit_and_complete() -> None:
            processor.emit_threadsafe(1)
            processor.complete()

        schedule.thread(emit_and_complete, "one")
        schedule.thread(lambda: processor.emit_threadsafe("a"), "other")
        await witness.end()
        await schedule.wait_until_idle()
        assert witness.breaches == []
        assert witness.elements in ([1], [1, "a"], ["a", 1])

    explored(scenario)


@KINDS
def test_elements_from_a_thread_wait_for_demand_from_another(kind: type[Processor]) -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=2)
        witness = Witness()
        processor.subscribe(witness)
        schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
        schedule.thread(lambda: witness.request(1), "request(1)")
        schedule.thread(lambda: witness.request(1), "request(1) again")
        await schedule.wait_until_idle()
        assert witness.elements == [1, 2]
        processor.complete()
        await witness.end()
        Orders([1, 2]).judge(witness)

    explored(scenario)


@KINDS
def test_producers_that_wait_for_room_go_on_in_their_order(kind: type[Processor]) -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=1)
        witness = AsyncWitness()
        processor.subscribe(witness)
        tasks = [asyncio.ensure_future(from_a_task(processor, n)) for n in range(3)]
        schedule.thread(lambda: witness.request(1), "request(1)")
        schedule.thread(lambda: witness.request(ALL), "request(ALL)")
        await asyncio.gather(*tasks)
        processor.complete()
        await witness.end()
        Orders([0, 1, 2]).judge(witness)

    explored(scenario)


@KINDS
def test_a_producer_that_waits_is_cancelled(kind: type[Processor]) -> None:
    """Whoever waits behind it gets its place; its element comes or does not, but never twice."""

    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=1)
        witness = Witness()
        processor.subscribe(witness)
        await processor.emit("first")
        tasks = [asyncio.ensure_future(processor.emit(n)) for n in range(2)]
        asyncio.get_running_loop().call_later(0.001, tasks[0].cancel)
        schedule.thread(lambda: witness.request(ALL), "request(ALL)")
        await asyncio.wait(tasks)
        await schedule.wait_until_idle()
        processor.complete()
        await witness.end()
        assert witness.breaches == []
        emitted = [n for n, task in enumerate(tasks) if not task.cancelled()]
        # A task that is cancelled when its element has just gone through may not learn of that.
        assert witness.elements in (["first", *emitted], ["first", 0, 1])

    explored(scenario)


@KINDS
def test_cancelled_while_it_is_emitted_into(kind: type[Processor]) -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=2)
        witness = AsyncWitness(1, again=1)
        processor.subscribe(witness)
        schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
        schedule.thread(witness.cancel, "cancel()")
        await from_a_task(processor, "a", "b")
        await schedule.wait_until_idle()
        witness.silent = True
        processor.complete()
        await schedule.wait_until_idle()
        Orders([1, 2], ["a", "b"]).judge(witness)

    explored(scenario)


@KINDS
def test_fed_by_a_publisher(kind: type[Processor]) -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=2)
        witness = Witness()
        processor.subscribe(witness)
        steps(1, 2, 3).subscribe(processor)
        schedule.thread(lambda: witness.request(2), "request(2)")
        schedule.thread(lambda: witness.request(ALL), "request(ALL)")
        await witness.end()
        Orders([1, 2, 3]).judge(witness)

    explored(scenario)


@KINDS
def test_fed_by_a_publisher_that_fails_while_a_thread_emits(kind: type[Processor]) -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = kind(capacity=2)
        witness = Witness(ALL)
        processor.subscribe(witness)
        steps(1, error=Oops()).subscribe(processor)
        schedule.thread(lambda: processor.emit_threadsafe("a"), "the emitter")
        await witness.end()
        await schedule.wait_until_idle()
        assert witness.breaches == []
        assert isinstance(witness.error, Oops)
        assert [x for x in witness.elements if x != "a"] == [1]

    explored(scenario)


def test_all_subscribers_of_a_multicast_get_the_same_from_when_they_are_there() -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = MulticastProcessor[Any](capacity=4)
        early, late = Witness(ALL), AsyncWitness(1, again=1)
        processor.subscribe(early)
        schedule.thread(from_a_thread(processor, 1, 2), "the emitter")
        await asyncio.sleep(0)
        processor.subscribe(late)
        await schedule.wait_until_idle()
        processor.complete()
        await early.end()
        await late.end()
        Orders([1, 2]).judge(early)
        assert late.breaches == []
        assert late.elements in ([1, 2], [2], [])

    explored(scenario)


def test_one_subscriber_of_a_multicast_leaves_while_the_other_waits() -> None:
    """The slowest holds the others back, and lets go of them when it has gone."""

    async def scenario(schedule: Schedule) -> None:
        processor = MulticastProcessor[Any](capacity=1)
        slow, fast = Witness(), Witness(ALL)
        processor.subscribe(slow)
        processor.subscribe(fast)
        task = asyncio.ensure_future(from_a_task(processor, 1, 2, 3))
        schedule.thread(slow.cancel, "cancel()")
        await task
        processor.complete()
        await fast.end()
        Orders([1, 2, 3]).judge(fast)
        assert slow.elements == []

    explored(scenario)


def test_subscribed_returns_when_somebody_has_come_or_the_end() -> None:
    async def scenario(schedule: Schedule) -> None:
        processor = UnicastProcessor[int]()
        witness = Witness(ALL)
        waits = asyncio.ensure_future(processor.wait_for_subscribers())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(processor.subscribe, witness)
        schedule.thread(processor.complete, "complete()")
        await waits
        await schedule.wait_until_idle()
        assert witness.ended
        assert witness.breaches == []

    explored(scenario)
