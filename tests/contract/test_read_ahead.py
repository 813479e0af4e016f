"""A failure has its place behind elements: who leaves before has not reached it (decision 0008)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from tests.harness.one_run import in_one_run


class ReadAheadError(Exception):
    """Of a source, after the elements that a consumer takes."""


def failing() -> Iterator[int]:
    yield 0
    raise ReadAheadError


async def async_failing() -> AsyncIterator[int]:
    yield 0
    raise ReadAheadError


async def later(x: int) -> int:
    await asyncio.sleep(0)
    return x


FAILING: dict[str, Callable[[], Flow[int]]] = {
    "concat": lambda: r.range(1).concat_with(r.error(ReadAheadError())),
    "from_iterable": lambda: r.from_iterable(failing()),
    "from_aiter": lambda: r.from_aiter(async_failing),
    "from_aiter, map": lambda: r.from_aiter(async_failing).map(int),
    "from_thread": lambda: r.from_thread(failing),
}
READING_AHEAD: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "boundary": lambda flow: flow.boundary(4),
    "merge": lambda flow: flow.merge_with(r.never()),
    "zip": lambda flow: r.zip(flow, r.range(1)),
    "flat_map": lambda flow: r.just(flow).flat_map(lambda each: each),
    "switch_map": lambda flow: r.just(flow).switch_map(lambda each: each),
    "share": lambda flow: flow.share(),
    "share: grace": lambda flow: flow.share(grace=1),
    "replay": lambda flow: flow.replay(2),
    "on_backpressure_buffer": lambda flow: flow.on_backpressure_buffer(4),
    "buffer_timeout": lambda flow: flow.buffer_timeout(1, 1),
    "map_async": lambda flow: flow.map_async(later, concurrency=3),
}


KEEPING = ("share: grace", "replay")
"""Which keep their source when the consumer has left: it may fail later, which is reported."""


@in_one_run
@pytest.mark.parametrize("name", READING_AHEAD)
@pytest.mark.parametrize("source", FAILING.values(), ids=FAILING)
async def test_a_failure_behind_the_elements_taken_is_discarded(
    source: Callable[[], Flow[int]], name: str, expects_loop_errors: list[Any]
) -> None:
    read = READING_AHEAD[name]
    assert await read(source()).first() is not None
    assert len(await read(source()).take(1).to_list()) == 1
    if name in KEEPING:
        await asyncio.sleep(0.01)
        assert all(isinstance(each["exception"], ReadAheadError) for each in expects_loop_errors)
    else:
        assert expects_loop_errors == []
