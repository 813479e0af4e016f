"""What the explorer found, kept: each race as a scenario of its own."""

import asyncio
from collections.abc import Callable

from reactive_aio import Emission, Emitter, MulticastProcessor, UnicastProcessor, create
from reactive_aio.testing.probes import SubscriberProbe
from reactive_aio.testing.schedules import Schedule, explore
from tests.schedules.laws import ALL, Witness

EMITTED = [1, 2, 3]


def emit(to: Emitter[int] | UnicastProcessor[int]) -> Callable[[], None]:
    def work() -> None:
        for n in EMITTED:
            to.emit_threadsafe(n)

    return work


def test_a_cancellation_while_an_element_from_a_thread_is_delivered() -> None:
    """The element was taken out of a mailbox that the cancellation had emptied: IndexError."""

    async def scenario(schedule: Schedule) -> None:
        processor = UnicastProcessor[int](capacity=4)
        witness = Witness(ALL)
        processor.subscribe(witness)
        schedule.thread(emit(processor), "the emitter")
        schedule.thread(witness.cancel, "cancel()")
        await schedule.wait_until_idle()
        assert witness.elements == EMITTED[: len(witness.elements)]
        stats = processor.stats()
        assert stats.accepted + sum(stats.dropped.values()) <= len(EMITTED)

    assert explore(scenario, package="reactive_aio", max_orders=300).orders > 100


async def test_a_subscriber_that_cancels_while_it_is_served_from_a_thread() -> None:
    """The same without any other thread in between, and what is lost is counted."""

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


async def test_a_subscriber_that_completes_its_source_while_it_is_served_from_a_thread() -> None:
    """What had been emitted comes, and then the end, which nobody was left to tell."""
    emitters: list[Emitter[int]] = []

    class CompletesAtOnce(SubscriberProbe[int]):
        def on_next(self, element: int, /) -> None:
            super().on_next(element)
            emitters[0].complete()

    probe = CompletesAtOnce(10).subscribed_to(create(emitters.append, capacity=4, overflow="wait"))
    for n in EMITTED:
        assert emitters[0].emit_threadsafe(n)
    assert await probe.wait_for_signals(4) == [1, 2, 3, "|"]


async def test_a_producer_that_waits_is_not_refused_because_a_thread_was_quicker() -> None:
    """What threads had left took the room that emit() had just seen."""
    processor = UnicastProcessor[int](capacity=2)
    for n in EMITTED[:2]:
        processor.emit_threadsafe(n)
    task = asyncio.ensure_future(processor.emit(3))
    await asyncio.sleep(0)
    assert not task.done()
    probe = SubscriberProbe[int](3).subscribed_to(processor)
    assert await task is Emission.ACCEPTED
    assert await probe.wait_for_signals(3) == EMITTED


async def test_a_producer_that_waits_goes_on_when_the_last_subscriber_has_left() -> None:
    """Nobody told it, and it waited for ever."""
    processor = MulticastProcessor[int](capacity=1)
    probe = SubscriberProbe[int]().subscribed_to(processor)
    assert await processor.emit(1) is Emission.ACCEPTED
    tasks = [asyncio.ensure_future(processor.emit(n)) for n in (2, 3)]
    await asyncio.sleep(0)
    probe.cancel()
    assert await asyncio.gather(*tasks) == [Emission.DROPPED] * 2
