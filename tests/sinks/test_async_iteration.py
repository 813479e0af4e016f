"""``async for`` and ``stream``: demand, prefetch, one consumer. Leaving early: tests/contract."""

import asyncio
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.testing import PublisherProbe
from tests.cases import Sinks


async def iterate(flow: Flow[Any]) -> None:
    async for _ in flow:
        pass


async def stream(flow: Flow[Any]) -> None:
    async with flow.stream(prefetch=3) as elements:
        async for _ in elements:
            pass


SINKS: Sinks = {"async for": iterate, "stream": stream}


async def test_async_for_requests_one_element_at_a_time() -> None:
    foreign = PublisherProbe[int]()
    elements = aiter(r.from_publisher(foreign))
    first = asyncio.ensure_future(anext(elements))
    await asyncio.sleep(0)
    foreign.emit(1)
    assert await first == 1
    assert foreign.requests == [1]


async def test_stream_keeps_prefetch_elements_requested() -> None:
    foreign = PublisherProbe[int]()
    async with r.from_publisher(foreign).stream(prefetch=3) as elements:
        for number in range(2):
            next_element = asyncio.ensure_future(anext(elements))
            await asyncio.sleep(0)
            assert foreign.requested == number + 3
            foreign.emit(number)
            assert await next_element == number


async def test_the_element_of_an_iterator_without_references_is_received() -> None:
    foreign = PublisherProbe[int]()
    first = asyncio.ensure_future(anext(aiter(r.from_publisher(foreign).map(str))))
    await asyncio.sleep(0)
    foreign.emit(1)
    assert await first == "1"
    assert foreign.cancel_count == 1
    assert foreign.requests == [1]


async def test_an_iterator_without_references_is_cancelled_with_its_task() -> None:
    foreign = PublisherProbe[int]()
    first = asyncio.ensure_future(anext(aiter(r.from_publisher(foreign))))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert foreign.cancel_count == 1


async def test_a_stream_has_one_consumer() -> None:
    async with r.never().stream() as elements:
        waiting = asyncio.ensure_future(anext(elements))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one consumer"):
            await anext(elements)
        waiting.cancel()
