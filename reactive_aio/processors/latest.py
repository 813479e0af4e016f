"""LatestProcessor: a value that changes: it can be read, awaited and subscribed to."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .._core.queues.bounded_queue import Emission
from ..errors import EmptyFlow, NotAnElement
from ..stage import require_sync_callable
from .replay import ReplayProcessor

if TYPE_CHECKING:
    from .._core.loop import Future

T = TypeVar("T")


class LatestProcessor(ReplayProcessor[T]):
    """A value that changes: read it, wait for the next one, or subscribe to all that follow.

    ::

        temperature = LatestProcessor(20)
        temperature.try_emit(21)
        temperature.value  # 21
        await temperature.changed()  # the next value

    A subscriber receives the value at once, and then each new one; a slow subscriber misses values
    and receives the latest. Values are not compared: put ``distinct_until_changed()`` after it to
    leave out equal ones. The value stays readable after the end.

    Demand: a value for which there is demand is delivered in the producer's call.
    Completes: by ``complete()`` or with the publisher, after the latest value.
    Fails: by ``fail(error)``, or with the publisher.
    Cancels: removes this subscriber.
    Holds: the value; 2 for each subscriber, one of other threads and one of the publisher.
    Rules: 1.1, 1.11, 2.5, 3.14, 4.1, 4.2
    """

    __slots__ = ("_changes", "_value", "_waiters")

    def __init__(self, initial: T, *, name: str = "") -> None:
        if initial is None:
            raise NotAnElement("LatestProcessor(None): None is not an element")
        self._waiters: dict[Future[None], None] = {}
        self._changes = 0
        super().__init__(1, capacity=1, overflow="latest", name=name)
        self._value = initial
        self._history.add([initial])

    @property
    def value(self) -> T:
        """The latest value."""
        return self._value

    def update(self, function: Callable[[T], T]) -> T:
        """Emit ``function(value)``, and return it; after the end, return the value that stays."""
        require_sync_callable("update", "function", function, "await before.", takes=1)
        new = function(self._value)
        return self._value if self.try_emit(new) is Emission.ENDED else new

    async def changed(self) -> T:
        """Wait for the next value.

        Raises the processor's error, or `EmptyFlow` if it completes instead.
        """
        await self._next_change()
        return self._value

    async def wait_for(self, predicate: Callable[[T], object]) -> T:
        """Wait until ``predicate(value)`` is true, and return the value.

        Raises the processor's error, or `EmptyFlow` if it completes before.
        """
        require_sync_callable("wait_for", "predicate", predicate, "await before.", takes=1)
        while not predicate(self._value):
            await self._next_change()
        return self._value

    async def _next_change(self) -> None:
        before = self._changes
        while self._changes == before:
            if self._emitter.is_ended:
                raise self._error() or EmptyFlow(f"{self._name} has completed")
            waiter: Future[None] = self._emitter.loop_handle.create_future()
            self._waiters[waiter] = None
            try:
                await waiter
            finally:  # it may be cancelled, and no change may follow
                self._waiters.pop(waiter, None)

    def _retain(self, elements: list[T]) -> None:
        super()._retain(elements)
        self._value = elements[-1]
        self._changes += len(elements)
        self._wake_all()

    def _deliver(self, element: T) -> Emission:
        outcome = super()._deliver(element)
        # A slow subscriber misses a value; the value has changed all the same.
        return Emission.ACCEPTED if outcome is Emission.DROPPED else outcome

    def _wake_waiters(self) -> None:
        super()._wake_waiters()
        if self._emitter.is_ended:
            self._wake_all()

    def _wake_all(self) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
