"""Publishers for scenarios: each signal is its own callback, so that others may run in between.

A task for each signal would take more turns, and the number of legal orders grows fast with turns.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio

from reactive_aio import Flow, from_publisher
from reactive_aio.spec import Subscriber

__all__ = (
    "SourceError",
    "async_steps",
    "failing_cleanup",
    "in_a_task_group",
    "in_an_anyio_task_group",
    "steps",
)


class SourceError(Exception):
    """The error of a source."""


class StepPublisher:
    """A publisher of *elements*, then of completion or *error*."""

    def __init__(self, *elements: Any, error: BaseException | None = None) -> None:
        self.elements = elements
        self.error = error

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_StepSubscription(self, subscriber))


class _StepSubscription:
    """A subscription that sends one signal in each callback."""

    def __init__(self, publisher: StepPublisher, subscriber: Subscriber[Any]) -> None:
        self.remaining = list(publisher.elements)
        self.error = publisher.error
        self.subscriber = subscriber
        self.demand = 0
        self.is_scheduled = False
        self.is_done = False
        self.loop = asyncio.get_running_loop()
        if not self.remaining:
            self.schedule()

    def request(self, n: int, /) -> None:
        self.demand += n
        self.schedule()

    def cancel(self) -> None:
        self.is_done = True

    def schedule(self) -> None:
        if not self.is_scheduled:
            self.is_scheduled = True
            self.loop.call_soon(self.step)

    def step(self) -> None:
        self.is_scheduled = False
        if self.is_done:
            return
        if not self.remaining:
            self.is_done = True
            if self.error is None:
                self.subscriber.on_complete()
            else:
                self.subscriber.on_error(self.error)
        elif self.demand:
            self.demand -= 1
            element = self.remaining.pop(0)
            self.is_scheduled = True
            self.subscriber.on_next(element)
            self.is_scheduled = False
            self.schedule()


def steps(*elements: Any, error: BaseException | None = None) -> Flow[Any]:
    """A flow of *elements*, each in its own callback."""
    return from_publisher(StepPublisher(*elements, error=error))


async def async_steps(*elements: Any) -> AsyncIterator[Any]:
    """The same as an asynchronous generator."""
    for element in elements:
        await asyncio.sleep(0)
        yield element


async def in_a_task_group(*elements: Any) -> AsyncIterator[Any]:
    """The same beside a task of a task group."""
    async with asyncio.TaskGroup() as group:
        child = group.create_task(asyncio.sleep(1))
        for element in elements:
            await asyncio.sleep(0)
            yield element
        child.cancel()


async def in_an_anyio_task_group(*elements: Any) -> AsyncIterator[Any]:
    """The same with anyio, whose cancel scopes belong to a task."""
    async with anyio.create_task_group() as group:
        group.start_soon(asyncio.sleep, 1)
        for element in elements:
            await asyncio.sleep(0)
            yield element
        group.cancel_scope.cancel()


async def failing_cleanup(*elements: Any) -> AsyncIterator[Any]:
    """The same, and then its cleanup fails, however it ends."""
    try:
        for element in elements:
            await asyncio.sleep(0)
            yield element
    finally:
        await asyncio.sleep(0)
        raise SourceError
