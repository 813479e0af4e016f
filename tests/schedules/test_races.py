"""Races that the explorer has found, each as a scenario."""

import asyncio
from collections.abc import Callable

from reactive_aio import Emission, Emitter, MulticastProcessor, UnicastProcessor, create
from reactive_aio.testing.probes import SubscriberProbe
from reactive_aio.testing.schedules import Schedule, explore
from tests.schedules.checks import UNLIMITED, CheckedSubscriber

EMITTED = [1, 2, 3]


def emit(to: Emitter[int] | UnicastProcessor[int]) -> Callable[[], None]:
    def work() -> None:
        for n in EMITTED:
            to.emit_threadsafe(n)

    return work


def test_a_cancellation_while_an_element_from_a_thread_is_delivered() -> None:
    """The element was taken from a mailbox that the cancellation had cleared: IndexError."""

    async def scenario(schedule: Schedule) -> None:
        processor = UnicastProcessor[int](capacity=4)
        subscriber = CheckedSubscriber(UNLIMITED)
        processor.subscribe(subscriber)
        schedule.thread(emit(processor), "the emitter")
        schedule.thread(subscriber.cancel, "cancel()")
        await schedule.wait_until_idle()
        assert subscriber.elements == EMITTED[: len(subscriber.elements)]
        stats = processor.stats()
        assert stats.accepted + sum(stats.dropped.values()) <= len(EMITTED)

    assert explore(scenario, package="reactive_aio", max_orders=300).orders > 100


def test_a_request_of_a_thread_at_the_instant_at_which_the_flow_becomes_idle() -> None:
    """The limit was read before the phase was idle: it was raised, and nothing woke the flow."""

    async def emit_all(to: Emitter[int]) -> None:
        for n in EMITTED:
            await to.emit(n)

    async def scenario(schedule: Schedule) -> None:
        subscriber = CheckedSubscriber(1)
        create(emit_all, capacity=1).subscribe(subscriber)
        schedule.thread(lambda: subscriber.request(UNLIMITED), "request()")
        await subscriber.end()
        assert subscriber.elements == EMITTED

    assert explore(scenario, package="reactive_aio", max_orders=300).orders > 100


async def test_a_subscriber_that_cancels_during_an_element_of_a_thread() -> None:
    """The same without another thread, and the lost elements are counted."""

    class CancelsAtOnce(SubscriberProbe[int]):
        def on_next(self, element: int, /) -> None:
            super().on_next(element)
            self.cancel()

    processor = UnicastProcessor[int](capacity=4)
    probe = CancelsAtOnce(10).subscribed_to(processor)
    for n in EMITTED:
        assert processor.emit_threadsafe(n)
    await probe.wait_for_signals(1)
    assert probe.signals == [1]
    stats = processor.stats()
    assert (stats.accepted, dict(stats.dropped)) == (1, {"discarded": 2})


async def test_a_subscriber_that_completes_its_source_during_an_element_of_a_thread() -> None:
    """All emitted elements come, and then the completion, which was lost."""
    emitters: list[Emitter[int]] = []

    class CompletesAtOnce(SubscriberProbe[int]):
        def on_next(self, element: int, /) -> None:
            super().on_next(element)
            emitters[0].complete()

    probe = CompletesAtOnce(10).subscribed_to(create(emitters.append, capacity=4, overflow="wait"))
    for n in EMITTED:
        assert emitters[0].emit_threadsafe(n)
    assert await probe.wait_for_signals(4) == [1, 2, 3, "|"]


async def test_a_waiting_producer_is_not_refused_because_of_a_thread() -> None:
    """Elements of threads took the room that emit() had just found."""
    processor = UnicastProcessor[int](capacity=2)
    for n in EMITTED[:2]:
        processor.emit_threadsafe(n)
    task = asyncio.ensure_future(processor.emit(3))
    await asyncio.sleep(0)
    assert not task.done()
    probe = SubscriberProbe[int](3).subscribed_to(processor)
    assert await task is Emission.ACCEPTED
    assert await probe.wait_for_signals(3) == EMITTED


async def test_a_waiting_producer_continues_when_the_last_subscriber_cancels() -> None:
    """It was not notified, and waited forever."""
    processor = MulticastProcessor[int](capacity=1)
    probe = SubscriberProbe[int]().subscribed_to(processor)
    assert await processor.emit(1) is Emission.ACCEPTED
    tasks = [asyncio.ensure_future(processor.emit(n)) for n in (2, 3)]
    await asyncio.sleep(0)
    probe.cancel()
    assert await asyncio.gather(*tasks) == [Emission.DROPPED] * 2
