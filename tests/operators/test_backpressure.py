"""boundary, and on_backpressure_*: demand upstream, bounded queues, reported drops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import Overflow
from reactive_aio.spec import Publisher
from reactive_aio.stage import from_async, from_pull
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.harness.one_run import in_one_run

UNBOUNDED = 2**63 - 1
Operator = Callable[[Flow[int]], Flow[int]]

EACH: dict[str, Operator] = {
    "on_backpressure_buffer": lambda f: f.on_backpressure_buffer(3),
    "on_backpressure_drop": lambda f: f.on_backpressure_drop(),
    "on_backpressure_latest": lambda f: f.on_backpressure_latest(),
}
EVERY = pytest.mark.parametrize("operator", EACH.values(), ids=EACH.keys())


def failing_without_demand(flow: Flow[int]) -> Flow[int]:
    return flow.on_backpressure_error()


def each_alone(operator: Operator) -> Callable[[int], Publisher[Any]]:
    """One element at a time, so that even a slow subscriber misses none."""
    return lambda n: r.range(n).flat_map(lambda x: operator(r.just(x)), concurrency=1)


def failed(operator: Operator) -> Publisher[int]:
    return operator(r.error(OSError("no")))


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


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "boundary": lambda n: r.range(n).boundary(),
    "boundary: of one": lambda n: r.range(n).boundary(1),
    "boundary: refilled late": lambda n: r.range(n).boundary(5, refill=1.0),
    "boundary: refilled early": lambda n: r.range(n).boundary(5, refill=0.01),
    "boundary: of an asynchronous source": lambda n: from_async(
        lambda: counting(n), name="counting"
    ).boundary(3),
    "boundary: around a task": lambda n: r.range(n).boundary(2).map_async(itself).boundary(2),
    "boundary: three in a row": lambda n: r.range(n).boundary(2).boundary(1).boundary(5),
    "boundary: before a stage that drops": lambda n: (
        r.range(2 * n).boundary(3).filter(lambda x: x % 2)
    ),
    "on_backpressure_buffer": lambda n: r.range(n).on_backpressure_buffer(max(n, 1)),
    "on_backpressure_buffer: over a boundary": lambda n: (
        r.range(n).boundary(2).on_backpressure_buffer(max(n, 1))
    ),
    "limit_rate": lambda n: r.range(n).limit_rate(3),
    "limit_rate: of one": lambda n: from_async(lambda: counting(n), name="counting").limit_rate(1),
    "on_backpressure_error": each_alone(failing_without_demand),
    "on_backpressure_drop": each_alone(EACH["on_backpressure_drop"]),
    "on_backpressure_latest": each_alone(EACH["on_backpressure_latest"]),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "boundary": lambda: from_pull(failing, name="failing").boundary(4),
    "limit_rate": lambda: from_pull(failing, name="failing").limit_rate(4),
    "on_backpressure_error": partial(failed, failing_without_demand),
    **{name: partial(failed, operator) for name, operator in EACH.items()},
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "boundary": lambda: r.range(1 << 62).boundary(4),
    "limit_rate": lambda: r.range(1 << 62).limit_rate(4),
    "on_backpressure_drop": lambda: r.generate(lambda n: (n, n + 1), 0).on_backpressure_drop(),
    "on_backpressure_latest": lambda: r.generate(lambda n: (n, n + 1), 0).on_backpressure_latest(),
}

IDENTITIES: Identities = {
    "boundary": lambda up: up.boundary(2),
    "boundary: of one": lambda up: up.boundary(1),
    "boundary: between stages": lambda up: (
        up.map(lambda x: x).boundary(2).filter(lambda _: True).map_async(itself)
    ),
    "limit_rate": lambda up: up.limit_rate(1),
    "limit_rate: many": lambda up: up.limit_rate(1000, 1),
    "on_backpressure_buffer": lambda up: up.on_backpressure_buffer(1000),
}
NO_IDENTITY = {
    "on_backpressure_drop": "it drops elements without demand",
    "on_backpressure_latest": "it drops elements without demand",
    "on_backpressure_error": "it fails when an element arrives without demand",
}


async def turns(n: int = 10) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


async def started(flow: Flow[int], demand: int) -> SubscriberProbe[int]:
    """Subscribe, and let the loop run until upstream has demand."""
    probe = SubscriberProbe[int](demand).subscribed_to(flow)
    await asyncio.sleep(0)
    return probe


async def foreign_has_demand(foreign: PublisherProbe[int]) -> None:
    """Let the loop run until a terminal operator has subscribed and requested."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert foreign.requested


