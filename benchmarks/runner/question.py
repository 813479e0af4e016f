"""A question: what does this way cost, compared with hand-written code?

A question is an object in a module of a family (`on_next`, `async_for`, …). Each of its cases is a
coroutine function that handles a number of elements and returns a checksum. The first case is
hand-written: it makes the same calls of the user's functions, and nothing else. Every other case
must return its checksum, so that no case is fast because it does less.

Where no time is measured, the question has a `unit`, and each case returns its figure.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from .peers import missing

Run = Callable[[int], Awaitable[float]]
Kind = Literal["hand-written", "ours", "peer", "other"]

TIME: Final = "ns"


@dataclass(frozen=True)
class Row:
    """The result of one case: medians of its figure and of its ratios to hand-written code."""

    name: str
    kind: Kind
    figure: float | None
    """The cost of one element, in the unit of its question; None if the case did not run."""
    ratio: float | None
    goal: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Effort:
    """How much a run measures."""

    rounds: int = 7
    scale: float = 1.0
    """The factor of the number of elements."""
    least: int = 1000
    """The least number of elements, whatever the scale."""
    is_warmed_up: bool = True


QUICK: Final = Effort(rounds=1, scale=0.0001, least=256, is_warmed_up=False)
"""Runs every case, and measures nothing of value."""


class Measurable(ABC):
    """What the runner needs of a question."""

    text: str
    unit: str
    is_goal_a_figure: bool
    """Whether the goals are figures; else they are ratios to the hand-written case."""

    @abstractmethod
    async def measure(self, effort: Effort) -> list[Row]:
        """Run every case once a round."""


@dataclass(frozen=True)
class Case:
    """One way to do the work of a question."""

    name: str
    kind: Kind
    run: Run
    goal: float | None = None
    share: float = 1.0
    """The part of the elements that it handles: a slow case would take too long for all of them."""
    package: str = ""
    """The package that it needs, beside this one."""

    @property
    def missing(self) -> str:
        """Why the case cannot run here, if so."""
        return missing(self.package) if self.package else ""


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
    prepare: Callable[[], object] | None = None
    """Called before each round; it is not measured."""
    counted: int = 512
    """Elements of the smaller of two runs whose instructions are counted; 0 if they depend on
    other threads or on the clock."""
    cases: list[Case] = field(default_factory=list[Case])

    def handwritten(self, name: str) -> Callable[[Run], Run]:
        """Add the hand-written case; it comes first."""
        if self.cases:
            raise TypeError(f"{self.text}: the hand-written case comes first, and there is one")
        return self._adder(Case(name, "hand-written", _unset))

    def ours(
        self, name: str, *, goal: float | None = None, share: float = 1
    ) -> Callable[[Run], Run]:
        """Add a way of this package; *goal* is the ratio to hand-written code to reach."""
        return self._adder(Case(name, "ours", _unset, goal, share))

    def peer(self, name: str, package: str = "", *, share: float = 1) -> Callable[[Run], Run]:
        """Add the same by another library; it is left out where *package* is not installed."""
        return self._adder(Case(name, "peer", _unset, None, share, package))

    def other(self, name: str, *, share: float = 1) -> Callable[[Run], Run]:
        """Add a case for comparison that is neither ours nor a library's."""
        return self._adder(Case(name, "other", _unset, None, share))

    def _adder(self, case: Case) -> Callable[[Run], Run]:
        def add(run: Run) -> Run:
            if any(case.name == each.name for each in self.cases):
                raise TypeError(f"{self.text}: two cases are named {case.name!r}")
            self.cases.append(Case(case.name, case.kind, run, case.goal, case.share, case.package))
            return run

        return add

    async def measure(self, effort: Effort) -> list[Row]:
        from .timing import measure

        return await measure(self, effort)


async def _unset(count: int) -> float:
    raise NotImplementedError
