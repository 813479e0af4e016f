"""Coroutine functions called by reactivex, some at a time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from .runner.peers import peer
from .subscribers import Summing


async def sum_of_calls(
    count: int, f: Callable[[int], Coroutine[Any, Any, int]], *, concurrency: int
) -> int:
    """Add up what *f* returns for the numbers below *count*."""
    rx, operators, subscriber = peer("reactivex"), peer("reactivex.operators"), Summing()

    def call(element: int) -> object:
        def start(_: object) -> object:
            return rx.from_future(asyncio.ensure_future(f(element)))

        return rx.defer(start)

    source = rx.from_iterable(range(count))
    source.pipe(operators.map(call), operators.merge(max_concurrent=concurrency)).subscribe(
        subscriber.on_next, subscriber.on_error, subscriber.on_complete
    )
    await subscriber.done
    return subscriber.total