class TestBoundary:
    @in_one_run
    @pytest.mark.parametrize("capacity", [1, 2, 3, 4, 5, 8])
    @pytest.mark.parametrize("first", [1, 2, 5])
    @pytest.mark.parametrize("then", [1, 4, 5, 7])
    async def test_no_combination_of_capacity_and_demand_stalls(
        self, capacity: int, first: int, then: int
    ) -> None:
        """3.8: lent elements count as held only until they have been processed."""
        for made in (r.range(40), from_async(lambda: counting(40), name="counting")):
            subscriber = SubscriberProbe[int](first).subscribed_to(made.boundary(capacity))
            await asyncio.wait_for(subscriber.wait_for_signals(first), 5)
            subscriber.request(then)
            await asyncio.wait_for(subscriber.wait_for_signals(first + then), 5)
            assert subscriber.signals == list(range(first + then))
            subscriber.cancel()
            await turns()

    @pytest.mark.parametrize("capacity", [1, 3, 10])
    async def test_upstream_is_never_further_ahead_than_the_capacity(self, capacity: int) -> None:
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

    async def test_the_capacity_is_requested_and_then_what_was_consumed(self) -> None:
        """Demand: batched (*capacity*, refill at *refill* of it)."""
        publisher = PublisherProbe[int]()
        subscriber = SubscriberProbe[int]().subscribed_to(r.from_publisher(publisher).boundary(4))
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

    async def test_an_empty_source_completes_at_once_and_one_that_cannot_open_fails(self) -> None:
        """1.5, 1.4: the source ends during `subscribe`."""

        def cannot() -> Iterator[int]:
            raise OSError("closed")

        done = SubscriberProbe[int](1).subscribed_to(r.empty().boundary(2))
        assert await done.end() == ["|"]
        failed = SubscriberProbe[int](1).subscribed_to(from_pull(cannot, name="shop").boundary(2))
        assert isinstance((await failed.end())[0], OSError)

    @pytest.mark.parametrize("capacity", [0, -1, True, 1.5, None, "4"])
    def test_a_wrong_capacity_is_refused_at_assembly(self, capacity: Any) -> None:
        with pytest.raises((ValueError, TypeError), match=r"boundary: capacity must be"):
            r.range(3).boundary(capacity)

    @pytest.mark.parametrize("refill", [0, -0.5, 1.01, float("nan")])
    def test_a_wrong_refill_is_refused_at_assembly(self, refill: float) -> None:
        with pytest.raises(ValueError, match="boundary: refill must be"):
            r.range(3).boundary(4, refill=refill)


