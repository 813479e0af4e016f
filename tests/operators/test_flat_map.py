"""flat_map: kinds of sources, concurrency, order, errors, demand, and bounds."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.errors import AlreadySubscribed, NotAnElement
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed


def fails_at_two(x: int) -> list[int]:
    if x == 2:
        raise Failed
    return [x, x]


INNER_OF_ONE: list[Callable[[int], Any]] = [
    lambda x: r.just(x),
    lambda x: [x],
    lambda x: r.range(x, x + 1),
]

OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "flat_map": lambda n: r.range(n).flat_map(lambda x: [x]),
    "flat_map: of one": lambda n: r.just(1).flat_map(lambda _: r.range(n)),
    "flat_map: mostly nothing": lambda n: r.range(3 * n).flat_map(lambda x: [] if x % 3 else [x]),
    "flat_map: asynchronous": lambda n: slow(range(n)).flat_map(lambda x: slow([x]), concurrency=3),
    "flat_map: one asynchronous": lambda n: r.just(1).flat_map(
        lambda _: slow(range(n)), prefetch=1
    ),
    "concat_map": lambda n: r.range(n).concat_map(lambda x: [x]),
    "concat_map: asynchronous": lambda n: slow(range(n)).concat_map(lambda x: slow([x])),
    "flat_map: mixed": lambda n: r.range(n).flat_map(
        lambda x: slow([x]) if x % 2 else r.just(x), concurrency=2
    ),
}

FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "flat_map: mapper": lambda: r.range(5).flat_map(fails_at_two),
    "flat_map: source": lambda: slow([1], error=Failed()).flat_map(lambda x: [x]),
    "concat_map": lambda: r.range(5).concat_map(fails_at_two),
    "flat_map: inner": lambda: r.range(3).flat_map(lambda x: slow([x], error=Failed())),
}

INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "flat_map": lambda: r.generate(lambda x: (x, x + 1), 0).flat_map(lambda x: [x, x]),
    "flat_map: inner": lambda: r.just(1).flat_map(lambda _: r.generate(lambda x: (x, x + 1), 0)),
    "concat_map": lambda: r.generate(lambda x: (x, x + 1), 0).concat_map(lambda x: [x, x]),
}

IDENTITIES: Identities = {
    "flat_map": lambda up: up.flat_map(r.just),
    "concat_map": lambda up: up.concat_map(r.just),
}

UNORDERED = {"flat_map: asynchronous", "flat_map: mixed"}


async def twice(x: int) -> AsyncIterator[int]:
    yield x
    await asyncio.sleep(0)
    yield x


class TestConcurrency:
    @pytest.mark.parametrize("limit", [1, 2, 5])
    async def test_never_more_calls_run_than_allowed(self, limit: int) -> None:
        active = most = 0

        async def inner(x: int) -> AsyncIterator[int]:
            nonlocal active, most
            active += 1
            most = max(most, active)
            for _ in range(3):
                await asyncio.sleep(0)
                yield x
            active -= 1

        flow = r.range(20).flat_map(inner, concurrency=limit)
        assert await flow.count() == 60
        assert most == limit

    async def test_as_many_elements_are_requested_as_sources_may_be_active(self) -> None:
        outer, inner = PublisherProbe[int](), [PublisherProbe[int]() for _ in range(3)]
        flow = r.from_publisher(outer).flat_map(lambda i: inner[i], concurrency=2)
        probe = SubscriberProbe[int](10).subscribed_to(flow)
        assert outer.requested == 2
        outer.emit(0, 1)
        inner[0].emit(7)
        inner[0].complete()
        await probe.wait_for_signals(1)
        await asyncio.sleep(0)
        assert outer.requested == 4
        outer.emit(2)
        assert inner[2].subscribers

    async def test_elements_of_a_source_that_waits_are_not_held_up_by_a_long_synchronous_one(
        self,
    ) -> None:
        endless = r.generate(lambda x: ("sync", x + 1), 0)
        flow = r.just(0, 1).flat_map(lambda i: endless if i else slow(["async"] * 3))
        found = flow.filter(lambda x: x == "async").take(3)
        assert await found.to_list(limit=3) == ["async"] * 3

    async def test_an_endless_source_without_elements_yields_to_the_loop(self) -> None:
        nothing: list[int] = []
        flow = r.generate(lambda x: (x, x + 1), 0).flat_map(lambda _: nothing)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        for _ in range(3):
            await asyncio.sleep(0.001)
        probe.cancel()
        assert probe.signals == []


Kind = Callable[[list[int]], Any]

KINDS: Mapping[str, Kind] = {
    "list": list,
    "tuple": tuple,
    "dict": dict.fromkeys,
    "generator": iter,
    "flow": r.from_iterable,
    "asynchronous": slow,
}
"""What the mapper may return; the first four need no subscription."""


class TestIterables:
    """A synchronous source whose iterables have a length runs in one loop with them, up to the
    first result of another kind."""

    @given(
        results=st.lists(st.tuples(st.sampled_from([*KINDS]), st.integers(0, 12)), max_size=8),
        requests=st.lists(st.integers(1, 9), max_size=30),
        following=st.sampled_from(["nothing", "filter", "take", "flat_map", "buffer", "take_last"]),
    )
    async def test_any_results_in_any_order_are_emitted_in_order(
        self, results: list[tuple[str, int]], requests: list[int], following: str
    ) -> None:
        expected: list[Any]
        expected = [10 * i + x for i, (_, length) in enumerate(results) for x in range(length)]

        def mapper(i: int) -> Any:
            kind, length = results[i]
            return KINDS[kind]([10 * i + x for x in range(length)])

        flow: Flow[Any] = r.range(len(results)).flat_map(mapper, concurrency=1)
        match following:
            case "filter":
                flow, expected = flow.filter(lambda x: x % 2), [x for x in expected if x % 2]
            case "take":
                flow, expected = flow.take(5), expected[:5]
            case "flat_map":
                flow = flow.flat_map(lambda x: (x, x))
                expected = [x for x in expected for _ in range(2)]
            case "buffer":
                flow = flow.buffer(3)
                expected = [expected[i : i + 3] for i in range(0, len(expected), 3)]
            case "take_last":
                flow, expected = flow.take_last(4), expected[-4:]
            case _:
                pass
        probe = SubscriberProbe[int](0).subscribed_to(flow)
        for count in requests:
            probe.request(count)
            await asyncio.sleep(0)
            assert len(probe.elements) <= sum(requests)
        probe.request(MANY)
        assert await probe.end() == [*expected, "|"]

    async def test_the_source_is_read_as_its_elements_are_needed(self) -> None:
        read: list[int] = []
        flow = r.range(9).do_on_next(read.append).flat_map(lambda x: [x, x])
        probe = SubscriberProbe[int](0).subscribed_to(flow)
        assert read == []
        for count in (1, 2):
            probe.request(1)
            assert (probe.elements, read) == ([0] * count, [0])
        probe.request(1)
        assert read == [0, 1]
        probe.cancel()

    async def test_the_end_follows_the_last_element_directly(self) -> None:
        flow = r.range(3).flat_map(lambda x: [x])
        assert SubscriberProbe[int](3).subscribed_to(flow).signals == [0, 1, 2, "|"]

    async def test_a_source_that_cannot_be_opened_fails_after_what_comes_first(self) -> None:
        elements = iter([1])
        source = r.from_iterable(elements)
        assert await source.to_list() == [1]
        flow = source.flat_map(lambda x: [x]).start_with(7)
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        assert (await probe.end())[0] == 7
        assert isinstance(probe.error, AlreadySubscribed)

    async def test_a_long_range_yields_to_the_loop(self) -> None:
        flow = r.just(1).flat_map(lambda _: range(1 << 60)).filter(lambda x: x < 0)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await asyncio.sleep(0)
        probe.cancel()
        assert probe.signals == []

    @pytest.mark.parametrize("taken", [1, 2, 3, 4, 5])
    async def test_cancelling_closes_the_source_wherever_it_is(self, taken: int) -> None:
        log: list[str] = []

        def source() -> Iterator[int]:
            try:
                yield from range(9)
            finally:
                log.append("closed")

        elements = r.from_iterable(source())
        flow = elements.flat_map(lambda x: r.just(x, x) if x else [x, x], concurrency=1)
        probe = SubscriberProbe[int](taken).subscribed_to(flow)
        await probe.wait_for_signals(taken)
        assert log == []
        probe.cancel()
        assert log == ["closed"]

    @pytest.mark.parametrize("before", ["a list", "a flow"])
    async def test_an_error_of_the_source_is_marked_where_it_was_raised(self, before: str) -> None:
        divided = r.range(3).map(lambda x: 6 // (1 - x))
        flow = divided.flat_map(lambda x: [x] if before == "a list" else r.just(x)).map(str)
        probe = SubscriberProbe[str](9).subscribed_to(flow)
        assert (await probe.end())[0] == "6"
        assert isinstance(probe.error, ZeroDivisionError)
        (note,) = probe.error.__notes__
        trail, element, *_ = note.splitlines()
        assert trail.startswith("in the flow: range(0, 3) → >>map(")
        assert "<< → flat_map(" in trail
        assert trail.endswith(" → map(str)")
        assert element.strip() == "with the element 1"

    async def test_an_error_of_the_mapper_is_marked_there(self) -> None:
        flow = r.range(3).flat_map(lambda x: [x] * (1 // (1 - x))).map(str)
        probe = SubscriberProbe[str](9).subscribed_to(flow)
        await probe.end()
        assert probe.elements == ["0"]
        assert isinstance(probe.error, ZeroDivisionError)
        (note,) = probe.error.__notes__
        assert "range(0, 3) → >>flat_map(" in note


class TestErrors:
    async def test_an_inner_failure_cancels_the_source_and_the_others(self) -> None:
        outer, one, two = (PublisherProbe[int]() for _ in range(3))
        flow = r.from_publisher(outer).flat_map(lambda i: (one, two)[i])
        probe = SubscriberProbe[int](10).subscribed_to(flow)
        outer.emit(0, 1)
        one.emit(5)
        two.fail(Failed())
        await probe.end()
        assert probe.elements == [5]
        assert isinstance(probe.error, Failed)
        assert (outer.cancel_count, one.cancel_count) == (1, 1)

    async def test_something_that_is_not_a_source_fails_the_flow_by_name(self) -> None:
        flow = r.just(1).flat_map(lambda _: "text")
        probe = SubscriberProbe[Any](1).subscribed_to(flow)
        await probe.end()
        assert isinstance(probe.error, TypeError)
        assert "flat_map" in str(probe.error)

    async def test_a_stop_iteration_of_the_mapper_fails_the_flow(self) -> None:
        def mapper(_: int) -> list[int]:
            raise StopIteration

        probe = SubscriberProbe[int](9).subscribed_to(r.range(3).flat_map(mapper))
        await probe.end()
        assert probe.error is not None

    async def test_none_in_an_iterable_is_refused(self) -> None:
        flow = r.just(1).flat_map(lambda _: [1, None])
        probe = SubscriberProbe[Any](9).subscribed_to(flow)
        await probe.end()
        assert probe.elements == [1]
        assert isinstance(probe.error, TypeError)


class TestConcatMap:
    async def test_the_next_source_is_made_when_the_one_before_has_completed(self) -> None:
        log: list[str] = []
        flow = r.range(3).concat_map(lambda x: slow([x, x], log=log))
        assert await flow.to_list() == [0, 0, 1, 1, 2, 2]
        assert log == ["opened", "closed"] * 3

    async def test_it_has_its_own_name(self) -> None:
        flow = r.just(1).concat_map(lambda _: "text")
        assert "concat_map(<lambda>)" in flow.explain()
        assert flow.bound().total == 129
        with pytest.raises(TypeError, match="concat_map"):
            await flow.to_list()


class TestHolding:
    async def test_pulled_elements_count_until_they_have_been_processed(self) -> None:
        inner = PublisherProbe[int]()
        release = asyncio.Event()

        async def process(x: int) -> int:
            await release.wait()
            return x

        flow = r.just(0, 1).flat_map(
            lambda i: inner if i else r.range(7), concurrency=2, prefetch=4
        )
        probe = SubscriberProbe[int](MANY).subscribed_to(flow.map_async(process))
        await asyncio.sleep(0)
        assert not inner.subscribers, "seven of eight elements are on their way down"
        release.set()
        await probe.wait_for_signals(7)
        await asyncio.sleep(0)
        assert inner.requested == 4
        probe.cancel()

    async def test_a_synchronous_source_is_pulled_only_by_demand(self) -> None:
        read: list[int] = []
        flow = r.just(1).flat_map(lambda _: r.range(100).do_on_next(read.append))
        probe = SubscriberProbe[int](3).subscribed_to(flow)
        await probe.wait_for_signals(3)
        assert read == [0, 1, 2]
        probe.cancel()

    @pytest.mark.parametrize("option", ["concurrency", "prefetch"])
    def test_options_must_be_positive(self, option: str) -> None:
        with pytest.raises(ValueError, match=f"flat_map: {option} must be at least 1, not 0"):
            r.just(1).flat_map(lambda x: [x], **{option: 0})

    @pytest.mark.parametrize("inner", INNER_OF_ONE)
    async def test_it_completes_without_demand_when_the_source_has_no_more_elements(
        self, inner: Callable[[int], Any]
    ) -> None:
        source: PublisherProbe[int] = PublisherProbe()
        flow = r.from_publisher(source).flat_map(inner)
        probe = SubscriberProbe[int](2).subscribed_to(flow)
        await source.expect_request(2)
        source.emit(1, 2)
        source.complete()
        await probe.wait_for_signals(3)
        assert probe.signals == [1, 2, "|"]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow of each element": {
        "several of them at the same time": "flat_map",
        "one after the other": "concat_map",
    },
}


async def example_flat_map() -> None:
    def ticks(name: str) -> r.Flow[str]:
        return r.interval(0.1).take(2).map(lambda n: f"{name}{n}")

    print(await r.just("a", "b").flat_map(ticks).to_list())


async def example_concat_map() -> None:
    def ticks(name: str) -> r.Flow[str]:
        return r.interval(0.1).take(2).map(lambda n: f"{name}{n}")

    print(await r.just("a", "b").concat_map(ticks).to_list())


@pytest.mark.parametrize("length", [2, 300])
async def test_what_precedes_none_in_a_batch_is_delivered(length: int) -> None:
    """2.13, where lists are taken as a whole."""
    found = list[int]()
    inner: list[Any] = [*range(length), None, 7]

    async def read() -> None:
        async for element in r.just(0).flat_map(lambda _: inner):
            found.append(element)

    with pytest.raises(NotAnElement, match="the source produced None"):
        await read()
    assert found == [*range(length)]


@given(st.lists(st.integers(0, 700), max_size=6), st.integers(1, 300))
async def test_iterables_longer_than_the_demand_are_delivered_in_parts(
    lengths: list[int], prefetch: int
) -> None:
    """1.1: never more than was requested."""
    flow = r.from_iterable(lengths).flat_map(range)
    async with flow.stream(prefetch=prefetch) as elements:
        found = [element async for element in elements]
    assert found == [element for length in lengths for element in range(length)]


async def test_a_list_that_is_emptied_while_it_is_emitted_ends_there() -> None:
    inner = [*range(1000)]
    found = list[int]()
    async with r.just(0).flat_map(lambda _: inner).stream(prefetch=4) as elements:
        async for element in elements:
            found.append(element)
            inner.clear()
    assert found == [0, 1, 2, 3]
