"""Checks that must hold in every order: of each signal, and of the elements that came.

Signals come one at a time, on the loop's thread, never more elements than were requested, none
after a terminal signal, none after a cancellation. `Expected` describes which elements may come.
"""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from reactive_aio.spec import Subscription

__all__ = (
    "UNLIMITED",
    "AsyncCheckedSubscriber",
    "CheckedSubscriber",
    "Expected",
    "Interleaved",
    "InterleavedLists",
    "Lossy",
)

UNLIMITED = 10**6
"""More than any scenario sends."""


class CheckedSubscriber:
    """A subscriber that checks the rules at each signal.

    It requests *first*, and *again* after each element.
    """

    def __init__(self, first: int = 0, *, again: int = 0) -> None:
        self._again = again
        self._first = first
        self._thread = threading.get_ident()
        self._is_in_signal = False
        self._terminated = asyncio.Event()
        self.requested = 0
        self.elements: list[Any] = []
        self.error: BaseException | None = None
        self.violations: list[str] = []
        self.must_be_silent = False
        """From now on no signal may come."""
        self.subscription: Subscription | None = None

    # -- called by the scenario --------------------------------------------------------------------
    def request(self, n: int) -> None:
        """From any thread."""
        assert self.subscription is not None
        self.requested += n
        self.subscription.request(n)

    def cancel(self) -> None:
        """From any thread; on that of the loop it takes effect at once."""
        assert self.subscription is not None
        self.subscription.cancel()
        if threading.get_ident() == self._thread:
            self.must_be_silent = True

    async def end(self) -> None:
        await self._terminated.wait()

    @property
    def is_terminated(self) -> bool:
        return self._terminated.is_set()

    # -- the checks --------------------------------------------------------------------------------
    def _enter(self, signal: str) -> None:
        if threading.get_ident() != self._thread:
            self.violations.append(f"{signal} on another thread")
        if self._is_in_signal:
            self.violations.append(f"{signal} while another signal is running (1.3)")
        if self.is_terminated:
            self.violations.append(f"{signal} after the terminal signal (1.7)")
        if self.must_be_silent:
            self.violations.append(f"{signal} after the cancellation (1.8)")
        if self.subscription is None and not signal.startswith("on_subscribe"):
            self.violations.append(f"{signal} before on_subscribe (1.9)")

    def _element(self, element: Any) -> None:
        self.elements.append(element)
        if len(self.elements) > self.requested:
            self.violations.append(
                f"{len(self.elements)} elements, {self.requested} requested (1.1)"
            )
        if self._again and not self.must_be_silent:
            self.request(self._again)

    def _end(self, error: BaseException | None) -> None:
        self.error = error
        self._terminated.set()

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._enter("on_subscribe")
        self.subscription = subscription
        if self._first:
            self.request(self._first)

    def on_next(self, element: Any, /) -> None:
        self._enter(f"on_next({element!r})")
        self._is_in_signal = True
        self._element(element)
        self._is_in_signal = False

    def on_error(self, error: BaseException, /) -> None:
        self._enter(f"on_error({error!r})")
        self._end(error)

    def on_complete(self) -> None:
        self._enter("on_complete")
        self._end(None)


class AsyncCheckedSubscriber(CheckedSubscriber):
    """The same with an ``async def`` on_next that takes a turn of the loop."""

    async def on_next(self, element: Any, /) -> None:  # type: ignore[override]
        self._enter(f"on_next({element!r})")
        self._is_in_signal = True
        await asyncio.sleep(0)
        self._element(element)
        self._is_in_signal = False


class Expected:
    """The elements that may come; subclasses define which."""

    fails: type[BaseException] | None = None
    """The type of the error with which the flow ends; None if it completes."""

    def check_all(self, elements: list[Any]) -> None:
        """Check the elements of a flow that has ended."""
        raise NotImplementedError

    def check_some(self, elements: list[Any]) -> None:
        """Check the elements of a flow that was cancelled."""
        raise NotImplementedError

    def check(self, subscriber: CheckedSubscriber) -> None:
        assert subscriber.violations == []
        if not subscriber.is_terminated:
            self.check_some(subscriber.elements)
            return
        if self.fails is None:
            assert subscriber.error is None, repr(subscriber.error)
        else:
            assert isinstance(subscriber.error, self.fails), repr(subscriber.error)
        self.check_all(subscriber.elements)


class Interleaved(Expected):
    """All elements of each sequence, once, and in order; the sequences may interleave."""

    def __init__(self, *sequences: Sequence[Any], fails: type[BaseException] | None = None) -> None:
        self.sequences = [list(each) for each in sequences]
        self.fails = fails

    def check_some(self, elements: list[Any]) -> None:
        self._count(elements)

    def check_all(self, elements: list[Any]) -> None:
        assert self._count(elements) == sum(map(len, self.sequences)), (
            f"{elements} of {self.sequences}"
        )

    def _count(self, elements: list[Any]) -> int:
        came = 0
        for sequence in self.sequences:
            found = [element for element in elements if element in sequence]
            assert found == sequence[: len(found)], f"{found} of {sequence}"
            came += len(found)
        assert came == len(elements), f"{elements} of {self.sequences}"
        return came


class Lossy(Expected):
    """Some elements of a sequence, each at most once, and in order; *last*: including its last."""

    def __init__(self, sequence: Sequence[Any], *, last: bool = False) -> None:
        self.sequence = list(sequence)
        self.last = last

    def check_some(self, elements: list[Any]) -> None:
        places = [self.sequence.index(element) for element in elements]
        assert places == sorted(set(places)), f"{elements} of {self.sequence}"

    def check_all(self, elements: list[Any]) -> None:
        self.check_some(elements)
        assert not self.last or elements[-1] == self.sequence[-1], f"{elements} of {self.sequence}"


class InterleavedLists(Interleaved):
    """The same for lists of elements."""

    def _count(self, elements: list[Any]) -> int:
        return super()._count([element for batch in elements for element in batch])


class OneOf(Expected):
    """All elements of one of several sequences."""

    def __init__(self, *sequences: Sequence[Any]) -> None:
        self.sequences = [list(each) for each in sequences]

    def check_some(self, elements: list[Any]) -> None:
        begun = [each for each in self.sequences if each[: len(elements)] == elements]
        assert begun, f"{elements} of {self.sequences}"

    def check_all(self, elements: list[Any]) -> None:
        assert elements in self.sequences


class Combined(Expected):
    """Tuples of one element of each sequence: each advances in one place, the last has all ends."""

    def __init__(self, *sequences: Sequence[Any]) -> None:
        self.sequences = [list(each) for each in sequences]

    def check_some(self, elements: list[Any]) -> None:
        sums = [sum(self._places(each)) for each in elements]
        assert sums == [*range(sums[0], sums[0] + len(sums))] if sums else True, f"{elements}"

    def check_all(self, elements: list[Any]) -> None:
        self.check_some(elements)
        assert list(elements[-1]) == [each[-1] for each in self.sequences], f"{elements}"

    def _places(self, element: Sequence[Any]) -> list[int]:
        return [each.index(x) for each, x in zip(self.sequences, element, strict=True)]
