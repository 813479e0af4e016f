"""combine_latest and with_latest_from: which elements meet, demand, ends and errors."""

# Where a Publisher is expected of a lambda, pyright does not infer the types of these calls.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed, Sample, in_every_way

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "combine_latest": lambda n: r.combine_latest(r.range(n)),
    "combine_latest: asynchronous": lambda n: r.combine_latest(slow(range(n)), prefetch=1),
    "with_latest_from": lambda n: r.range(n).with_latest_from([0]),
    "with_latest_from: asynchronous": lambda n: slow(range(n)).with_latest_from(r.just(0)),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "combine_latest": lambda: r.combine_latest(r.just(1), slow([1], error=Failed())),
    "with_latest_from": lambda: slow([1], error=Failed()).with_latest_from([0]),
    "with_latest_from: other": lambda: r.never().with_latest_from(slow([1], error=Failed())),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "combine_latest": lambda: r.combine_latest(r.generate(lambda x: (x, x + 1), 0), [1]),
    "with_latest_from": lambda: r.generate(lambda x: (x, x + 1), 0).with_latest_from([1]),
}

IDENTITIES: Identities = {
    "combine_latest": lambda up: r.combine_latest(up).map(lambda each: each[0]),
    "with_latest_from": lambda up: up.with_latest_from([0], combine=lambda x, _: x),
}


def two(count: int = 2) -> tuple[list[PublisherProbe[Any]], list[Flow[Any]]]:
    probes = [PublisherProbe[Any]() for _ in range(count)]
    return probes, [r.from_publisher(each) for each in probes]


def divided(x: int, y: int) -> int:
    return x // y


