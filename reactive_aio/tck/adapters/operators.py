"""Functions from publisher to publisher as processors."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from ...spec import Publisher, Subscriber, Subscription
from .shapes import tell
from .sinks import Entry

__all__ = ("Operator", "operator")

Apply = Callable[[Publisher[Any]], Publisher[Any]]
Signal = Callable[[Subscriber[Any]], Any]


def operator(apply: Apply) -> "Operator":
    """``apply(publisher)`` as a processor: ``processor=lambda size: operator(apply)``.

    Translated: *apply* is given a publisher that only waits for the operator's own subscriber, and
    the signals that the processor gets are given to that. Who subscribes to the processor
    subscribes to what *apply* returned.

    Not translated: a cold operator has no subscriber of its own before somebody has subscribed to
    it, or has requested something. Signals that come earlier wait, in their order. As each
    subscription to it begins another upstream, it takes one: such a subject says
    ``max_subscribers=1``.
    """
    if not callable(apply):
        raise TypeError(f"operator: give a function of a publisher, got {apply!r:.60}")
    return Operator(apply)


class Operator:
    """A processor of the two ends of *apply*."""

    def __init__(self, apply: Apply) -> None:
        self._entry = Entry("operator", self._catch_up)
        self._early: deque[Signal] = deque()
        self._busy = False
        self._catching_up: asyncio.Task[None] | None = None
        self._exit = apply(self._entry)

    @property
    def asleep(self) -> bool:
        """Whether signals wait, as nothing inside has subscribed so far."""
        return bool(self._early)

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
        if inner is not None and not self._busy:
            return signal(inner)
        if given is None:
            raise TypeError("operator: None is no subscription, element or error (rule 2.13)")
        self._early.append(signal)
        return None

    def _catch_up(self) -> None:
        """The operator has subscribed: what has come before, and what comes meanwhile."""
        inner = self._entry.subscriber
        assert inner is not None
        self._busy = True
        try:
            while self._early:
                returned = self._early.popleft()(inner)
                if returned is not None and isawaitable(returned):
                    self._catching_up = asyncio.ensure_future(self._after(returned))
                    return
        except Exception as error:
            tell(error)
        self._busy = False

    async def _after(self, returned: Awaitable[object]) -> None:
        try:
            await returned
        except Exception as error:
            tell(error)
        self._catch_up()
