"""`bound()` is true: no random pipeline of what can hold elements ever holds more than it reports.

A list of n elements counts as n. The element that an island is processing does not count. A failure
names its seed: ``SEED=7`` runs that one alone.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.testing import Ledger, Token
from tests.harness.effort import scaled

COUNT = 40
PIPELINES = 500
"""In a run of normal effort less than that."""

pytestmark = pytest.mark.virtual_time

Holding = Callable[[Flow[Any], Random], Flow[Any]]


async def soon(x: Any) -> Any:
    await asyncio.sleep(0)
    return x


def small(random: Random) -> int:
    return random.choice((1, 2, 3, 5))


OPERATORS: dict[str, Holding] = {
    "boundary": lambda flow, random: flow.boundary(small(random)),
    "buffer": lambda flow, random: flow.buffer(small(random)),
    "buffer_timeout": lambda flow, random: flow.buffer_timeout(small(random), 1),
    "flat_map": lambda flow, random: flow.flat_map(
        lambda x: r.just(x).boundary(1), concurrency=small(random), prefetch=small(random)
    ),
    "flat_map of awaitables": lambda flow, random: flow.flat_map(
        lambda x: r.from_awaitable(soon(x)), concurrency=small(random)
    ),
    "flatten": lambda flow, random: flow.buffer(small(random)).flat_map(
        lambda each: each, concurrency=small(random), prefetch=small(random)
    ),
    "map_async": lambda flow, _: flow.map_async(soon),
    "merge": lambda flow, random: flow.merge_with([], prefetch=small(random)),
    "on_backpressure_buffer": lambda flow, _: flow.on_backpressure_buffer(COUNT),
    "timeout": lambda flow, _: flow.timeout(60),
    "workers": lambda flow, random: flow.map_async(soon, concurrency=small(random)),
    "zip": lambda flow, random: flow.zip_with(r.range(10**6).boundary(1), prefetch=small(random)),
}


def sources(ledger: Ledger, random: Random) -> Flow[Token]:
    kind = random.randrange(3)
    if kind == 0:
        return r.from_iterable(ledger.tokens(COUNT))
    if kind == 1:
        return r.from_aiter(ledger.tokens_async(COUNT))
    return r.from_publisher(ledger.publisher(COUNT))


def in_progress(flow: Flow[Any]) -> int:
    """How many elements the islands of *flow* process at the same time, one each."""
    chains, count = [flow.chain], 0
    while chains:
        chain = chains.pop()
        count += max(chain.weight, chain.source_weight)
        chains += [upstream.chain for upstream in chain.source.upstreams]
    return count


def seeds() -> Iterable[int]:
    only = os.environ.get("SEED")
    return range(scaled(PIPELINES)) if only is None else (int(only),)


async def test_no_random_pipeline_holds_more_than_its_bound() -> None:
    for seed in seeds():
        random = Random(seed)
        ledger = Ledger()
        flow: Flow[Any] = sources(ledger, random)
        for _ in range(random.randrange(1, 5)):
            flow = OPERATORS[random.choice([*OPERATORS])](flow, random)
        bound = flow.bound().total
        assert bound is not None
        try:
            await ledger.settle(
                flow,
                request=random.choice((1, 2, 2**63 - 1)),
                again=1,
                turns=random.choice((None, 1, 4)),
                bound=bound + in_progress(flow),
                discards=True,
            )
        except BaseException as error:
            error.add_note(f"SEED={seed}: {flow!r}, {flow.bound()}")
            raise
