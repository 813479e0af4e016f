"""Verdicts and reports: the outcome of each law, as plain data that can cross a pipe, and as text.

The text fits the width and the colors of the terminal.
"""

import os
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any, Final

from ...errors import RuleViolation
from ..law import SETUP, Law
from ..rules import Strength, find_rule

WIDEST: Final = 120
NARROWEST: Final = 50
PIPED: Final = 100
"""The width if the output is not a terminal."""

_CODES: Final = {"good": "32", "bad": "1;31", "dim": "2", "strong": "1", "odd": "33"}


@dataclass(frozen=True)
class Style:
    """The width of the output, and whether it shows colors."""

    width: int = PIPED
    color: bool = False

    @classmethod
    def of(cls, stream: Any) -> "Style":
        """Colors on a terminal only, and not where NO_COLOR is set (https://no-color.org)."""
        width = shutil.get_terminal_size((PIPED, 24)).columns
        is_plain = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
        color = bool(stream.isatty()) and not is_plain
        return cls(min(max(width, NARROWEST), WIDEST), color)

    def paint(self, text: str, tone: str) -> str:
        """*text* in the color of *tone*."""
        return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if self.color else text

    def wrap(self, text: str, indent: int, first: str = "") -> Iterator[str]:
        """*text* in lines, each but the *first* indented."""
        yield from textwrap.wrap(
            text,
            self.width,
            initial_indent=first or " " * indent,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )


PLAIN: Final = Style()


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
    def of(cls, law: Law, role: str, outcome: Outcome, why: str = "") -> "Verdict":
        return cls(law.name, role, law.rule, law.strength, law.text, outcome, why)

    @classmethod
    def failed(cls, law: Law, role: str, rule: str, why: str) -> "Verdict":
        """*law* found that *rule* is broken: its own, or another, whose strength then counts."""
        known = find_rule(rule) if rule != law.rule else None
        verdict = cls.of(law, role, Outcome.FAIL, f"rule {rule}: {why}")
        return replace(verdict, broken=rule, strength=known.strength if known else law.strength)

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


def heading(verdict: Verdict) -> str:
    """Law, role, strength and outcome, in one line."""
    about = f"{verdict.law} [{verdict.role}, {verdict.strength.name}]"
    return f"{about}: {verdict.outcome.value}"


def explain(verdict: Verdict, style: Style = PLAIN) -> list[str]:
    """The rule, what the law did, and everything that was recorded."""
    lines: list[str] = []
    for number in dict.fromkeys((verdict.broken or verdict.rule, verdict.rule)):
        rule = find_rule(number)
        if rule is not None:
            text = f"{rule.strength.name}: {rule.text}"
            lines += style.wrap(text, 9, f"{f'rule {number} ':<9}")
    lines += style.wrap(verdict.text, 9, "tried    ")
    parts = (
        ("", verdict.drawing),
        ("what happened, with times in seconds", verdict.log),
        ("where the candidate was", verdict.stack),
        ("what the candidate printed", verdict.output),
    )
    for title, text in parts:
        if text:
            lines += ["", *([style.paint(f"{title}:", "strong")] if title else [])]
            lines += [f"  {line}" if title else line for line in text.splitlines()]
    return lines


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
    def has_judged(self) -> bool:
        """Whether a law could be run to its end.

        The laws about the factories count if they alone were chosen: they pass without a candidate.
        """
        judged = {each.rule for each in self.verdicts if each.outcome is not Outcome.NOT_JUDGED}
        return bool(judged - {SETUP}) or {each.rule for each in self.verdicts} == judged == {SETUP}

    @property
    def ok(self) -> bool:
        """Whether something was judged, and no law of strength MUST failed."""
        return self.has_judged and not self.broken

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
        """Raise `RuleViolation` for the first failed MUST; the whole report is in its notes.

        If nothing could be judged, that is a `ValueError` with the first reason.
        """
        for verdict in self.broken:
            violation = RuleViolation(verdict.broken or verdict.rule, verdict.why)
            violation.add_note(str(self))
            raise violation
        if not self.has_judged:
            reasons = (each.why for each in self.verdicts if each.why)
            raise ValueError(
                f"nothing was judged: {next(reasons, 'no law was chosen that applies')}"
            )
