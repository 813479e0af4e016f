"""Functions of a publisher: one that consumes it as a subscriber, an operator as a processor."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any

from ...spec import Publisher, Subscriber, Subscription
from .support import report_subscriber_error, start_task

Consume = Callable[[Publisher[Any]], Awaitable[object]]
Apply = Callable[[Publisher[Any]], Publisher[Any]]
Signal = Callable[[Subscriber[Any]], Any]


# -- subscribers -----------------------------------------------------------------------------------
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
    subscribed = asyncio.get_running_loop().create_future()
    entry = _SingleSubscriberPublisher("sink", partial(subscribed.set_result, None))

    async def run() -> object:
        return await consume(entry)

    task = start_task(run())
    task.add_done_callback(_retrieve_error)
    await asyncio.wait({task, subscribed}, return_when=asyncio.FIRST_COMPLETED)
    if entry.subscriber is None:
        cause = None if task.cancelled() else task.exception()
        raise RuntimeError("sink: the consumer has ended without a subscription") from cause
    return entry.subscriber


def _retrieve_error(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # prevents asyncio's warning


@dataclass(eq=False)
class _SingleSubscriberPublisher:
    """A publisher that keeps its first subscriber, calls *subscribed*, and refuses others."""

    adapter: str
    subscribed: Callable[[], object]
    subscriber: Subscriber[Any] | None = None

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        if self.subscriber is None:
            self.subscriber = subscriber
            self.subscribed()
        else:
            subscriber.on_subscribe(_RefusedSubscription())
            subscriber.on_error(RuntimeError(f"{self.adapter}: only one subscription is possible"))


class _RefusedSubscription:
    """The subscription of a refused subscriber."""

    def request(self, n: int, /) -> None:
        """No element will be sent."""

    def cancel(self) -> None:
        """No element will be sent."""


# -- processors ------------------------------------------------------------------------------------
def operator(apply: Apply) -> "Operator":
    """``apply(publisher)`` as a processor: ``processor=lambda size: operator(apply)``.

    Translated: *apply* receives a publisher that waits for the operator's inner subscriber, and
    signals to the processor are passed to that subscriber. A subscriber of the processor subscribes
    to what *apply* returned.

    Not translated: a cold operator has no inner subscriber before it has been subscribed to, or
    before something is requested. Earlier signals wait, in their order. Since each subscription to
    a cold operator subscribes upstream again, it accepts only one: set ``max_subscribers=1``.
    """
    if not callable(apply):
        raise TypeError(f"operator: give a function of a publisher, got {apply!r:.60}")
    return Operator(apply)


class Operator:
    """A processor whose two ends are those of *apply*."""

    def __init__(self, apply: Apply) -> None:
        self._entry = _SingleSubscriberPublisher("operator", self._catch_up)
        self._waiting: deque[Signal] = deque()
        self._is_catching_up = False
        self._catch_up_task: asyncio.Task[None] | None = None
        self._exit = apply(self._entry)

    @property
    def is_waiting_for_subscriber(self) -> bool:
        """Whether signals wait because the operator has no inner subscriber yet."""
        return bool(self._waiting)

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self._exit.subscribe(subscriber)

    def on_subscribe(self, subscription: Subscription, /) -> Any:
        return self._pass(subscription, lambda inner: inner.on_subscribe(subscription))

    def on_next(self, element: Any, /) -> Any:
        return self._pass(element, lambda inner: inner.on_next(element))

    def on_error(self, error: BaseException, /) -> Any:
        return self._pass(error, lambda inner: inner.on_error(error))

    def on_complete(self) -> Any:
        return self._pass(self, lambda inner: inner.on_complete())

    def _pass(self, given: object, signal: Signal) -> Any:
        inner = self._entry.subscriber
        if inner is not None and not self._is_catching_up:
            return signal(inner)
        if given is None:
            raise TypeError("operator: None is not a subscription, element or error (rule 2.13)")
        self._waiting.append(signal)
        return None

    def _catch_up(self) -> None:
        """The operator has subscribed: pass the waiting signals to its subscriber."""
        inner = self._entry.subscriber
        assert inner is not None
        self._is_catching_up = True
        try:
            while self._waiting:
                returned = self._waiting.popleft()(inner)
                if returned is not None and isawaitable(returned):
                    self._catch_up_task = asyncio.ensure_future(self._await_signal(returned))
                    return
        except Exception as error:
            report_subscriber_error(error)
        self._is_catching_up = False

    async def _await_signal(self, returned: Awaitable[object]) -> None:
        try:
            await returned
        except Exception as error:
            report_subscriber_error(error)
        self._catch_up()
