"""Demand: elements requested and not yet delivered, saturating at 2**63-1 (rule 3.17)."""

from dataclasses import dataclass
from typing import Final

from ..errors import IllegalDemand, RuleViolation

UNBOUNDED: Final = 2**63 - 1
"""The demand that is not counted, since it never runs out."""


def require_demand(n: object) -> int:
    """Return *n* if it may be requested; otherwise raise `IllegalDemand` (rule 3.9)."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise IllegalDemand(n)
    return int(n)


def too_many(excess: int) -> RuleViolation:
    """The error for a source that has pushed *excess* elements more than were requested."""
    what = f"the source sent {excess} more than were requested; it has been cancelled"
    return RuleViolation("1.1", what)


@dataclass(slots=True, eq=False)
class Demand:
    """A counter of outstanding demand, for coordinators and sources."""

    outstanding: int = 0

    def __bool__(self) -> bool:
        return self.outstanding > 0

    @property
    def unbounded(self) -> bool:
        return self.outstanding == UNBOUNDED

    def add(self, n: int) -> None:
        """Add *n*, which `require_demand` has checked."""
        self.outstanding = min(self.outstanding + n, UNBOUNDED)

    def take(self, at_most: int) -> int:
        """Subtract up to *at_most*; return how much was subtracted."""
        if self.outstanding == UNBOUNDED:
            return at_most
        taken = min(at_most, self.outstanding)
        self.outstanding -= taken
        return taken
