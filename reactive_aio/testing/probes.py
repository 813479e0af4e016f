"""Probes: ends of a flow that are driven by hand and remember every signal.

A probe records, and judges nothing but what its own methods wait for. ``signals`` reads like a
marble diagram: the elements, then ``"|"`` for completion or the exception itself; ``journal`` is
what went up and down, in order and with times, and `draw` makes a picture of it::

    puppet, probe = PublisherProbe[int](), SubscriberProbe[int](2)
    flow(puppet).subscribe(probe)
    await puppet.expect_request(2)
    puppet.emit(1)
    assert await probe.next_element() == 1
    await probe.expect_nothing()

A puppet does as it is told, right or wrong: it emits what nobody asked for, after its end, and
None; a subscriber can request -1. What its waiting methods wait for must come *within* so many
seconds of the loop's clock, or an AssertionError shows what came instead.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast

from ..spec import Publisher, Signalled, Subscriber, Subscription
from ._changes import Changes
from .drawing import draw
from .journal import Entry, Journal, Kind

__all__ = ("AsyncSubscriberProbe", "PublisherProbe", "SubscriberProbe")

T = TypeVar("T")

COMPLETE = "|"
WITHIN = 5.0
"""Seconds for what must come. Long: it is over when it has come."""
TURNS = 25
"""Turns of the loop for what must not come."""


class SubscriberProbe(Generic[T]):
    """A subscriber with ``def`` methods: requests *request* at once, *again* after each element."""

    def __init__(self, request: int = 0, *, again: int = 0) -> None:
        self._first = request
        self._again = again
        self.journal: Journal = Journal()
        self.signals: list[Any] = []
        """Elements, then ``"|"`` or the exception."""
        self.entries: list[Entry] = []
        """Those of `signals` in the journal."""
        self.subscriptions: list[Subscription] = []
        """Every subscription ever received; a second one is cancelled (rule 2.5)."""
        self._read = 0
        self._ended = asyncio.Event()
        self._changes = Changes()

    # -- by hand -----------------------------------------------------------------------------------
    @property
    def subscription(self) -> Subscription:
        """The subscription; an AssertionError when on_subscribe has not come."""
        if not self.subscriptions:
            raise AssertionError("on_subscribe was not signalled (rule 1.9)")
        return self.subscriptions[0]

    def subscribed_to(self, publisher: Publisher[T]) -> Self:
        """Subscribe to *publisher* and return this probe."""
        self.journal.note(Kind.SUBSCRIBE)
        publisher.subscribe(self)
        return self

    def request(self, n: int) -> None:
        """Request *n*, which may be wrong."""
        subscription = self.subscription
        self.journal.note(Kind.REQUEST, n)
        subscription.request(n)

    def cancel(self) -> None:
        subscription = self.subscription
        self.journal.note(Kind.CANCEL)
        subscription.cancel()

    @property
    def elements(self) -> list[T]:
        """The elements received."""
        return self.signals[:-1] if self.is_terminated else list(self.signals)

    @property
    def is_terminated(self) -> bool:
        """Whether a terminal signal has come."""
        return self._ended.is_set()

    @property
    def is_completed(self) -> bool:
        return self.is_terminated and self.signals[-1] == COMPLETE

    @property
    def error(self) -> BaseException | None:
        """The exception of on_error, if that has come."""
        last = self.signals[-1] if self.is_terminated else None
        return last if isinstance(last, BaseException) else None

    # -- waiting -----------------------------------------------------------------------------------
    async def end(self) -> list[Any]:
        """Wait for the terminal signal; return all signals."""
        await self._ended.wait()
        return self.signals

    async def wait_for_signals(self, count: int) -> list[Any]:
        """Wait until *count* signals have come, or the terminal one; return all signals."""
        while len(self.signals) < count and not self.is_terminated:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
        return self.signals

    async def wait_until(self, condition: Callable[[], object], within: float = WITHIN) -> bool:
        """Wait until *condition* holds, which signals change; False when it does not in time."""
        return await self._changes.until(condition, within)

    async def expect_subscription(self, *, within: float = WITHIN) -> Subscription:
        """Wait for on_subscribe; return the subscription."""
        if not await self.wait_until(lambda: self.subscriptions, within):
            raise self.failure(f"on_subscribe did not come within {within:g} s (rule 1.9)")
        return self.subscription

    async def next_signal(self, *, within: float = WITHIN) -> Entry:
        """Wait for the next signal that was not waited for before."""
        if not await self.wait_until(lambda: len(self.entries) > self._read, within):
            raise self.failure(f"no signal came within {within:g} s")
        self._read += 1
        return self.entries[self._read - 1]

    async def next_element(self, *, within: float = WITHIN) -> T:
        """Wait for the next signal, which must be an element."""
        entry = await self.next_signal(within=within)
        if entry.kind is not Kind.ON_NEXT:
            raise self.failure(f"an element was expected, and {entry} came", entry)
        return cast("T", entry.value)

    async def expect_nothing(self, *, turns: int = TURNS, seconds: float = 0.0) -> None:
        """Wait some turns of the loop and so many seconds: no signal must come meanwhile."""
        await pass_time(turns, seconds)
        if unread := self.unread:
            raise self.failure(f"nothing was expected, and {unread[0]} came", unread[0])

    @property
    def unread(self) -> list[Entry]:
        """The signals that nobody has waited for yet."""
        return self.entries[self._read :]

    def failure(self, words: str, entry: Entry | None = None) -> AssertionError:
        """An error that says *words*, about *entry* if they are, and draws what came."""
        return failure(self.journal, words, entry)

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.journal.note(Kind.ON_SUBSCRIBE)
        self.subscriptions.append(subscription)
        if len(self.subscriptions) > 1:
            subscription.cancel()
        elif self._first:
            self.request(self._first)
        self._changes.changed()

    def on_next(self, element: T, /) -> None:
        self._came(Kind.ON_NEXT, element, element)
        if self._again:
            self.request(self._again)

    def on_error(self, error: BaseException, /) -> None:
        self._came(Kind.ON_ERROR, error, error)

    def on_complete(self) -> None:
        self._came(Kind.ON_COMPLETE, None, COMPLETE)

    def _came(self, kind: Kind, value: object, signal: object) -> None:
        self.signals.append(signal)
        self.entries.append(self.journal.note(kind, value))
        if kind is not Kind.ON_NEXT:
            self._ended.set()
        self._changes.changed()


class AsyncSubscriberProbe(SubscriberProbe[T]):
    """The same with ``async def`` methods; each signal takes *turns* turns of the loop.

    ``overlaps`` counts signals that began before the one before had ended (rule 1.3).
    """

    # A subscriber's methods are def or async def, each as it likes; but a type checker wants a
    # method to stay what it is in the class above. Hence the ignores.

    def __init__(self, request: int = 0, *, again: int = 0, turns: int = 1) -> None:
        super().__init__(request, again=again)
        self._turns = turns
        self._inside = 0
        self.overlaps: int = 0

    async def _take_time(self) -> None:
        self._inside += 1
        if self._inside > 1:
            self.overlaps += 1
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self._inside -= 1

    async def on_subscribe(self, subscription: Subscription, /) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_subscribe(subscription)

    async def on_next(self, element: T, /) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_next(element)

    async def on_error(self, error: BaseException, /) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_error(error)

    async def on_complete(self) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_complete()


class PublisherProbe(Generic[T]):
    """A publisher that emits by hand only; it records the demand and the cancellations it gets."""

    def __init__(self) -> None:
        self.journal: Journal = Journal()
        self.requested: int = 0
        self.requests: list[int] = []
        self.cancel_count: int = 0
        self.emitted: int = 0
        self.subscribers: list[Subscriber[T]] = []
        self._under_way: set[asyncio.Future[None]] = set()
        self._changes = Changes()

    @property
    def subscriber(self) -> Subscriber[T]:
        """The latest subscriber; an AssertionError when there is none."""
        if not self.subscribers:
            raise AssertionError("nobody has subscribed")
        return self.subscribers[-1]

    @property
    def outstanding(self) -> int:
        """What was requested and not emitted; negative when more was emitted."""
        return self.requested - self.emitted

    # -- the publisher, which is its own subscription ----------------------------------------------
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.journal.note(Kind.SUBSCRIBE)
        self.subscribers.append(subscriber)
        self.journal.note(Kind.ON_SUBSCRIBE)
        self._signalled(subscriber.on_subscribe(self))
        self._changes.changed()

    def request(self, n: int, /) -> None:
        self.journal.note(Kind.REQUEST, n)
        self.requested += n
        self.requests.append(n)
        self._changes.changed()

    def cancel(self) -> None:
        self.journal.note(Kind.CANCEL)
        self.cancel_count += 1
        self._changes.changed()

    # -- by hand -----------------------------------------------------------------------------------
    def emit(self, *elements: T) -> None:
        """Send *elements*, whether asked for or not; coroutines of the subscriber run at once."""
        for element in elements:
            self._sends(element)
            self._signalled(self.subscriber.on_next(element))

    def complete(self) -> None:
        self.journal.note(Kind.ON_COMPLETE)
        self._signalled(self.subscriber.on_complete())

    def fail(self, error: BaseException) -> None:
        self.journal.note(Kind.ON_ERROR, error)
        self._signalled(self.subscriber.on_error(error))

    def _signalled(self, taken: Signalled) -> None:
        """A puppet does not wait: so it can break rule 1.3 as well."""
        if taken is not None:
            task = asyncio.ensure_future(taken)
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def send(self, *elements: T) -> None:
        """Send *elements*, each when the subscriber has taken the one before (rule 1.3)."""
        for element in elements:
            self._sends(element)
            if (taken := self.subscriber.on_next(element)) is not None:
                await taken

    def _sends(self, element: T) -> None:
        self.journal.note(Kind.ON_NEXT, element)
        self.emitted += 1

    # -- waiting -----------------------------------------------------------------------------------
    async def expect_subscriber(self, count: int = 1, *, within: float = WITHIN) -> Subscriber[T]:
        """Wait until *count* have subscribed; return the latest."""
        await self._must(
            lambda: len(self.subscribers) >= count,
            lambda: f"{count} must subscribe; {len(self.subscribers)} did",
            within,
        )
        return self.subscriber

    async def expect_request(self, n: int, *, within: float = WITHIN) -> None:
        """Wait until *n* elements have been requested, in all."""
        words = lambda: f"{n} must be requested; {self.requested} were"  # noqa: E731
        await self._must(lambda: self.requested >= n, words, within)

    async def expect_cancel(self, *, within: float = WITHIN, turns: int = TURNS) -> None:
        """Wait for cancel(), and some turns more: it must not come twice."""
        await self._must(lambda: self.cancel_count, lambda: "cancel() must come", within)
        await pass_time(turns)
        if self.cancel_count > 1:
            words = f"cancel() must come once; it came {self.cancel_count} times"
            raise failure(self.journal, words)

    async def expect_nothing(self, *, turns: int = TURNS, seconds: float = 0.0) -> None:
        """Wait some turns of the loop and so many seconds: nothing must be asked meanwhile."""
        already = len(self.requests) + self.cancel_count
        await pass_time(turns, seconds)
        if len(self.requests) + self.cancel_count > already:
            raise failure(self.journal, "nothing was expected from downstream")

    async def _must(
        self, condition: Callable[[], object], words: Callable[[], str], within: float
    ) -> None:
        if not await self._changes.until(condition, within):
            raise failure(self.journal, f"{words()} within {within:g} s")


async def pass_time(turns: int, seconds: float = 0.0) -> None:
    """Let the loop run, some turns and so many seconds of its clock."""
    if seconds:
        await asyncio.sleep(seconds)
    for _ in range(turns):
        await asyncio.sleep(0)


def failure(journal: Journal, words: str, entry: Entry | None = None) -> AssertionError:
    """An error that says *words*, about *entry* or the last one, and draws *journal*."""
    if entry is not None:
        journal.blame(entry, words)
    else:
        journal.note(Kind.OFFENCE, words)
    return AssertionError(f"{words}\n\n{draw(journal)}")
