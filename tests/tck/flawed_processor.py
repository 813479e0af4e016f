"""Processors written by hand, without the runtime: an honest one, and one for each known flaw."""

import asyncio
from typing import Any

from reactive_aio.spec import Subscriber
from reactive_aio.tck import Candidate

__all__ = ("Passing", "passing")


class Passing:
    """Passes everything on to all of its subscribers, which are synchronous ones.

    It asks upstream for what the slowest of them has requested.
    """

    def __init__(self, *flaws: str) -> None:
        self.flaws = flaws
        self.tails: list[Tail] = []
        self.upstream: Any = None
        self.asked = 0
        self.ended: list[Any] = []

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("rule 1.9: subscribe(None)")
        tail = Tail(self, subscriber)
        self.tails.append(tail)
        tail.send("on_subscribe", tail)
        tail.flush()

    def refill(self) -> None:
        if self.upstream is None or (self.ended and "goes on after an error" not in self.flaws):
            return
        live = [tail.requested for tail in self.tails if not tail.cancelled]
        slowest = "waits for the slowest" in self.flaws
        wanted = (min if slowest else max)(live, default=0)
        if "forgets demand of long ago" in self.flaws and len(live) == 1:
            wanted = min(wanted, 1)
        if wanted > self.asked:
            more, self.asked = wanted - self.asked, wanted
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
        for tail in list(self.tails):
            tail.push(-1 if "sends something else" in self.flaws else element)

    def on_error(self, error: BaseException | None, /) -> None:
        if error is None:
            raise TypeError("rule 2.13: on_error(None)")
        self.ended.append(error)
        if "hides errors" in self.flaws:
            return
        tails = self.tails[:1] if "fails its first subscriber only" in self.flaws else self.tails
        for tail in list(tails):
            tail.end(ValueError("another") if "replaces errors" in self.flaws else error)

    def on_complete(self) -> None:
        self.ended.append(None)
        for tail in list(self.tails):
            tail.end(None)


class Tail:
    """One subscriber behind it."""

    def __init__(self, processor: Passing, subscriber: Subscriber[Any]) -> None:
        self.processor = processor
        self.subscriber: Subscriber[Any] | None = subscriber
        self.requested = self.sent = 0
        self.waiting: list[Any] = []
        self.ending: list[BaseException | None] = list(processor.ended)
        self.cancelled = self.busy = False

    def request(self, n: int, /) -> None:
        if n < 1:
            self.ending.insert(0, ValueError(f"rule 3.9: non-positive subscription request {n}"))
            self.waiting.clear()
        else:
            self.requested += n
        self.flush()
        self.processor.refill()

    def cancel(self) -> None:
        self.cancelled = True
        self.subscriber = None
        if self.processor.upstream is not None and all(t.cancelled for t in self.processor.tails):
            self.processor.upstream.cancel()

    def push(self, element: Any) -> None:
        self.waiting.append(element)
        self.flush()

    def end(self, error: BaseException | None) -> None:
        self.ending.append(error)
        self.flush()

    def flush(self) -> None:
        if self.busy:
            return
        self.busy = True
        while self.subscriber is not None and self.waiting and self.sent < self.requested:
            self.sent += 1
            self.send("on_next", self.waiting.pop(0))
        self.busy = False
        if self.subscriber is not None and self.ending and not self.waiting:
            error, self.busy = self.ending[0], True  # for ever
            if error is None:
                self.send("on_complete")
            else:
                self.send("on_error", error)
            self.subscriber = None

    def send(self, signal: str, *args: object) -> None:
        """A signal; a subscriber that raises counts as cancelled, and the loop is told (2.13)."""
        try:
            getattr(self.subscriber, signal)(*args)
        except Exception as error:
            told = {"message": "rule 2.13", "exception": error}
            asyncio.get_running_loop().call_exception_handler(told)
            self.cancel()


def passing(*flaws: str) -> Candidate:
    """A candidate that is a processor."""
    return Candidate(
        name=f"a processor that {' and '.join(flaws) or 'keeps all rules'}",
        processor=lambda _size: Passing(*flaws),
        awaits_signals=False,
    )
