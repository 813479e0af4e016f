"""A drain of deliveries: the source ends, and what it has delivered is acknowledged."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.delivery import DeliveryFlow
from tests.delivery.brokers import Broker

pytestmark = pytest.mark.virtual_time


async def endless() -> AsyncIterator[int]:
    """Three elements, and no end."""
    for element in range(3):
        yield element
    await asyncio.sleep(3600)


async def slow(value: Any) -> Any:
    await asyncio.sleep(1)
    return value


def in_time(value: Any) -> None:
    """A `write` that returns at once."""


SOURCES: dict[str, Callable[[], r.Flow[int]]] = {
    "an asynchronous iterator": lambda: r.from_aiter(endless),
    "with a stage": lambda: r.from_aiter(endless).map(abs),
    "lists": lambda: r.from_aiter(endless).map(lambda n: [n]).flat_map(lambda each: each),
    "a boundary": lambda: r.from_aiter(endless).boundary(8),
    "merge": lambda: r.merge(r.from_aiter(endless), r.never()),
    "restart": lambda: r.range(3).restart(r.RetryPolicy(delay=3600)),
    "an iterator": lambda: r.generate(lambda n: (n, n + 1), 0).take(3).concat_with(r.never()),
}
WORK: dict[str, Callable[[DeliveryFlow[int]], DeliveryFlow[Any]]] = {
    "no operator": lambda flow: flow,
    "map_async": lambda flow: flow.map_async(slow),
    "a pool": lambda flow: flow.map_async(slow, concurrency=2, ordered=False),
    "a list that never gets full": lambda flow: flow.buffer(10),
    "a list that waits": lambda flow: flow.buffer_timeout(10, duration=3600),
    "parts": lambda flow: flow.flat_map(lambda n: [n, n]),
    "parts of flows": lambda flow: flow.flat_map(lambda n: r.timer(1).map(lambda _: n)),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
async def test_what_was_delivered_is_acknowledged(
    source: Callable[[], r.Flow[int]], work: Callable[[DeliveryFlow[int]], DeliveryFlow[Any]]
) -> None:
    broker = Broker(seconds=0.1)
    flow = work(broker.deliveries(source())).ack_after(in_time)
    async with flow.running() as run:
        await asyncio.sleep(1.5)
        report = await run.drain(timeout=60)
    assert (report.is_complete, report.discarded, report.unacknowledged) == (True, 0, 0)
    assert report.seconds < 5, "it does not wait for the source"
    assert sorted(broker.acked) == [0, 1, 2]
    assert broker.nacked == {}


async def test_an_element_that_is_delivered_again_is_drained_as_well() -> None:
    broker, attempts = Broker(), list[int]()

    async def fails_first(value: int) -> int:
        attempts.append(value)
        if attempts.count(value) == 1:
            raise OSError("not yet")
        return value

    flow = broker.deliveries(r.from_aiter(endless)).nack_on_error(r.RetryPolicy(delay=2, jitter=0))
    async with flow.map_async(fails_first).ack_after(in_time).running() as run:
        await asyncio.sleep(0.5)
        report = await run.drain(timeout=60)
    assert report.is_complete
    assert sorted(broker.acked) == [0, 1, 2]
