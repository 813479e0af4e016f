"""The table of an operator's parameters, made of its signature and its docstring."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

from publishing.reference.docstrings import Docstring, markdown
from publishing.reference.signatures import default, type_text
from publishing.reference.vocabulary import ENTRIES, Entry

__all__ = ("parameter_rows",)

HEAD: Final = ("| parameter | type | default | |", "|---|---|---|---|")
_SENTENCE: Final = re.compile(r"(?<=[.:;)])\s+(?=[A-Z*`\"(])|\n\n|\n(?=- )")
_SOURCE: Final = re.compile(r"Publisher\[([^\[\]]+)\] or AsyncIterable\[\1\] or Iterable\[\1\]")
_STARS: Final[dict[Any, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def parameter_rows(entry: Entry, document: Docstring) -> Iterator[str]:
    """The lines of the table; none without parameters."""
    given = list(inspect.signature(entry.function).parameters.values())[entry.is_method :]
    if given:
        yield from HEAD
    for each in given:
        name = _STARS.get(each.kind, "") + each.name
        shown = default(each).removeprefix("=")
        if each.default is each.empty:
            shown = "" if each.kind in _STARS else "required"
        else:
            shown = f"`{shown}`"
        meaning = _meaning(each.name, document)
        if not meaning and each.kind is not each.KEYWORD_ONLY:  # what it is all about
            meaning = document.summary.rstrip(".")
        meaning = markdown(meaning, ENTRIES, entry.name)
        yield f"| `{name}` | `{_kind(each.annotation)}` | {shown} | {meaning} |"


def _kind(annotation: object) -> str:
    """The type in a cell, where a bar would begin the next one."""
    text = re.sub(r"\s*\|\s*", " or ", type_text(annotation))
    text = text.replace("float or datetime.timedelta", "seconds or timedelta")
    return _SOURCE.sub(r"Source[\1]", text).replace("NoneType", "None").replace("'", '"')


def _meaning(name: str, document: Docstring) -> str:
    """The first sentence about the parameter *name*."""
    about = re.compile(rf"\*{name}\*|``{name}\(|``{name}=")
    for text in (document.summary, document.prose, *document.sections.values()):
        for sentence in _SENTENCE.split(text):
            if about.search(sentence):
                plain = re.sub(r"\s+", " ", sentence).lstrip("- ").rstrip(".:; ")
                return (plain[0].upper() + plain[1:]).replace("|", "or")
    return ""
