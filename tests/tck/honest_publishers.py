"""Conforming publishers, each unusual in one way: they must pass every law."""

import asyncio
import contextvars
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any

import uvloop

from reactive_aio import from_aiter, from_iterable
from reactive_aio.spec import Subscriber
from reactive_aio.tck import Candidate
from tests.tck.broken_publishers import publisher_with
from tests.tck.flawed_publisher import FlawedPublisher

__all__ = ("HONEST_PUBLISHERS", "TOLERATED_FAILURES", "endless")


class SynchronousPublisher:
    """Sends all signals inside subscribe and request, in a loop without recursion."""

    def __init__(
        self, elements: Iterable[Any], fails: bool = False, closed: Callable[[], object] = bool
    ) -> None:
        self.elements = elements
        self.fails = fails
        self.closed = closed

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("a subscriber is needed")
        SynchronousSubscription(self, subscriber).begin()


class SynchronousSubscription:
    """The subscription of `SynchronousPublisher`: a loop that is not re-entered."""

    def __init__(self, publisher: SynchronousPublisher, subscriber: Subscriber[Any]) -> None:
        self.publisher: SynchronousPublisher | None = publisher
        self.subscriber: Subscriber[Any] | None = subscriber
        self.elements = iter(publisher.elements)
        self.next_elements = list(itertools.islice(self.elements, 1))
        self.demand = 0
        self.invalid: int | None = None
        self.is_sending = True
        self.loop = asyncio.get_running_loop()
        self.context = contextvars.copy_context()

    def begin(self) -> None:
        self.signal("on_subscribe", self)
        self.is_sending = False
        self.drain()

    def request(self, n: int, /) -> None:
        if n < 1:
            self.invalid = n
        else:
            self.demand += n
        self.drain()

    def cancel(self) -> None:
        publisher, self.publisher, self.subscriber = self.publisher, None, None
        if publisher is not None:
            publisher.closed()

    def drain(self) -> None:
        if self.is_sending:
            return
        self.is_sending = True
        while (
            self.publisher is not None
            and self.invalid is None
            and self.next_elements
            and self.demand
        ):
            self.demand -= 1
            element = self.next_elements.pop()
            self.next_elements += itertools.islice(self.elements, 1)
            self.signal("on_next", element)
        self.is_sending = False
        if self.publisher is None:
            return
        if self.invalid is not None:
            self.end(
                "on_error", ValueError(f"3.9: non-positive subscription request {self.invalid}")
            )
        elif not self.next_elements:
            self.finish(self.publisher.fails)

    def finish(self, fails: bool) -> None:
        if fails:
            self.end("on_error", ValueError("broken"))
        else:
            self.end("on_complete")

    def end(self, signal: str, *args: object) -> None:
        subscriber = self.subscriber
        self.cancel()
        self.subscriber = subscriber
        self.signal(signal, *args)
        self.subscriber = None

    def signal(self, name: str, *args: object) -> None:
        try:
            self.context.run(getattr(self.subscriber, name), *args)
        except Exception as error:
            context = {"message": "a subscriber raised", "exception": error}
            self.loop.call_exception_handler(context)
            self.cancel()


class ThreadedPublisher(SynchronousPublisher):
    """Sends all signals from its own thread."""

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("a subscriber is needed")
        ThreadedSubscription(self, subscriber).begin()


class ThreadedSubscription(SynchronousSubscription):
    """The subscription of `ThreadedPublisher`."""

    def __init__(self, publisher: ThreadedPublisher, subscriber: Subscriber[Any]) -> None:
        super().__init__(publisher, subscriber)
        self.has_news = threading.Event()

    def begin(self) -> None:
        self.signal("on_subscribe", self)
        self.is_sending = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        super().drain()
        while self.publisher is not None:
            self.has_news.wait()
            self.has_news.clear()
            super().drain()

    def drain(self) -> None:
        """Called by request: wakes the thread."""
        self.has_news.set()

    def cancel(self) -> None:
        super().cancel()
        self.has_news.set()


def candidate_of(kind: type[SynchronousPublisher], **options: Any) -> Candidate:
    """A candidate with publishers of one class, except an infinite one."""

    def closing(n: int, closed: Callable[[], None]) -> SynchronousPublisher:
        return kind(range(n), closed=closed)

    return Candidate(
        publisher=lambda n: kind(range(n)),
        failing_publisher=lambda: kind(range(2), fails=True),
        closing_publisher=closing,
        awaits_signals=False,
        **options,
    )


def endless() -> Candidate:
    """Sends endlessly inside request: only a cancel inside on_next stops it."""
    return Candidate(
        infinite_publisher=lambda: SynchronousPublisher(itertools.count()), awaits_signals=False
    )


def from_this_library() -> Candidate:
    """This library's flows, from an iterable."""

    def failing() -> Any:
        return from_iterable([2, 1, 0]).map(lambda x: 1 / x)

    def closing(n: int, closed: Callable[[], None]) -> Any:
        def on_end(_how: object) -> None:
            closed()

        return from_iterable(range(n)).do_finally(on_end)

    return Candidate(
        publisher=lambda n: from_iterable(range(n)),
        failing_publisher=failing,
        infinite_publisher=lambda: from_iterable(itertools.count()),
        closing_publisher=closing,
    )


def hot() -> Candidate:
    """Does not complete."""
    return Candidate(publisher=lambda n: FlawedPublisher(n, "never terminates"), completes=False)


async def _counting(n: int) -> AsyncIterator[int]:
    for number in range(n):
        await asyncio.sleep(0)
        yield number


def asynchronous() -> Candidate:
    """This library's flow from an asynchronous iterable, with a boundary."""
    return Candidate(publisher=lambda n: from_aiter(lambda: _counting(n)).boundary(3))


HONEST_PUBLISHERS: dict[str, Callable[[], Candidate]] = {
    "in its own task, one element in each turn": publisher_with,
    "completes on the next request only": partial(publisher_with, "completes on the next request"),
    "handles requests later": partial(publisher_with, "handles requests later"),
    "handles requests and cancel later": partial(publisher_with, "handles everything later"),
    "signals from a deeper stack at the end": partial(
        publisher_with, "signals from a deeper stack at the end"
    ),
    "never completes": hot,
    "short": partial(publisher_with, max_elements=2),
    "on virtual time": partial(publisher_with, "handles requests later", virtual_time=True),
    "on uvloop": partial(publisher_with, loop=uvloop.new_event_loop),
    "inside subscribe and request": partial(candidate_of, SynchronousPublisher),
    "in a thread of its own": partial(candidate_of, ThreadedPublisher, quiet_period=0.05),
    "of this library": from_this_library,
    "of this library, asynchronous": asynchronous,
}
"""By what is unusual about the candidate."""

TOLERATED_FAILURES = {
    "handles requests and cancel later": {"library2_stops_immediately_after_cancel"},
    "in a thread of its own": {"library2_stops_immediately_after_cancel"},
}
"""Rules of this library, beyond the specification, that these candidates do not keep."""
