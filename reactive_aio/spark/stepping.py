"""Subscriptions that act step by step, and the one that hands over rows as they are demanded."""

from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Any, ClassVar, Generic, TypeVar

from ..stage import Demand, Downstream, FlowSubscription, LoopHandle
from .arrow.reading_state import HeldElements
from .progress import MakeMeter, no_meter
from .rows import Decoded

T = TypeVar("T")


class SteppedSubscription(FlowSubscription, Generic[T]):
    """Takes one step after another, until one says that there is nothing to do.

    A subclass defines `_act` and `_close`. What a step raises fails the flow. Every method runs on
    the loop's thread.
    """

    __slots__ = ("__weakref__", "_demand", "_downstream", "_is_advancing", "_is_processed",
                 "_loop_handle", "_meter")  # fmt: skip
    time_slice: ClassVar[float] = inf
    """Seconds of work before other callbacks run."""

    def __init__(
        self, downstream: Downstream[T], name: str, make_meter: MakeMeter = no_meter
    ) -> None:
        self._downstream: Downstream[T] | None = downstream
        self._loop_handle = LoopHandle(name)
        self._meter = make_meter(self._loop_handle)
        self._demand = Demand()
        self._is_processed = True
        """Whether downstream has processed all elements that were handed over."""
        self._is_advancing = False

    def request(self, n: int, /) -> None:
        self._meter.on_request(n)
        self._demand.add(n)
        self.processed()

    def processed(self) -> None:
        self._is_processed = True
        self._advance()

    def push(self, elements: list[T], /) -> None:
        """Hand *elements* over."""
        self._meter.on_delivery(elements)
        if self._downstream is not None:
            self._downstream.push(elements)

    def _act(self) -> bool:
        """Take one step; return whether another one may follow at once."""
        raise NotImplementedError(f"{type(self).__name__} does not define _act()")

    def _close(self) -> None:
        """Drop what is held: the subscription has ended, or was cancelled."""

    def _advance(self) -> None:
        """Act until there is nothing to do. Handing elements over leads to requests, and here."""
        if self._is_advancing:
            return
        self._is_advancing, is_paused = True, False
        slice_end = perf_counter() + self.time_slice
        try:
            while self._downstream is not None and self._act():
                if perf_counter() >= slice_end:
                    # After two turns of the loop: a task that sleeps needs one for its timer and
                    # one for itself.
                    self._loop_handle.call_soon(self._loop_handle.call_later, 0.0, self._resume)
                    is_paused = True
                    break
        except Exception as error:
            self._end(error)
        finally:
            self._is_advancing = is_paused

    def _resume(self) -> None:
        self._is_advancing = False
        self._advance()

    def _end(self, error: BaseException | None) -> None:
        """Complete, or fail with *error*."""
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return
        self._close()
        if error is None:
            self._meter.finish("completed")
            downstream.complete()
        else:
            self._meter.finish("failed")
            downstream.fail(error)

    def cancel(self) -> None:
        self._downstream = None
        self._meter.finish("cancelled")
        self._close()


class RowSubscription(SteppedSubscription[Any]):
    """Hands over the elements of one record batch after another, under demand.

    The next one is wanted when everything before was processed, and one more element is requested.
    """

    __slots__ = ("_held", "_on_end", "is_wanting", "on_wanted")

    def __init__(
        self,
        downstream: Downstream[Any],
        name: str,
        on_wanted: Callable[[], object],
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        """*on_wanted* is called when a record batch is wanted; `feed` and `end` are the answers."""
        super().__init__(downstream, name)
        self.on_wanted: Callable[[], object] = on_wanted
        self._on_end = on_end
        self._held: HeldElements[Any] = HeldElements()
        self.is_wanting: bool = False

    @property
    def held(self) -> int:
        """How many elements of the record batch have not been handed over."""
        return self._held.remaining

    # -- answers ----------------------------------------------------------------------------------
    def feed(self, decoded: Decoded) -> None:
        """Take a record batch, which was wanted."""
        self.is_wanting = False
        if self._downstream is not None:
            self._held.put(decoded.parts, decoded.elements)
            self._advance()

    def end(self, error: BaseException | None = None) -> None:
        """There is no other record batch, or *error* is raised instead."""
        self._end(error)

    # -- decisions --------------------------------------------------------------------------------
    def _act(self) -> bool:
        if not self._is_processed or not self._demand or self.is_wanting:
            return False
        if not self._held.remaining:
            self.is_wanting = True
            self.on_wanted()
            return not self.is_wanting
        self._is_processed = False
        self._held.push(self, self._demand)
        return True

    def _close(self) -> None:
        self._held.clear()
        self.is_wanting = False
        self._on_end()
