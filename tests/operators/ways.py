"""Every way to run an operator: where its elements come from, and how its subscriber asks.

A test module of synchronous operators describes what they do as samples, and runs each sample in
each way; that the contract is kept is what the conformance laws look at.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from reactive_aio import Flow, from_iterable
from reactive_aio.coerce import to_flow
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe

__all__ = ("UNBOUNDED", "WAYS", "Failed", "Sample", "collected", "in_every_way", "source")

UNBOUNDED = 2**63 - 1


class Failed(Exception):
    """What sources and functions of the tests raise."""


@dataclass(frozen=True)
class Sample:
    """What *change* makes of a flow of *given*: the signals *expected*.

    With *fails*, the source fails behind *given*; then the last of *expected* is ``Failed``.
    """

    change: Callable[[Flow[Any]], Flow[Any]]
    given: list[Any]
    expected: list[Any]
    fails: bool = False


class _Given:
    """An iterable that is no sequence, for any number of subscriptions."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def __iter__(self) -> Iterator[Any]:
        yield from self._sample.given
        if self._sample.fails:
            raise Failed("the source")


async def _awaited(sample: Sample) -> AsyncIterator[Any]:
    for element in _Given(sample):
        await asyncio.sleep(0)
        yield element


def source(sample: Sample, feed: str) -> Flow[Any]:
    """A flow of what the sample is given."""
    match feed:
        case "list" if not sample.fails:
            return from_iterable(sample.given)
        case "list" | "generator":
            return from_iterable(_Given(sample))
        case "boundary":
            return from_iterable(_Given(sample)).boundary(2)
        case _:
            return to_flow(_awaited(sample))


async def collected(flow: Flow[Any], asking: str) -> list[Any]:
    """All signals of *flow*."""
    match asking:
        case "unbounded":
            probe = SubscriberProbe[Any](UNBOUNDED)
        case "one by one":
            probe = SubscriberProbe[Any](1, again=1)
        case "coroutines":
            probe = AsyncSubscriberProbe[Any](1, again=1)
        case _:
            return await _iterated(flow)
    signals = await probe.subscribed_to(flow).end()
    assert getattr(probe, "overlaps", 0) == 0, "rule 1.3"
    return signals


async def _iterated(flow: Flow[Any]) -> list[Any]:
    out: list[Any] = []
    try:
        async for element in flow:
            out.append(element)  # noqa: PERF401 - what came before an error counts
    except Exception as error:
        return [*out, error]
    return [*out, "|"]


FEEDS = ("list", "generator", "boundary", "async iterator")
ASKING = ("unbounded", "one by one", "coroutines", "async for")
WAYS = [f"{feed}, {asking}" for feed, asking in product(FEEDS, ASKING)]


async def in_every_way(sample: Sample, way: str) -> None:
    """Judge *sample*: the signals expected, for two subscriptions of one flow (it is cold)."""
    feed, _, asking = way.partition(", ")
    flow = sample.change(source(sample, feed))
    for _again in range(1 if feed == "async iterator" else 2):
        found = await collected(flow, asking)
        assert found[:-1] == sample.expected[:-1], flow
        assert found[-1] == sample.expected[-1] or type(found[-1]) is sample.expected[-1], flow
