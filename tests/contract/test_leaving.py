"""Leaving an async for closes upstream before the next statement."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from tests.contract.subscribers import (
    BOTH,
    SHAPES,
    Source,
    forever,
    tasks,
    turns,
)
from tests.harness.one_run import in_one_run

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
both = pytest.mark.parametrize("kind", BOTH)


# -- leaving an async for --------------------------------------------------------------------------
@in_one_run
@every_shape
@pytest.mark.parametrize("how", ["break", "exception", "return", "cancel", "aclose"])
async def test_leaving_a_loop_closes_upstream_before_the_next_statement(
    shape: Shape, how: str
) -> None:
    """Cleanup: for an asynchronous source, as soon as its own cleanup allows."""
    source = Source()
    closed: list[int] = []

    async def consume() -> None:
        try:
            if how == "return":
                await returning()
            elif how == "aclose":
                iterator: Any = shape(source).__aiter__()
                await iterator.__anext__()
                await iterator.aclose()
            else:
                async for number in shape(source):
                    if how == "exception":
                        raise KeyError(number)
                    if how == "cancel":
                        await asyncio.sleep(3600)
                    break
        except (KeyError, asyncio.CancelledError) as error:
            closed.append(source.closed)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            closed.append(source.closed)

    async def returning() -> None:
        async for _ in shape(source):
            return

    task = asyncio.create_task(consume())
    await turns(25)
    if how == "cancel":
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
    else:
        await task
    asynchronous = shape in (SHAPES["asynchronous"], SHAPES["mixed"])
    if not asynchronous or how == "aclose":
        assert closed == [1]
    await turns()
    assert source.closed == source.opened == 1
    assert tasks() == set()


@every_shape
async def test_cancelling_a_task_that_waits_for_an_element_closes_upstream(shape: Shape) -> None:
    """CancelledError is never swallowed."""
    source = Source(3)

    async def consume() -> None:
        async for _ in shape(source).map_async(forever):
            raise AssertionError("nothing ever comes")

    task = asyncio.create_task(consume())
    await turns(25)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await turns()
    assert source.closed == 1
    assert tasks() == set()


@every_shape
async def test_a_stream_waits_for_cleanup(shape: Shape) -> None:
    source = Source()
    async with shape(source).stream(prefetch=3) as elements:
        async for number in elements:
            if number == 4:
                break
    assert source.closed == 1
    assert tasks() == set()


@every_shape
async def test_a_timed_out_wait_loses_no_element(shape: Shape) -> None:
    """CancelledError of one `anext` is not the end of the stream."""
    gate = asyncio.Event()

    async def gated(x: int) -> int:
        if x == 1:
            await gate.wait()
        return x

    async with shape(Source(4)).map_async(gated).stream() as elements:
        assert await anext(elements) == 0
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(elements), 0.01)
        gate.set()
        assert [x async for x in elements] == [1, 2, 3]


class TestTheEnd:
    """What an operator cancelled cleans up before the consumer goes on, however the flow ends."""

    @staticmethod
    def slow_to_leave(log: list[str]) -> Flow[int]:
        async def numbers() -> AsyncIterator[int]:
            try:
                for n in count():
                    await asyncio.sleep(0)
                    yield n
            finally:
                for _ in range(3):
                    await asyncio.sleep(0)
                log.append("cleaned up")

        return r.from_aiter(numbers)

    @pytest.mark.parametrize("boundary", [False, True])
    async def test_a_completion_waits_for_the_cleanup_of_cancelled_upstreams(
        self, boundary: bool
    ) -> None:
        log: list[str] = []
        flow = self.slow_to_leave(log)
        async for _ in (flow.boundary(3) if boundary else flow).take(2):
            pass
        assert log == ["cleaned up"]

    async def test_a_failure_waits_for_the_cleanup_of_the_other_upstreams(self) -> None:
        log: list[str] = []
        failing: Flow[int] = self.slow_to_leave([]).take(3).concat_with(r.error(OSError("no")))
        with pytest.raises(OSError, match="no"):
            async for _ in r.merge(self.slow_to_leave(log), failing):
                pass
        assert log == ["cleaned up"]

    async def test_a_failure_waits_for_the_other_upstreams_in_an_awaited_sink(self) -> None:
        log: list[str] = []
        failing: Flow[int] = self.slow_to_leave([]).take(3).concat_with(r.error(OSError("no")))
        with pytest.raises(OSError, match="no"):
            await r.merge(self.slow_to_leave(log), failing).count()
        assert log == ["cleaned up"]
