"""Verdicts and reports: the outcome of each law, as plain data that can cross a pipe."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from ...errors import RuleViolation
from ..rules import Strength
from .formatting import explain, heading

if TYPE_CHECKING:
    from ..law import Law


class Outcome(Enum):
    PASS = "pass"
    FAIL = "FAIL"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one law for the candidate in one role."""

    law: str
    role: str
    """``publisher``, ``subscriber``, ``white box`` or ``processor``."""
    rule: str
    strength: Strength
    text: str
    """What the law did."""
    outcome: Outcome
    why: str = ""
    """The violation, or why nothing was judged."""
    broken: str = ""
    """The rule that was broken: not always the rule of the law."""
    log: str = ""
    """The signals and calls, line by line, with times in seconds."""
    drawing: str = ""
    """The same as a marble diagram with a demand lane."""
    stack: str = ""
    """The candidate's calls when it was stopped."""
    output: str = ""
    """What the candidate printed, if it was captured."""
    seconds: float = 0.0
    """Wall-clock duration."""

    @classmethod
    def of(cls, law: "Law", role: str, outcome: Outcome, why: str = "") -> "Verdict":
        return cls(law.name, role, law.rule, law.strength, law.text, outcome, why)

    def to_json(self) -> dict[str, Any]:
        """Plain data, which `from_json` reads."""
        return {**asdict(self), "strength": self.strength.value, "outcome": self.outcome.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Verdict":
        """The verdict that `to_json` wrote."""
        strength, outcome = Strength(data["strength"]), Outcome(data["outcome"])
        read: dict[str, Any] = {**data, "strength": strength, "outcome": outcome}
        return cls(**read)

    @property
    def fails(self) -> bool:
        return self.outcome is Outcome.FAIL

    def __str__(self) -> str:
        """A line or two; for a failure, everything that was recorded."""
        lines = [heading(self)]
        lines += [f"  {line}" for line in self.why.splitlines()]
        if self.fails:
            lines += ["", *(f"  {line}".rstrip() for line in explain(self))]
        return "\n".join(lines)


@dataclass
class Report:
    """The verdicts of all laws on one candidate."""

    candidate: str
    verdicts: list[Verdict] = field(default_factory=list[Verdict])

    def having(self, outcome: Outcome) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome is outcome]

    @property
    def broken(self) -> list[Verdict]:
        """The failed laws of strength MUST."""
        return [each for each in self.verdicts if each.fails and each.strength is Strength.MUST]

    @property
    def ok(self) -> bool:
        """Whether something was judged, and no law of strength MUST failed."""
        return bool(self.having(Outcome.PASS)) and not self.broken

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __getitem__(self, law: str) -> Verdict:
        """The verdict of one law, by its name; the worst if it judged several roles."""
        found = [verdict for verdict in self.verdicts if verdict.law == law]
        if not found:
            raise KeyError(f"no law {law!r} has judged {self.candidate}")
        return next((each for each in found if each.fails), found[0])

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.having(each))} {each.value}" for each in Outcome)
        return "\n\n".join([f"{self.candidate}: {counts}", *map(str, self.having(Outcome.FAIL))])

    def raise_if_broken(self) -> None:
        """Raise `RuleViolation` for the first failed MUST; the whole report is in its notes."""
        for verdict in self.broken:
            violation = RuleViolation(verdict.broken or verdict.rule, verdict.why)
            violation.add_note(str(self))
            raise violation