class TestAll:
    @EVERY
    async def test_everything_is_requested_of_upstream_after_the_first_request(
        self, operator: Operator
    ) -> None:
        foreign = PublisherProbe[int]()
        probe = await started(operator(r.defer(lambda: foreign)), 0)
        assert foreign.requested == 0
        probe.request(1)
        await asyncio.sleep(0)
        assert foreign.requested >= 256
        probe.cancel()
        assert foreign.cancel_count == 1

    @EVERY
    async def test_a_failure_follows_the_elements_held(self, operator: Operator) -> None:
        source = r.range(3).map(lambda x: 2 // (2 - x))
        probe = await started(operator(source), 1)
        probe.request(9)
        assert probe.elements[0] == 1
        assert isinstance(probe.error, ZeroDivisionError)


class TestBuffer:
    async def test_the_capacity_is_exact(self) -> None:
        flow = r.range(4).on_backpressure_buffer(3)
        assert flow.bound().total == 3
        probe = await started(flow, 1)
        probe.request(9)
        assert probe.signals == [0, 1, 2, 3, "|"]

    async def test_one_more_element_fails_after_the_elements_held(self) -> None:
        foreign = PublisherProbe[int]()
        probe = await started(r.from_publisher(foreign).on_backpressure_buffer(3), 1)
        foreign.emit(*range(5))
        assert foreign.cancel_count == 1
        probe.request(9)
        assert probe.elements == [0, 1, 2, 3]
        assert isinstance(probe.error, Overflow)

    @pytest.mark.parametrize(
        ("overflow", "left", "lost"),
        [
            ("drop_newest", [0, 1, 2], [3, 4]),
            ("drop_oldest", [0, 3, 4], [1, 2]),
            ("latest", [0, 4], [1, 2, 3]),
        ],
    )
    async def test_on_drop_receives_the_dropped_elements(
        self, overflow: Any, left: list[int], lost: list[int]
    ) -> None:
        dropped: list[int] = []
        flow = r.range(5).on_backpressure_buffer(2, overflow=overflow, on_drop=dropped.append)
        probe = await started(flow, 1)
        probe.request(9)
        assert (probe.elements, dropped) == (left, lost)

    @pytest.mark.parametrize(
        ("capacity", "overflow", "message"),
        [
            (0, "fail", "capacity must be"),
            (None, "fail", "capacity must be"),
            (2, "wait", "boundary"),
            (2, "drop", "overflow must be one of"),
        ],
    )
    def test_bad_arguments_are_refused_at_once(
        self, capacity: Any, overflow: Any, message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            r.range(3).on_backpressure_buffer(capacity, overflow=overflow)


class TestDrop:
    async def test_elements_without_demand_are_dropped_and_reported(self) -> None:
        foreign, dropped = PublisherProbe[int](), list[int]()
        flow = r.from_publisher(foreign).on_backpressure_drop(on_drop=dropped.append)
        probe = await started(flow, 1)
        foreign.emit(0, 1, 2)
        probe.request(2)
        foreign.emit(3, 4, 5)
        foreign.complete()
        assert (probe.signals, dropped) == ([0, 3, 4, "|"], [1, 2, 5])

    async def test_of_elements_that_arrive_together_those_without_demand_are_dropped(self) -> None:
        async def burst() -> AsyncIterator[int]:
            for number in range(5):
                yield number
            await asyncio.Event().wait()

        dropped: list[int] = []
        flow = r.from_aiter(burst).on_backpressure_drop(on_drop=dropped.append)
        probe = await started(flow, 2)
        await probe.wait_until(lambda: len(dropped) == 3)
        assert (probe.elements, dropped) == ([0, 1], [2, 3, 4])
        probe.cancel()

    async def test_an_on_drop_that_raises_fails_the_flow(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign).on_backpressure_drop(on_drop=lambda x: x // 0)
        probe = await started(flow, 1)
        foreign.emit(0, 1)
        assert isinstance(probe.error, ZeroDivisionError)
        assert foreign.cancel_count == 1

    def test_on_drop_must_be_a_function(self) -> None:
        with pytest.raises(TypeError, match="on_drop"):
            r.range(3).on_backpressure_drop(on_drop=cast("Any", 5))

    async def test_on_drop_is_not_awaited(self) -> None:
        async def on_drop(_: int) -> None: ...

        with pytest.raises(TypeError, match="on_backpressure_drop: on_drop must be a plain functi"):
            r.range(3).on_backpressure_drop(on_drop=on_drop)
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign).on_backpressure_drop(on_drop=lambda x: on_drop(x))
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await asyncio.sleep(0)
        foreign.emit(1, 2)
        await probe.end()
        assert "on_backpressure_drop: " in str(probe.error)
        assert "which nothing would await" in str(probe.error)


class TestLatest:
    async def test_the_latest_waits_for_the_next_request(self) -> None:
        foreign, dropped = PublisherProbe[int](), list[int]()
        flow = r.from_publisher(foreign).on_backpressure_latest(on_drop=dropped.append)
        probe = await started(flow, 1)
        foreign.emit(0, 1, 2, 3)
        probe.request(5)
        foreign.emit(4)
        assert (probe.signals, dropped) == ([0, 3, 4], [1, 2])

    async def test_a_slow_subscriber_with_unbounded_demand_gets_the_latest(self) -> None:
        seen: list[int] = []
        foreign = PublisherProbe[int]()

        async def slow(x: int) -> None:
            seen.append(x)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        flow = r.from_publisher(foreign).on_backpressure_latest()
        task = asyncio.ensure_future(flow.for_each(slow))
        await foreign_has_demand(foreign)
        foreign.emit(*range(50))
        foreign.complete()
        await task
        assert seen[-1] == 49
        assert len(seen) <= 3

    async def test_a_function_that_returns_an_awaitable_gets_the_latest_after_it(self) -> None:
        foreign, going_on = PublisherProbe[int](), asyncio.Event()
        seen, done = list[int](), asyncio.Event()

        class Waiting:
            def on_subscribe(self, subscription: r.Subscription) -> None:
                subscription.request(2**63 - 1)

            def on_next(self, element: int) -> object:
                seen.append(element)
                return going_on.wait() if element == 2 else None

            def on_error(self, error: BaseException) -> None:
                raise error

            def on_complete(self) -> None:
                done.set()

        r.from_publisher(foreign).on_backpressure_latest().subscribe(cast("Any", Waiting()))
        await foreign_has_demand(foreign)
        foreign.emit(*range(9))
        going_on.set()
        await asyncio.sleep(0)
        foreign.complete()
        await done.wait()
        assert seen == [0, 1, 2, 8]


@pytest.mark.parametrize("capacity", [1, 3, 10])
async def test_nothing_is_pulled_after_an_overflow(capacity: int) -> None:
    """The current batch stops at once: further elements of it would be lost silently."""
    pulled: list[int] = []
    flow = r.range(1000).do_on_next(pulled.append).on_backpressure_buffer(capacity)
    probe = SubscriberProbe[int](1).subscribed_to(flow)
    await probe.wait_for_signals(1)
    await asyncio.sleep(0)
    probe.request(1000)
    assert isinstance((await probe.end())[-1], Overflow)
    assert len(pulled) == len(probe.elements) + 1, "the one that did not fit, and none after it"


class TestError:
    async def test_an_element_without_demand_fails_the_flow(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign).on_backpressure_error()
        probe = await started(flow, 2)
        foreign.emit(1, 2)
        assert probe.signals == [1, 2]
        foreign.emit(3)
        await probe.end()
        assert probe.elements == [1, 2]
        assert isinstance(probe.error, Overflow)
        assert "on_backpressure_error" in str(probe.error)
        assert foreign.cancel_count == 1


class TestLimitRate:
    async def test_requests_are_of_a_size_and_follow_what_was_processed(self) -> None:
        foreign = PublisherProbe[int]()
        requests: list[int] = []
        source = r.from_publisher(foreign).do_on_request(requests.append)
        probe = SubscriberProbe[int](100).subscribed_to(source.limit_rate(8, 6))
        assert requests == [8]
        foreign.emit(*range(5))
        assert requests == [8]
        foreign.emit(5)
        assert requests == [8, 6]
        foreign.emit(*range(6, 14))
        assert requests == [8, 6, 6]
        assert probe.elements == [*range(14)]
        probe.cancel()

    @in_one_run
    @pytest.mark.parametrize("high", [1, 2, 3, 8])
    @pytest.mark.parametrize("low", [1, 2])
    @pytest.mark.parametrize("steps", [[1, 1, 1], [2, 5], [7], [1, 9, 3]])
    async def test_no_demand_stalls(self, high: int, low: int, steps: list[int]) -> None:
        made = from_async(lambda: counting(40), name="counting")
        for source in (r.range(40), made):
            flow = source.limit_rate(high, min(low, high))
            subscriber = SubscriberProbe[int]().subscribed_to(flow)
            total = 0
            for n in steps:
                total += n
                subscriber.request(n)
                await asyncio.wait_for(subscriber.wait_for_signals(total), 5)
            assert subscriber.signals == [*range(total)]
            subscriber.cancel()
            await turns()

    async def test_a_slow_subscriber_does_not_cause_more_requests(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign).limit_rate(4)
        probe = AsyncSubscriberProbe[int](UNBOUNDED, turns=8).subscribed_to(flow)
        await turns(20)
        foreign.emit(*range(4))
        await turns(5)
        assert foreign.requested == 4, "the first one is still being processed"
        await turns(60)
        assert foreign.requested == 8
        probe.cancel()
        await turns(20)

    def test_options_are_checked(self) -> None:
        with pytest.raises(ValueError, match="limit_rate: high must be at least 1"):
            r.just(1).limit_rate(0)
        with pytest.raises(ValueError, match="low must be at most high"):
            r.just(1).limit_rate(2, 3)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Wait, or work concurrently": {
        "let source and consumer run at the same time": "boundary",
    },
    "Backpressure": {
        "read ahead, up to a bound": "boundary",
        "request less at a time": "limit_rate",
        "buffer what arrives without demand": "on_backpressure_buffer",
        "drop what arrives without demand": "on_backpressure_drop",
        "keep only the latest": "on_backpressure_latest",
        "fail when the consumer is too slow": "on_backpressure_error",
    },
}


