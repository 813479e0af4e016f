"""Feeder: the small honest publisher that feeds a processor under test with its elements."""

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, Final

from ...spec import Subscriber

__all__ = ("Feeder",)

AT_A_TIME: Final = 8
"""Elements between two turns of the loop."""


class Feeder:
    """A publisher of *count* elements, which ends with *error* if there is one.

    It sends from a task that lives only as long as there is something to send, awaits what signals
    return, and obeys demand.
    """

    def __init__(
        self, count: float, element: Callable[[int], Any], error: BaseException | None = None
    ) -> None:
        self.count = count
        self.element = element
        self.error = error

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        _Feeding(self, subscriber).wake()


class _Feeding:
    """Its subscription."""

    def __init__(self, feeder: Feeder, subscriber: Subscriber[Any]) -> None:
        self._feeder = feeder
        self._subscriber: Subscriber[Any] | None = subscriber
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._demand = 0
        self._sent = 0
        self._begun = False

    def request(self, n: int, /) -> None:
        if n < 1:
            # A processor that asks so is judged as a subscriber, by another law.
            self.cancel()
            return
        self._demand += n
        self._loop.call_soon_threadsafe(self.wake)

    def cancel(self) -> None:
        self._subscriber = None

    def wake(self) -> None:
        """Send what may be sent, unless that is being done."""
        if self._task is None and self._subscriber is not None:
            self._task = self._loop.create_task(self._send())
            self._task.add_done_callback(self._rest)

    def _rest(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._subscriber = None
            told = {"message": "rule 2.13: the subscriber raised", "exception": error}
            self._loop.call_exception_handler(told)
        elif self._demand and self._sent < self._feeder.count:
            self.wake()

    async def _send(self) -> None:
        if not self._begun:
            self._begun = True
            await self._signal("on_subscribe", self)
        while self._subscriber is not None:
            if self._sent >= self._feeder.count:
                await self._end()
            elif not self._demand:
                return
            else:
                await self._one()

    async def _one(self) -> None:
        self._demand -= 1
        self._sent += 1
        await self._signal("on_next", self._feeder.element(self._sent - 1))
        if not self._sent % AT_A_TIME:
            await asyncio.sleep(0)

    async def _end(self) -> None:
        error = self._feeder.error
        if error is None:
            await self._signal("on_complete")
        else:
            await self._signal("on_error", error)
        self._subscriber = None

    async def _signal(self, name: str, *args: Any) -> None:
        returned = getattr(self._subscriber, name)(*args)
        if isawaitable(returned):
            await returned
