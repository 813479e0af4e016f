"""What has happened in the last period: costs of work, and elements that are repeated. Pure."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class RecentCosts:
    """The sum of the costs within the last *period* seconds."""

    __slots__ = ("_costs", "_period", "_total")

    def __init__(self, period: float) -> None:
        self._period = period
        self._costs: deque[tuple[float, float]] = deque()
        self._total = 0.0

    def __bool__(self) -> bool:
        return bool(self._costs)

    def add(self, now: float, cost: float) -> None:
        self._costs.append((now, cost))
        self._total += cost

    def total_at(self, now: float) -> float:
        """The sum now; older costs are forgotten."""
        costs = self._costs
        while costs and costs[0][0] + self._period <= now:
            self._total -= costs.popleft()[1]
        if not costs:
            self._total = 0.0  # without the rounding errors of its parts
        return self._total

    def time_left(self, now: float) -> float:
        """How long the oldest cost still counts."""
        return max(0.0, self._costs[0][0] + self._period - now)


class RecentElements(Generic[T]):
    """The last *most* elements; none is older than *ttl* seconds of *clock*, if that is given."""

    __slots__ = ("_clock", "_elements", "_ttl")

    def __init__(self, most: int, ttl: float | None, clock: Callable[[], float]) -> None:
        self._elements: deque[tuple[float, T]] = deque(maxlen=most)
        self._ttl = ttl
        self._clock = clock

    def add(self, elements: Iterable[T]) -> None:
        now = 0.0 if self._ttl is None else self._clock()
        self._elements.extend([(now, element) for element in elements])

    def held(self) -> list[T]:
        """The elements that are left, oldest first."""
        elements = self._elements
        if self._ttl is not None:
            oldest = self._clock() - self._ttl
            while elements and elements[0][0] <= oldest:
                elements.popleft()
        return [element for _, element in elements]
