"""How many bytes does a subscription hold that has demand, and waits for an element?"""

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Protocol

from reactive_aio import Subscription

from ..runner.question import Question

SUBSCRIPTIONS = 500
TURNS = 5
"""Turns of the loop after which every task waits."""


class Waiting:
    """Requests one element; it exists before the memory is measured."""

    def __init__(self) -> None:
        self.subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, element: object) -> None:
        pass

    def on_error(self, error: BaseException) -> None:
        raise error

    def on_complete(self) -> None:
        pass

    def close(self) -> None:
        if self.subscription is not None:
            self.subscription.cancel()


class Closable(Protocol):
    """What keeps a subscription alive, and ends it."""

    def close(self) -> object: ...


Make = Callable[[Waiting], Closable | Awaitable[Closable]]
"""Makes an idle subscription, of the given subscriber or hand-written."""


def idle(text: str) -> Question:
    """Return a question about memory; its goals are bytes."""
    return Question(text, SUBSCRIPTIONS, unit="B", is_goal_a_figure=True, rounds=3)


async def bytes_each(make: Make, count: int) -> float:
    """Return the bytes that each of *count* subscriptions allocates while it is idle."""
    count = min(count, SUBSCRIPTIONS)
    kept = await _make(make, [Waiting() for _ in range(20)])  # fills the caches
    idle: list[Closable] = []
    subscribers = [Waiting() for _ in range(count)]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        idle = await _make(make, subscribers)
        gc.collect()
        list_itself = idle.__sizeof__()
        return (tracemalloc.get_traced_memory()[0] - before - list_itself) / count
    finally:
        tracemalloc.stop()
        for each in [*kept, *idle]:
            done = each.close()
            if isinstance(done, Awaitable):
                await done
        await _turns()


async def _make(make: Make, subscribers: list[Waiting]) -> list[Closable]:
    kept: list[Closable] = []
    for each in subscribers:
        made = make(each)
        if isinstance(made, Awaitable):
            made = await made
        kept.append(made)
    await _turns()
    return kept


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


class Tasks:
    """Hand-written tasks."""

    __slots__ = ("_tasks",)

    def __init__(self, *tasks: "asyncio.Task[object]") -> None:
        self._tasks = tasks

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
