"""Probes: a subscriber and a publisher that a test controls, and that record every signal.

``signals`` reads like a marble diagram: the elements, then ``"|"`` for completion or the exception
itself; ``journal`` has all signals and calls in order and with times, and `draw` draws it::

    publisher, subscriber = PublisherProbe[int](), SubscriberProbe[int](2)
    flow(publisher).subscribe(subscriber)
    await publisher.expect_request(2)
    publisher.emit(1)
    assert await subscriber.next_element() == 1
    await subscriber.expect_nothing()

Probes do not enforce the rules: a publisher probe emits without demand, after its end, and None; a
subscriber probe can request -1. What a method waits for must come *within* so many seconds of the
loop's clock, or it raises an AssertionError with a drawing.
"""

import asyncio
from collections.abc import Callable
from threading import get_ident
from typing import Any, Generic, Self, TypeVar, cast

from ..spec import Publisher, Signalled, Subscriber, Subscription
from .drawing import draw
from .journal import Entry, Journal, Kind

T = TypeVar("T")

COMPLETE = "|"
WITHIN = 5.0
"""Seconds in which an expected signal must come."""
TURNS = 25
"""Turns of the loop in which no signal must come."""


class UnexpectedSignal(AssertionError):
    """A probe received something else than the test expected; *words* say what, without drawing."""

    def __init__(self, journal: Journal, words: str, entry: Entry | None = None) -> None:
        if entry is not None:
            journal.mark(entry, words)
        else:
            journal.note(Kind.OFFENCE, words)
        super().__init__(f"{words}\n\n{draw(journal)}")
        self.journal = journal
        self.words = words


class SubscriberProbe(Generic[T]):
    """A subscriber with ``def`` methods: requests *request* at once, *again* after each element."""

    def __init__(self, request: int = 0, *, again: int = 0) -> None:
        self._first = request
        self._again = again
        self.journal: Journal = Journal()
        self.signals: list[Any] = []
        """Elements, then ``"|"`` or the exception."""
        self.entries: list[Entry] = []
        """The journal's entries of `signals`."""
        self.subscriptions: list[Subscription] = []
        """Every subscription ever received; a second one is cancelled (rule 2.5)."""
        self.is_cancelled: bool = False
        """Whether `cancel` was called."""
        self._read = 0
        self._terminated = asyncio.Event()
        self._changes = _Changes()

    # -- the test calls ----------------------------------------------------------------------------
    @property
    def subscription(self) -> Subscription:
        """The subscription; an AssertionError before on_subscribe."""
        if not self.subscriptions:
            raise AssertionError("on_subscribe was not signalled (rule 1.9)")
        return self.subscriptions[0]

    def subscribed_to(self, publisher: Publisher[T]) -> Self:
        """Subscribe to *publisher* and return this probe."""
        self.journal.note(Kind.SUBSCRIBE)
        publisher.subscribe(self)
        return self

    def request(self, n: int) -> None:
        """Request *n*, which may be invalid."""
        subscription = self.subscription
        self.journal.note(Kind.REQUEST, n)
        subscription.request(n)

    def cancel(self) -> None:
        subscription = self.subscription
        self.is_cancelled = True
        self.journal.note(Kind.CANCEL)
        subscription.cancel()

    @property
    def elements(self) -> list[T]:
        """The elements received."""
        return self.signals[:-1] if self.is_terminated else list(self.signals)

    @property
    def is_terminated(self) -> bool:
        """Whether a terminal signal has come."""
        return self._terminated.is_set()

    @property
    def is_completed(self) -> bool:
        return self.is_terminated and self.signals[-1] == COMPLETE

    @property
    def error(self) -> BaseException | None:
        """The exception of on_error, if that has come."""
        last = self.signals[-1] if self.is_terminated else None
        return last if isinstance(last, BaseException) else None

    # -- the test waits ----------------------------------------------------------------------------
    async def end(self) -> list[Any]:
        """Wait for the terminal signal; return all signals."""
        await self._terminated.wait()
        return self.signals

    async def wait_for_signals(self, count: int) -> list[Any]:
        """Wait until *count* signals have come, or the terminal one; return all signals."""
        while len(self.signals) < count and not self.is_terminated:  # noqa: ASYNC110 - turn by turn
            await asyncio.sleep(0)
        return self.signals

    async def wait_until(self, condition: Callable[[], object], within: float = WITHIN) -> bool:
        """Wait until *condition* holds, which signals change; False when it does not in time."""
        return await self._changes.wait_until(condition, within)

    async def expect_subscription(self, *, within: float = WITHIN) -> Subscription:
        """Wait for on_subscribe; return the subscription."""
        if not await self.wait_until(lambda: self.subscriptions, within):
            words = f"on_subscribe did not come within {within:g} s (rule 1.9)"
            raise UnexpectedSignal(self.journal, words)
        return self.subscription

    async def next_signal(self, expected: str = "a signal", *, within: float = WITHIN) -> Entry:
        """Wait for the first unread signal; a failure says what was *expected*."""
        if not await self.wait_until(lambda: self.unread, within):
            words = f"{expected} was expected, and nothing came within {within:g} s"
            raise UnexpectedSignal(self.journal, words)
        self._read += 1
        return self.entries[self._read - 1]

    async def next_element(self, *, within: float = WITHIN) -> T:
        """Wait for the first unread signal, which must be an element."""
        entry = await self.next_signal("an element", within=within)
        if entry.kind is not Kind.ON_NEXT:
            raise self.unexpected("an element", entry)
        return cast("T", entry.value)

    async def expect_nothing(self, *, turns: int = TURNS, seconds: float = 0.0) -> None:
        """Wait so many turns of the loop and seconds: no signal must come meanwhile."""
        await pass_time(turns, seconds)
        if unread := self.unread:
            raise self.unexpected("nothing", unread[0])

    @property
    def unread(self) -> list[Entry]:
        """The signals that no call has waited for."""
        return self.entries[self._read :]

    def read_all(self) -> None:
        """Mark all signals as read."""
        self._read = len(self.entries)

    def unexpected(self, expected: str, entry: Entry) -> UnexpectedSignal:
        """The error for *entry*, which came instead of what was *expected*."""
        return UnexpectedSignal(self.journal, f"{expected} was expected, and {entry} came", entry)

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.journal.note(Kind.ON_SUBSCRIBE)
        self.subscriptions.append(subscription)
        if len(self.subscriptions) > 1:
            subscription.cancel()
        elif self._first:
            self.request(self._first)
        self._changes.notify()

    def on_next(self, element: T, /) -> None:
        self._record(Kind.ON_NEXT, element, element)
        if self._again:
            self.request(self._again)

    def on_error(self, error: BaseException, /) -> None:
        self._record(Kind.ON_ERROR, error, error)

    def on_complete(self) -> None:
        self._record(Kind.ON_COMPLETE, None, COMPLETE)

    def _record(self, kind: Kind, value: object, signal: object) -> None:
        self.signals.append(signal)
        self.entries.append(self.journal.note(kind, value))
        if kind is not Kind.ON_NEXT:
            self._terminated.set()
        self._changes.notify()


