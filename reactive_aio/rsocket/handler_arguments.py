"""What a handler's parameters ask for: texts of a route as numbers, data as objects of a class."""

import re
import sys
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from enum import Enum
from inspect import Parameter, get_annotations, signature
from typing import Any, Final, get_args
from uuid import UUID

from ..flow import Flow
from .payloads import JSON, MSGPACK, PayloadError, readable, typed

__all__ = ("Convert", "converter", "hints", "reader", "signature_parameters")

Convert = Callable[[str], Any]
Decode = Callable[[bytes], Any]

_INT: Final = re.compile(r"-?[0-9]+", re.ASCII)
_FLOAT: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_BOOLS: Final = {"true": True, "false": False, "1": True, "0": False}
_SCALARS: Final[dict[Any, tuple[type, ...]]] = {
    int: (int,),
    float: (float, int),
    str: (str,),
    bool: (bool,),
    bytes: (bytes,),
    dict: (dict,),
    list: (list,),
}


def signature_parameters(function: Callable[..., Any]) -> dict[str, Parameter]:
    """By name; annotations are not looked at, as some may not be resolvable."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        found = signature(function, annotation_format=Format.FORWARDREF)
    else:
        found = signature(function)
    return dict(found.parameters)


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations that can be resolved; those that cannot stay texts."""
    inner = function if hasattr(function, "__annotations__") else type(function).__call__
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations as annotations

        raw = annotations(inner, format=Format.FORWARDREF)
    else:
        raw = get_annotations(inner)
    scope = getattr(inner, "__globals__", {})
    return {name: _resolved(each, scope) for name, each in raw.items()}


def _resolved(annotation: Any, scope: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {"Flow": Flow, **scope})
    except Exception:  # a name that is imported for type checkers alone, perhaps
        return annotation


# -- texts of a route ------------------------------------------------------------------------------
def converter(annotation: Any) -> Convert | None:
    """What makes of a text what *annotation* says; None for a text. Raises TypeError if nothing."""
    if annotation in (str, Any, Parameter.empty):
        return None
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return _enum(annotation)
        if annotation in _CONVERTERS:
            return _CONVERTERS[annotation]
    raise TypeError("write str, int, float, bool, Decimal, UUID or an Enum")


def _int(text: str) -> int:
    if not _INT.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _bool(text: str) -> bool:
    return _BOOLS[text.lower()]


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def _enum(kind: type[Enum]) -> Convert:
    members = {str(member.value): member for member in kind}
    return members.__getitem__


_CONVERTERS: Final[dict[type, Convert]] = {
    int: _int,
    float: _float,
    bool: _bool,
    Decimal: _decimal,
    UUID: UUID,
}


# -- data ------------------------------------------------------------------------------------------
def reader(annotation: Any) -> "Callable[[str, Decode], Decode] | None":
    """How data is read for *annotation*, given its MIME type and codec; None: by the codec."""
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _scalar(annotation)
    if isinstance(annotation, str) or not readable(annotation):
        return None
    by_mime = {base.mime: typed(annotation, base).decode for base in (JSON, MSGPACK)}
    known = " or ".join(by_mime)

    def choose(mime: str, plain: Decode) -> Decode:
        del plain
        decode = by_mime.get(mime)
        if decode is None:
            raise PayloadError(f"the data must be {known}, not {mime}")
        return decode

    return choose


def _scalar(kind: Any) -> "Callable[[str, Decode], Decode]":
    kinds = _SCALARS[kind]

    def choose(mime: str, plain: Decode) -> Decode:
        del mime

        def decode(data: bytes) -> Any:
            value = plain(data)
            if isinstance(value, kinds) and (kind is bool or not isinstance(value, bool)):
                return value
            raise PayloadError(f"the data is {type(value).__name__}, not {kind.__name__}")

        return decode

    return choose


def element_of(annotation: Any) -> Any:
    """Of what the elements are: ``int`` of ``Flow[int]``."""
    return next(iter(get_args(annotation)), Parameter.empty)
