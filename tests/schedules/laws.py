"""What must hold in whatever order things happen: a witness of the signals, and what may come.

Signals come one at a time, on the loop's thread, never more elements than were requested, nothing
after a terminal signal, nothing after a cancellation. A `Law` says which elements may come.
"""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from reactive_aio.spec import Subscription

__all__ = ("ALL", "AsyncWitness", "Batches", "Law", "Lossy", "Orders", "Witness")

ALL = 10**6
"""A demand that is never used up here."""


class Witness:
    """A subscriber that holds the laws against each signal.

    It requests *first*, and *again* after each element.
    """

    def __init__(self, first: int = 0, *, again: int = 0) -> None:
        self._again = again
        self._first = first
        self._thread = threading.get_ident()
        self._inside = False
        self._ended = asyncio.Event()
        self.asked = 0
        self.elements: list[Any] = []
        self.error: BaseException | None = None
        self.breaches: list[str] = []
        self.silent = False
        """From now on nothing may come."""
        self.subscription: Subscription | None = None

    # -- what the scenario does --------------------------------------------------------------------
    def request(self, n: int) -> None:
        """From any thread."""
        assert self.subscription is not None
        self.asked += n
        self.subscription.request(n)

    def cancel(self) -> None:
        """From any thread; on the loop's it takes effect at once."""
        assert self.subscription is not None
        self.subscription.cancel()
        if threading.get_ident() == self._thread:
            self.silent = True

    async def end(self) -> None:
        await self._ended.wait()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    # -- the laws ----------------------------------------------------------------------------------
    def _enter(self, signal: str) -> None:
        if threading.get_ident() != self._thread:
            self.breaches.append(f"{signal} on another thread")
        if self._inside:
            self.breaches.append(f"{signal} while another signal is going on (1.3)")
        if self.ended:
            self.breaches.append(f"{signal} after the terminal signal (1.7)")
        if self.silent:
            self.breaches.append(f"{signal} after the cancellation (1.8)")
        if self.subscription is None and not signal.startswith("on_subscribe"):
            self.breaches.append(f"{signal} before on_subscribe (1.9)")

    def _element(self, element: Any) -> None:
        self.elements.append(element)
        if len(self.elements) > self.asked:
            self.breaches.append(f"{len(self.elements)} elements, {self.asked} requested (1.1)")
        if self._again and not self.silent:
            self.request(self._again)

    def _end(self, error: BaseException | None) -> None:
        self.error = error
        self._ended.set()

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._enter("on_subscribe")
        self.subscription = subscription
        if self._first:
            self.request(self._first)

    def on_next(self, element: Any, /) -> None:
        self._enter(f"on_next({element!r})")
        self._inside = True
        self._element(element)
        self._inside = False

    def on_error(self, error: BaseException, /) -> None:
        self._enter(f"on_error({error!r})")
        self._end(error)

    def on_complete(self) -> None:
        self._enter("on_complete")
        self._end(None)


class AsyncWitness(Witness):
    """The same, and each element takes a turn of the loop."""

    async def on_next(self, element: Any, /) -> None:  # type: ignore[override]
        self._enter(f"on_next({element!r})")
        self._inside = True
        await asyncio.sleep(0)
        self._element(element)
        self._inside = False


class Law:
    """Which elements may come; a subclass says it."""

    fails: type[BaseException] | None = None
    """How the flow ends: with such an error, or by completing."""

    def whole(self, elements: list[Any]) -> None:
        """All elements of a flow that has ended."""
        raise NotImplementedError

    def begun(self, elements: list[Any]) -> None:
        """The elements of a flow that was cancelled."""
        raise NotImplementedError

    def judge(self, witness: Witness) -> None:
        assert witness.breaches == []
        if not witness.ended:
            self.begun(witness.elements)
            return
        if self.fails is None:
            assert witness.error is None, repr(witness.error)
        else:
            assert isinstance(witness.error, self.fails), repr(witness.error)
        self.whole(witness.elements)


class Orders(Law):
    """Every element of each order, once, and in that order; orders may mix with each other."""

    def __init__(self, *orders: Sequence[Any], fails: type[BaseException] | None = None) -> None:
        self.orders = [list(order) for order in orders]
        self.fails = fails

    def begun(self, elements: list[Any]) -> None:
        self._hold(elements)

    def whole(self, elements: list[Any]) -> None:
        assert self._hold(elements) == sum(map(len, self.orders)), f"{elements} of {self.orders}"

    def _hold(self, elements: list[Any]) -> int:
        came = 0
        for order in self.orders:
            of_this = [element for element in elements if element in order]
            assert of_this == order[: len(of_this)], f"{of_this} of {order}"
            came += len(of_this)
        assert came == len(elements), f"{elements} of {self.orders}"
        return came


class Lossy(Law):
    """Some elements of an order, each at most once, and in that order; *last*: the last one too."""

    def __init__(self, order: Sequence[Any], *, last: bool = False) -> None:
        self.order = list(order)
        self.last = last

    def begun(self, elements: list[Any]) -> None:
        places = [self.order.index(element) for element in elements]
        assert places == sorted(set(places)), f"{elements} of {self.order}"

    def whole(self, elements: list[Any]) -> None:
        self.begun(elements)
        assert not self.last or elements[-1] == self.order[-1], f"{elements} of {self.order}"


class Batches(Orders):
    """The same for lists of elements."""

    def _hold(self, elements: list[Any]) -> int:
        return super()._hold([element for batch in elements for element in batch])
