"""A question: what does this way cost, compared with hand-written code?

A question is an object in a module of a family (`on_next`, `async_for`, …). Each of its cases is a
coroutine function that handles a number of elements and returns a checksum. The first case is
hand-written: it makes the same calls of the user's functions, and nothing else. Every other case
must return its checksum, so that no case is fast because it does less.

Where no time is measured, the question has a `unit`, and each case returns its figure.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from .cases import TIME, Case, Effort, Kind, Row, Run
from .timing import measure

Add = Callable[[Run], Run]


class Measurable(ABC):
    """What the runner needs of a question."""

    text: str
    unit: str
    is_goal_a_figure: bool
    """Whether the goals are figures; else they are ratios to the hand-written case."""

    @abstractmethod
    async def measure(self, effort: Effort) -> list[Row]:
        """Run every case once a round."""


@dataclass(eq=False)
class Question(Measurable):
    """A question, its cases, and the number of elements that each handles."""

    text: str
    elements: int
    clock: Callable[[], float] = time.process_time
    """`time.perf_counter` where other processes or a disk take part."""
    unit: str = TIME
    """``ns`` if time is measured; else the unit of what the cases return."""
    is_goal_a_figure: bool = False
    rounds: int | None = None
    """The most rounds, for a question whose rounds take long."""
    is_warmed_up: bool = True
    """Whether the first round is a warm-up."""
    is_scaled: bool = True
    """Whether a smaller scale means fewer elements, as it always does in a quick run."""
    prepare: Callable[[], object] | None = None
    """Called before each round; it is not measured."""
    counted: int = 512
    """Elements of the smaller of two runs whose instructions are counted; 0 if they depend on
    other threads or on the clock."""
    cases: list[Case] = field(default_factory=list[Case])

    def handwritten(self, name: str) -> Add:
        """Add the hand-written case; it comes first."""
        if self.cases:
            raise TypeError(f"{self.text}: the hand-written case comes first, and there is one")
        return self._adder(name, "hand-written")

    def ours(self, name: str, *, goal: float | None = None, share: float = 1.0) -> Add:
        """Add a way of this package; *goal* is the ratio to hand-written code to reach."""
        return self._adder(name, "ours", goal=goal, share=share)

    def peer(self, name: str, package: str = "", *, share: float = 1.0) -> Add:
        """Add the same by another library; it is left out where *package* is not installed."""
        return self._adder(name, "peer", share=share, package=package)

    def other(self, name: str, *, share: float = 1.0) -> Add:
        """Add a case for comparison that is neither ours nor a library's."""
        return self._adder(name, "other", share=share)

    def _adder(
        self,
        name: str,
        kind: Kind,
        *,
        goal: float | None = None,
        share: float = 1.0,
        package: str = "",
    ) -> Add:
        def add(run: Run) -> Run:
            if any(name == each.name for each in self.cases):
                raise TypeError(f"{self.text}: two cases are named {name!r}")
            self.cases.append(Case(name, kind, run, goal, share, package))
            return run

        return add

    async def measure(self, effort: Effort) -> list[Row]:
        return await measure(self, effort)
