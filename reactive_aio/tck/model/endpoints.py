"""Publishers and subscribers around a pipeline and in it, which record what breaks a rule."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...spec import Publisher, Subscriber, Subscription

__all__ = ("AsyncProbe", "Offences", "Probe", "Relay", "StepPublisher")

Offences = list[str]


@dataclass(eq=False)
class Signals:
    """The signals of one subscription, and the demand for them."""

    where: str
    offences: Offences
    requested: int = 0
    received: int = 0
    is_subscribed: bool = False
    is_terminated: bool = False
    is_cancelled: bool = False

    def subscribe(self) -> None:
        if self.is_subscribed:
            self.offences.append(f"{self.where}: a second on_subscribe (2.12)")
        self.is_subscribed = True

    def request(self, n: object) -> None:
        if type(n) is not int or n < 1:
            self.offences.append(f"{self.where}: request({n!r}) (3.9)")
        else:
            self.requested += n

    def element(self) -> None:
        self.received += 1
        self._signal("on_next")
        if self.received > self.requested:
            text = f"element {self.received} of {self.requested} requested (1.1)"
            self.offences.append(f"{self.where}: {text}")
        if self.is_cancelled:
            self.offences.append(f"{self.where}: on_next after cancel (1.8)")

    def end(self, name: str) -> None:
        self._signal(name)
        self.is_terminated = True

    def _signal(self, name: str) -> None:
        if not self.is_subscribed:
            self.offences.append(f"{self.where}: {name} before on_subscribe (1.9)")
        if self.is_terminated:
            self.offences.append(f"{self.where}: {name} after the end (1.7)")


@dataclass(eq=False)
class Relay:
    """A foreign publisher that passes signals and requests on, and checks both."""

    source: Publisher[Any]
    offences: Offences

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.source.subscribe(_RelayedSubscriber(subscriber, Signals("a relay", self.offences)))


@dataclass(eq=False)
class _RelayedSubscriber:
    """Upstream of a foreign subscription, and that subscription itself."""

    subscriber: Subscriber[Any] | None
    signals: Signals
    subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.signals.subscribe()
        self.subscription = subscription
        if self.subscriber is not None:
            self.subscriber.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        self.signals.element()
        if self.subscriber is not None:
            self.subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.end("on_error")
        subscriber, self.subscriber, self.subscription = self.subscriber, None, None
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self) -> None:
        self.signals.end("on_complete")
        subscriber, self.subscriber, self.subscription = self.subscriber, None, None
        if subscriber is not None:
            subscriber.on_complete()

    def request(self, n: int, /) -> None:
        self.signals.request(n)
        if self.subscription is not None:
            self.subscription.request(n)

    def cancel(self) -> None:
        self.signals.is_cancelled = True
        subscription, self.subscriber, self.subscription = self.subscription, None, None
        if subscription is not None:
            subscription.cancel()


@dataclass(eq=False)
class StepPublisher:
    """A publisher of *count* elements, one *every* so many seconds or within ``request``."""

    issue: Callable[[int], Any]
    count: int
    every: float | None
    error: Callable[[], BaseException] | None
    offences: Offences
    opened: int = 0
    closed: int = 0

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.opened += 1
        subscription = _Steps(self, subscriber, Signals("a source", self.offences))
        subscription.signals.is_subscribed = True
        subscriber.on_subscribe(subscription)
        subscription.advance()


@dataclass(eq=False)
class _Steps:
    publisher: StepPublisher
    subscriber: Subscriber[Any] | None
    signals: Signals
    is_busy: bool = False
    timer: asyncio.TimerHandle | None = None

    def request(self, n: int, /) -> None:
        self.signals.request(n)
        self.advance()

    def cancel(self) -> None:
        self._close()

    def advance(self) -> None:
        """Emit, unless that happens already; then end."""
        if self.is_busy or self.timer is not None:
            return
        self.is_busy = True
        every, signals = self.publisher.every, self.signals
        while self.subscriber is not None and signals.received < self.publisher.count:
            if signals.received == signals.requested:
                break
            if every is not None:
                self.timer = asyncio.get_running_loop().call_later(every, self._on_time)
                break
            self._emit()
        self.is_busy = False
        self._end()

    def _on_time(self) -> None:
        self.timer, self.is_busy = None, True
        self._emit()
        self.is_busy = False
        self.advance()

    def _emit(self) -> None:
        self.signals.element()
        if self.subscriber is not None:
            self.subscriber.on_next(self.publisher.issue(self.signals.received - 1))

    def _end(self) -> None:
        subscriber = self.subscriber
        if subscriber is None or self.signals.received < self.publisher.count:
            return
        self._close()
        if self.publisher.error is None:
            subscriber.on_complete()
        else:
            subscriber.on_error(self.publisher.error())

    def _close(self) -> None:
        if self.subscriber is not None:
            self.subscriber = None
            self.publisher.closed += 1
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


@dataclass(eq=False)
class Probe:
    """A subscriber that requests in batches and may cancel after some elements.

    With *later*, it requests in a callback of its own after so many seconds.
    """

    deliver: Callable[[Any], object]
    on_request: Callable[[], object]
    offences: Offences
    batches: tuple[int, ...]
    later: float | None = None
    cancel_after: int | None = None
    error: BaseException | None = None
    end_event: asyncio.Event = field(default_factory=asyncio.Event)
    batch: int = 0
    subscription: Subscription | None = None

    def __post_init__(self) -> None:
        self.signals: Signals = Signals("the subscriber", self.offences)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.signals.subscribe()
        self.subscription = subscription
        self._request()

    def on_next(self, element: Any, /) -> None:
        self.signals.element()
        self.deliver(element)
        del element
        if self.signals.received == self.cancel_after:
            self.cancel()
        elif self.signals.received == self.signals.requested:
            if self.later is None:
                self._request()
            else:
                asyncio.get_running_loop().call_later(self.later, self._request)

    def on_error(self, error: BaseException, /) -> None:
        self.error = error
        self._end("on_error")

    def on_complete(self) -> None:
        self._end("on_complete")

    def cancel(self) -> None:
        self.signals.is_cancelled = True
        subscription, self.subscription = self.subscription, None
        if subscription is not None:
            subscription.cancel()
        self.end_event.set()

    def _request(self) -> None:
        if self.subscription is not None:
            n = self.batches[self.batch % len(self.batches)]
            self.batch += 1
            self.on_request()
            self.signals.request(n)
            self.subscription.request(n)

    def _end(self, name: str) -> None:
        self.signals.end(name)
        self.subscription = None
        self.end_event.set()


class AsyncProbe(Probe):
    """The same with ``async def`` methods, which take a turn of the loop."""

    is_running: bool = False

    async def on_subscribe(self, subscription: Subscription, /) -> None:  # type: ignore[override]
        await self._turn()
        super().on_subscribe(subscription)

    async def on_next(self, element: Any, /) -> None:  # type: ignore[override]
        super().on_next(element)
        del element
        await self._turn()

    async def on_error(self, error: BaseException, /) -> None:  # type: ignore[override]
        await self._turn()
        super().on_error(error)

    async def on_complete(self) -> None:  # type: ignore[override]
        await self._turn()
        super().on_complete()

    async def _turn(self) -> None:
        if self.is_running:
            self.offences.append("the subscriber: a signal before the one before has ended (1.3)")
        self.is_running = True
        await asyncio.sleep(0)
        self.is_running = False
