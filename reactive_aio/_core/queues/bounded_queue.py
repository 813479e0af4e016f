"""A bounded queue and what to do when it is full. Pure: it decides, and calls nobody.

Every element offered is accounted for: ``offered = taken + dropped + held`` at any moment, and
``held + lent <= bound``. An element that is refused was not offered: its producer still has it.
"""

from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeVar, get_args

__all__ = (
    "DISCARDED",
    "BoundedQueue",
    "Decision",
    "Emission",
    "OverflowPolicy",
    "require_capacity",
    "require_policy",
)

T = TypeVar("T")

OverflowPolicy = Literal["buffer", "drop_newest", "drop_oldest", "latest", "fail"]
"""What happens to an element for which there is no room.

``buffer``       it is refused: the producer keeps it, and waits
``drop_newest``  it is dropped
``drop_oldest``  the oldest element held is dropped for it
``latest``       only the latest element is held at all
``fail``         the flow fails with `Overflow`, behind the elements held
"""

DISCARDED: Final = "discarded"
"""The reason counted for elements that were held when the subscriber cancelled."""


class Emission(Enum):
    """What became of an element that was emitted by hand. True if it was accepted."""

    ACCEPTED = "accepted"
    """It was delivered, or waits for demand."""
    DROPPED = "dropped"
    """There was no room, and the policy drops the newest; or nobody has subscribed."""
    REFUSED = "refused"
    """There is no room: emit it again later, or await ``emit``."""
    OVERFLOWED = "overflowed"
    """There was no room, and the policy is to fail: the flow has failed."""
    ENDED = "ended"
    """The flow has ended, or its subscriber has cancelled."""

    def __bool__(self) -> bool:
        return self is Emission.ACCEPTED


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """What a queue has decided about an element, and which element was dropped for it, if any."""

    outcome: Emission
    dropped: T | None = None
    reason: str = ""


_ACCEPTED: Final[Decision[Any]] = Decision(Emission.ACCEPTED)
_REFUSED: Final[Decision[Any]] = Decision(Emission.REFUSED)


class BoundedQueue(Generic[T]):
    """A first-in-first-out queue of at most *bound* elements. A bound of 0 holds nothing.

    What was taken is *lent* until the taker says that it has processed it (`settle`), and counts
    against the bound as well; except under ``latest``, which holds one whatever is lent, and with a
    bound of 0.
    """

    __slots__ = ("_held", "_lends", "bound", "dropped", "highest", "lent", "offered", "policy",
                 "taken")  # fmt: skip

    def __init__(self, bound: int, require_policy: OverflowPolicy) -> None:
        self.bound: int = min(bound, 1) if require_policy == "latest" else bound
        self.policy: OverflowPolicy = require_policy
        self._lends = bound > 0 and require_policy != "latest"
        self._held: deque[T] = deque()
        self.lent: int = 0
        self.offered: int = 0
        self.taken: int = 0
        self.highest: int = 0
        """The most it ever held, what was lent included."""
        self.dropped: Counter[str] = Counter()
        """How many elements were dropped, by reason."""

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"<BoundedQueue {self.policy} holds {len(self)} of {self.bound}, {self.lent} lent>"

    @property
    def full(self) -> bool:
        return len(self._held) + self.lent >= self.bound

    def offer(self, element: T) -> Decision[T]:
        """Hold *element*, or decide what happens instead."""
        held = self._held
        if not self.full:
            self.offered += 1
            held.append(element)
            self.highest = max(self.highest, len(held) + self.lent)
            return _ACCEPTED
        if self.policy == "buffer":
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
        """Whether an element may go past the queue to who waits for it; it then counts as taken."""
        if self._held or (self._lends and self.lent >= self.bound):
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
        """All that was taken has been processed."""
        self.lent = 0

    def discard(self) -> None:
        """Drop all that is held."""
        self.lent = 0
        if self._held:
            self.dropped[DISCARDED] += len(self._held)
            self._held.clear()


def require_policy(value: object, where: str) -> OverflowPolicy:
    """Return *value* if it names a policy."""
    known: tuple[OverflowPolicy, ...] = get_args(OverflowPolicy)
    for each in known:
        if value == each:
            return each
    raise ValueError(f"{where}: overflow must be one of {', '.join(known)}, not {value!r}")


def require_capacity(value: object, where: str, parameter: str = "bound") -> int:
    """Return *value* if it is a possible bound."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{where}: {parameter} must be an int of at least 1, not {value!r}; "
            "there is no unbounded queue"
        )
    return value
