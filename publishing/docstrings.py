"""Docstrings as Markdown: literal blocks, and a list of the sections."""

import re
from typing import Final

__all__ = ("markdown",)

_NAMES: Final = "Demand|Completes|Fails|Cancels|Holds|Rules|Raises"
_SECTION: Final = re.compile(rf"^({_NAMES}): ", re.MULTILINE)


def markdown(docstring: str) -> str:
    """*docstring* as Markdown.

    ``::`` before an indented block is left out, since indented text is code in Markdown, too. The
    sections of an operator become a list.
    """
    text = re.sub(r"^::$", "", docstring, flags=re.MULTILINE)
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)
    head, *sections = _SECTION.split(text)
    pairs = zip(sections[::2], sections[1::2], strict=True)
    lines = [f"* *{name}:* {' '.join(body.split())}" for name, body in pairs]
    return "\n".join([head.rstrip(), "", *lines]) if lines else text
