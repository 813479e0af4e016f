"""Publishers that are unlike most, and right: they must pass every law."""

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
from tests.tck.broken_publishers import suspect
from tests.tck.flawed_publisher import Suspect

__all__ = ("TOLERATED", "UNUSUAL", "endless")


class Synchronous:
    """Everything happens inside subscribe and request; what is sent inside is sent in a loop."""

    def __init__(
        self, elements: Iterable[Any], fails: bool = False, closed: Callable[[], object] = bool
    ) -> None:
        self.elements = elements
        self.fails = fails
        self.closed = closed

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("a subscriber is needed")
        Immediate(self, subscriber).begin()


class Immediate:
    """The subscription of `Synchronous`: a loop that is never entered twice."""

    def __init__(self, publisher: Synchronous, subscriber: Subscriber[Any]) -> None:
        self.publisher: Synchronous | None = publisher
        self.subscriber: Subscriber[Any] | None = subscriber
        self.elements = iter(publisher.elements)
        self.ahead = list(itertools.islice(self.elements, 1))
        self.demand = 0
        self.wrong: int | None = None
        self.busy = True
        self.loop = asyncio.get_running_loop()
        self.context = contextvars.copy_context()

    def begin(self) -> None:
        self.tell("on_subscribe", self)
        self.busy = False
        self.go_on()

    def request(self, n: int, /) -> None:
        if n < 1:
            self.wrong = n
        else:
            self.demand += n
        self.go_on()

    def cancel(self) -> None:
        publisher, self.publisher, self.subscriber = self.publisher, None, None
        if publisher is not None:
            publisher.closed()

    def go_on(self) -> None:
        if self.busy:
            return
        self.busy = True
        while self.publisher is not None and self.wrong is None and self.ahead and self.demand:
            self.demand -= 1
            element = self.ahead.pop()
            self.ahead += itertools.islice(self.elements, 1)
            self.tell("on_next", element)
        self.busy = False
        if self.publisher is None:
            return
        if self.wrong is not None:
            self.end("on_error", ValueError(f"3.9: non-positive subscription request {self.wrong}"))
        elif not self.ahead:
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
        self.tell(signal, *args)
        self.subscriber = None

    def tell(self, signal: str, *args: object) -> None:
        try:
            self.context.run(getattr(self.subscriber, signal), *args)
        except Exception as error:
            told = {"message": "a subscriber raised", "exception": error}
            self.loop.call_exception_handler(told)
            self.cancel()


class Threaded(Synchronous):
    """Sends from a thread of its own."""

    def subscribe(self, subscriber: Subscriber[Any] | None, /) -> None:
        if subscriber is None:
            raise TypeError("a subscriber is needed")
        FromThread(self, subscriber).begin()


class FromThread(Immediate):
    """The subscription of `Threaded`."""

    def __init__(self, publisher: Threaded, subscriber: Subscriber[Any]) -> None:
        super().__init__(publisher, subscriber)
        self.news = threading.Event()

    def begin(self) -> None:
        self.tell("on_subscribe", self)
        self.busy = False
        threading.Thread(target=self.live, daemon=True).start()

    def live(self) -> None:
        super().go_on()
        while self.publisher is not None:
            self.news.wait()
            self.news.clear()
            super().go_on()

    def go_on(self) -> None:
        """What request does: the thread will see it."""
        self.news.set()

    def cancel(self) -> None:
        super().cancel()
        self.news.set()


def whole(kind: type[Synchronous], **options: Any) -> Candidate:
    """All parts of a candidate but the endless one, from one of these kinds."""

    def closing(n: int, closed: Callable[[], None]) -> Synchronous:
        return kind(range(n), closed=closed)

    return Candidate(
        publisher=lambda n: kind(range(n)),
        failing_publisher=lambda: kind(range(2), fails=True),
        closing_publisher=closing,
        awaits_signals=False,
        **options,
    )


def endless() -> Candidate:
    """Sends inside request, for ever: whoever asks it for everything must cancel inside on_next."""
    return Candidate(infinite_publisher=lambda: Synchronous(itertools.count()), awaits_signals=False)


def ours() -> Candidate:
    """From an iterable, with the library's own machinery."""

    def failing() -> Any:
        return from_iterable([2, 1, 0]).map(lambda x: 1 / x)

    def closing(n: int, closed: Callable[[], None]) -> Any:
        def over(_how: object) -> None:
            closed()

        return from_iterable(range(n)).do_finally(over)

    return Candidate(
        publisher=lambda n: from_iterable(range(n)),
        failing_publisher=failing,
        infinite_publisher=lambda: from_iterable(itertools.count()),
        closing_publisher=closing,
    )


def hot() -> Candidate:
    """Waits for more elements for ever."""
    return Candidate(publisher=lambda n: Suspect(n, "never ends"), completes=False)


async def _counting(n: int) -> AsyncIterator[int]:
    for number in range(n):
        await asyncio.sleep(0)
        yield number


def asynchronous() -> Candidate:
    """From an asynchronous iterable, behind a queue."""
    return Candidate(publisher=lambda n: from_aiter(lambda: _counting(n)).boundary(3))


UNUSUAL: dict[str, Callable[[], Candidate]] = {
    "in a task of its own, one element in each turn": suspect,
    "completes on the next request only": partial(suspect, "ends late"),
    "handles requests later": partial(suspect, "handles requests later"),
    "handles requests and cancel later": partial(suspect, "handles everything later"),
    "takes a longer way in the end": partial(suspect, "takes a longer way in the end"),
    "never completes": hot,
    "short": partial(suspect, max_elements=2),
    "on virtual time": partial(suspect, "handles requests later", virtual_time=True),
    "on uvloop": partial(suspect, loop=uvloop.new_event_loop),
    "inside subscribe and request": partial(whole, Synchronous),
    "in a thread of its own": partial(whole, Threaded, quiet_period=0.05),
    "ours": ours,
    "ours, asynchronous": asynchronous,
}
"""Honest candidates, each by what is unusual about it."""

TOLERATED = {
    "handles requests and cancel later": {"library2_stops_immediately_after_cancel"},
    "in a thread of its own": {"library2_stops_immediately_after_cancel"},
}
"""What the house asks for beyond the specification, and they need not do."""
