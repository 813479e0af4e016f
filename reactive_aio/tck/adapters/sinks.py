"""Coroutines that consume a publisher as subscribers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ...spec import Publisher, Subscriber

__all__ = ("sink",)

_alive: set[asyncio.Task[Any]] = set()
"""The loop itself holds its tasks weakly."""

Consume = Callable[[Publisher[Any]], Awaitable[object]]


async def sink(consume: Consume) -> Subscriber[Any]:
    """The subscriber inside of ``await consume(publisher)``: ``subscriber=lambda: sink(consume)``.

    Translated: *consume*, as ``lambda p: flow(p).to_list()``, runs in a task. The publisher that it
    is given only waits for its subscriber, and this subscriber itself is what is judged: the kit
    calls its methods, and no others.

    Not translated: what *consume* returns or raises; both are thrown away. If it ends without
    having subscribed, this raises. A second subscription, such as a retry makes, gets an
    on_subscribe and an on_error.
    """
    if not callable(consume):
        raise TypeError(f"sink: give a function that consumes a publisher, got {consume!r:.60}")
    subscribed = asyncio.Event()
    entry = Entry("sink", subscribed.set)

    async def run() -> object:
        return await consume(entry)

    task = asyncio.get_running_loop().create_task(run())
    _alive.add(task)
    task.add_done_callback(_over)
    taken = asyncio.ensure_future(subscribed.wait())
    await asyncio.wait({task, taken}, return_when=asyncio.FIRST_COMPLETED)
    taken.cancel()
    if entry.subscriber is None:
        cause = None if task.cancelled() else task.exception()
        raise RuntimeError("sink: it has ended without a subscription") from cause
    return entry.subscriber


def _over(task: asyncio.Task[Any]) -> None:
    _alive.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that nobody complains that it was not


class Entry:
    """A publisher that only takes the one subscriber that it is given, and calls *taken*."""

    def __init__(self, adapter: str, taken: Callable[[], object]) -> None:
        self._adapter = adapter
        self._taken = taken
        self.subscriber: Subscriber[Any] | None = None

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        if self.subscriber is None:
            self.subscriber = subscriber
            self._taken()
        else:
            subscriber.on_subscribe(_Nothing())
            subscriber.on_error(RuntimeError(f"{self._adapter}: there is one subscription here"))


class _Nothing:
    """The subscription of one that is turned away."""

    def request(self, n: int, /) -> None:
        """There is nothing to send."""

    def cancel(self) -> None:
        """There is nothing to stop."""
