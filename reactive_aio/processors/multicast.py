"""MulticastProcessor: a hot flow for any number of subscribers."""

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from .._core.losses import DISCARDED
from .._core.queues.bounded_queue import BoundedQueue, Emission, OverflowPolicy
from .._core.queues.output_buffer import OutputBuffer
from .._core.queues.shared_room import SharedRoom
from ..errors import Interrupted
from ..stage import Downstream, FlowSubscription
from .hot_processor import NO_SUBSCRIBER, HotProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

_NOT_ACCEPTED: Final[dict[str, Emission]] = {
    "wait": Emission.REFUSED,
    "fail": Emission.OVERFLOWED,
}
"""The outcome for an element that no subscriber accepts, if it is not dropped."""
_ACCEPTED: Final = Emission.ACCEPTED


class MulticastProcessor(HotProcessor[T]):
    """A hot flow for any number of subscribers, each with its own demand.

    ::

        news = MulticastProcessor[str](capacity=100, overflow="drop_oldest")
        news.subscribe(one)
        news.map(str.upper).subscribe(other)
        news.try_emit("a")

    A subscriber receives the elements emitted while it is subscribed; up to *capacity* elements
    wait for each subscriber. When the queue of the slowest one is full, *overflow* decides what
    happens to an element of a producer that cannot wait: ``"wait"`` (the element is refused and no
    subscriber receives it: the slowest holds the others back), ``"drop_newest"``,
    ``"drop_oldest"``, ``"latest"`` (only the slow subscriber misses elements), ``"fail"`` (the slow
    subscriber fails with `Overflow`). What other threads emit waits for the loop, at most
    *capacity* elements; under ``"fail"``, one more ends the processor, since every subscriber would
    miss it.

    A publisher upstream can wait: under ``"wait"`` it waits for the slowest subscriber. Under any
    other policy it waits for none, not even for a subscriber that is alone.

    When the last subscriber leaves, a publisher upstream is cancelled, and the processor ends: a
    later subscriber fails with `Interrupted`. With ``auto_cancel=False`` the publisher is kept, and
    sends no more than was requested until there is a subscriber again. Without a publisher upstream
    the processor stays open either way.

    Without a subscriber, emitted elements are dropped and counted, and nothing is requested of a
    publisher upstream; ``await wait_for_subscribers()`` avoids the loss. A subscriber that
    subscribes after the end receives the terminal signal.

    Demand: an element for which there is demand is delivered in the producer's call. Of a publisher
        upstream, as many elements are requested as *overflow* says, from the first request on.
    Completes: by ``complete()`` or with the publisher, after the elements accepted.
    Fails: by ``fail(error)``, after the elements accepted; with the publisher at once, and the
        elements that a subscriber has not requested yet are dropped.
    Cancels: removes this subscriber; the last one also cancels the publisher, if *auto_cancel*.
    Holds: *capacity* elements for each subscriber, as many again of other threads, and as many of
        the publisher.
    Rules: 1.1, 1.11, 2.5, 3.14, 4.1, 4.2
    """

    _retains: ClassVar[bool] = False
    """Whether it keeps elements for later subscribers."""
    __slots__ = ("_auto_cancel", "_delivery", "_shared_room")

    def __init__(
        self,
        capacity: int = 256,
        *,
        overflow: OverflowPolicy = "wait",
        auto_cancel: bool = True,
        name: str = "",
    ) -> None:
        super().__init__(capacity, overflow=overflow, name=name)
        self._auto_cancel = auto_cancel
        self._delivery: _Delivery[T] | None = None
        self._shared_room = SharedRoom(capacity, overflow)

    def _queues(self) -> list[BoundedQueue[T]]:
        return [output.queue for output in self._outputs]

    def _attach(self, downstream: Downstream[T]) -> FlowSubscription:
        output = self._output_buffer(downstream, self._new_queue())
        if not self._is_done:
            self._outputs = (*self._outputs, output)
            self._find_sole()
            self._wake_waiters()
        return output

    def _new_queue(self) -> BoundedQueue[T]:
        """The queue of one subscriber."""
        return BoundedQueue(self._capacity, self._overflow, self._new_drops())

    def _ends_without_subscribers(self) -> bool:
        return self._auto_cancel

    def _on_cancel(self, output: OutputBuffer[T]) -> None:
        self._outputs = tuple(each for each in self._outputs if each is not output)
        self._find_sole()
        self._highest = max(self._highest, output.queue.highest)
        if self._outputs:
            self._emitter.on_room()  # it may have been the slowest
            if self._feed is not None:
                self._feed.on_room()
        elif self._feed is not None and self._auto_cancel and not self._is_done:
            self._failure = partial(
                Interrupted,
                f"{self._name} has ended: its last subscriber has left, so that the publisher "
                "upstream was cancelled; to keep it, pass auto_cancel=False",
            )
            self._shut_down()
        else:
            self._emitter.on_room()  # no subscriber holds the producers back now

    # -- delivering -------------------------------------------------------------------------------
    def _deliver(self, element: T) -> Emission:
        if self._delivery is not None:
            self._complete_delivery()
            if self._is_done:
                return Emission.ENDED
        if self._overflow == "wait" and self._shared_room.is_any_full(self._outputs):
            return Emission.REFUSED
        outputs = self._outputs
        if self._retains:
            self._retain([element])
        if len(outputs) == 1:
            outcome = outputs[0].offer(element).outcome
        elif not outputs:
            return self._without_subscriber(1)
        elif self._deliver_to_each([element]):
            outcome = _ACCEPTED
        else:
            outcome = _NOT_ACCEPTED.get(self._overflow, Emission.DROPPED)
        if outcome is _ACCEPTED:
            self._accepted += 1
        return outcome

    def _deliver_all(self, elements: list[T]) -> None:
        self._complete_delivery()
        if self._is_done:
            self._drops.add(DISCARDED, len(elements))
            self._discard(elements)
            return
        if self._retains:
            self._retain(elements)
        if self._outputs:
            self._accepted += self._deliver_to_each(elements)
        else:
            self._without_subscriber(len(elements))

    # Only when every subscriber has the elements before, and immediately before the first one
    # receives these: who subscribes inside a signal finds each element either here or in its queue.
    def _retain(self, elements: list[T]) -> None:
        """Keep *elements* for later subscribers, if `_retains`."""

    def _without_subscriber(self, count: int) -> Emission:
        self._drops.add(NO_SUBSCRIBER, count)
        return Emission.DROPPED

    def _deliver_to_each(self, elements: list[T]) -> int:
        """Return how many elements a subscriber has accepted: the one that accepted the most."""
        delivery = self._delivery = _Delivery(elements, self._outputs)
        self._complete_delivery()
        return delivery.accepted

    def _find_sole(self) -> None:
        is_sole = len(self._outputs) == 1 and self._delivery is None
        self._sole = self._outputs[0] if is_sole else None

    def _complete_delivery(self) -> None:
        """Deliver to the subscribers that are left, so that all of them see one order.

        A subscriber has emitted inside on_next, or has ended the processor.
        """
        if self._delivery is not None:
            self._delivery.run()
            self._delivery = None
            self._find_sole()

    def _slowest(self) -> Downstream[Any] | None:
        return self._shared_room.held_back_by(self._outputs)

    def _room(self) -> int:
        return self._shared_room.now(self._outputs)

    def _wanted(self, enough: int) -> int:
        outputs = self._outputs
        return self._shared_room.wanted(outputs, enough) if outputs else 0

    def _is_full(self) -> bool:
        is_bounded = self._overflow in ("wait", "fail")
        return is_bounded and self._shared_room.is_any_full(self._outputs)

    # -- the end ----------------------------------------------------------------------------------
    def _finish(self, error: BaseException | None) -> None:
        self._complete_delivery()
        super()._finish(error)

    def _fail_at_once(self, error: BaseException) -> None:
        self._complete_delivery()
        super()._fail_at_once(error)


class _Delivery(Generic[T]):
    """Elements on their way to several subscribers.

    Running it again, inside a signal of one of them, serves those that are left.
    """

    __slots__ = ("_elements", "_outputs", "accepted")

    def __init__(self, elements: list[T], outputs: tuple[OutputBuffer[T], ...]) -> None:
        self._elements = elements
        self._outputs: Iterator[OutputBuffer[T]] = iter(outputs)
        self.accepted: int = 0

    def run(self) -> None:
        elements = self._elements
        is_single = len(elements) == 1
        for output in self._outputs:
            if (
                is_single
                and not output.queue.elements
                and output.downstream.try_push(elements[0]) is not None
            ):
                self.accepted = 1
            elif (accepted := output.offer_all(elements)) > self.accepted:
                self.accepted = accepted
