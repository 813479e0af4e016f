"""The cases of a question, how much of them is measured, and what was found."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
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
    is_quick: bool = False
    """Whether the figures do not matter."""


QUICK: Final = Effort(rounds=1, scale=0.0001, least=256, is_warmed_up=False, is_quick=True)
"""Runs every case, and measures nothing of value."""


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
