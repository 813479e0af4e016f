"""The value that a terminal operator waits for: demand, cancellation and cleanup."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

import reactive_aio as r
from reactive_aio._sinks.first_value import NOTHING, first_value

LOG = list[str]


def pulled(log: LOG, *, fails: bool = False) -> r.Flow[int]:
    def elements() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            log.append("closed")
            if fails:
                raise OSError("cleanup")

    return r.from_iterable(elements())


def awaited(log: LOG, *, fails: bool = False) -> r.Flow[int]:
    async def elements() -> AsyncIterator[int]:
        try:
            for x in range(9):
                await asyncio.sleep(0)
                yield x
        finally:
            await asyncio.sleep(0)
            log.append("closed")
            if fails:
                raise OSError("cleanup")

    return r.from_aiter(elements())


Source = Callable[..., r.Flow[int]]
SOURCES = pytest.mark.parametrize("source", [pulled, awaited])


@SOURCES
async def test_the_flow_has_cleaned_up_when_the_value_is_there(
    source: Source,
) -> None:
    log: LOG = []
    assert await first_value(source(log)) == 0
    assert log == ["closed"]


@pytest.mark.parametrize("flow", [r.empty(), r.empty().boundary(1)])
async def test_a_flow_without_elements_has_no_value(flow: r.Flow[int]) -> None:
    assert await first_value(flow) is NOTHING


@SOURCES
async def test_an_error_of_the_cleanup_names_the_value(
    source: Source,
) -> None:
    with pytest.raises(OSError, match="cleanup") as raised:
        await first_value(source([], fails=True))
    assert any("after the flow had a result: 0" in note for note in raised.value.__notes__)


async def test_a_cancelled_caller_waits_for_the_cleanup() -> None:
    log: LOG = []
    waiting = asyncio.ensure_future(first_value(awaited(log).filter(lambda _: False)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert log == ["closed"]
