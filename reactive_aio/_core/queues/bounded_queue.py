"""The bounded queues: one with overflow policies, one from threads to the loop. Pure.

In `BoundedQueue`, ``offered = taken + dropped + held`` and ``held + lent <= capacity`` are true at
any moment. A refused element does not count as offered: its producer still has it.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import Any, Final, Generic, Literal, TypeVar, cast, get_args

T = TypeVar("T")

OverflowPolicy = Literal["wait", "drop_newest", "drop_oldest", "latest", "fail"]
"""What happens to an element when the queue is full.

``wait``         it is refused: the producer keeps it, and waits
``drop_newest``  it is dropped
``drop_oldest``  the oldest element held is dropped for it
``latest``       the queue never holds more than the latest element
``fail``         the flow fails with `Overflow`, after the elements held
"""

DISCARDED: Final = "discarded"
"""The reason counted for elements that were held when the subscriber cancelled."""


class Emission(Enum):
    """The outcome of an emission. True if the element was accepted."""

    ACCEPTED = "accepted"
    """It was delivered, or waits for demand."""
    DROPPED = "dropped"
    """The queue is full and the policy drops the newest, or there is no subscriber."""
    REFUSED = "refused"
    """The queue is full: emit the element again later, or await ``emit``."""
    OVERFLOWED = "overflowed"
    """The queue is full and the policy is to fail: the flow has failed."""
    ENDED = "ended"
    """The flow has ended, or its subscriber has cancelled."""

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
    against the capacity; except under ``latest`` and with a capacity of 0.
    """

    __slots__ = ("_held", "_lends", "capacity", "dropped", "highest", "lent", "offered", "policy",
                 "taken")  # fmt: skip

    def __init__(self, capacity: int, policy: OverflowPolicy) -> None:
        self.capacity: int = min(capacity, 1) if policy == "latest" else capacity
        self.policy: OverflowPolicy = policy
        self._lends = capacity > 0 and policy != "latest"
        self._held: deque[T] = deque()
        self.lent: int = 0
        self.offered: int = 0
        self.taken: int = 0
        self.highest: int = 0
        """The most elements it ever held, including those lent."""
        self.dropped: Counter[str] = Counter()
        """How many elements were dropped, by reason."""

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return (
            f"<BoundedQueue {self.policy} holds {len(self)} of {self.capacity}, {self.lent} lent>"
        )

    @property
    def full(self) -> bool:
        return len(self._held) + self.lent >= self.capacity

    def offer(self, element: T) -> Decision[T]:
        """Hold *element*, or apply the policy."""
        held = self._held
        if not self.full:
            self.offered += 1
            held.append(element)
            self.highest = max(self.highest, len(held) + self.lent)
            return _ACCEPTED
        if self.policy == "wait":
            return _REFUSED
        self.offered += 1
        if self.policy == "fail":
            return self._drop(Emission.OVERFLOWED, element)
        if self.policy == "drop_newest" or not held:
            return self._drop(Emission.DROPPED, element)
        oldest = held.popleft()
        held.append(element)
        return self._drop(Emission.ACCEPTED, oldest)

    def _drop(self, outcome: Emission, element: T) -> Decision[T]:
        self.dropped[self.policy] += 1
        return Decision(outcome, element, self.policy)

    def take(self, at_most: int) -> list[T]:
        """Take up to *at_most* elements, oldest first."""
        held = self._held
        if at_most >= len(held):
            chunk = list(held)
            held.clear()
        else:
            chunk = [held.popleft() for _ in range(at_most)]
        self._lend(len(chunk))
        return chunk

    def passes(self) -> bool:
        """Whether the next element may bypass the queue; it then counts as taken."""
        if self._held or (self._lends and self.lent >= self.capacity):
            return False
        self.offered += 1
        self._lend(1)
        return True

    def _lend(self, count: int) -> None:
        self.taken += count
        if self._lends:
            self.lent += count
            self.highest = max(self.highest, len(self._held) + self.lent)

    def settle(self) -> None:
        """Report that every element taken has been processed."""
        self.lent = 0

    def discard(self) -> None:
        """Drop every element held."""
        self.lent = 0
        if self._held:
            self.dropped[DISCARDED] += len(self._held)
            self._held.clear()


@dataclass(slots=True, eq=False, repr=False)
class ThreadMailbox(Generic[T]):
    """Threads `put`; the loop reads and removes. If it was empty, `put` wakes the loop."""

    capacity: int
    _held: deque[T] = field(default_factory=deque[T])
    _lock: Lock = field(default_factory=lambda: Lock())  # the explorer of schedules replaces it
    _closed: bool = False

    def __len__(self) -> int:
        return len(self._held)

    def put(self, element: T) -> tuple[Emission, bool]:
        """Return the outcome for *element*, and whether the loop must be woken."""
        with self._lock:
            if self._closed:
                return Emission.ENDED, False
            if len(self._held) >= self.capacity:
                return Emission.REFUSED, False
            self._held.append(element)
            return Emission.ACCEPTED, len(self._held) == 1

    def first(self) -> T:
        return self._held[0]

    def remove_first(self) -> None:
        with self._lock:
            self._held.popleft()

    def close(self) -> None:
        """Accept no more elements."""
        with self._lock:
            self._closed = True

    def discard(self) -> int:
        """Drop the elements held and accept no more; return how many were dropped."""
        with self._lock:
            self._closed = True
            count = len(self._held)
            self._held.clear()
            return count


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
