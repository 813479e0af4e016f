"""Functions from publisher to publisher as processors."""

from collections.abc import Callable
from typing import Any

from ...spec import Publisher, Subscriber, Subscription
from .sinks import Entry

__all__ = ("Operator", "operator")

Apply = Callable[[Publisher[Any]], Publisher[Any]]


def operator(apply: Apply) -> "Operator":
    """``apply(publisher)`` as a processor: ``processor=lambda size: operator(apply)``.

    Translated: *apply* is given a publisher that only waits for the operator's own subscriber, and
    the signals that the processor gets are given to that. Who subscribes to the processor
    subscribes to what *apply* returned.

    Not translated: a cold operator has no subscriber of its own before somebody has subscribed to
    it. Signals that come earlier wait, in their order. As each subscription to it begins another
    upstream, it takes one: such a subject says ``max_subscribers=1``.
    """
    if not callable(apply):
        raise TypeError(f"operator: give a function of a publisher, got {apply!r:.60}")
    return Operator(apply)


class Operator:
    """A processor of the two ends of *apply*."""

    def __init__(self, apply: Apply) -> None:
        self._entry = Entry("operator")
        self._exit = apply(self._entry)
        self._early: list[Callable[[Subscriber[Any]], object]] = []

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self._exit.subscribe(subscriber)
        inner = self._entry.subscriber
        if inner is not None:
            early, self._early = self._early, []
            for signal in early:
                signal(inner)

    def on_subscribe(self, subscription: Subscription, /) -> Any:
        return self._pass(subscription, lambda inner: inner.on_subscribe(subscription))

    def on_next(self, element: Any, /) -> Any:
        return self._pass(element, lambda inner: inner.on_next(element))

    def on_error(self, error: BaseException, /) -> Any:
        return self._pass(error, lambda inner: inner.on_error(error))

    def on_complete(self) -> Any:
        return self._pass(self, lambda inner: inner.on_complete())

    def _pass(self, given: object, signal: Callable[[Subscriber[Any]], Any]) -> Any:
        inner = self._entry.subscriber
        if inner is not None and not self._early:
            return signal(inner)
        if given is None:
            raise TypeError("operator: None is no subscription, element or error (rule 2.13)")
        self._early.append(signal)
        return None
