"""Signatures, as short as a reader needs them: names, defaults, and the type of the result."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final, get_args, get_overloads

from publishing.reference.vocabulary import Entry

__all__ = ("default", "signature", "type_text")

_PLAIN: Final = (str, int, float, bool, type(None))
"""The types of defaults that are shown; other ones mean that none was given."""
_NAMED_DEFAULTS: Final[dict[Any, str]] = {bool: "bool"}


def signature(entry: Entry) -> str:
    """How *entry* is called, as one line of code."""
    given = inspect.signature(entry.function)
    parameters = list(given.parameters.values())[entry.is_method :]
    awaits = "await " if inspect.iscoroutinefunction(entry.function) else ""
    owner = "flow" if entry.is_method else "rx"
    result = _result(entry)
    return f"{awaits}{owner}.{entry.name}({', '.join(_shown(parameters))}) → {result}"


def _shown(parameters: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            starred = True
        elif each.kind is each.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield f"*{each.name}" if each.kind is each.VAR_POSITIONAL else each.name + default(each)


def default(parameter: inspect.Parameter) -> str:
    """The default of *parameter*, after the sign that makes it one; "" if it has none."""
    value = parameter.default
    if value is parameter.empty:
        return ""
    if type(value) in _PLAIN:
        return f"={value!r}".replace("'", '"')
    return f"={_NAMED_DEFAULTS.get(value, '…')}"


def _result(entry: Entry) -> str:
    """The type of the result; where overloads differ, that of the most general one, the last."""
    annotated = [*get_overloads(entry.function), entry.function]
    results = [type_text(inspect.signature(each).return_annotation) for each in annotated]
    exact = [each for each in results if "Any" not in each]
    return (exact or results)[-1]


def type_text(annotation: Any) -> str:
    """A type, without the modules of its names."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    short = re.sub(r"~|\b(?:\w+\.)+(?=[A-Z])", "", shown)
    while (at := short.find("Union[")) >= 0:
        short = short[:at] + _united(short[at + len("Union[") :])
    return re.sub(r"Optional\[([^\[\]]*)\]", r"\1 | None", short)


def _united(text: str) -> str:
    """*text*, which follows ``Union[``, with bars for its own commas and without its bracket."""
    depth, out = 0, ""
    for number, each in enumerate(text):
        if each == "]" and not depth:
            return out + text[number + 1 :]
        depth += (each == "[") - (each == "]")
        out += " |" if each == "," and not depth else each
    raise ValueError(f"no bracket closes {text!r}")