async def example_boundary() -> None:
    squares = r.range(1_000_000).map(lambda n: n * n).boundary(32)
    print(await squares.take(3).to_list())
    print(squares.bound())


async def example_limit_rate() -> None:
    rows = r.range(20).do_on_request(lambda n: print("requested:", n)).limit_rate(10)
    print(await rows.count(), "rows")


async def example_on_backpressure_buffer() -> None:
    ticks = r.interval(0.03).take(9).on_backpressure_buffer(2, overflow="drop_oldest")
    print(await ticks.delay(0.1, capacity=1).to_list())  # one element each 0.1 s


async def example_on_backpressure_drop() -> None:
    dropped: list[int] = []
    ticks = r.interval(0.03).take(9).on_backpressure_drop(on_drop=dropped.append)
    print(await ticks.delay(0.1, capacity=1).to_list())  # one element each 0.1 s
    print("dropped:", dropped)


async def example_on_backpressure_latest() -> None:
    ticks = r.interval(0.03).take(9).on_backpressure_latest()
    print(await ticks.delay(0.1, capacity=1).to_list())  # one element each 0.1 s


async def example_on_backpressure_error() -> None:
    ticks = r.interval(0.03).on_backpressure_error()
    try:
        await ticks.delay(0.1, capacity=1).run()  # one element each 0.1 s
    except Overflow:
        print("an element arrived without demand")
