"""What a name knows of all its subscriptions: elements, drops, retries, and the last error."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given, strategies as st

import reactive_aio as r
from reactive_aio import Flow, RetryPolicy, observe
from reactive_aio._core.observation import registry
from reactive_aio._core.time_slice import set_clock
from reactive_aio.delivery import deliveries
from reactive_aio.testing import SubscriberProbe

pytestmark = pytest.mark.virtual_time
EVERY_SECOND = RetryPolicy(attempts=None, delay=1, factor=1, jitter=0)


@pytest.fixture(autouse=True)
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_names", {})


def fails_at(n: int) -> Callable[[int], int]:
    def function(x: int) -> int:
        if x == n:
            raise OSError("lost")
        return x

    return function


async def itself(x: int) -> int:
    return x


async def asynchronous(n: int) -> AsyncIterator[int]:
    for i in range(n):
        await asyncio.sleep(0)
        yield i


class Failing:
    """An iterable that fails after some elements."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __iter__(self) -> Iterator[int]:
        yield from range(self._n)
        raise OSError("lost")


class Numbers:
    """An iterable whose iterators do not say what is left."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __iter__(self) -> Iterator[int]:
        yield from range(self._n)


def ended(n: int, fails: bool) -> dict[str, Flow[int]]:
    """Flows that end after *n* elements, in each kind of loop."""
    numbers = r.range(n + 5).map(fails_at(n)) if fails else r.range(n)
    awaited = r.from_aiter(lambda: asynchronous(n + 5)).map(fails_at(n)).take(n + fails)
    flows = {
        "pulled": numbers,
        "pulled, many": numbers.flat_map(lambda x: [x]),
        "pushed": r.range(n + 5).boundary(64).map(fails_at(n)).take(n + fails),
        "left out": r.range(2 * n + 9).map(fails_at(2 * n)).filter(lambda x: x % 2 == 0),
        "awaited": awaited,
    }
    if fails:
        flows["a source that raises"] = r.from_iterable(Failing(n))
        flows["a source that raises, with a stage"] = r.from_iterable(Failing(n)).map(abs)
    else:
        del flows["left out"]
    return flows


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("n", [0, 1, 9, 100])
async def test_what_was_delivered_is_exact_after_the_end(n: int, fails: bool) -> None:
    for name, flow in ended(n, fails).items():
        received = SubscriberProbe[int](1 << 40).subscribed_to(flow.name(name))
        for _ in range(8 * n + 90):
            await asyncio.sleep(0)
        stats = flow.name(name).stats()
        assert (stats.completed, stats.failed) == (not fails, fails), name
        assert stats.delivered == len(received.elements) == n, name
        bulk = flow.name(f"{name}, in bulk")
        await bulk.boundary(9).on_error_complete().run()
        assert bulk.stats().delivered == n, name


TERMINAL: dict[str, Callable[[Flow[int]], Any]] = {
    "to_list": lambda flow: flow.to_list(),
    "to_dict": lambda flow: flow.to_dict(str),
    "run": lambda flow: flow.run(),
    "count": lambda flow: flow.count(),
    "sum": lambda flow: flow.sum(),
    "min": lambda flow: flow.min(),
    "max": lambda flow: flow.max(),
    "last": lambda flow: flow.last(),
    "single": lambda flow: flow.take(1).single(),
    "element_at": lambda flow: flow.element_at(1),
    "any": lambda flow: flow.any(lambda x: x == 1),
    "all": lambda flow: flow.all(lambda x: x < 9),
    "reduce": lambda flow: flow.reduce(lambda one, other: one + other),
    "for_each": lambda flow: flow.for_each(lambda _: None),
    "for_each, concurrent": lambda flow: flow.for_each(asyncio.sleep, concurrency=2),
    "async for": lambda flow: iterate(flow),
    "stream": lambda flow: iterate(flow.stream()),
}


async def iterate(elements: Any) -> None:
    async for _ in elements:
        pass


SOURCES: dict[str, Callable[[], Flow[int]]] = {
    "pulled": lambda: r.range(3),
    "pushed": lambda: r.range(3).boundary(2),
    "awaited": lambda: r.from_aiter(lambda: asynchronous(3)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", TERMINAL)
async def test_a_flow_that_a_terminal_operator_reads_to_its_end_has_completed(
    name: str, source: str
) -> None:
    flow = SOURCES[source]().name(name)
    await TERMINAL[name](flow)
    stats = flow.stats()
    assert (stats.started, stats.completed, stats.cancelled) == (1, 1, 0)


async def test_a_flow_that_first_leaves_was_cancelled() -> None:
    flow = r.range(3).boundary(2).name("first")
    await flow.first()
    assert (flow.stats().completed, flow.stats().cancelled) == (0, 1)


STAGES: Mapping[str, Callable[[Flow[int], int], Flow[Any]]] = {
    "map": lambda flow, _: flow.map(abs),
    "filter": lambda flow, n: flow.filter(lambda x: x % 3 != n % 3),
    "take": lambda flow, n: flow.take(n),
    "skip": lambda flow, n: flow.skip(n),
    "take_while": lambda flow, n: flow.take_while(lambda x: x < n),
    "flat_map": lambda flow, n: flow.flat_map(lambda x: [x] * (x % 3)),
    "take_last": lambda flow, n: flow.take_last(n + 1),
    "fails": lambda flow, n: flow.map(fails_at(n)),
    "map_async": lambda flow, _: flow.map_async(at_once),
    "boundary": lambda flow, n: flow.boundary(n + 1),
    "start_with": lambda flow, n: flow.start_with(n),
}


async def at_once(x: int) -> int:
    return x


@given(
    source=st.sampled_from(["range", "generator", "list", "awaited"]),
    stages=st.lists(st.tuples(st.sampled_from([*STAGES]), st.integers(0, 40)), max_size=4),
    requests=st.lists(st.integers(1, 50), max_size=5),
    is_bulk=st.booleans(),
    is_run=st.booleans(),
)
async def test_it_is_exact_wherever_a_flow_ends(
    source: str,
    stages: list[tuple[str, int]],
    requests: list[int],
    is_bulk: bool,
    is_run: bool,
) -> None:
    """Whatever ends it, and whether it delivers to a queue, a run, or a subscriber."""
    flow: Flow[Any] = {
        "range": r.range(60),
        "generator": r.from_iterable(Numbers(60)),
        "list": r.from_iterable([*range(60)]),
        "awaited": r.from_aiter(lambda: asynchronous(60)),
    }[source]
    for name, n in stages:
        flow = STAGES[name](flow, n)
    seen: list[Any] = []
    name = f"{source} {stages}"
    named = flow.name(name).do_on_next(seen.append)
    before = r.just(1).name(name).stats().delivered
    received = await (received_by_run if is_run else received_by_probe)(
        named.boundary(7) if is_bulk else named, requests
    )
    stats = r.just(1).name(name).stats()
    assert not stats.subscriptions
    assert stats.delivered - before in (len(seen), len(seen) - is_bulk)
    if not is_bulk:  # the last one may have passed both, and not have been requested
        assert received in (len(seen), len(seen) - 1)


async def received_by_run(flow: Flow[Any], requests: list[int]) -> int:
    run = flow.running()
    with suppress(OSError):
        async with run:
            for _ in range(sum(requests)):
                await asyncio.sleep(0)
    return run.delivered


async def received_by_probe(flow: Flow[Any], requests: list[int]) -> int:
    probe = SubscriberProbe[Any](3).subscribed_to(flow)
    for n in requests:
        await asyncio.sleep(0.01)
        probe.request(n)
    await asyncio.sleep(0.01)
    probe.cancel()
    await asyncio.sleep(1)
    return len(probe.elements)


async def test_it_is_exact_after_a_cancellation() -> None:
    flow = r.interval(1).name("ticks")
    for _ in range(3):
        async with flow.running() as run:
            await asyncio.sleep(4.5)
            assert flow.stats().delivered % 4 == 0
        assert run.delivered == 4
    assert (flow.stats().delivered, flow.stats().cancelled) == (12, 3)


@pytest.mark.parametrize("concat", [r.concat, r.zip, r.merge])
async def test_a_flow_that_an_operator_reads_is_counted(concat: Callable[..., Flow[Any]]) -> None:
    flow = r.range(10).name("numbers")
    await concat(flow, flow).run()
    assert (flow.stats().started, flow.stats().delivered) == (2, 20)


async def test_it_counts_what_has_passed_the_name_and_not_what_follows_it() -> None:
    flow = r.range(10).name("numbers")
    await flow.filter(lambda x: x > 6).boundary(3).run()
    assert flow.stats().delivered == 10


class TestDrops:
    async def test_those_of_each_flow_are_its_own(self) -> None:
        def source(capacity: int) -> Flow[Any]:
            return r.interval(1).on_backpressure_buffer(capacity, overflow="drop_oldest")

        one, other = source(2).name("one"), source(5).boundary(1).name("other")
        probes = [SubscriberProbe[Any](1).subscribed_to(each) for each in (one, other)]
        await asyncio.sleep(10.5)
        key = "on_backpressure_buffer: drop_oldest"
        assert one.stats().dropped == {key: 7}
        assert other.stats().dropped == {key: 3}
        for probe in probes:
            probe.cancel()
        gc.collect()
        assert one.stats().dropped == {key: 7}, "also when its counter is freed"
        again = SubscriberProbe[Any](1).subscribed_to(one)
        await asyncio.sleep(4.5)
        again.cancel()
        assert one.stats().dropped == {key: 8}

    async def test_those_of_operators_after_the_name_are_not_counted(self) -> None:
        flow = r.interval(1).name("before")
        probe = SubscriberProbe[Any](1).subscribed_to(flow.on_backpressure_drop())
        await asyncio.sleep(5.5)
        probe.cancel()
        assert flow.stats().dropped == {}

    async def test_those_of_flows_that_it_makes_are_counted(self) -> None:
        def inner(_: int) -> Flow[Any]:
            return r.interval(0.1).debounce(1).timeout(2).on_error_complete()

        flow = r.range(3).flat_map(inner).name("made")
        await flow.run()
        [(what, count)] = flow.stats().dropped.items()
        assert what == "debounce"
        assert count > 30

    async def test_those_of_a_shared_flow_are_those_of_the_flow_with_its_name(self) -> None:
        flow = r.interval(1).name("ticks")
        shared = flow.share(capacity=1, overflow="drop_oldest")
        slow = SubscriberProbe[int](1).subscribed_to(shared)
        reader = SubscriberProbe[int](9).subscribed_to(shared)
        await asyncio.sleep(4.5)
        assert flow.stats().dropped == {"share: drop_oldest": 2}
        for probe in (slow, reader):
            probe.cancel()

    async def test_ticks_without_demand_are_lost_by_the_flow(self) -> None:
        flow = r.interval(1).name("ticks")
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await asyncio.sleep(5)
        probe.request(1)
        probe.cancel()
        assert flow.stats().dropped == {"interval": 3}


class TestTurns:
    @pytest.fixture
    def slow_clock(self) -> Iterator[None]:
        """Each look at the clock of time slices finds it a millisecond later."""
        now = count(0, 0.001)
        before = set_clock(lambda: next(now))
        yield
        set_clock(before)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: r.range(2000),
            lambda: r.range(2000).map_async(itself),
            lambda: r.range(2000).map(abs).boundary(500),
        ],
        ids=["pulled", "in a task", "upstream of a boundary"],
    )
    @pytest.mark.usefixtures("slow_clock")
    async def test_time_slices_that_are_used_up_are_counted(
        self, make: Callable[[], Flow[int]]
    ) -> None:
        flow = make().name("busy")
        await SubscriberProbe[int](1 << 62).subscribed_to(flow).end()
        assert flow.stats().turns >= 3
        assert f"{flow.stats().turns} times busy for 2 ms" in observe.report()

    async def test_a_short_flow_uses_up_none(self) -> None:
        flow = r.range(9).name("short")
        await SubscriberProbe[int](1 << 62).subscribed_to(flow).end()
        assert flow.stats().turns == 0


class TestRetries:
    async def test_a_subscription_that_is_tried_again_has_a_last_error(self) -> None:
        flow = r.range(9).map(fails_at(3)).retry(EVERY_SECOND).name("again")
        async with flow.running():
            await asyncio.sleep(4.5)
            stats = flow.stats()
        assert stats.retries == 5
        assert stats.failed == 0
        error, trail, element = stats.last_error.splitlines()[:3]
        assert error == "OSError: lost (and was tried again)"
        assert trail.startswith("in the flow: range(0, 9) → >>map(")
        assert "<< → retry(" in trail
        assert trail.endswith(" → name('again')")
        assert element == "    with the element 3"
        assert flow.stats().retries == 5, "after the end"

    async def test_the_work_on_an_element_is_counted(self) -> None:
        failures = [OSError("one"), OSError("two")]

        async def save(x: int) -> int:
            if failures:
                raise failures.pop()
            return x

        for flow in (
            r.range(3).map_async(save, retry=5).name("one by one"),
            r.range(3).map_async(save, retry=5, concurrency=2).name("pool"),
        ):
            failures = [OSError("one"), OSError("two")]
            await flow.run()
            assert flow.stats().retries == 2
            assert flow.stats().last_error.startswith("OSError: one (and was tried again)")

    async def test_a_delivery_that_is_made_again_is_counted(self) -> None:
        failures = [OSError("once")]

        def work(x: int) -> int:
            if failures:
                raise failures.pop()
            return x

        flow = deliveries(r.range(2), lambda _: None).nack_on_error(EVERY_SECOND).map(work)
        named = flow.ack_after(lambda _: None).name("orders")
        await named.run()
        assert named.stats().retries == 1

    async def test_one_without_a_name_is_counted_nowhere(self) -> None:
        named = r.just(1).name("another")
        await r.range(9).map(fails_at(3)).retry(2).on_error_complete().run()
        assert named.stats().retries == 0


class TestOldest:
    async def test_it_is_measured_from_the_first_look_that_has_seen_it(self) -> None:
        hub = r.UnicastProcessor[int](capacity=99)
        flow = hub.name("hub")
        probe = SubscriberProbe[int](1).subscribed_to(flow)

        def oldest() -> float | None:
            [subscription] = flow.stats().subscriptions
            assert subscription.oldest == subscription.parts[0].oldest
            return subscription.oldest

        assert oldest() is None
        for i in range(4):
            hub.try_emit(i)  # the first of them is delivered
        await asyncio.sleep(5)
        assert oldest() == 0, "it may have arrived just now"
        await asyncio.sleep(2)
        hub.try_emit(4)
        assert oldest() == 2
        probe.request(3)
        assert oldest() == 0, "that of 4, which the look before has seen"
        await asyncio.sleep(3)
        assert oldest() == 3
        probe.request(9)
        assert oldest() is None
        probe.cancel()

    async def test_a_queue_that_flows_holds_nothing_old(self) -> None:
        async def work(x: int) -> int:
            await asyncio.sleep(1)
            return x

        flow = r.range(10_000).boundary(4).map_async(work).name("flows")
        async with flow.running():
            for _ in range(100):
                await asyncio.sleep(1)
                [subscription] = flow.stats().subscriptions
                assert (subscription.oldest or 0) <= 5

    async def test_a_call_that_is_stuck_is_found_although_others_overtake_it(self) -> None:
        async def work(x: int) -> int:
            await asyncio.sleep(1000 if x == 5 else 1)
            return x

        source = r.interval(1).boundary(9)
        flow = source.map_async(work, concurrency=4, ordered=False).name("stuck")
        async with flow.running() as run:
            for _ in range(300):
                await asyncio.sleep(1)
                flow.stats()
            [subscription] = flow.stats().subscriptions
            pool, boundary, _ = subscription.parts
        assert run.delivered > 250
        assert subscription.oldest == pool.oldest
        assert 290 < (pool.oldest or 0) < 300
        assert (boundary.oldest or 0) < 5

    async def test_so_is_a_delivery_that_is_not_settled(self) -> None:
        flow = deliveries(r.interval(1), lambda _: None).as_flow().name("orders")
        async with flow.running(lambda each: None if each.value == 5 else each.ack()):
            for _ in range(100):
                await asyncio.sleep(1)
                flow.stats()
            [subscription] = flow.stats().subscriptions
        assert any((part.oldest or 0) > 90 for part in subscription.parts)

    async def test_what_an_operator_combines_has_no_age(self) -> None:
        """How many tuples it has emitted does not say which of its elements have left."""
        flow = r.zip(r.range(9), r.never()).name("pairs")
        async with flow.running():
            for _ in range(3):
                await asyncio.sleep(1)
                [pairs, *_] = flow.stats().subscriptions[0].parts
                assert (pairs.held > 0, pairs.oldest) == (True, None)

    async def test_a_worker_that_waits_for_an_element_holds_nothing_old(self) -> None:
        orders = asyncio.Queue[int]()

        async def work(x: int) -> int:
            await asyncio.sleep(1)
            return x

        flow = r.from_queue(orders).map_async(work, concurrency=4).name("waits")
        async with flow.running():
            for x in range(8):
                orders.put_nowait(x)
            for _ in range(10):
                await asyncio.sleep(1)
                flow.stats()
            [pool, *_] = flow.stats().subscriptions[0].parts
            assert (pool.calls, pool.oldest) == (0, None)

    async def test_what_is_dropped_is_not_old(self) -> None:
        flow = r.interval(1).on_backpressure_buffer(3, overflow="drop_oldest").name("newest")
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        for _ in range(50):
            await asyncio.sleep(1)
            [subscription] = flow.stats().subscriptions
            assert (subscription.oldest or 0) <= 3
        probe.cancel()
        flow = r.interval(1).on_backpressure_buffer(3, overflow="drop_newest").name("oldest")
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        for second in range(50):
            await asyncio.sleep(1)
            [subscription] = flow.stats().subscriptions
            assert (subscription.oldest or 0) > second - 5
        probe.cancel()

    async def test_the_doctor_looks_as_well(self) -> None:
        from reactive_aio import observe

        hub = r.UnicastProcessor[int](capacity=9)
        probe = SubscriberProbe[int](1).subscribed_to(flow := hub.name("hub"))
        hub.try_emit(1)
        hub.try_emit(2)
        async with observe.watch(stall=100, block=None, on_signal=None):
            await asyncio.sleep(90)
            [subscription] = flow.stats().subscriptions
        assert subscription.oldest == 90
        probe.cancel()
