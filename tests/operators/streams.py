"""An asynchronous source for tests of operators: it suspends, cleans up, and logs both."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from reactive_aio.flow import Flow
from reactive_aio.stage import from_async

__all__ = ("MANY", "slow")

T = TypeVar("T")

MANY = 2**63 - 1


def slow(
    elements: Iterable[T],
    *,
    every: float = 0,
    error: Exception | None = None,
    log: list[str] | None = None,
) -> Flow[T]:
    """Emit *elements*, one *every* so many seconds or turn of the loop, then fail with *error*.

    *log* gets "opened" and "closed" for each subscription.
    """

    async def generate() -> AsyncIterator[T]:
        if log is not None:
            log.append("opened")
        try:
            for element in elements:
                await asyncio.sleep(every)
                yield element
            if error is not None:
                raise error
        finally:
            if log is not None:
                log.append("closed")

    return from_async(generate, name="slow")
