"""How verdicts look to a person: text in the width and with the colours that there are."""

import os
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..network.rules import WIRE_RULES
from ..rules import HOUSE_RULES, RULES, Rule

if TYPE_CHECKING:
    from .verdict import Verdict

__all__ = ("PLAIN", "Style", "explain", "heading", "rule_named")

WIDEST: Final = 120
NARROWEST: Final = 50
PIPED: Final = 100
"""The width where there is no screen."""

_CODES: Final = {"good": "32", "bad": "1;31", "dim": "2", "strong": "1", "odd": "33"}


@dataclass(frozen=True)
class Style:
    """What the place that is written to can show."""

    width: int = PIPED
    colour: bool = False

    @classmethod
    def of(cls, stream: Any) -> "Style":
        """Colour on a terminal only, and not where NO_COLOR is set (https://no-color.org)."""
        width = shutil.get_terminal_size((PIPED, 24)).columns
        dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
        colour = bool(stream.isatty()) and not dumb
        return cls(min(max(width, NARROWEST), WIDEST), colour)

    def paint(self, text: str, tone: str) -> str:
        """*text* in the colour for *tone*."""
        return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if self.colour and tone else text

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


def rule_named(number: str) -> Rule | None:
    """The rule of that number, if it is one; the laws about factories have none."""
    return RULES.get(number) or HOUSE_RULES.get(number) or WIRE_RULES.get(number)


def heading(verdict: "Verdict") -> str:
    """Law, role, strength and outcome, in a line."""
    about = f"{verdict.law} [{verdict.role}, {verdict.strength.name}]"
    return f"{about}: {verdict.outcome.value}"


def explain(verdict: "Verdict", style: Style = PLAIN) -> list[str]:
    """What was asked and tried, and everything that is known of what happened."""
    lines: list[str] = []
    for number in dict.fromkeys((verdict.broken or verdict.rule, verdict.rule)):
        rule = rule_named(number)
        if rule is not None:
            asked = f"{rule.strength.name}: {rule.text}"
            lines += style.wrap(asked, 9, f"{f'rule {number} ':<9}")
    lines += style.wrap(verdict.text, 9, "tried    ")
    parts = (
        ("", verdict.drawing),
        ("what happened, with times in seconds", verdict.log),
        ("where the subject was", verdict.stack),
        ("what the subject printed", verdict.output),
    )
    for title, text in parts:
        if text:
            lines += ["", *([style.paint(f"{title}:", "strong")] if title else [])]
            lines += [f"  {line}" if title else line for line in text.splitlines()]
    return lines
