"""Subscribers that run one action in one signal, and publishers under the test's control."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import Any

from reactive_aio import Flow, from_iterable, from_publisher
from reactive_aio.spec import Publisher, Subscription
from reactive_aio.stage import (
    Downstream,
    FlowSubscription,
    from_async,
    from_pull,
    from_push,
    push_next,
)
from reactive_aio.testing import SubscriberProbe

UNBOUNDED = 2**63 - 1


Act = Callable[["Acting"], object]


class Acting(SubscriberProbe[Any]):
    """Calls its action for a signal, if it has one, at the end of that signal."""

    def __init__(
        self,
        request: int = 0,
        again: int = 0,
        *,
        on_subscribe: Act | None = None,
        on_next: Act | None = None,
        on_error: Act | None = None,
        on_complete: Act | None = None,
        acts: Mapping[str, Act] | None = None,
    ) -> None:
        super().__init__(request, again=again)
        self.acts: dict[str, Act | None] = {
            "on_subscribe": on_subscribe,
            "on_next": on_next,
            "on_error": on_error,
            "on_complete": on_complete,
            **(acts or {}),
        }

    def do(self, signal: str) -> object:
        act = self.acts[signal]
        return None if act is None else act(self)

    def on_subscribe(self, subscription: Subscription, /) -> Any:
        super().on_subscribe(subscription)
        return self.do("on_subscribe")

    def on_next(self, element: Any, /) -> Any:
        super().on_next(element)
        return self.do("on_next")

    def on_error(self, error: BaseException, /) -> Any:
        super().on_error(error)
        return self.do("on_error")

    def on_complete(self) -> Any:
        super().on_complete()
        return self.do("on_complete")


class AsyncActing(Acting):
    """The same with ``async def`` signals: *act* runs after a turn, and is awaited if it can be."""

    async def _later(self, signal: str) -> None:
        await asyncio.sleep(0)
        result = self.do(signal)
        if asyncio.iscoroutine(result):
            await result

    async def on_subscribe(self, subscription: Subscription, /) -> None:  # type: ignore[override]
        SubscriberProbe[Any].on_subscribe(self, subscription)
        await self._later("on_subscribe")

    async def on_next(self, element: Any, /) -> None:  # type: ignore[override]
        SubscriberProbe[Any].on_next(self, element)
        await self._later("on_next")

    async def on_error(self, error: BaseException, /) -> None:  # type: ignore[override]
        SubscriberProbe[Any].on_error(self, error)
        await self._later("on_error")

    async def on_complete(self) -> None:  # type: ignore[override]
        SubscriberProbe[Any].on_complete(self)
        await self._later("on_complete")


BOTH: tuple[type[Acting], ...] = (Acting, AsyncActing)


class Source:
    """Numbers from 0, and whether their consumer has cleaned up."""

    def __init__(self, n: float = float("inf")) -> None:
        self.n = n
        self.pulled = 0
        self.opened = 0
        self.closed = 0

    def numbers(self) -> Generator[int, None, None]:
        self.opened += 1
        try:
            while self.pulled < self.n:
                self.pulled += 1
                yield self.pulled - 1
        finally:
            self.closed += 1

    async def _closing(self) -> AsyncIterator[int]:
        numbers = self.numbers()
        try:
            for number in numbers:
                await asyncio.sleep(0)
                yield number
        finally:
            numbers.close()

    def pull(self) -> Flow[int]:
        return from_pull(self.numbers, name="numbers")

    def push(self) -> Flow[int]:
        return self.pull().boundary(4)

    def unmade(self) -> Flow[int]:
        return pushed(lambda downstream: Made(downstream, self.numbers(), self.n))

    def task(self) -> Flow[int]:
        return self.pull().map_async(itself)

    def aiter(self) -> Flow[int]:
        return from_async(self._closing, name="numbers")

    def mixed(self) -> Flow[int]:
        return self.aiter().boundary(3).map(abs).boundary(2).map_async(itself)


class Made(FlowSubscription):
    """Pushes the elements of an iterator as they are requested, a few at a time."""

    def __init__(
        self, downstream: Downstream[int], numbers: Generator[int, None, None], n: float
    ) -> None:
        self.downstream = downstream
        self.numbers = numbers
        self.remaining = n
        self.requested = 0
        self.is_pushing = self.is_over = False
        self.is_processed = True

    def request(self, n: int, /) -> None:
        self.requested += n
        self.processed()

    def processed(self) -> None:
        self.is_processed = True
        if self.is_pushing:
            return
        self.is_pushing = True
        while self.is_processed and not self.is_over and (self.requested or not self.remaining):
            self.push()
        self.is_pushing = False

    def push(self) -> None:
        if not self.remaining:
            self.cancel()
            self.downstream.complete()
            return
        count = int(min(self.requested, self.remaining, 8))
        self.requested -= count
        self.remaining -= count
        self.is_processed = False
        push_next(self.downstream, self.numbers, count)

    def cancel(self) -> None:
        self.is_over = True
        self.numbers.close()


async def itself(x: int) -> int:
    return x


async def forever(x: int) -> int:
    await asyncio.sleep(3600)
    return x


SHAPES: dict[str, Callable[[Source], Flow[int]]] = {
    "pulled": Source.pull,
    "boundary": Source.push,
    "unmade": Source.unmade,
    "task": Source.task,
    "asynchronous": Source.aiter,
    "mixed": Source.mixed,
}
"""Every way in which elements reach a subscriber."""


async def turns(n: int = 10) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


def tasks() -> set["asyncio.Task[Any]"]:
    """All but the caller's."""
    return asyncio.all_tasks() - {asyncio.current_task()}


def foreign(publisher: Any) -> Flow[Any]:
    """A flow of a foreign publisher."""
    return from_publisher(publisher)


def pushed(open: Callable[[Any], Any]) -> Flow[int]:
    """A flow of something that pushes."""
    return from_push(open, name="pushed")


async def collect(publisher: Publisher[Any]) -> list[Any]:
    """All signals of *publisher* under unbounded demand."""
    return await SubscriberProbe[Any](UNBOUNDED).subscribed_to(publisher).end()


def flow(n: int = 3) -> Flow[int]:
    return from_iterable(range(n))
