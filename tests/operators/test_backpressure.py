"""on_backpressure_*: unbounded upstream demand, bounded buffers, reported drops."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import Overflow
from reactive_aio.spec import Publisher
from reactive_aio.testing import AsyncSubscriberProbe, PublisherProbe, SubscriberProbe
from tests.cases import Identities

Operator = Callable[[Flow[int]], Flow[int]]

EACH: dict[str, Operator] = {
    "on_backpressure_buffer": lambda f: f.on_backpressure_buffer(3),
    "on_backpressure_drop": lambda f: f.on_backpressure_drop(),
    "on_backpressure_latest": lambda f: f.on_backpressure_latest(),
}
EVERY = pytest.mark.parametrize("operator", EACH.values(), ids=EACH.keys())


def each_alone(operator: Operator) -> Callable[[int], Publisher[Any]]:
    """One element at a time, so that even a slow subscriber misses none."""
    return lambda n: r.range(n).flat_map(lambda x: operator(r.just(x)), concurrency=1)


def failed(operator: Operator) -> Publisher[int]:
    return operator(r.error(OSError("no")))


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "on_backpressure_buffer": lambda n: r.range(n).on_backpressure_buffer(max(n, 1)),
    "on_backpressure_buffer: over a boundary": lambda n: (
        r.range(n).boundary(2).on_backpressure_buffer(max(n, 1))
    ),
    "on_backpressure_drop": each_alone(EACH["on_backpressure_drop"]),
    "on_backpressure_latest": each_alone(EACH["on_backpressure_latest"]),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    **{name: partial(failed, operator) for name, operator in EACH.items()},
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "on_backpressure_drop": lambda: r.generate(lambda n: (n, n + 1), 0).on_backpressure_drop(),
    "on_backpressure_latest": lambda: r.generate(lambda n: (n, n + 1), 0).on_backpressure_latest(),
}

IDENTITIES: Identities = {
    "on_backpressure_buffer": lambda up: up.on_backpressure_buffer(1000),
}
NO_IDENTITY = {
    "on_backpressure_drop": "it drops elements without demand",
    "on_backpressure_latest": "it drops elements without demand",
}


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
    async def test_elements_with_demand_are_passed_on(self, operator: Operator) -> None:
        probe = await started(operator(r.range(3)), 3)
        assert probe.signals == [0, 1, 2, "|"]

    @EVERY
    async def test_an_empty_source_completes(self, operator: Operator) -> None:
        assert (await started(operator(r.empty()), 1)).signals == ["|"]

    @EVERY
    async def test_a_failure_follows_the_elements_held(self, operator: Operator) -> None:
        source = r.range(3).map(lambda x: 2 // (2 - x))
        probe = await started(operator(source), 1)
        probe.request(9)
        assert probe.elements[0] == 1
        assert isinstance(probe.error, ZeroDivisionError)

    @EVERY
    async def test_it_may_be_subscribed_to_again(self, operator: Operator) -> None:
        flow = operator(r.range(2))
        for _ in range(2):
            assert (await started(flow, 5)).signals == [0, 1, "|"]

    @EVERY
    async def test_an_endless_source_and_a_slow_subscriber_stay_within_the_capacity(
        self, operator: Operator
    ) -> None:
        source = r.generate(lambda n: (n, n + 1), 0)
        flow = operator(source.take(5000))
        probe = AsyncSubscriberProbe[int](2**63, turns=2).subscribed_to(flow)
        await probe.end()
        bound = flow.bound().total
        assert bound is not None
        assert len(probe.elements) <= bound + 2


class TestBuffer:
    async def test_elements_without_demand_wait(self) -> None:
        probe = await started(r.range(3).on_backpressure_buffer(3), 1)
        assert probe.signals == [0]
        probe.request(1)
        assert probe.signals == [0, 1]
        probe.request(1)
        assert probe.signals == [0, 1, 2, "|"]

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
