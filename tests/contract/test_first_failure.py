"""One of several calls fails: the flow fails with that error itself, and the others are reported.

A time limit around a ``yield`` is named, too: it cancels whoever reads the generator.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import Interrupted
from reactive_aio.testing import SubscriberProbe

Call = Callable[[int], Awaitable[Any]]
Reports = list[dict[str, Any]]


async def running(flow: Flow[Any], call: Call, ordered: bool = False) -> None:
    async with flow.running(call, concurrency=4, ordered=ordered) as run:
        await run.wait()


WAYS: dict[str, Callable[[Flow[int], Call, bool], Awaitable[object]]] = {
    "map_async": lambda flow, call, ordered: flow.map_async(
        call, concurrency=4, ordered=ordered
    ).to_list(),
    "map_async: options": lambda flow, call, ordered: flow.map_async(
        call, concurrency=4, ordered=ordered, timeout=60
    ).to_list(),
    "filter_async": lambda flow, call, ordered: flow.filter_async(
        call, concurrency=4, ordered=ordered
    ).to_list(),
    "for_each": lambda flow, call, ordered: flow.for_each(call, concurrency=4, ordered=ordered),
    "running": running,
}
ordered = pytest.mark.parametrize("ordered", [True, False])
way = pytest.mark.parametrize("way", WAYS)


async def failure(way: str, call: Call, ordered: bool) -> BaseException:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - it is looked at
        await WAYS[way](r.range(4), call, ordered)
    await asyncio.sleep(1)
    return raised.value


def reported(reports: Reports) -> list[str]:
    return [str(each["exception"]) for each in reports]


@pytest.mark.virtual_time
@ordered
@way
async def test_what_cancelled_calls_raise_is_reported(
    way: str, ordered: bool, expects_loop_errors: Reports
) -> None:
    async def call(n: int) -> int:
        try:
            await asyncio.sleep(0.2 if n else 0.1)
        except asyncio.CancelledError:
            raise ConnectionResetError(f"call {n} cannot say good-bye") from None
        raise OSError(f"call {n}")

    error = await failure(way, call, ordered)
    assert type(error) is OSError
    assert str(error) == "call 0"
    assert reported(expects_loop_errors) == [f"call {n} cannot say good-bye" for n in (1, 2, 3)]


@pytest.mark.virtual_time
@ordered
@way
async def test_calls_that_fail_at_the_same_time_make_no_group(way: str, ordered: bool) -> None:
    async def call(n: int) -> int:
        await asyncio.sleep(0.1)
        raise OSError(f"call {n}")

    assert str(await failure(way, call, ordered)) == "call 0"


@pytest.mark.virtual_time
@way
async def test_in_order_the_failure_of_the_earliest_element_is_raised(
    way: str, expects_loop_errors: Reports
) -> None:
    """As without concurrency: the calls before the one that failed are not cancelled by it."""

    async def call(n: int) -> int:
        await asyncio.sleep(0.4 - n / 10)
        raise OSError(f"call {n}")

    assert str(await failure(way, call, ordered=True)) == "call 0"
    assert reported(expects_loop_errors) == ["call 3", "call 2", "call 1"]


@pytest.mark.virtual_time
@way
async def test_without_an_order_the_first_failure_is_raised(
    way: str, expects_loop_errors: Reports
) -> None:
    async def call(n: int) -> int:
        await asyncio.sleep(0.4 - n / 10)
        raise OSError(f"call {n}")

    assert str(await failure(way, call, ordered=False)) == "call 3"
    assert reported(expects_loop_errors) == []


@pytest.mark.virtual_time
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("options", [{}, {"timeout": 60}, {"key": id}], ids=str)
async def test_a_call_that_raises_as_its_flow_is_cancelled_is_reported(
    concurrency: int, options: dict[str, Any], expects_loop_errors: Reports
) -> None:
    async def call(n: int) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the connection was lost")

    probe = SubscriberProbe[int](9)
    probe.subscribed_to(r.just(1).map_async(call, concurrency=concurrency, **options))
    await asyncio.sleep(1)
    probe.cancel()
    await asyncio.sleep(1)
    assert reported(expects_loop_errors) == ["the connection was lost"]


# -- a time limit around a yield -------------------------------------------------------------------
async def in_a_timeout() -> AsyncIterator[int]:
    async with asyncio.timeout(0.1):
        for n in range(9):
            yield n


async def in_a_cancel_scope() -> AsyncIterator[int]:
    with anyio.fail_after(0.1):
        for n in range(9):
            yield n


async def slow(x: int) -> int:
    await asyncio.sleep(1)
    return x


async def consume(flow: Flow[int]) -> None:
    async for _ in flow:
        await asyncio.sleep(1)


READERS: dict[str, Callable[[Flow[int]], Awaitable[object]]] = {
    "for_each": lambda flow: flow.for_each(slow),
    "map_async": lambda flow: flow.map_async(slow, concurrency=2).to_list(),
    "boundary": lambda flow: flow.boundary(2).for_each(slow),
    "async for": consume,
    "running": lambda flow: running(flow, slow),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("source", [in_a_timeout, in_a_cancel_scope])
@pytest.mark.parametrize("reader", READERS)
async def test_a_time_limit_around_a_yield_is_named(
    reader: str, source: Callable[[], AsyncIterator[int]]
) -> None:
    with pytest.raises(Interrupted, match="time limit or a task group around a `yield`"):
        await READERS[reader](r.from_aiter(source))
