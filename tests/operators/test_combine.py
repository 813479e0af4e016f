"""concat, merge, zip and then: order, demand, ends, errors of one and of several, and bounds."""

# Where a Publisher is expected of a lambda, pyright does not infer the types of these calls.
# pyright: reportUnknownLambdaType=false

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed, Sample, in_every_way


def two(n: int, change: Callable[[Flow[int]], Flow[int]] = lambda flow: flow) -> list[Flow[int]]:
    """Two flows, of n elements together."""
    return [change(r.range(n // 2)), change(r.range(n // 2, n))]


OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "concat": lambda n: r.concat(*two(n)),
    "concat: boundary": lambda n: r.concat(*two(n, lambda flow: flow.boundary(2))),
    "concat: asynchronous": lambda n: r.concat(slow(range(n // 2)), slow(range(n // 2, n))),
    "concat_with": lambda n: r.range(n // 2).concat_with(range(n // 2, n)),
    "concat_with: nothing": lambda n: r.range(n).boundary(3).concat_with(range(0)),
    "merge": lambda n: r.merge(*two(n), prefetch=2),
    "merge: boundary": lambda n: r.merge(*two(n, lambda flow: flow.boundary(2)), prefetch=1),
    "merge: asynchronous": lambda n: r.merge(slow(range(n // 2)), slow(range(n // 2, n))),
    "merge: one at a time": lambda n: r.merge(slow(range(n)), r.empty(), prefetch=1),
    "merge: priority": lambda n: r.merge(*two(n), priority=[2, 1]),
    "merge: priority, asynchronous": lambda n: r.merge(
        slow(range(n // 2)), slow(range(n // 2, n)), priority=[1, 2], prefetch=2
    ),
    "merge_with": lambda n: r.range(n // 2).merge_with(slow(range(n // 2, n)), prefetch=3),
    "zip": lambda n: r.zip(r.range(n), r.range(n + 1)),
    "zip: three": lambda n: r.zip(r.range(n + 1), slow(range(n)), r.range(n)),
    "zip: strict": lambda n: r.zip(r.range(n), slow(range(n)), strict=True),
    "zip: asynchronous": lambda n: r.zip(slow(range(n)), slow(range(n)), prefetch=1),
    "zip_with": lambda n: r.range(n).zip_with(r.range(n)),
    "zip_with: boundary": lambda n: r.range(n).boundary(2).zip_with(r.range(n + 3)),
    "then": lambda n: r.range(5).then(r.range(n)),
    "then: over a boundary": lambda n: r.range(5).boundary(2).then(r.range(n).boundary(2)),
    "then: iterable": lambda n: r.range(5).then(range(n)),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "concat": lambda: r.concat(r.just(1), r.error(Failed())),
    "concat: asynchronous": lambda: r.concat(slow([1]), slow([2], error=Failed())),
    "concat_with": lambda: r.error(Failed()).concat_with(r.never()),
    "merge": lambda: r.merge(r.just(1), r.error(Failed())),
    "merge: asynchronous": lambda: r.merge(slow([1, 2], error=Failed()), r.never()),
    "merge_with": lambda: r.never().merge_with(r.error(Failed())),
    "zip": lambda: r.zip(r.range(5), r.error(Failed())),
    "zip: strict": lambda: r.zip(r.range(3), slow(range(2)), strict=True),
    "zip_with": lambda: slow([1, 2], error=Failed()).zip_with(r.range(9)),
    "then: source fails": lambda: r.error(OSError("no")).then(r.range(2)),
    "then: successor fails": lambda: r.range(2).then(r.error(OSError("no"))),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "concat": lambda: r.concat(slow([1]), r.generate(lambda x: (x, x + 1), 0)),
    "concat_with": lambda: r.generate(lambda x: (x, x + 1), 0).concat_with([1]),
    "merge": lambda: r.merge(r.generate(lambda x: (x, x + 1), 0), r.just(1)),
    "merge: asynchronous": lambda: r.merge(r.generate(lambda x: (x, x + 1), 0), slow([1])),
    "merge_with": lambda: r.generate(lambda x: (x, x + 1), 0).boundary(4).merge_with([1]),
    "zip": lambda: r.zip(r.generate(lambda x: (x, x + 1), 0), r.generate(lambda x: (x, x + 1), 0)),
    "zip_with": lambda: (
        r.generate(lambda x: (x, x + 1), 0)
        .boundary(4)
        .zip_with(r.generate(lambda x: (x, x + 1), 0))
    ),
    "then": lambda: r.range(2).then(r.generate(lambda n: (n, n + 1), 0)),
}

IDENTITIES: Identities = {
    "concat_with": lambda up: up.concat_with(r.empty()),
    "concat": lambda up: r.concat(r.empty(), up),
    "merge_with": lambda up: up.merge_with(r.empty()),
    "merge": lambda up: r.merge(up, r.empty(), prefetch=2),
    "zip": lambda up: r.zip(up, r.generate(lambda n: (n, n + 1), 0)).map(lambda pair: pair[0]),
    "zip_with": lambda up: up.zip_with(r.range(1_000_000)).map(lambda pair: pair[0]),
    "then": lambda up: r.empty().then(up),
}

UNORDERED = {
    "merge: asynchronous",
    "merge: boundary",
    "merge: priority, asynchronous",
    "merge_with",
}


class Closing:
    """An iterable of three numbers that notes when it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def __iter__(self) -> Iterator[int]:
        try:
            yield from (1, 2, 3)
        finally:
            self.closed += 1


@pytest.mark.parametrize("combine", [r.concat, r.merge, r.zip])
class TestAnySources:
    async def test_no_source_at_all_completes_at_once(self, combine: Callable[..., Any]) -> None:
        assert await combine().to_list(limit=1) == []

    async def test_synchronous_sources_are_fused_and_closed_at_a_break(
        self, combine: Callable[..., Any]
    ) -> None:
        numbers = Closing()
        flow = combine(numbers, r.range(10))
        assert flow.chain.is_pullable
        assert numbers.closed == 0
        async for _ in flow.skip(1):
            break
        assert numbers.closed == 1


BOUNDS: list[tuple[Flow[Any], int]] = [
    (r.concat([1], [2]), 0),
    (r.zip([1], [2]), 0),
    (r.merge(r.never(), r.never(), r.never(), prefetch=5), 15),
    (r.zip(slow([1]), [2], prefetch=3), 6),
]


@pytest.mark.parametrize(("combined", "bound"), BOUNDS, ids=str)
def test_the_bound_is_that_of_all_sources(combined: Flow[Any], bound: int) -> None:
    assert combined.bound().total == bound


class TestConcat:
    async def test_a_source_is_subscribed_to_when_the_previous_one_has_completed(self) -> None:
        first, second = PublisherProbe[int](), PublisherProbe[int]()
        flow: Flow[int] = r.concat(first, second)
        probe = SubscriberProbe[int](5).subscribed_to(flow)
        first.emit(1, 2)
        assert not second.subscribers
        first.complete()
        assert second.requests == [3], "the demand that is left is carried over"
        second.emit(3)
        second.complete()
        assert probe.signals == [1, 2, 3, "|"]

    async def test_no_more_is_requested_of_a_source_than_there_is_demand(self) -> None:
        source = PublisherProbe[int]()
        probe = SubscriberProbe[int]().subscribed_to(r.concat(source))
        assert not source.subscribers, "nothing starts before the first request"
        probe.request(1)
        probe.request(2)
        assert source.requested == 3

    async def test_unbounded_demand_reaches_a_source_in_portions_that_are_the_bound(self) -> None:
        source = PublisherProbe[int]()
        flow = r.concat(source)
        SubscriberProbe[int](MANY).subscribed_to(flow)
        assert source.requested == 256
        assert flow.bound().total == 512  # including 256 of the foreign publisher

    async def test_ten_thousand_sources_do_not_recurse(self) -> None:
        flow = r.concat(*[r.just(1).boundary(1) for _ in range(300)], r.just(2))
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        assert (await probe.end())[-2:] == [2, "|"]
        flow = r.concat(r.never().take(0), *[r.just(1)] * 10_000)
        assert await flow.count() == 10_000

    async def test_something_that_is_not_a_source_is_refused_at_assembly(self) -> None:
        with pytest.raises(TypeError, match=r"concat: .* cannot be read as a flow"):
            r.concat(r.just(1), "text")


class TestMerge:
    async def test_a_failure_follows_the_elements_before_it(self) -> None:
        await in_every_way(
            Sample(lambda f: f.merge_with([]), [1, 2, 3], [1, 2, 3, Failed], fails=True)
        )

    async def test_elements_come_in_the_order_of_their_arrival(self) -> None:
        a, b = PublisherProbe[str](), PublisherProbe[str]()
        flow: Flow[str] = r.merge(a, b, prefetch=4)
        probe = SubscriberProbe[str](1).subscribed_to(flow)
        for source, element in ((a, "a1"), (b, "b1"), (a, "a2"), (a, "a3")):
            source.emit(element)
            await asyncio.sleep(0)
        probe.request(1)
        probe.request(2)
        assert probe.elements == ["a1", "b1", "a2", "a3"]

    async def test_prefetch_elements_are_requested_of_each_source_and_again_when_processed(
        self,
    ) -> None:
        a = PublisherProbe[int]()
        flow: Flow[int] = r.merge(a, r.never(), prefetch=4)
        probe = SubscriberProbe[int](2).subscribed_to(flow)
        # A foreign publisher receives its demand through a guard.
        assert a.requested == 4
        a.emit(1, 2, 3, 4)
        await probe.wait_for_signals(2)
        assert a.requested == 4, "two of four wait here"
        probe.request(1)
        await probe.wait_for_signals(3)
        await asyncio.sleep(0)
        assert a.requested == 7, "three quarters have been processed"

    async def test_a_fast_source_does_not_starve_a_slow_one(self) -> None:
        endless = r.generate(lambda x: ("fast", x + 1), 0)
        merged = r.merge(endless.boundary(64), slow(["slow"] * 20), prefetch=8)
        first = await merged.take(2000).to_list(limit=2000)
        assert first.count("slow") == 20

    async def test_synchronous_sources_alternate(self) -> None:
        merged = r.merge(r.generate(lambda x: (x, x + 1), 0), [7, 8, 9], prefetch=2)
        assert merged.chain.is_pullable
        assert await merged.take(8).to_list(limit=8) == [0, 1, 7, 8, 2, 3, 9, 4]

    @pytest.mark.parametrize("priority", [None, [1, 9]])
    async def test_a_failure_cancels_the_others_and_follows_the_elements_that_have_arrived(
        self, priority: list[float] | None
    ) -> None:
        a, b = PublisherProbe[int](), PublisherProbe[int]()
        flow: Flow[int] = r.merge(a, b, priority=priority)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        a.emit(1)
        b.emit(2)
        a.fail(Failed())
        await probe.wait_for_signals(1)
        assert b.cancel_count == 1
        assert probe.signals == [1]
        probe.request(5)
        await probe.end()
        assert probe.elements == [1, 2]
        assert isinstance(probe.error, Failed)

    async def test_sources_that_fail_at_the_same_moment_are_reported_as_a_group(self) -> None:
        flow = r.merge(r.just(1).boundary(1), r.error(Failed("one")), r.error(Failed("two")))
        probe = SubscriberProbe[int](5).subscribed_to(flow)
        await probe.end()
        group: Any = probe.error
        assert type(group) is ExceptionGroup
        assert list(map(str, group.exceptions)) == ["one", "two"]

    async def test_a_source_that_ends_during_a_request_to_another_loses_nothing(self) -> None:
        class Chained(PublisherProbe[int]):
            def request(self, n: int, /) -> None:
                super().request(n)
                if len(self.requests) == 2:
                    b.emit(9)
                    b.complete()

        a, b = Chained(), PublisherProbe[int]()
        flow: Flow[int] = r.merge(a, b, prefetch=4)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        a.emit(1, 2, 3)
        b.emit(4)
        await probe.wait_for_signals(5)
        a.complete()
        assert await probe.end() == [1, 2, 3, 4, 9, "|"]

    @pytest.mark.parametrize("prefetch", [0, -1, True])
    async def test_prefetch_must_be_positive(self, prefetch: int) -> None:
        with pytest.raises((ValueError, TypeError), match="merge: prefetch must be"):
            r.merge(r.just(1), prefetch=prefetch)


class TestPriority:
    async def test_elements_that_wait_are_emitted_in_its_order(self) -> None:
        low, high = PublisherProbe[str](), PublisherProbe[str]()
        flow = r.merge(r.from_publisher(low), r.from_publisher(high), priority=[1, 9])
        probe = SubscriberProbe[str](1).subscribed_to(flow)
        low.emit("a", "b")
        high.emit("A", "B")
        low.emit("c")
        assert probe.elements == ["a"], "nothing else had arrived"
        probe.request(3)
        assert probe.elements == ["a", "A", "B", "b"]
        high.complete()
        low.complete()
        probe.request(9)
        assert await probe.end() == ["a", "A", "B", "b", "c", "|"]

    async def test_synchronous_sources_are_emitted_one_after_the_other(self) -> None:
        flow = r.merge([1, 2], [3], [4], priority=[0, 1, 0.5])
        assert await flow.to_list() == [3, 4, 1, 2]

    async def test_each_source_waits_after_its_prefetch(self) -> None:
        low, high = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.merge(r.from_publisher(low), r.from_publisher(high), priority=[1, 9], prefetch=4)
        probe = SubscriberProbe[int](2).subscribed_to(flow)
        low.emit(1, 2, 3, 4)
        assert (low.requested, high.requested) == (4, 4)
        probe.request(9)
        assert low.requested == 8
        probe.cancel()
        assert (low.cancel_count, high.cancel_count) == (1, 1)

    def test_each_source_needs_a_number(self) -> None:
        with pytest.raises(ValueError, match="priority must have a number for each source: 2, not"):
            r.merge([1], [2], priority=[1])
        with pytest.raises(TypeError, match="priority must be a list of numbers, not 3"):
            r.merge([1], [2], priority=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]

    @pytest.mark.parametrize("number", [float("nan"), "high", None, True])
    def test_a_priority_is_a_number(self, number: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="merge: a priority must be a number"):
            r.merge([1], [2], priority=[number, 1])


class TestZip:
    @pytest.mark.parametrize(
        "sample",
        [
            Sample(lambda f: f.zip_with([1, 2]), ["a", "b", "c"], [("a", 1), ("b", 2), "|"]),
            Sample(lambda f: f.zip_with([1, 2, 3]), ["a"], [("a", 1), Failed], fails=True),
            Sample(lambda f: f.zip_with([1], strict=True), ["a", "b"], [("a", 1), ValueError]),
            Sample(lambda f: f.zip_with([1], strict=True), ["a"], [("a", 1), "|"]),
        ],
        ids=["up to the shortest", "before a failure", "strict: too long", "strict: equal"],
    )
    async def test_pairs_are_made_in_order(self, sample: Sample) -> None:
        await in_every_way(sample)

    async def test_the_others_are_cancelled_when_no_pair_is_possible_any_more(self) -> None:
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

    async def test_an_empty_source_ends_it_at_once(self) -> None:
        b = PublisherProbe[int]()
        empty: Flow[int] = r.empty()
        flow = r.zip(empty.boundary(1), b)
        probe = SubscriberProbe[tuple[int, int]](3).subscribed_to(flow)
        assert await probe.end() == ["|"]
        assert b.cancel_count == 1

    async def test_the_demand_is_requested_of_each_source_within_the_bound(self) -> None:
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


class TestThen:
    async def test_the_successor_is_subscribed_to_when_the_source_has_completed(self) -> None:
        first, second = PublisherProbe[int](), PublisherProbe[str]()
        flow = r.from_publisher(first).then(second)
        probe = SubscriberProbe[str]().subscribed_to(flow)
        assert first.subscribers == []
        probe.request(2)
        first.emit(1, 2)
        assert (second.subscribers, probe.signals) == ([], [])
        first.complete()
        assert second.requested == 2
        second.emit("a")
        second.complete()
        assert probe.signals == ["a", "|"]

    def test_something_that_is_not_a_source_is_refused_at_once(self) -> None:
        with pytest.raises(TypeError, match="then: 5"):
            r.range(3).then(cast("Any", 5))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Combine flows": {
        "one after the other": "concat concat_with",
        "a second one when the first has completed, whose elements do not matter": "then",
        "all at the same time, each element as it arrives": "merge merge_with",
        "in pairs: the first of each, the second of each": "zip zip_with",
    },
}


async def example_concat() -> None:
    print(await r.concat(r.just("head"), ["a", "b"], r.just("end")).to_list())


async def example_merge() -> None:
    slow = r.interval(0.1).map(lambda n: f"slow {n}").take(2)
    fast = r.interval(0.04).map(lambda n: f"fast {n}").take(3)
    print(await r.merge(slow, fast).to_list())


async def example_zip() -> None:
    async for name, price in r.zip(r.just("tea", "milk"), [3, 1]):
        print(name, price)


async def example_concat_with() -> None:
    print(await r.just("a", "b").concat_with(["the end"]).to_list())


async def example_merge_with() -> None:
    events = r.timer(0.2, "saved").merge_with(r.timer(0.1, "changed"))
    print(await events.to_list())


async def example_zip_with() -> None:
    print(await r.just("tea", "milk").zip_with([3, 1]).to_list())


async def example_then() -> None:
    saved = r.just(1, 2).do_on_next(lambda n: print("saved", n))
    print(await saved.then(["all saved"]).to_list())