class AsyncSubscriberProbe(SubscriberProbe[T]):
    """The same with ``async def`` methods; each signal takes *turns* turns of the loop.

    ``overlaps`` counts signals that began before the previous one had ended (rule 1.3).
    """

    # A subscriber's method may be def or async def, but a type checker expects that of the base
    # class. Hence the ignores.

    def __init__(self, request: int = 0, *, again: int = 0, turns: int = 1) -> None:
        super().__init__(request, again=again)
        self._turns = turns
        self._running = 0
        self.overlaps: int = 0

    async def _take_time(self) -> None:
        self._running += 1
        if self._running > 1:
            self.overlaps += 1
        await pass_time(self._turns)
        self._running -= 1

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
    """A publisher that emits only on call; it records the demand and the cancellations.

    ::

        publisher, subscriber = PublisherProbe[int](), SubscriberProbe[int](2)
        subscriber.subscribed_to(to_flow(publisher).map(str))
        await publisher.expect_request(2)
        publisher.emit(1)
        publisher.complete()

    `emit`, `complete` and `fail` signal the latest subscriber, with or without demand; `send` waits
    until the subscriber has processed each element. `expect_request` and `expect_cancel` wait for
    a signal of the subscriber, and raise an AssertionError if it does not come.
    """

    def __init__(self) -> None:
        self.journal: Journal = Journal()
        self.requested: int = 0
        """The sum of all requests."""
        self.requests: list[int] = []
        self.cancel_count: int = 0
        self.emitted: int = 0
        """How many elements were emitted."""
        self.subscribers: list[Subscriber[T]] = []
        self._running: set[asyncio.Future[None]] = set()
        self._changes = _Changes()

    @property
    def subscriber(self) -> Subscriber[T]:
        """The latest subscriber; an AssertionError before subscribe."""
        if not self.subscribers:
            raise AssertionError("subscribe was not called")
        return self.subscribers[-1]

    @property
    def outstanding(self) -> int:
        """The demand that is left; negative when more was emitted than requested."""
        return self.requested - self.emitted

    # -- the publisher, which is its own subscription ----------------------------------------------
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.journal.note(Kind.SUBSCRIBE)
        self.subscribers.append(subscriber)
        self.journal.note(Kind.ON_SUBSCRIBE)
        self._run(subscriber.on_subscribe(self))
        self._changes.notify()

    def request(self, n: int, /) -> None:
        self.journal.note(Kind.REQUEST, n)
        self.requested += n
        self.requests.append(n)
        self._changes.notify()

    def cancel(self) -> None:
        self.journal.note(Kind.CANCEL)
        self.cancel_count += 1
        self._changes.notify()

    # -- the test calls ----------------------------------------------------------------------------
    def emit(self, *elements: T) -> None:
        """Emit *elements*, with or without demand; coroutines of the subscriber run at once."""
        for element in elements:
            self._run(self._signal(element))

    def complete(self) -> None:
        self.journal.note(Kind.ON_COMPLETE)
        self._run(self.subscriber.on_complete())

    def fail(self, error: BaseException) -> None:
        self.journal.note(Kind.ON_ERROR, error)
        self._run(self.subscriber.on_error(error))

    def _run(self, result: Signalled) -> None:
        """The next signal does not wait for this one, so rule 1.3 can be broken as well."""
        if result is not None:
            task = asyncio.ensure_future(result)
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def send(self, *elements: T) -> None:
        """Emit *elements*, each when the subscriber has processed the previous one (rule 1.3)."""
        for element in elements:
            if (result := self._signal(element)) is not None:
                await result

    def _signal(self, element: T) -> Signalled:
        self.journal.note(Kind.ON_NEXT, element)
        self.emitted += 1
        return self.subscriber.on_next(element)

    # -- the test waits ----------------------------------------------------------------------------
    async def expect_subscriber(self, count: int = 1, *, within: float = WITHIN) -> Subscriber[T]:
        """Wait for the *count*-th subscriber, and return it."""
        await self._expect(
            lambda: len(self.subscribers) >= count,
            lambda: f"{count} must subscribe; {len(self.subscribers)} did",
            within,
        )
        return self.subscriber

    async def expect_request(self, n: int, *, within: float = WITHIN) -> None:
        """Wait until at least *n* elements have been requested in total."""
        words = lambda: f"{n} must be requested; {self.requested} were"  # noqa: E731
        await self._expect(lambda: self.requested >= n, words, within)

    async def expect_cancel(self, *, within: float = WITHIN, turns: int = TURNS) -> None:
        """Wait for cancel(), and for *turns* turns more: it must not be called twice."""
        await self._expect(lambda: self.cancel_count, lambda: "cancel() must come", within)
        await pass_time(turns)
        if self.cancel_count > 1:
            words = f"cancel() must come once; it came {self.cancel_count} times"
            raise UnexpectedSignal(self.journal, words)

    async def expect_nothing(self, *, turns: int = TURNS, seconds: float = 0.0) -> None:
        """Wait so many turns of the loop and seconds: no request or cancellation must come."""
        before = len(self.requests) + self.cancel_count
        await pass_time(turns, seconds)
        if len(self.requests) + self.cancel_count > before:
            raise UnexpectedSignal(self.journal, "nothing was expected from downstream")

    async def _expect(
        self, condition: Callable[[], object], words: Callable[[], str], within: float
    ) -> None:
        if not await self._changes.wait_until(condition, within):
            raise UnexpectedSignal(self.journal, f"{words()} within {within:g} s")


class _Changes:
    """A condition variable for any thread, whose waiters let the loop's clock advance."""

    def __init__(self) -> None:
        self._waiters: dict[asyncio.Future[None], int] = {}

    def notify(self) -> None:
        for waiter, thread in list(self._waiters.items()):
            if thread == get_ident():
                _wake(waiter)
            else:
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    async def wait_until(self, condition: Callable[[], object], within: float) -> bool:
        """Wait until *condition* holds; False when it does not hold *within* so many seconds."""
        if condition():
            return True
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(within):
                while True:
                    # Registered before the check: a thread may notify at any moment.
                    waiter = loop.create_future()
                    self._waiters[waiter] = get_ident()
                    try:
                        if condition():
                            return True
                        await waiter
                    finally:
                        del self._waiters[waiter]
        except TimeoutError:
            return bool(condition())


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def pass_time(turns: int, seconds: float = 0.0) -> None:
    """Let the loop run for so many turns and seconds of its clock."""
    if seconds:
        await asyncio.sleep(seconds)
    for _ in range(turns):
        await asyncio.sleep(0)
