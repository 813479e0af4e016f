"""A processor, independent of the runtime, with any of a set of flaws; without one it conforms."""

import asyncio
from typing import Any

from reactive_aio.spec import Subscriber
from reactive_aio.tck import Candidate

__all__ = ("FlawedProcessor", "processor_with")


class FlawedProcessor:
    """Passes all signals on to its subscribers, which must have ``def`` methods.

    It requests from upstream what any of them has requested.
    """

    def __init__(self, *flaws: str) -> None:
        self.flaws = flaws
        self.subscriptions: list[FlawedProcessorSubscription] = []
        self.upstream: Any = None
        self.requested_upstream = 0
        self.terminals: list[Any] = []

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("rule 1.9: subscribe(None)")
        subscription = FlawedProcessorSubscription(self, subscriber)
        self.subscriptions.append(subscription)
        subscription.send("on_subscribe", subscription)
        subscription.flush()

    def refill(self) -> None:
        if self.upstream is None or (
            self.terminals and "requests after an error" not in self.flaws
        ):
            return
        live = [
            subscription.requested
            for subscription in self.subscriptions
            if not subscription.is_cancelled
        ]
        target = max(live, default=0)
        if "forgets earlier demand" in self.flaws and len(live) == 1:
            target = min(target, 1)
        if target > self.requested_upstream:
            more, self.requested_upstream = target - self.requested_upstream, target
            self.upstream.request(more)

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is None:
            raise TypeError("rule 2.13: on_subscribe(None)")
        if self.upstream is not None:
            if subscription is not self.upstream:
                subscription.cancel()
            return
        self.upstream = subscription
        self.refill()

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise TypeError("rule 2.13: on_next(None)")
        for subscription in list(self.subscriptions):
            subscription.push(-1 if "sends another element" in self.flaws else element)

    def on_error(self, error: BaseException | None, /) -> None:
        if error is None:
            raise TypeError("rule 2.13: on_error(None)")
        self.terminals.append(error)
        if "does not pass errors on" in self.flaws:
            return
        subscriptions = (
            self.subscriptions[:1]
            if "fails only its first subscriber" in self.flaws
            else self.subscriptions
        )
        for subscription in list(subscriptions):
            subscription.end(ValueError("another") if "replaces errors" in self.flaws else error)

    def on_complete(self) -> None:
        self.terminals.append(None)
        for subscription in list(self.subscriptions):
            subscription.end(None)


class FlawedProcessorSubscription:
    """One subscription downstream."""

    def __init__(self, processor: FlawedProcessor, subscriber: Subscriber[Any]) -> None:
        self.processor = processor
        self.subscriber: Subscriber[Any] | None = subscriber
        self.requested = self.sent = 0
        self.waiting: list[Any] = []
        self.ending: list[BaseException | None] = list(processor.terminals)
        self.is_cancelled = self.is_sending = False

    def request(self, n: int, /) -> None:
        if n < 1:
            self.ending.insert(0, ValueError(f"rule 3.9: non-positive subscription request {n}"))
            self.waiting.clear()
        else:
            self.requested += n
        self.flush()
        self.processor.refill()

    def cancel(self) -> None:
        self.is_cancelled = True
        self.subscriber = None
        processor = self.processor
        is_last = all(each.is_cancelled for each in processor.subscriptions)
        keeps = "never cancels its upstream" in processor.flaws
        if processor.upstream is not None and is_last and not keeps:
            processor.upstream.cancel()

    def push(self, element: Any) -> None:
        self.waiting.append(element)
        self.flush()

    def end(self, error: BaseException | None) -> None:
        self.ending.append(error)
        if error is not None and "holds errors back" not in self.processor.flaws:
            self.waiting.clear()
        self.flush()

    def flush(self) -> None:
        if self.is_sending:
            return
        self.is_sending = True
        while self.subscriber is not None and self.waiting and self.sent < self.requested:
            self.sent += 1
            self.send("on_next", self.waiting.pop(0))
        self.is_sending = False
        if self.subscriber is not None and self.ending and not self.waiting:
            error, self.is_sending = self.ending[0], True  # permanently
            if error is None:
                self.send("on_complete")
            else:
                self.send("on_error", error)
            self.subscriber = None

    def send(self, signal: str, *args: object) -> None:
        """Send a signal; a subscriber that raises counts as cancelled, and is reported (2.13)."""
        try:
            getattr(self.subscriber, signal)(*args)
        except Exception as error:
            context = {"message": "rule 2.13", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            self.cancel()


def processor_with(*flaws: str) -> Candidate:
    """A processor with some flaws, as a candidate."""
    return Candidate(
        name=f"a processor that {' and '.join(flaws) or 'conforms'}",
        processor=lambda _size: FlawedProcessor(*flaws),
        awaits_signals=False,
    )
