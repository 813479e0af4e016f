"""A terminal operator that returns nothing gives back the elements that it has in its hands."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import TooManyElements

pytestmark = pytest.mark.virtual_time

Terminal = Callable[[Flow[Any]], Awaitable[Any]]

# What each of them holds of the elements 0 and 1.
TERMINALS: dict[str, tuple[Terminal, list[int]]] = {
    "last": (lambda flow: flow.last(), [1]),
    "min": (lambda flow: flow.min(), [0]),
    "max": (lambda flow: flow.max(), [1]),
    "single": (lambda flow: flow.single(), [1, 0]),
    "to_list": (lambda flow: flow.to_list(), [0, 1]),
    "to_list: too many": (lambda flow: flow.to_list(limit=1), [1, 0]),
    "to_dict": (lambda flow: flow.to_dict(str), [0, 1]),
    "to_dict: too many": (lambda flow: flow.to_dict(str, limit=1), [1, 0]),
    "count": (lambda flow: flow.count(), []),
    "sum": (lambda flow: flow.sum(), []),
    "any": (lambda flow: flow.any(lambda _: False), []),
    "run": (lambda flow: flow.run(), []),
}
# With those that end at one element; what each of them has of an only element.
RESULTS: dict[str, tuple[Terminal, list[int]]] = {
    "first": (lambda flow: flow.first(), [0]),
    "element_at": (lambda flow: flow.element_at(0), [0]),
    **{name: (end, [0]) for name, (end, held) in TERMINALS.items() if held},
    "count": TERMINALS["count"],
}


async def waiting() -> AsyncIterator[int]:
    yield 0
    await asyncio.sleep(1)
    yield 1
    await asyncio.sleep(900)


async def failing() -> AsyncIterator[int]:
    async for element in r.range(2):
        yield element
    raise OSError


def failing_iterator() -> Iterator[int]:
    yield from range(2)
    raise OSError


async def cleaning_up() -> AsyncIterator[int]:
    try:
        yield 0
    finally:
        await asyncio.sleep(900)


async def failing_to_clean_up() -> AsyncIterator[int]:
    try:
        yield 0
    finally:
        await asyncio.sleep(1)
        raise OSError


async def given_back(flow: Flow[Any], end: Terminal) -> list[object]:
    discarded: list[object] = []
    with pytest.raises((TimeoutError, OSError, TooManyElements)):
        async with asyncio.timeout(2):
            await end(flow.do_on_discard(discarded.append))
    await asyncio.sleep(1000)  # until a cleanup that was not waited for has ended
    return discarded


@pytest.mark.parametrize("name", TERMINALS)
async def test_what_was_read_when_it_is_cancelled(name: str) -> None:
    end, held = TERMINALS[name]
    assert await given_back(r.from_aiter(waiting), end) == held


@pytest.mark.parametrize("name", TERMINALS)
async def test_what_was_read_when_the_flow_fails(name: str) -> None:
    end, held = TERMINALS[name]
    assert await given_back(r.from_aiter(failing), end) == held
    assert await given_back(r.from_iterable(failing_iterator()), end) == held


@pytest.mark.parametrize("name", RESULTS)
async def test_the_result_when_it_is_cancelled_during_the_cleanup(name: str) -> None:
    end, held = RESULTS[name]
    assert await given_back(r.from_aiter(cleaning_up), end) == held


@pytest.mark.parametrize("name", RESULTS)
async def test_the_result_when_the_cleanup_fails(name: str) -> None:
    end, held = RESULTS[name]
    flow = r.from_aiter(failing_to_clean_up)
    assert await given_back(flow, end) == held


@pytest.mark.parametrize("name", [name for name in RESULTS if "too many" not in name])
async def test_a_result_that_is_returned_is_not_given_back(name: str) -> None:
    discarded: list[object] = []
    end, _ = RESULTS[name]
    for flow in (r.just(1), r.just(1).boundary(2), r.range(9).take(1).boundary(2)):
        await end(flow.do_on_discard(discarded.append))
        await end(flow.take(1).do_on_discard(discarded.append))
    assert discarded == []
