"""The bounded queues: one with overflow policies, one from threads to the loop. Pure.

Every element that was offered to a `BoundedQueue` is held, dropped, or taken by the reader. A
refused element is none of these: its producer still has it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, cast, get_args

from ..losses import DISCARDED, REFUSED, DropCounter

T = TypeVar("T")
R = TypeVar("R", covariant=True)

OverflowPolicy = Literal["wait", "drop_newest", "drop_oldest", "latest", "fail"]
"""What happens to an element when the queue is full.

``wait``         it is refused: the producer keeps it, and waits
``drop_newest``  it is dropped
``drop_oldest``  the oldest element held is dropped for it
``latest``       the queue never holds more than the latest element
``fail``         the flow fails with `Overflow`, after the elements held
"""


LOSSY: Final[frozenset[OverflowPolicy]] = frozenset(("drop_newest", "drop_oldest", "latest"))
"""The policies that drop elements: what waits elsewhere would be out of their reach."""


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
_UNTIDY: Final = 16
"""How many more elements than twice the capacity a list may have, of which most have left."""


class _Rest(Protocol[R]):
    """The iterator of a list: it says how much is left, and can be set back."""

    def __iter__(self) -> Iterator[R]: ...
    def __next__(self) -> R: ...
    def __length_hint__(self) -> int: ...
    def __setstate__(self, index: int, /) -> None: ...


class BoundedQueue(Generic[T]):
    """A first-in-first-out queue of at most *capacity* elements; 0 holds nothing.

    Its reader iterates over `rest`, and an element leaves the queue when the reader's loop comes to
    it. So an element that was *lent* to the reader, and not processed yet, is still here: it counts
    against the capacity, and the policy may drop it. Then the one behind it takes its place, so
    that the reader still receives as many elements as were lent. Several queues may share *drops*.
    """

    __slots__ = ("capacity", "drops", "elements", "entered", "highest", "lent_until", "policy",
                 "rest")  # fmt: skip

    def __init__(self, capacity: int, policy: OverflowPolicy, drops: DropCounter) -> None:
        self.capacity: int = min(capacity, 1) if policy == "latest" else capacity
        self.policy: OverflowPolicy = policy
        self.elements: list[T] = []
        """The elements, oldest first, behind those that have left since `tidy`."""
        self.rest: _Rest[T] = cast("_Rest[T]", iter(self.elements))
        """Iterates over the elements held: each of them leaves."""
        self.entered: int = 0
        """How many elements it ever held, but for the discarded: the number of the next one."""
        self.lent_until: int = 0
        """The number of the first element that is not lent."""
        self.highest: int = 0
        """The most elements it ever held."""
        self.drops: DropCounter = drops

    def __len__(self) -> int:
        return self.rest.__length_hint__()

    def __repr__(self) -> str:
        return f"<BoundedQueue {self.policy} holds {len(self)} of {self.capacity}>"

    @property
    def room(self) -> int:
        """How many more elements it can hold."""
        return self.capacity - self.rest.__length_hint__()

    @property
    def is_full(self) -> bool:
        # The list is looked at first: its length costs less, and is no less than that of the queue.
        return len(self.elements) >= self.capacity and self.room <= 0

    @property
    def lent(self) -> int:
        """How many of the elements held are lent."""
        return max(0, self.lent_until - self.entered + self.rest.__length_hint__())

    def offer(self, element: T) -> Decision[T]:
        """Hold *element*, or apply the policy."""
        size = self.rest.__length_hint__()
        if size < self.capacity:
            self.enter(element)
            return _ACCEPTED
        if self.policy == "wait":
            return _REFUSED
        if self.policy == "fail":
            return self._drop(Emission.OVERFLOWED, element)
        if self.policy == "drop_newest" or not size:
            return self._drop(Emission.DROPPED, element)
        oldest = next(self.rest)
        if self.entered - size < self.lent_until:
            self.lent_until += 1  # the reader receives another one for it
        self.enter(element)
        if len(self.elements) > 2 * self.capacity + _UNTIDY:
            self.tidy()
        return self._drop(Emission.ACCEPTED, oldest)

    def follow(self, element: T) -> bool:
        """Hold *element* if that needs no decision: others are before it, of which the last may be
        in process, and there is room even if none of them has left since `tidy`."""
        elements = self.elements
        count = len(elements)
        if not 0 < count < self.capacity:
            return False
        elements.append(element)
        self.entered += 1
        if count >= self.highest and (size := self.rest.__length_hint__()) > self.highest:
            self.highest = size
        return True

    def enter(self, element: T) -> None:
        """Hold *element*: the caller knows that it may."""
        self.elements.append(element)
        self.entered += 1
        if len(self.elements) > self.highest:
            self._note_highest()

    def enter_all(self, elements: list[T]) -> None:
        """Hold *elements*, for which there is room."""
        self.elements += elements
        self.entered += len(elements)
        self._note_highest()

    def _note_highest(self) -> None:
        size = self.rest.__length_hint__()
        if size > self.highest:
            self.highest = size

    def _drop(self, outcome: Emission, element: T) -> Decision[T]:
        self.drops.add(self.policy)
        return Decision(outcome, element, self.policy)

    def lend(self, at_most: int) -> int:
        """Lend up to *at_most* more elements: the reader takes as many from `rest`."""
        size = self.rest.__length_hint__()
        first = max(self.lent_until, self.entered - size)
        count = min(at_most, self.entered - first)
        self.lent_until = first + count
        return count

    def tidy(self) -> None:
        """Forget the elements that have left."""
        elements = self.elements
        if gone := len(elements) - self.rest.__length_hint__():
            del elements[:gone]
            self.rest.__setstate__(0)

    def discard(self, reason: str = DISCARDED, *, but: int = 0) -> list[T]:
        """Drop every element held *but* the first ones, for *reason*, and return them."""
        self.tidy()
        discarded = self.elements[but:]
        del self.elements[but:]
        self.drops.add(reason, len(discarded))
        self.entered -= len(discarded)
        self.lent_until = min(self.lent_until, self.entered)
        return discarded


@dataclass(slots=True, eq=False, repr=False)
class ThreadMailbox(Generic[T]):
    """Threads `put`; the loop takes. If it was empty, `put` wakes the loop.

    When it is full, the overflow policy of the source decides, as it does in the queue behind it.
    """

    capacity: int
    policy: OverflowPolicy
    drops: DropCounter
    """Changed under the lock: by any thread."""
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
                return self._overflow(element), False
            self.held.append(element)
            return Emission.ACCEPTED, len(self.held) == 1

    def _overflow(self, element: T) -> Emission:
        policy = self.policy
        if policy == "wait":
            self.drops.add(REFUSED)
            return Emission.REFUSED
        self.drops.add(policy)
        if policy == "fail":
            self._closed = True
            return Emission.OVERFLOWED
        if policy == "drop_newest":
            return Emission.DROPPED
        self.held.popleft()
        self.held.append(element)
        return Emission.ACCEPTED

    def take(self) -> T | None:
        """Take the oldest element."""
        with self._lock:
            return self.held.popleft() if self.held else None

    def give_back(self, element: T) -> None:
        """Hold *element* again, which was taken last: there is no room for it yet."""
        with self._lock:
            self.held.appendleft(element)

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
