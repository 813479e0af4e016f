"""Ties: what is acknowledged when the work on one element is done. Pure.

Each element of a `DeliveryFlow` is a `Tied`: a value, and a tie that is settled once, with None
(acknowledged) or with a `Failure` (nacked). A `Root` is the tie of one delivery of the source. A
`Part` belongs to the `Group` of an element that was divided, a `Batch` to a list of elements. What
settles a part or a batch settles in the end the roots above it.

============  ==============================  ===================================================
state         means                           next
============  ==============================  ===================================================
moving        an operator works on it, or     rest, divided, settled
              is going to
resting       it waits in a list              settled, with its list
divided       its parts are the work          settled, after the last of them
settled       it has its result               none: a second settlement changes nothing
============  ==============================  ===================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from .errors import BatchFailed, Unfinished

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Motion:
    """How many ties of one subscription move, and whether they may still be settled."""

    __slots__ = ("_on_still", "is_over", "moving", "resting")

    def __init__(self, on_still: Callable[[], object]) -> None:
        self._on_still = on_still
        """Called when no tie moves any more."""
        self.moving: int = 0
        self.resting: int = 0
        self.is_over: bool = False
        """Whether the subscription has ended: each tie counts as settled."""

    def end(self) -> None:
        """One tie does not move any more."""
        self.moving -= 1
        if not self.moving:
            self._on_still()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the work on an element is not done."""

    error: Exception
    is_fatal: bool = False
    """Whether the caller raises the error, and so fails the flow."""
    is_last: bool = False
    """Whether no work would have followed: elements of a list without an error are done then."""


class Tie:
    """Settled once. A subclass says what follows from it."""

    __slots__ = ("_is_moving", "is_settled", "motion")

    def __init__(self, motion: Motion) -> None:
        self.motion: Final = motion
        self.is_settled: bool = False
        self._is_moving = True
        motion.moving += 1

    def settle(self, failure: Failure | None) -> bool:
        """The work is done, or has failed; False if it was settled before."""
        if self.is_settled or self.motion.is_over:
            return False
        self.is_settled = True
        self._settled(failure)
        self.stop()
        return True

    @property
    def origins(self) -> frozenset[object]:
        """The parts of the source that the element was made of."""
        raise NotImplementedError

    def _settled(self, failure: Failure | None) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """It does not move any more: it is settled, or something else is worked on instead."""
        if self._is_moving:
            self._is_moving = False
            self.motion.end()

    def rest(self) -> None:
        """It waits in a list."""
        if self._is_moving:
            self.motion.resting += 1
            self.stop()


class Root(Tie):
    """The tie of one delivery."""

    __slots__ = ("_delivery", "_on_settled")

    def __init__(
        self, motion: Motion, on_settled: Callable[[Any, Failure | None], object], delivery: Any
    ) -> None:
        super().__init__(motion)
        self._on_settled = on_settled
        self._delivery = delivery

    @property
    def origins(self) -> frozenset[object]:
        return frozenset((self._delivery.origin,))

    def _settled(self, failure: Failure | None) -> None:
        self._on_settled(self._delivery, failure)


class Part(Tie):
    """One of the parts of an element."""

    __slots__ = ("_group",)

    def __init__(self, group: "Group") -> None:
        super().__init__(group.motion)
        self._group = group

    @property
    def origins(self) -> frozenset[object]:
        return self._group.origins

    def _settled(self, failure: Failure | None) -> None:
        self._group.part_settled(failure)


class Group:
    """The parts of an element that was divided: it is settled when all of them are.

    It is acknowledged if each part is, at once if there are none; and nacked, once no part is being
    worked on, if one of them was nacked or could not be made.
    """

    __slots__ = ("_errors", "_is_closed", "_is_fatal", "_open", "_parent", "motion")

    def __init__(self, parent: Tie) -> None:
        self.motion: Final = parent.motion
        self._parent = parent
        self._open = 0
        self._errors: list[Exception] = []
        self._is_closed = False
        self._is_fatal = False

    @property
    def origins(self) -> frozenset[object]:
        return self._parent.origins

    def add(self) -> Part:
        """One more part."""
        self._open += 1
        return Part(self)

    def part_settled(self, failure: Failure | None) -> None:
        """A part has its result."""
        self._open -= 1
        self._note(failure)
        self._settle_if_done()

    def close(self, failure: Failure | None = None) -> None:
        """No more parts follow, for *failure* if there is one."""
        if not self._is_closed:
            self._is_closed = True
            self._note(failure)
            self._settle_if_done()
            self._parent.stop()

    def _note(self, failure: Failure | None) -> None:
        if failure is not None:
            self._is_fatal = self._is_fatal or failure.is_fatal
            if failure.error not in self._errors:
                self._errors.append(failure.error)

    def _settle_if_done(self) -> None:
        if self._is_closed and not self._open:
            failure = Failure(self._error(), self._is_fatal) if self._errors else None
            self._parent.settle(failure)

    def _error(self) -> Exception:
        errors = [each for each in self._errors if not isinstance(each, Unfinished)]
        errors = errors or self._errors[:1]
        if len(errors) == 1 and not isinstance(errors[0], BatchFailed):
            return errors[0]
        # A single BatchFailed is put into a group as well: its positions are those of another list.
        return ExceptionGroup(f"{len(errors)} parts of an element failed", errors)


class Batch(Tie):
    """A list of elements: each of them gets the result of the list, or its own.

    Where the function that raises `BatchFailed` is not the last one, the elements without an error
    are not done either: they did not reach the functions after it.
    """

    __slots__ = ("_members",)

    def __init__(self, motion: Motion, members: Sequence[Tie]) -> None:
        super().__init__(motion)
        motion.resting -= len(members)
        self._members = members

    @property
    def origins(self) -> frozenset[object]:
        return frozenset[object]().union(*(member.origins for member in self._members))

    def _settled(self, failure: Failure | None) -> None:
        error = None if failure is None else failure.error
        # A position outside the list may be meant for any of the elements.
        if (
            failure is None
            or not isinstance(error, BatchFailed)
            or max(error.errors) >= len(self._members)
        ):
            for member in self._members:
                member.settle(failure)
            return
        other = None
        if not failure.is_last:
            other = replace(failure, error=Unfinished("another element of its list has failed"))
        for position, member in enumerate(self._members):
            own = error.errors.get(position)
            member.settle(other if own is None else replace(failure, error=own))


class Tied(Generic[T_co]):
    """An element inside a `DeliveryFlow`: a value and its tie."""

    __slots__ = ("tie", "value")

    def __init__(self, value: T_co, tie: Tie) -> None:
        self.value: T_co = value
        self.tie: Final = tie

    def __repr__(self) -> str:
        return repr(self.value)

    def with_value(self, value: R) -> "Tied[R]":
        """The same tie with what was made of the value."""
        return Tied(value, self.tie)


def batched(elements: "list[Tied[Any]]") -> "Tied[list[Any]]":
    """A list of values, and the tie of all of them."""
    ties = [each.tie for each in elements]
    return Tied([each.value for each in elements], Batch(ties[0].motion, ties))
