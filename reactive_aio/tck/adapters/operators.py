"""Functions from publisher to publisher as processors."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from ...spec import Publisher, Subscriber, Subscription
from .sinks import SingleSubscriberPublisher
from .support import report_subscriber_error

Apply = Callable[[Publisher[Any]], Publisher[Any]]
Signal = Callable[[Subscriber[Any]], Any]


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
        self._entry = SingleSubscriberPublisher("operator", self._catch_up)
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
