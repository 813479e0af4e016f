"""The bounded queues: one with overflow policies, one from threads to the loop. Pure.

In `BoundedQueue`, ``held + lent <= capacity`` is true at any moment, and every element that was
offered is taken, dropped or held. A refused element is none of these: its producer still has it.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import Any, Final, Generic, Literal, TypeVar, cast, get_args

from ..losses import DISCARDED, DropCounter

T = TypeVar("T")

OverflowPolicy = Literal["wait", "drop_newest", "drop_oldest", "latest", "fail"]
"""What happens to an element when the queue is full.

``wait``         it is refused: the producer keeps it, and waits
``drop_newest``  it is dropped
``drop_oldest``  the oldest element held is dropped for it
``latest``       the queue never holds more than the latest element
``fail``         the flow fails with `Overflow`, after the elements held
"""


class Emission(Enum):
    """The outcome of an emission. True if the element was accepted.

    - ACCEPTED: it was delivered, or waits for demand.
    - DROPPED: the queue is full and the policy drops the newest, or there is no subscriber.
    - REFUSED: the queue is full: emit the element again later, or await ``emit``.
    - OVERFLOWED: the queue is full and the policy is to fail: the flow has failed.
    - ENDED: the flow has ended, or its subscriber has cancelled.
    """

    ACCEPTED = "accepted"
    DROPPED = "dropped"
    REFUSED = "refused"
    OVERFLOWED = "overflowed"
    ENDED = "ended"

    def __bool__(self) -> bool:
        return self is Emission.ACCEPTED


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """The outcome for one element, and the element dropped by it, if any."""

    outcome: Emission
    dropped: T | None = None
    reason: str = ""


_ACCEPTED: Final[Decision[Any]] = Decision(Emission.ACCEPTED)
_REFUSED: Final[Decision[Any]] = Decision(Emission.REFUSED)


class BoundedQueue(Generic[T]):
    """A first-in-first-out queue of at most *capacity* elements; 0 holds nothing.

    Elements taken are *lent* until `settle` reports that they have been processed, and count
    against the capacity; except under ``latest`` and with a capacity of 0. Several queues may share
    *drops*.
    """

    __slots__ = ("_lends", "capacity", "drops", "held", "highest", "lent", "overtaken", "policy",
                 "taken")  # fmt: skip

    def __init__(self, capacity: int, policy: OverflowPolicy, drops: DropCounter) -> None:
        self.capacity: int = min(capacity, 1) if policy == "latest" else capacity
        self.policy: OverflowPolicy = policy
        self._lends = capacity > 0 and policy != "latest"
        self.held: deque[T] = deque()
        """The elements, oldest first. Use the methods to change it."""
        self.lent: int = 0
        self.taken: int = 0
        self.overtaken: int = 0
        """How many elements were dropped for a newer one."""
        self.highest: int = 0
        """The most elements it ever held, including those lent."""
        self.drops: DropCounter = drops

    def __len__(self) -> int:
        return len(self.held)

    def __repr__(self) -> str:
        return (
            f"<BoundedQueue {self.policy} holds {len(self)} of {self.capacity}, {self.lent} lent>"
        )

    @property
    def room(self) -> int:
        """How many more elements it can hold."""
        return self.capacity - len(self.held) - self.lent

    @property
    def full(self) -> bool:
        return self.room <= 0

    def offer(self, element: T) -> Decision[T]:
        """Hold *element*, or apply the policy."""
        held = self.held
        size = len(held) + self.lent + 1
        if size <= self.capacity:
            held.append(element)
            if size > self.highest:
                self.highest = size
            return _ACCEPTED
        if self.policy == "wait":
            return _REFUSED
        if self.policy == "fail":
            return self._drop(Emission.OVERFLOWED, element)
        if self.policy == "drop_newest" or not held:
            return self._drop(Emission.DROPPED, element)
        oldest = held.popleft()
        held.append(element)
        self.overtaken += 1
        return self._drop(Emission.ACCEPTED, oldest)

    def follow(self, element: T) -> bool:
        """Hold *element* behind others, if there are any, and room; else nothing is decided."""
        held = self.held
        size = len(held) + self.lent + 1
        if not held or size > self.capacity:
            return False
        held.append(element)
        if size > self.highest:
            self.highest = size
        return True

    def offer_all(self, elements: list[T]) -> int:
        """Offer each of *elements*, up to one that is refused or overflows; count the accepted."""
        if len(elements) <= self.room:
            self.held.extend(elements)
            self._note_highest()
            return len(elements)
        accepted = 0
        for element in elements:
            outcome = self.offer(element).outcome
            if outcome is Emission.ACCEPTED:
                accepted += 1
            elif outcome is not Emission.DROPPED:
                break
        return accepted

    def _drop(self, outcome: Emission, element: T) -> Decision[T]:
        self.drops.add(self.policy)
        return Decision(outcome, element, self.policy)

    def take(self, at_most: int) -> list[T]:
        """Take up to *at_most* elements, oldest first."""
        held = self.held
        if at_most >= len(held):
            chunk = list(held)
            held.clear()
        else:
            chunk = [held.popleft() for _ in range(at_most)]
        self.lend(len(chunk), len(chunk))
        return chunk

    def passing(self, demand: int) -> int:
        """How many of the next elements may bypass it; report them to `lend`."""
        if self.held:
            return 0
        room = self.capacity - self.lent
        return room if self._lends and room < demand else demand

    def lend(self, taken: int, unprocessed: int) -> None:
        """Count elements that were *taken*, and how many of them are still to be processed."""
        self.taken += taken
        if self._lends:
            self.lent += unprocessed
            self._note_highest()

    def _note_highest(self) -> None:
        size = len(self.held) + self.lent
        if size > self.highest:
            self.highest = size

    def settle(self) -> None:
        """Report that every element taken has been processed."""
        self.lent = 0

    def discard(self, reason: str = DISCARDED) -> list[T]:
        """Drop every element held, for *reason*, and return them."""
        self.lent = 0
        held = list(self.held)
        self.drops.add(reason, len(held))
        self.held.clear()
        return held


@dataclass(slots=True, eq=False, repr=False)
class ThreadMailbox(Generic[T]):
    """Threads `put`; the loop reads and removes. If it was empty, `put` wakes the loop."""

    capacity: int
    held: deque[T] = field(default_factory=deque[T])
    """The elements, oldest first. Use the methods to change it."""
    _lock: Lock = field(default_factory=lambda: Lock())  # the explorer of schedules replaces it
    _closed: bool = False

    def __len__(self) -> int:
        return len(self.held)

    def put(self, element: T) -> tuple[Emission, bool]:
        """Return the outcome for *element*, and whether the loop must be woken."""
        with self._lock:
            if self._closed:
                return Emission.ENDED, False
            if len(self.held) >= self.capacity:
                return Emission.REFUSED, False
            self.held.append(element)
            return Emission.ACCEPTED, len(self.held) == 1

    def first(self) -> T:
        return self.held[0]

    def remove_first(self) -> None:
        with self._lock:
            self.held.popleft()

    def close(self) -> None:
        """Accept no more elements."""
        with self._lock:
            self._closed = True

    def discard(self) -> list[T]:
        """Drop the elements held and accept no more; return those that were dropped."""
        with self._lock:
            self._closed = True
            held = list(self.held)
            self.held.clear()
            return held


def require_policy(value: object, where: str) -> OverflowPolicy:
    """Return *value* if it names a policy."""
    known = get_args(OverflowPolicy)
    if value in known:
        return cast("OverflowPolicy", value)
    raise ValueError(f"{where}: overflow must be one of {', '.join(known)}, not {value!r}")


def require_capacity(value: object, where: str, parameter: str = "capacity") -> int:
    """Return *value* if it is a valid capacity."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{where}: {parameter} must be an int of at least 1, not {value!r}; "
            "there is no unbounded queue"
        )
    return value
