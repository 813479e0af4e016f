"""Ways to run an operator: each kind of source, and each kind of demand.

A test module describes its operators by samples, and runs each sample in each way. The laws of the
conformance tests check the contract of signals.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reactive_aio import Flow, from_iterable, to_flow
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe

__all__ = ("SUBSCRIPTIONS", "UNBOUNDED", "Failed", "Sample", "collected", "in_every_way", "source")

UNBOUNDED = 2**63 - 1


class Failed(Exception):
    """The error of sources and functions of the tests."""


@dataclass(frozen=True)
class Sample:
    """*change* makes a flow with the signals *expected* out of a flow of the elements *given*.

    With *fails*, the source fails after *given*; then the last of *expected* is ``Failed``.
    """

    change: Callable[[Flow[Any]], Flow[Any]]
    given: list[Any]
    expected: list[Any]
    fails: bool = False


class _Given:
    """An iterable, not a sequence, for any number of subscriptions."""

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


def source(sample: Sample, kind: str) -> Flow[Any]:
    """A flow of the elements that the sample is given."""
    match kind:
        case "list" if not sample.fails:
            return from_iterable(sample.given)
        case "list" | "generator":
            return from_iterable(_Given(sample))
        case "boundary":
            return from_iterable(_Given(sample)).boundary(2)
        case _:
            return to_flow(_awaited(sample))


async def collected(flow: Flow[Any], demand: str) -> list[Any]:
    """All signals of *flow*."""
    match demand:
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


SOURCES = ("list", "generator", "boundary", "async iterator")
DEMANDS = ("unbounded", "one by one", "coroutines", "async for")
WAYS = [*zip(SOURCES, DEMANDS, strict=True)]
"""Each source once, and each demand once: in random pipelines, every operator meets all of them."""
SUBSCRIPTIONS = 2 * len(WAYS) - 1
"""How many subscriptions `in_every_way` makes."""


async def in_every_way(sample: Sample) -> None:
    """Check the signals of *sample*, for two subscriptions of one flow, which is cold."""
    for kind, demand in WAYS:
        flow = sample.change(source(sample, kind))
        for _ in range(1 if kind == "async iterator" else 2):
            found = await collected(flow, demand)
            assert found[:-1] == sample.expected[:-1], (flow, demand)
            end = sample.expected[-1]
            assert found[-1] == end or type(found[-1]) is end, (flow, demand)
