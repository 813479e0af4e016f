"""Coroutines that consume a publisher as subscribers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ...spec import Publisher, Subscriber
from .support import start_task

Consume = Callable[[Publisher[Any]], Awaitable[object]]


async def sink(consume: Consume) -> Subscriber[Any]:
    """The subscriber inside of ``await consume(publisher)``: ``subscriber=lambda: sink(consume)``.

    Translated: *consume*, for example ``lambda p: flow(p).to_list()``, runs in a task. The
    publisher that it receives waits for its subscriber, which is what the kit judges.

    Not translated: what *consume* returns or raises; both are discarded. If it ends without having
    subscribed, `sink` raises. A second subscription, for example by a retry, receives on_subscribe
    and on_error.
    """
    if not callable(consume):
        raise TypeError(f"sink: give a function that consumes a publisher, got {consume!r:.60}")
    subscribed = asyncio.Event()
    entry = SingleSubscriberPublisher("sink", subscribed.set)

    async def run() -> object:
        return await consume(entry)

    task = start_task(run())
    task.add_done_callback(_retrieve_error)
    subscribing = asyncio.ensure_future(subscribed.wait())
    await asyncio.wait({task, subscribing}, return_when=asyncio.FIRST_COMPLETED)
    subscribing.cancel()
    if entry.subscriber is None:
        cause = None if task.cancelled() else task.exception()
        raise RuntimeError("sink: the consumer has ended without a subscription") from cause
    return entry.subscriber


def _retrieve_error(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # prevents asyncio's warning


class SingleSubscriberPublisher:
    """A publisher that keeps its first subscriber, calls *subscribed*, and refuses others."""

    def __init__(self, adapter: str, subscribed: Callable[[], object]) -> None:
        self._adapter = adapter
        self._subscribed = subscribed
        self.subscriber: Subscriber[Any] | None = None

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        if self.subscriber is None:
            self.subscriber = subscriber
            self._subscribed()
        else:
            subscriber.on_subscribe(_RefusedSubscription())
            subscriber.on_error(RuntimeError(f"{self._adapter}: only one subscription is possible"))


class _RefusedSubscription:
    """The subscription of a refused subscriber."""

    def request(self, n: int, /) -> None:
        """No element will be sent."""

    def cancel(self) -> None:
        """No element will be sent."""
