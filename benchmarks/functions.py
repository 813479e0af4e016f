"""The functions and sources of the benchmarks, the same for every way."""

import asyncio
from collections.abc import AsyncIterator

INNER = 100
"""The length of an inner source of flat_map."""
PARTS = 8
"""The number of sources that are merged."""


def increment(element: int) -> int:
    return element + 1


def even(element: int) -> bool:
    return not element & 1


def odd(element: int) -> bool:
    return bool(element & 1)


def hundred(_: int) -> range:
    """The inner elements of `flat_map`."""
    return range(INNER)


async def double(element: int) -> int:
    """A mapper that never suspends."""
    return element * 2


async def suspend_once(element: int) -> int:
    """A mapper that lets the loop run other tasks once."""
    await asyncio.sleep(0)
    return element


async def numbers(count: int) -> AsyncIterator[int]:
    """An asynchronous source that never suspends."""
    for number in range(count):
        yield number


async def pausing(count: int, parts: int = 1) -> AsyncIterator[int]:
    """An asynchronous source that suspends at every 64th element, as a socket does.

    With *parts*, it is one of so many that have these elements together.
    """
    last = 64 // parts - 1
    for number in range(count):
        if not number & last:
            await asyncio.sleep(0)
        yield number


async def total(elements: AsyncIterator[int]) -> int:
    """Add up *elements* by ``async for``."""
    found = 0
    async for element in elements:
        found += element
    return found
