"""Processors read by ``async for``: what is emitted while the consumer is busy."""

import asyncio
from collections.abc import Callable
from typing import get_args

import pytest

from reactive_aio import MulticastProcessor, UnicastProcessor
from reactive_aio._core import time_slice
from reactive_aio._core.queues.bounded_queue import OverflowPolicy
from reactive_aio.processors.hot_processor import HotProcessor
from tests.harness.one_run import in_one_run
from tests.processors.test_fan_out import counted_calls

Kind = Callable[..., HotProcessor[int]]

KINDS: list[Kind] = [UnicastProcessor[int], MulticastProcessor[int]]
POLICIES: tuple[OverflowPolicy, ...] = get_args(OverflowPolicy)


@pytest.mark.parametrize("kind", KINDS)
class TestReading:
    @in_one_run
    @pytest.mark.parametrize("overflow", POLICIES)
    @pytest.mark.parametrize("capacity", [1, 3, 64])
    async def test_every_element_that_was_requested_is_read(
        self, kind: Kind, overflow: OverflowPolicy, capacity: int
    ) -> None:
        hot = kind(capacity, overflow=overflow)
        elements = aiter(hot.map(lambda x: x + 1))
        reading = asyncio.ensure_future(anext(elements))
        await asyncio.sleep(0)
        assert hot.try_emit(0)
        assert await reading == 1
        for _ in range(6):
            reading = asyncio.ensure_future(anext(elements))
            await asyncio.sleep(0)
            requested = hot.stats().requested
            assert requested >= 1
            assert all(hot.try_emit(x) for x in range(requested))
            assert await reading == 1
            assert [await anext(elements) for _ in range(requested - 1)] == [
                *range(2, requested + 1)
            ]
        assert not any(hot.stats().dropped.values())
        hot.complete()
        assert [x async for x in elements] == []

    async def test_the_end_follows_what_was_emitted(self, kind: Kind) -> None:
        hot = kind(8)
        elements = aiter(hot.map(lambda x: 12 // x))
        reading = asyncio.ensure_future(anext(elements))
        await asyncio.sleep(0)
        for x in (1, 2, 3):
            assert hot.try_emit(x)
        hot.complete()
        assert await reading == 12
        assert [x async for x in elements] == [6, 4]

    async def test_a_stage_fails_where_the_element_is_read(self, kind: Kind) -> None:
        hot = kind(8)
        elements = aiter(hot.map(lambda x: 12 // x))
        reading = asyncio.ensure_future(anext(elements))
        await asyncio.sleep(0)
        for x in (1, 2, 0, 3):
            hot.try_emit(x)
        assert await reading == 12
        assert await anext(elements) == 6
        with pytest.raises(ZeroDivisionError):
            await anext(elements)

    async def test_an_element_for_a_busy_consumer_costs_a_few_calls(
        self, kind: Kind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(time_slice, "_clock", lambda: 0.0)  # no slice ends on a busy machine
        hot = kind(256)
        async with hot.map(lambda x: x).stream(prefetch=256) as elements:
            reading = asyncio.ensure_future(anext(elements))
            await asyncio.sleep(0)
            hot.try_emit(-1)
            assert await reading == -1
            with counted_calls() as count:
                for x in range(200):
                    await hot.emit(x)
            # emit, is_running of the loop, try_push; every 64 emissions the clock is read.
            assert count[0] < 200 * 4
            assert [await anext(elements) for _ in range(200)] == [*range(200)]
