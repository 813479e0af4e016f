"""boundary: both sides run independently, with a bounded number of elements in between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from reactive_aio import Flow, empty, from_publisher, range as flow_range
from reactive_aio.stage import from_async, from_pull
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from tests.cases import Identities

UNBOUNDED = 2**63 - 1


async def counting(n: int) -> AsyncIterator[int]:
    for number in range(n):
        await asyncio.sleep(0)
        yield number


async def itself(x: int) -> int:
    return x


def failing() -> Iterator[int]:
    yield 1
    yield 2
    raise ValueError("broken")


OF_LENGTH: dict[str, Callable[[int], Flow[Any]]] = {
    "boundary": lambda n: flow_range(n).boundary(),
    "boundary: of one": lambda n: flow_range(n).boundary(1),
    "boundary: refilled late": lambda n: flow_range(n).boundary(5, refill=1.0),
    "boundary: refilled early": lambda n: flow_range(n).boundary(5, refill=0.01),
    "boundary: of an asynchronous source": lambda n: from_async(
        lambda: counting(n), name="counting"
    ).boundary(3),
    "boundary: around a task": lambda n: flow_range(n).boundary(2).map_async(itself).boundary(2),
    "boundary: three in a row": lambda n: flow_range(n).boundary(2).boundary(1).boundary(5),
    "boundary: before a stage that drops": lambda n: (
        flow_range(2 * n).boundary(3).filter(lambda x: x % 2)
    ),
}
FAILING: dict[str, Callable[[], Flow[Any]]] = {
    "boundary": lambda: from_pull(failing, name="failing").boundary(4),
}
INFINITE: dict[str, Callable[[], Flow[Any]]] = {
    "boundary": lambda: flow_range(1 << 62).boundary(4),
}

IDENTITIES: Identities = {
    "boundary": lambda up: up.boundary(2),
    "boundary: of one": lambda up: up.boundary(1),
    "boundary: between stages": lambda up: (
        up.map(lambda x: x).boundary(2).filter(lambda _: True).map_async(itself)
    ),
}


async def turns(n: int = 10) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


@pytest.mark.parametrize("capacity", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("first", [1, 2, 5])
@pytest.mark.parametrize("then", [1, 4, 5, 7])
async def test_no_combination_of_capacity_and_demand_stalls(
    capacity: int, first: int, then: int
) -> None:
    """3.8: lent elements count as held only until they have been processed."""
    for made in (flow_range(40), from_async(lambda: counting(40), name="counting")):
        subscriber = SubscriberProbe[int](first).subscribed_to(made.boundary(capacity))
        await asyncio.wait_for(subscriber.wait_for_signals(first), 5)
        subscriber.request(then)
        await asyncio.wait_for(subscriber.wait_for_signals(first + then), 5)
        assert subscriber.signals == list(range(first + then))
        subscriber.cancel()
        await turns()


@pytest.mark.parametrize("capacity", [1, 3, 10])
async def test_upstream_is_never_further_ahead_than_the_capacity(capacity: int) -> None:
    """Holds: *capacity* elements, including those lent."""
    pulled = 0

    def numbers() -> Iterator[int]:
        nonlocal pulled
        while True:
            pulled += 1
            yield pulled

    chain = from_pull(numbers, name="numbers").boundary(capacity)
    assert chain.bound().total == capacity
    subscriber = SubscriberProbe[int]().subscribed_to(chain)
    await turns()
    assert pulled == 0  # nothing before the first request
    for _ in range(50):
        subscriber.request(1)
        await turns(4)
        assert pulled - len(subscriber.signals) <= capacity
    subscriber.cancel()


async def test_the_capacity_is_requested_and_then_what_was_consumed() -> None:
    """Demand: batched (*capacity*, refill at *refill* of it)."""
    publisher = PublisherProbe[int]()
    subscriber = SubscriberProbe[int]().subscribed_to(from_publisher(publisher).boundary(4))
    subscriber.request(100)
    await turns()
    assert publisher.requested == 4
    publisher.emit(1, 2)
    await turns()
    assert publisher.requested == 4
    publisher.emit(3)
    await turns()
    assert publisher.requested == 7
    subscriber.cancel()


async def test_an_empty_source_completes_at_once_and_one_that_cannot_open_fails() -> None:
    """1.5, 1.4: the source ends during `subscribe`."""

    def cannot() -> Iterator[int]:
        raise OSError("closed")

    done = SubscriberProbe[int](1).subscribed_to(empty().boundary(2))
    assert await done.end() == ["|"]
    failed = SubscriberProbe[int](1).subscribed_to(from_pull(cannot, name="shop").boundary(2))
    assert isinstance((await failed.end())[0], OSError)


async def test_the_elements_held_come_before_the_failure() -> None:
    """1.4."""
    chain = from_pull(failing, name="failing").boundary(4)
    subscriber = SubscriberProbe[int](1).subscribed_to(chain)
    await turns()
    assert subscriber.signals == [1]
    subscriber.request(1)
    one, two, error = await subscriber.end()
    assert (one, two, str(error)) == (1, 2, "broken")


async def test_a_slow_subscriber_slows_upstream_down() -> None:
    pulled = 0

    def numbers() -> Iterator[int]:
        nonlocal pulled
        while pulled < 30:
            pulled += 1
            yield pulled

    subscriber = AsyncSubscriberProbe[int](UNBOUNDED, turns=3)
    from_pull(numbers, name="numbers").boundary(5).subscribe(subscriber)
    while not subscriber.is_terminated:
        assert pulled - len(subscriber.signals) <= 5 + 1
        await asyncio.sleep(0)
    assert subscriber.elements == list(range(1, 31))
    assert not subscriber.overlaps


@pytest.mark.parametrize("capacity", [0, -1, True, 1.5, None, "4"])
def test_a_wrong_capacity_is_refused_at_assembly(capacity: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"boundary: capacity must be"):
        flow_range(3).boundary(capacity)


@pytest.mark.parametrize("refill", [0, -0.5, 1.01, float("nan")])
def test_a_wrong_refill_is_refused_at_assembly(refill: float) -> None:
    with pytest.raises(ValueError, match="boundary: refill must be"):
        flow_range(3).boundary(4, refill=refill)
