"""Publishers for scenarios: each signal is a callback of its own, so that others get between.

A task for each would do, but costs turns: the number of legal orders grows fast with them.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from reactive_aio import Flow, from_publisher
from reactive_aio.spec import Subscriber

__all__ = ("Oops", "counted", "steps", "walk")


class Oops(Exception):
    """A source failed."""


class Steps:
    """A publisher of *elements*, then of completion or *error*."""

    def __init__(self, *elements: Any, error: BaseException | None = None) -> None:
        self.elements = elements
        self.error = error

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_Walk(self, subscriber))


class _Walk:
    """A subscription that takes one step at a time."""

    def __init__(self, steps: Steps, subscriber: Subscriber[Any]) -> None:
        self.left = list(steps.elements)
        self.error = steps.error
        self.subscriber = subscriber
        self.demand = 0
        self.walking = False
        self.over = False
        self.loop = asyncio.get_running_loop()
        if not self.left:
            self.go_on()

    def request(self, n: int, /) -> None:
        self.demand += n
        self.go_on()

    def cancel(self) -> None:
        self.over = True

    def go_on(self) -> None:
        if not self.walking:
            self.walking = True
            self.loop.call_soon(self.step)

    def step(self) -> None:
        self.walking = False
        if self.over:
            return
        if not self.left:
            self.over = True
            if self.error is None:
                self.subscriber.on_complete()
            else:
                self.subscriber.on_error(self.error)
        elif self.demand:
            self.demand -= 1
            element = self.left.pop(0)
            self.walking = True
            self.subscriber.on_next(element)
            self.walking = False
            self.go_on()


def steps(*elements: Any, error: BaseException | None = None) -> Flow[Any]:
    """A flow of *elements*, each in a callback of its own."""
    return from_publisher(Steps(*elements, error=error))


async def walk(*elements: Any) -> AsyncIterator[Any]:
    """The same as an asynchronous generator."""
    for element in elements:
        await asyncio.sleep(0)
        yield element


def counted(count: int, first: int = 0) -> list[int]:
    return list(range(first, first + count))
