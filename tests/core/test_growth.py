"""Flows of any length and depth: they work, or are refused where they are assembled."""

import gc
import linecache
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio._core.compiler.loop_compiler import compile_loop

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
