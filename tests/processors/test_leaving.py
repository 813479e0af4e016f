"""Subscribers that leave a hot flow: what it costs, and who still receives what."""

import asyncio
from collections.abc import Callable

import pytest

from benchmarks.growth.leaving import leave, subscribers_of
from benchmarks.runner.instructions import counting_instructions
from reactive_aio import Flow, MulticastProcessor, Subscription, never
from reactive_aio.stage import OverflowPolicy
from reactive_aio.testing.probes import SubscriberProbe

KINDS: dict[str, Callable[[], Flow[int]]] = {
    "processor": lambda: _fed(MulticastProcessor[int](8)),
    "drop_oldest": lambda: _fed(MulticastProcessor[int](8, overflow="drop_oldest")),
    "fail": lambda: _fed(MulticastProcessor[int](8, overflow="fail")),
    "share": lambda: never().share(),
    "share, drop_newest": lambda: never().share(overflow="drop_newest"),
}


def _fed(hub: MulticastProcessor[int]) -> MulticastProcessor[int]:
    never().subscribe(hub)
    return hub


@pytest.mark.parametrize("kind", KINDS)
async def test_leaving_costs_the_same_among_many(kind: str) -> None:
    async def instructions(count: int) -> float:
        subscribers = subscribers_of(KINDS[kind](), count)
        with counting_instructions() as counter:
            await leave(subscribers)
        return counter.count / count

    few = await instructions(20)
    assert await instructions(400) < 1.1 * few


@pytest.mark.parametrize("policy", ["wait", "drop_newest", "fail"])
async def test_those_that_stay_receive_everything(policy: OverflowPolicy) -> None:
    hub = MulticastProcessor[int](4, overflow=policy)
    probes = [SubscriberProbe[int]() for _ in range(9)]
    for each in probes:
        hub.subscribe(each)
        each.request(100)
    for number, leaving in enumerate(probes[:8]):
        hub.try_emit(number)
        leaving.cancel()
        assert hub.stats().subscribers == 8 - number
    hub.try_emit(8)
    hub.complete()
    assert [len(each.elements) for each in probes] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert probes[8].is_completed


async def test_a_slow_subscriber_that_has_left_holds_no_other_back() -> None:
    hub = MulticastProcessor[int](1)
    slow, *fast = [SubscriberProbe[int]() for _ in range(4)]
    for each in (slow, *fast):
        hub.subscribe(each)
    for each in fast:
        each.request(10)
    assert hub.try_emit(1)
    assert not hub.try_emit(2), "the slow one holds an element"
    slow.cancel()
    assert hub.try_emit(2)
    assert [each.elements for each in fast] == [[1, 2]] * 3


class Replacing:
    """Replaces itself by another subscriber, and lets a neighbor leave, inside `on_next`."""

    def __init__(self, hub: MulticastProcessor[int], neighbor: SubscriberProbe[int]) -> None:
        self.hub = hub
        self.neighbor = neighbor
        self.successor = SubscriberProbe[int]()
        self.received: list[int] = []

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(10)

    def on_next(self, element: int) -> None:
        self.received.append(element)
        self.subscription.cancel()
        self.neighbor.cancel()
        self.hub.subscribe(self.successor)
        self.successor.request(10)

    def on_error(self, error: BaseException) -> None:
        raise error

    def on_complete(self) -> None:
        raise AssertionError("it has cancelled")


async def test_a_delivery_goes_to_those_that_were_there_when_it_began() -> None:
    hub = MulticastProcessor[int](4)
    neighbor, last = SubscriberProbe[int](), SubscriberProbe[int]()
    replacing = Replacing(hub, neighbor)
    for each in (replacing, neighbor, last):
        hub.subscribe(each)
    for probe in (neighbor, last):
        probe.request(10)
    hub.try_emit(1)
    hub.try_emit(2)
    await asyncio.sleep(0)
    assert replacing.received == [1]
    assert neighbor.elements == []
    assert replacing.successor.elements == [2]
    assert last.elements == [1, 2]
