"""The base of the processors: the producers' side, the feed, and the statistics."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._core.compiler.chain import Chain
from .._core.compiler.chain_sources import Downstream, PushSource
from .._core.queues.bounded_queue import (
    DISCARDED,
    BoundedQueue,
    Emission,
    OverflowPolicy,
    require_capacity,
    require_policy,
)
from .._core.queues.hot_emitter import HotEmitter
from .._core.queues.output_buffer import OutputBuffer
from ..errors import NotAnElement
from ..flow import Flow
from ..spec import Subscription
from .feed import Feed

if TYPE_CHECKING:
    from .._core.loop import Future

__all__ = ("Hot", "ProcessorStats")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProcessorStats:
    """What a processor has done so far, and how far its subscribers are behind."""

    accepted: int
    """Elements that were taken in."""
    refused: int
    """Emissions that found no room; their producers still had the elements."""
    dropped: Mapping[str, int]
    """Elements that were dropped, by reason; for each subscriber that missed one."""
    subscribers: int
    held: int
    """The most that is held for one subscriber now."""
    highest: int
    """The most that was ever held for one subscriber."""
    requested: int
    """The least outstanding demand of a subscriber; 0 without one."""
    ended: bool


class Hot(Flow[T]):
    """What all processors have: a gate for producers, a feed, and statistics."""

    __slots__ = ("_accepted", "_bound", "_dropped", "_ended", "_error", "_feed", "_gate",
                 "_highest", "_name", "_overflow", "_refused", "_waiting")  # fmt: skip

    def __init__(
        self, bound: int = 256, *, overflow: OverflowPolicy = "buffer", name: str = ""
    ) -> None:
        kind = type(self).__name__
        self._name = name or kind
        self._bound = require_capacity(bound, kind)
        self._overflow: OverflowPolicy = require_policy(overflow, kind)
        latest = overflow == "latest"
        holds = 2 if latest else bound
        head = PushSource(
            self._name,
            cast("Callable[[Downstream[Any]], Subscription]", self._attach),
            holds=holds + 2 * bound,
            checked=True,
            window=int(latest),
        )
        super().__init__(Chain(head))
        self._gate: HotEmitter[T] = HotEmitter(
            self._name, bound, self._deliver, self._full, self._finish
        )
        self._feed: Feed[T] | None = None
        self._ended = False
        self._error: BaseException | None = None
        self._accepted = self._refused = self._highest = 0
        self._dropped: Counter[str] = Counter()
        self._waiting: list[tuple[int, Future[None]]] = []

    def __repr__(self) -> str:
        state = "ended" if self._gate.ended else f"{len(self._outlets())} subscribers"
        return f"<{self._name} {state}>"

    # -- producing --------------------------------------------------------------------------------
    def try_emit(self, element: T) -> Emission:
        """Emit *element* now, on the loop's thread; true if it was accepted."""
        return self._counted(self._gate.try_emit(element))

    async def emit(self, element: T) -> Emission:
        """Emit *element*, waiting for room under ``"buffer"`` and ``"fail"``: real backpressure."""
        return self._counted(await self._gate.emit(element))

    def emit_threadsafe(self, element: T) -> Emission:
        """Emit from any thread: REFUSED when *bound* elements wait for the loop already.

        Under a policy that drops, elements for which there is no room are dropped on the loop.
        """
        return self._gate.emit_threadsafe(element)

    def complete(self) -> None:
        """Complete every subscriber, behind what was accepted. From any thread."""
        self._gate.end()

    def fail(self, error: BaseException) -> None:
        """Fail every subscriber, behind what was accepted. From any thread."""
        if cast("object", error) is None:
            raise NotAnElement("fail(None): an exception is needed")
        self._gate.end(error)

    async def subscribed(self, count: int = 1) -> None:
        """Wait until there are *count* subscribers, or the processor has ended."""
        if len(self._outlets()) < count and not self._gate.ended:
            waiter: Future[None] = self._gate.loop_handle.create_future()
            self._waiting.append((count, waiter))
            await waiter

    def stats(self) -> ProcessorStats:
        """A snapshot of what it has done so far."""
        outlets = self._outlets()
        queues = self._queues()
        dropped = sum((queue.dropped for queue in queues), self._dropped)
        dropped[DISCARDED] += self._gate.lost
        return ProcessorStats(
            accepted=self._accepted,
            refused=self._refused,
            dropped={reason: count for reason, count in dropped.items() if count},
            subscribers=sum(not outlet.closed for outlet in outlets),
            held=max((len(queue) + queue.lent for queue in queues), default=0),
            highest=max([self._highest, *(queue.highest for queue in queues)]),
            requested=min((outlet.demand.outstanding for outlet in outlets), default=0),
            ended=self._gate.ended,
        )

    def _counted(self, outcome: Emission) -> Emission:
        if outcome is Emission.REFUSED:
            self._refused += 1
        return outcome

    # -- a subscriber to the publisher that feeds it ----------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Be fed by a publisher; a second one is cancelled (rule 2.5)."""
        self._fed().inner.on_subscribe(subscription)

    def on_next(self, element: T, /) -> None:
        """Take an element of the publisher; it is asked for as many as there is room for."""
        self._fed().inner.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        """Fail with the publisher, behind its elements (rule 4.2)."""
        self._fed().inner.on_error(error)

    def on_complete(self) -> None:
        """Complete with the publisher, behind its elements."""
        self._fed().inner.on_complete()

    def _fed(self) -> "Feed[T]":
        feed = self._feed
        if feed is None:
            feed = self._feed = Feed(self._gate, self._refill)
            if self._gate.ended:
                feed.inner.cancel()
            if any(outlet.demand for outlet in self._outlets()):
                self._refill(feed)
        return feed

    def _refill(self, feed: "Feed[T]") -> None:
        """Let the publisher send as much as the slowest subscriber has room for."""
        if feed.inner.outstanding * 4 > self._bound or not self._outlets():
            return  # a good part is still on its way, or nobody is there
        held = max((len(queue) + queue.lent for queue in self._queues()), default=0)
        missing = self._bound - held - feed.inner.outstanding
        if missing * 4 >= self._bound:
            feed.inner.request(missing)

    # -- subscribers: one or many ------------------------------------------------------------------
    def _outlets(self) -> tuple[OutputBuffer[T], ...]:
        """Those who are there; each kind of processor keeps them in its own way."""
        raise NotImplementedError

    def _queues(self) -> list[BoundedQueue[T]]:
        return [outlet.queue for outlet in self._outlets()]

    def _attach(self, downstream: Downstream[T]) -> Subscription:
        """Take a subscriber in, or refuse it; each kind of processor has its own way."""
        raise NotImplementedError

    def _outlet(self, downstream: Downstream[T], queue: BoundedQueue[T]) -> OutputBuffer[T]:
        _ = self._gate.loop_handle  # from now on it belongs to this loop
        outlet = OutputBuffer(downstream, queue, self._name, room=self._room, gone=self._left)
        if self._ended:
            outlet.end(self._error)
        return outlet

    def _joined(self) -> None:
        count = len(self._outlets())
        for waits in [each for each in self._waiting if each[0] <= count]:
            self._waiting.remove(waits)
            if not waits[1].done():
                waits[1].set_result(None)

    def _left(self, outlet: OutputBuffer[T]) -> None:
        """A subscriber is gone; whether others are left, each kind of processor knows."""
        raise NotImplementedError

    def _room(self) -> None:
        """A subscriber has processed elements, or wants more."""
        self._gate.room()
        feed = self._feed
        if feed is not None:
            feed.pass_on()

    # -- behind the gate --------------------------------------------------------------------------
    def _deliver(self, element: T) -> Emission:
        """Queue *element* for one subscriber, or for all: each kind has its own way."""
        raise NotImplementedError

    def _full(self) -> bool:
        """Whether a producer that can wait had better do so."""
        waits = self._overflow in ("buffer", "fail")
        return waits and any(queue.full for queue in self._queues())

    def _finish(self, error: BaseException | None) -> None:
        self._ended, self._error = True, error
        if self._feed is not None:
            self._feed.inner.cancel()
        for outlet in self._outlets():
            outlet.end(error)
        self._let_go()

    def _let_go(self) -> None:
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()
