"""Flows of any length and depth: they work, or are refused where they are assembled."""

import asyncio
import gc
import linecache
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, MulticastProcessor
from reactive_aio._core.compiler.loops import compile_loop
from reactive_aio._core.queues.output_buffer import OutputBuffer
from reactive_aio.testing import SubscriberProbe

pytestmark = pytest.mark.slow

DEEP: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "map": lambda flow: flow.map(abs),
    "boundary": lambda flow: flow.boundary(1),
    "concat": lambda flow: flow.concat_with([]),
    "timeout": lambda flow: flow.timeout(60),
    "flat_map": lambda flow: flow.flat_map(lambda x: [x]),
}


def buffered(flow: Flow[Any]) -> Flow[Any]:
    return flow.buffer(2)


def deepened(flow: Flow[int], deepen: Callable[[Flow[Any]], Flow[Any]], count: int) -> Flow[Any]:
    for _ in range(count):
        flow = deepen(flow)
    return flow


@pytest.mark.parametrize("deepen", DEEP.values(), ids=DEEP.keys())
async def test_a_flow_of_many_operators(deepen: Callable[[Flow[int]], Flow[int]]) -> None:
    flow = deepened(r.range(3), deepen, 1200)
    assert await flow.to_list() == [0, 1, 2]
    assert len(repr(flow)) < 20_000
    assert len(str(flow.bound())) > 0


async def test_flows_that_are_nested_while_they_run() -> None:
    def nested(depth: int) -> Flow[int]:
        return r.just(depth).flat_map(lambda x: nested(x - 1) if x else [-1])

    assert await nested(1200).to_list() == [-1]


async def test_a_deep_flow_that_is_left_closes_its_source() -> None:
    closed: list[bool] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    flow = deepened(r.from_aiter(source), DEEP["boundary"], 1000)
    async with flow.stream() as elements:
        assert await anext(elements) == 1
    assert closed == [True]


async def test_many_operators_that_emit_at_the_end() -> None:
    flow = deepened(r.range(3), buffered, 100)
    assert await flow.count() == 1


def test_more_operators_than_a_loop_can_have_are_refused() -> None:
    async def source() -> AsyncIterator[int]:
        yield 1

    flow = r.from_aiter(source)
    with pytest.raises(ValueError, match=r"at most 1000 operators .*boundary\("):
        deepened(flow, DEEP["map"], 2000)
    with pytest.raises(ValueError, match=r"32 of which may emit"):
        deepened(flow, buffered, 40)


async def test_merging_many_sources_takes_linear_time() -> None:
    """Quadratic time would be minutes."""
    assert await r.merge(*([1] for _ in range(20_000))).count() == 20_000


SUBSCRIBERS, AT_A_TIME, ROUNDS = 100, 16, 10


async def emit_all(hub: MulticastProcessor[int]) -> None:
    for number in range(AT_A_TIME * ROUNDS):
        await hub.emit(number)


def feed(hub: MulticastProcessor[int]) -> Flow[int]:
    r.range(AT_A_TIME * ROUNDS).subscribe(hub)
    return hub


def emit_into(hub: MulticastProcessor[int]) -> Flow[int]:
    r.from_awaitable(lambda: emit_all(hub)).subscribe(SubscriberProbe(1))
    return hub


HOT: dict[str, Callable[[], Flow[int]]] = {
    "fed": lambda: feed(MulticastProcessor(64)),
    "emitted": lambda: emit_into(MulticastProcessor(64)),
    "share": lambda: r.range(AT_A_TIME * ROUNDS).share(capacity=64),
}


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """An entry for each look at the room of a subscriber."""
    rooms: list[None] = []
    room: Any = OutputBuffer.room

    def counted(output: OutputBuffer[Any]) -> int:
        rooms.append(None)
        return int(room.fget(output))

    monkeypatch.setattr(OutputBuffer, "room", property(counted))
    return rooms


@pytest.mark.virtual_time
@pytest.mark.parametrize("hot", HOT.values(), ids=HOT.keys())
async def test_a_request_does_not_cost_more_with_many_subscribers(
    hot: Callable[[], Flow[int]], rooms: list[None]
) -> None:
    flow = hot()
    probes = [SubscriberProbe[int](0).subscribed_to(flow) for _ in range(SUBSCRIBERS)]
    shuffled = Random(1)
    for _ in range(ROUNDS):
        for probe in shuffled.sample(probes, SUBSCRIBERS):
            probe.request(AT_A_TIME)
        await asyncio.sleep(1)
    assert all(probe.elements == [*range(AT_A_TIME * ROUNDS)] for probe in probes)
    assert len(rooms) < 3 * ROUNDS * AT_A_TIME * SUBSCRIBERS
    for probe in probes:
        probe.cancel()


def multicast_dropping(source: Flow[int]) -> Flow[int]:
    hub: MulticastProcessor[int] = MulticastProcessor(64, overflow="drop_oldest")
    source.subscribe(hub)
    return hub


MAY_DROP: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "MulticastProcessor": multicast_dropping,
    "share": lambda flow: flow.share(capacity=64, overflow="drop_oldest"),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("hot", MAY_DROP.values(), ids=MAY_DROP.keys())
async def test_a_request_of_a_slow_subscriber_looks_at_no_other(
    hot: Callable[[Flow[int]], Flow[int]], rooms: list[None]
) -> None:
    flow = hot(r.range(1000).concat_with(r.never()))
    slow = [SubscriberProbe[int](0).subscribed_to(flow) for _ in range(SUBSCRIBERS)]
    fast = SubscriberProbe[int](100).subscribed_to(flow)
    await asyncio.sleep(1)
    fast.cancel()  # the others hold all that they can
    rooms.clear()
    for probe in slow:
        probe.request(1)
    await asyncio.sleep(1)
    assert all(len(probe.elements) == 1 for probe in slow)
    assert len(rooms) < 3 * SUBSCRIBERS
    for probe in slow:
        probe.cancel()


def test_the_text_of_a_loop_goes_with_its_last_flow() -> None:
    def texts() -> set[str]:
        return {name for name in linecache.cache if name.startswith("<reactive_aio")}

    flow = r.range(3).skip(1).take(1).skip(1).take(1).skip(1).map(abs)
    before = texts()
    _ = flow.explain(code=True)
    assert len(texts() - before) == 1
    del flow
    compile_loop.cache_clear()
    gc.collect()
    assert not texts() - before