class TestCombineLatest:
    async def test_each_element_is_combined(self) -> None:
        def change(flow: Flow[int]) -> Flow[int]:
            return r.combine_latest(flow, combine=lambda x: x + 1)

        await in_every_way(Sample(change, [1, 2, 3], [2, 3, 4, "|"]))
        await in_every_way(Sample(change, [], ["|"]))
        await in_every_way(Sample(change, [1], [2, Failed], fails=True))

    async def test_a_combination_for_each_element_once_all_have_emitted(self) -> None:
        (one, other), flows = two()
        probe = SubscriberProbe[Any](MANY).subscribed_to(r.combine_latest(*flows))
        one.emit("a", "b")
        other.emit(1)
        other.emit(2)
        one.emit("c")
        one.complete()
        other.emit(3)
        assert probe.elements == [("b", 1), ("b", 2), ("c", 2), ("c", 3)]
        other.complete()
        assert (await probe.end())[-1] == "|"

    async def test_without_demand_the_sources_wait_and_nothing_is_lost(self) -> None:
        (one, other), flows = two()
        flow = r.combine_latest(*flows, prefetch=2)
        probe = SubscriberProbe[Any](1).subscribed_to(flow)
        assert (one.requested, other.requested) == (2, 2)
        one.emit(1)
        other.emit(10)
        one.emit(2)
        other.emit(20)
        assert probe.elements == [(1, 10)]
        assert one.outstanding + other.outstanding <= 2
        probe.request(9)
        assert probe.elements == [(1, 10), (2, 10), (2, 20)]
        probe.cancel()
        assert (one.cancel_count, other.cancel_count) == (1, 1)

    async def test_a_source_that_is_empty_ends_it_at_once(self) -> None:
        (one, other), flows = two()
        probe = SubscriberProbe[Any](0).subscribed_to(r.combine_latest(*flows))
        probe.request(1)
        one.emit(1, 2, 3)
        other.complete()
        assert await probe.end() == ["|"]
        assert one.cancel_count == 1

    async def test_a_failure_follows_the_combinations_of_what_has_arrived(self) -> None:
        (one, other), flows = two()
        probe = SubscriberProbe[Any](1).subscribed_to(r.combine_latest(*flows))
        one.emit(1)
        other.emit(10, 20)
        other.fail(Failed())
        assert probe.signals == [(1, 10)]
        assert one.cancel_count == 1
        probe.request(5)
        await probe.end()
        assert probe.elements == [(1, 10), (1, 20)]
        assert isinstance(probe.error, Failed)

    async def test_an_error_of_combine_follows_the_combinations_before_it(self) -> None:
        flow = r.combine_latest([3, 2, 1, 0, 5], combine=lambda x: 6 // x)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await probe.end()
        assert probe.elements == [2, 3, 6]
        assert isinstance(probe.error, ZeroDivisionError)

    async def test_an_error_of_combine_discards_what_arrived_with_the_element(self) -> None:
        discarded: list[int] = []
        (one, other), flows = two()
        flow = r.combine_latest(*flows, combine=divided).do_on_discard(discarded.append)
        probe = SubscriberProbe[Any](1).subscribed_to(flow)
        one.emit(6)
        other.emit(2, 3, 0, 4, 5)
        probe.request(MANY)
        assert probe.elements == [3, 2]
        assert isinstance(probe.error, ZeroDivisionError)
        assert sorted(discarded) == [0, 4, 5]

    async def test_elements_that_arrive_together_are_combined_within_demand(self) -> None:
        (one, other), flows = two()
        probe = SubscriberProbe[Any](2).subscribed_to(r.combine_latest(*flows))
        other.emit(7, 8)
        one.emit(1, 2, 3)
        assert probe.elements == [(1, 8), (2, 8)]
        other.emit(9)
        probe.request(MANY)
        assert probe.elements == [(1, 8), (2, 8), (3, 8), (3, 9)]

    async def test_none_is_refused_as_a_combination(self) -> None:
        with pytest.raises(TypeError, match="combine_latest produced None"):
            await r.combine_latest([1], combine=lambda _: None).to_list()

    def test_mistakes_are_refused(self) -> None:
        with pytest.raises(TypeError, match="at least one source"):
            r.combine_latest()
        with pytest.raises(ValueError, match="prefetch must be at least 1"):
            r.combine_latest([1], prefetch=0)
        with pytest.raises(TypeError, match=r"unpack it: combine_latest\(\*sources\)"):
            r.combine_latest([r.just(1), r.just(2)])
        with pytest.raises(TypeError, match="combine"):
            r.combine_latest([1], [2], combine=asyncio.sleep)  # pyright: ignore[reportArgumentType, reportCallIssue]


class TestWithLatestFrom:
    async def test_elements_before_the_first_of_the_other_are_left_out_and_replaced(self) -> None:
        (source, other), (flow, latest) = two()
        probe = SubscriberProbe[Any](2).subscribed_to(flow.with_latest_from(latest))
        source.emit("a")
        assert source.requested == 3
        other.emit(1)
        other.emit(2)
        source.emit("b")
        other.emit(3)
        other.complete()
        source.emit("c")
        assert probe.elements == [("b", 2), ("c", 3)]
        source.complete()
        assert (await probe.end())[-1] == "|"

    async def test_the_end_of_the_source_cancels_the_other(self) -> None:
        (source, other), (flow, latest) = two()
        probe = SubscriberProbe[Any](2).subscribed_to(flow.with_latest_from(latest))
        other.emit(1)
        source.complete()
        assert await probe.end() == ["|"]
        assert other.cancel_count == 1

    async def test_an_error_of_combine_follows_the_elements_before_it(self) -> None:
        flow = r.from_iterable([3, 2, 0, 1]).with_latest_from([6], combine=lambda x, y: y // x)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await probe.end()
        assert probe.elements == [2, 3]
        assert isinstance(probe.error, ZeroDivisionError)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Combine flows": {
        "their latest elements, whenever one of them changes": "combine_latest",
        "the latest element of another flow with each of mine": "with_latest_from",
    },
}


async def example_combine_latest() -> None:
    price, amount = r.LatestProcessor(10), r.LatestProcessor(2)
    totals = r.combine_latest(price, amount, combine=lambda p, n: p * n)
    async with totals.stream() as elements:
        print(await anext(elements))
        amount.try_emit(3)
        print(await anext(elements))


async def example_with_latest_from() -> None:
    rate = r.LatestProcessor(1.5)
    orders = r.just(10, 20).with_latest_from(rate, combine=lambda price, r: price * r)
    print(await orders.to_list())
