"""zip: pairs, ends, strictness, errors, demand, and bounds."""

# Where a Publisher is expected of a lambda, pyright does not infer the types of these calls.
# pyright: reportUnknownLambdaType=false

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities
from tests.operators.streams import MANY, slow
from tests.operators.ways import WAYS, Failed, Sample, in_every_way

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "zip": lambda n: r.zip(r.range(n), r.range(n + 1)),
    "zip: three": lambda n: r.zip(r.range(n + 1), slow(range(n)), r.range(n)),
    "zip: strict": lambda n: r.zip(r.range(n), slow(range(n)), strict=True),
    "zip: asynchronous": lambda n: r.zip(slow(range(n)), slow(range(n)), prefetch=1),
    "zip_with": lambda n: r.range(n).zip_with(r.range(n)),
    "zip_with: boundary": lambda n: r.range(n).boundary(2).zip_with(r.range(n + 3)),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "zip": lambda: r.zip(r.range(5), r.error(Failed())),
    "zip: strict": lambda: r.zip(r.range(3), slow(range(2)), strict=True),
    "zip_with": lambda: slow([1, 2], error=Failed()).zip_with(r.range(9)),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "zip": lambda: r.zip(r.generate(lambda x: (x, x + 1), 0), r.generate(lambda x: (x, x + 1), 0)),
    "zip_with": lambda: (
        r.generate(lambda x: (x, x + 1), 0)
        .boundary(4)
        .zip_with(r.generate(lambda x: (x, x + 1), 0))
    ),
}

IDENTITIES: Identities = {
    "zip": lambda up: r.zip(up, r.generate(lambda n: (n, n + 1), 0)).map(lambda pair: pair[0]),
    "zip_with": lambda up: up.zip_with(r.range(1_000_000)).map(lambda pair: pair[0]),
}


@pytest.mark.parametrize("way", WAYS)
class TestInEveryWay:
    async def test_pairs_are_made_in_order_up_to_the_shortest(self, way: str) -> None:
        change: Callable[[Flow[Any]], Flow[Any]] = lambda flow: flow.zip_with([1, 2])  # noqa: E731
        await in_every_way(Sample(change, ["a", "b", "c"], [("a", 1), ("b", 2), "|"]), way)

    async def test_a_failure_follows_the_pairs_before_it(self, way: str) -> None:
        change: Callable[[Flow[Any]], Flow[Any]] = lambda flow: flow.zip_with([1, 2, 3])  # noqa: E731
        await in_every_way(Sample(change, ["a"], [("a", 1), Failed], fails=True), way)

    async def test_strict_refuses_different_lengths(self, way: str) -> None:
        change: Callable[[Flow[Any]], Flow[Any]] = lambda flow: flow.zip_with([1], strict=True)  # noqa: E731
        await in_every_way(Sample(change, ["a", "b"], [("a", 1), ValueError]), way)

    async def test_strict_accepts_equal_lengths(self, way: str) -> None:
        change: Callable[[Flow[Any]], Flow[Any]] = lambda flow: flow.zip_with([1], strict=True)  # noqa: E731
        await in_every_way(Sample(change, ["a"], [("a", 1), "|"]), way)


async def test_the_others_are_cancelled_when_no_pair_is_possible_any_more() -> None:
    a, b = PublisherProbe[int](), PublisherProbe[int]()
    flow = r.zip(a, b)
    probe = SubscriberProbe[tuple[int, int]](3).subscribed_to(flow)
    a.emit(1)
    a.complete()
    assert probe.signals == []
    b.emit(2)
    await probe.end()
    assert probe.signals == [(1, 2), "|"]
    assert b.cancel_count == 1


async def test_an_empty_source_ends_it_at_once() -> None:
    b = PublisherProbe[int]()
    empty: Flow[int] = r.empty()
    flow = r.zip(empty.boundary(1), b)
    probe = SubscriberProbe[tuple[int, int]](3).subscribed_to(flow)
    assert await probe.end() == ["|"]
    assert b.cancel_count == 1


async def test_the_demand_is_requested_of_each_source_within_the_bound() -> None:
    a, b = PublisherProbe[int](), PublisherProbe[int]()
    flow = r.zip(a, b, prefetch=4)
    probe = SubscriberProbe[tuple[int, int]](3).subscribed_to(flow)
    assert (a.requested, b.requested) == (3, 3)
    probe.request(MANY)
    assert (a.requested, b.requested) == (4, 4)
    a.emit(1, 2, 3, 4)
    assert (a.requested, b.requested) == (4, 4)
    b.emit(1)
    await probe.wait_for_signals(1)
    assert (a.requested, b.requested) == (5, 5)


async def test_never_holds_more_than_its_bound() -> None:
    came, done, most = 0, 0, 0

    def count(_: int) -> None:
        nonlocal came, most
        came += 1
        most = max(most, came - done)

    async def process(pair: tuple[int, int]) -> int:
        nonlocal done
        await asyncio.sleep(0)
        done += 2
        return pair[0]

    flow = r.zip(slow(range(40)).do_on_next(count), r.range(40).do_on_next(count), prefetch=3)
    assert flow.bound().total == 6
    assert await flow.map_async(process).count() == 40
    assert 2 < most <= 6


async def test_synchronous_sources_are_fused_and_closed_at_a_break() -> None:
    closed: list[str] = []

    class Numbers:
        def __iter__(self) -> Any:
            try:
                yield from range(10)
            finally:
                closed.append("closed")

    flow = r.zip(Numbers(), r.range(10))
    assert flow.chain.is_pullable
    assert flow.bound().total == 0
    async for pair in flow:
        if pair == (2, 2):
            break
    assert closed == ["closed"]


async def test_no_source_at_all_completes_at_once() -> None:
    nothing: Flow[Any] = r.zip()
    assert await nothing.to_list(limit=1) == []
