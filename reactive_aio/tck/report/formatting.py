"""The text of verdicts: headings and explanations, in the width and colors of the terminal."""

import os
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..network.rules import WIRE_RULES
from ..rules import LIBRARY_RULES, RULES, Rule

if TYPE_CHECKING:
    from .verdict import Verdict

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
        return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if self.color and tone else text

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


def find_rule(number: str) -> Rule | None:
    """The rule of that number; None for ``setup``, which is not a rule."""
    return RULES.get(number) or LIBRARY_RULES.get(number) or WIRE_RULES.get(number)


def heading(verdict: "Verdict") -> str:
    """Law, role, strength and outcome, in one line."""
    about = f"{verdict.law} [{verdict.role}, {verdict.strength.name}]"
    return f"{about}: {verdict.outcome.value}"


def explain(verdict: "Verdict", style: Style = PLAIN) -> list[str]:
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
