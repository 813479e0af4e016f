"""Discards: who receives the elements that a flow holds when it ends, and so never delivers.

A hook is a stage's function. It receives what everything upstream of its stage discards: the stages
before it, the source, and the flows that the source reads from, which are given a function for that
when they are opened.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from ..run_control import (
    OnDiscard,
    RunDiscards,
    SharedElements,
    discard_interrupted,
    with_figures,
)

__all__ = ("END", "Discards", "OnDiscard", "discard")

_OF_LISTS: Final[tuple[type[Iterator[Any]], ...]] = (type(iter([])), type(iter(())))
END: Final = object()
"""What a loop has in its hands after the last element."""


def discard(on_discard: OnDiscard | None, elements: Iterable[object]) -> None:
    """Give each of *elements* to *on_discard*, if there is one."""
    if on_discard is not None:
        for element in elements:
            on_discard(element)


def rest_of(iterator: object) -> Iterable[object]:
    """What *iterator* has left of a list; any other one makes its elements when it is read."""
    return cast("Iterable[object]", iterator) if isinstance(iterator, _OF_LISTS) else ()


class Discards:
    """The hooks of one subscription, by the position of their stage; position 0 is the source."""

    __slots__ = (
        "_below",
        "_contents_of",
        "_delivery",
        "_hooks",
        "_last",
        "_lost",
        "_may_hand_over",
    )

    def __init__(
        self,
        hooks: tuple[tuple[int, OnDiscard], ...],
        last: int,
        below: OnDiscard | None,
        may_hand_over: Callable[[], bool] | None,
        contents_of: Callable[[Any], Iterable[object]],
        delivery: int,
    ) -> None:
        self._hooks = hooks
        self._last = last
        """The last stage that elements do not just pass: hooks after it are at the very end."""
        self._below = below
        self._may_hand_over = may_hand_over
        """Of a source that is shared: whether no other subscriber may receive its elements."""
        self._contents_of = contents_of
        """The elements in what the last stage has emitted, which may be a result that contains
        some."""
        self._delivery = delivery
        """The position after the last stage."""
        self._lost: object = None

    @property
    def of_source(self) -> OnDiscard | None:
        """What receives the elements that are discarded upstream of all stages."""
        return self._received_at(0)

    @property
    def below(self) -> OnDiscard | None:
        """What receives the elements for the hooks downstream of this chain."""
        return self._below

    @property
    def of_consumer(self) -> OnDiscard | None:
        """What receives the elements that are discarded downstream of all stages."""
        return self._give_to(self._last)

    def give(self, position: int, elements: Iterable[object]) -> None:
        """The stage at *position* discards *elements*."""
        discard(self._received_at(position), elements)

    def _received_at(self, position: int) -> OnDiscard | None:
        on_discard = self._give_to(position)
        if position or on_discard is None or self._may_hand_over is None:
            return on_discard
        return with_figures(on_discard, SharedElements(on_discard, self._may_hand_over))

    def _give_to(self, position: int) -> OnDiscard | None:
        # A hook at the end also receives what waits for the subscriber, which nothing else holds.
        receivers = [hook for at, hook in self._hooks if at > min(position, self._last)]
        below = self._below
        if isinstance(below, RunDiscards):
            return below.with_hooks(tuple(receivers))
        if below is not None:
            receivers.append(below)

        def give(element: object) -> None:
            for receiver in receivers:
                receiver(element)

        return give if receivers else None

    # -- called by the compiled loop --------------------------------------------------------------
    def rest(self, inner: object) -> None:
        """The loop has ended within *inner*, an iterator that `flat_map` has made of an element."""
        self.give(0, rest_of(inner))

    def lost(self, position: int, element: object) -> None:
        """The loop has ended at *position* with *element* in its hands, unless that is None."""
        if element is not None and element is not END and element is not self._lost:
            self._lost = element
            on_discard = self._received_at(position)
            for each in self._contents_of(element) if position == self._delivery else (element,):
                discard_interrupted(on_discard, each)
