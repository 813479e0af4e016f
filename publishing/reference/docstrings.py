"""The docstring of an operator, in parts and as Markdown."""

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

__all__ = ("Docstring", "markdown")

SECTIONS: Final = ("Demand", "Completes", "Fails", "Cancels", "Holds", "Rules")
_SECTION: Final = re.compile(rf"^({'|'.join(SECTIONS)}): ", re.MULTILINE)
_LITERAL_BLOCK: Final = re.compile(r"^::\n\n(?: {4}.*\n|\n)+", re.MULTILINE)
_CODE: Final = re.compile(r"``(.+?)``|`(.+?)`", re.DOTALL)


@dataclass(frozen=True)
class Docstring:
    """A docstring without its diagrams."""

    summary: str
    prose: str
    sections: dict[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Docstring":
        """The docstring of *function*."""
        text, *rest = _SECTION.split(_LITERAL_BLOCK.sub("", inspect.getdoc(function) or ""))
        summary, _, prose = text.partition("\n")
        bodies = [re.sub(r"\s+", " ", body).strip() for body in rest[1::2]]
        sections = dict(zip(rest[::2], bodies, strict=True))
        return cls(summary, re.sub(r"\n{3,}", "\n\n", prose.strip()), sections)

    @property
    def holds_nothing(self) -> bool:
        """Whether it says that the operator holds no element, without a condition."""
        return self.sections.get("Holds") == "nothing."


def markdown(text: str, names: Collection[str], here: str) -> str:
    """*text* as Markdown, in which each of *names* is a link to its section, except *here*."""

    def code(found: re.Match[str]) -> str:
        shown = re.sub(r"\s+", " ", found[1] or found[2])
        name = shown.removesuffix("()")
        return f"[`{shown}`](#{name})" if name in names and name != here else f"`{shown}`"

    return _CODE.sub(code, text)
