"""Handlers: the functions that serve routes, and the arguments that their parameters name.

Parts of a route become numbers, enums and the like, data becomes objects of a class, each by the
annotation of its parameter.
"""

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import partial
from inspect import Parameter, signature, unwrap
from typing import TYPE_CHECKING, Any, Final, NoReturn, get_args
from uuid import UUID

from ..flow import Flow
from .payloads import JSON, MSGPACK, Codec, PayloadError, readable, typed
from .protocol.errors import RequestInvalid
from .protocol.frames import ErrorCode

if TYPE_CHECKING:
    from .request import Request

__all__ = ("ROUTE_PARAMETER", "Handler", "signature_parameters")

Convert = Callable[[str], Any]
Decode = Callable[[bytes], Any]

ROUTE_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_ARGUMENTS: Final = frozenset({"payload", "request", "incoming", "user", "peer"})
_SCALARS: Final = frozenset({int, float, str, bool, bytes, dict, list})
_MAX_ERROR: Final = 1000
"""The number of characters of a decoding error that are sent to the peer."""


class Handler:
    """A function, the parameters of its route, and the arguments that it takes."""

    def __init__(self, function: Callable[..., Any], pattern: str) -> None:
        self._function = function
        self.pattern: str = pattern
        self.route_parameters: list[str] = ROUTE_PARAMETER.findall(pattern)
        parameters = signature_parameters(function)
        named = {
            name for name, each in parameters.items() if each.kind is not Parameter.VAR_KEYWORD
        }
        self._check_names(parameters, named)
        self._takes = named & (_ARGUMENTS - set(self.route_parameters))
        self.takes_payload: bool = "payload" in self._takes
        self.takes_incoming: bool = not self._takes.isdisjoint({"incoming", "request"})
        """Whether it may subscribe to the elements of a channel."""
        self.needs_only_data: bool = self._takes <= {"payload"}
        """Whether its arguments are the payload and the parameters of the route alone."""
        hints = _resolved_annotations(function, parameters)
        self._converters = {
            name: convert
            for name in self.route_parameters
            if (convert := self._converter(name, hints[name])) is not None
        }
        kind = hints.get("payload", Parameter.empty)
        if not self.takes_payload:
            # the type of the elements: int of Flow[int]
            kind = next(iter(get_args(hints.get("incoming"))), Parameter.empty)
        if isinstance(kind, str):
            raise TypeError(self._unresolved("payload", kind))
        self._scalar = kind if isinstance(kind, type) and kind in _SCALARS else None
        self._class_decoders: dict[str, Decode] = {}
        if self._scalar is None and readable(kind):
            self._class_decoders = {each.mime: typed(kind, each).decode for each in (JSON, MSGPACK)}
        self.is_typed: bool = self._scalar is not None or bool(self._class_decoders)
        """Whether the annotation of its payload, or of its incoming elements, names a type."""
        self._decoders: dict[Codec[Any], Decode] = {}
        self._has_default = "payload" in named and (
            parameters["payload"].default is not Parameter.empty
        )

    def _check_names(self, parameters: dict[str, Parameter], named: set[str]) -> None:
        name = getattr(self._function, "__name__", repr(self._function))
        if missing := set(self.route_parameters) - named:
            raise ValueError(f"route {self.pattern!r}: {name} has no {', '.join(sorted(missing))}")
        required = {each for each in named if parameters[each].default is Parameter.empty}
        if unknown := required - _ARGUMENTS - set(self.route_parameters):
            raise ValueError(
                f"route {self.pattern!r}: unknown {', '.join(sorted(unknown))}; a handler takes "
                f"{', '.join(sorted(_ARGUMENTS))}, and the names in braces"
            )

    def _converter(self, name: str, annotation: Any) -> Convert | None:
        if isinstance(annotation, str):
            raise TypeError(self._unresolved(name, annotation))
        try:
            return _text_converter(annotation)
        except TypeError as error:
            message = f"route {self.pattern!r}: {name} cannot be of type {annotation!r}; {error}"
            raise TypeError(message) from None

    def _unresolved(self, name: str, annotation: str) -> str:
        return (
            f"route {self.pattern!r}: the type {annotation} of {name} is not known where the "
            f"handler is defined; import it there, and not for type checkers alone"
        )

    def __call__(self, request: "Request", route_arguments: dict[str, Any]) -> Any:
        given = {
            name: request if name == "request" else getattr(request, name)
            for name in self._takes
            if not (name == "payload" and self._has_default and not request.data)
        }
        return self._function(**given, **route_arguments)

    def bind(self, codec: Codec[Any], route_arguments: dict[str, Any]) -> Callable[[bytes], Any]:
        """A function of the data alone, for a handler that needs only data."""
        function, decode, has_default = self._function, self.decoder(codec), self._has_default
        if not self.takes_payload:
            return lambda data: function(**route_arguments)

        def call(data: bytes) -> Any:
            if has_default and not data:
                return function(**route_arguments)
            return function(payload=decode(data), **route_arguments)

        return call

    def decoder(self, codec: Codec[Any]) -> Decode:
        """The function that decodes the data of requests; it raises `RequestInvalid`."""
        decode = self._decoders.get(codec)
        if decode is None:
            inner = codec.decode
            if self._scalar is not None:
                inner = partial(_decode_scalar, self._scalar, inner)
            elif self._class_decoders:
                inner = self._class_decoders.get(codec.mime) or partial(_refuse_type, codec.mime)
            decode = self._decoders[codec] = partial(_decode, inner)
        return decode

    def route_arguments(self, texts: dict[str, str]) -> dict[str, Any]:
        """The parameters of a route, converted as the function annotates them."""
        if not self._converters:
            return texts
        arguments: dict[str, Any] = dict(texts)
        for name, convert in self._converters.items():
            try:
                arguments[name] = convert(texts[name])
            except (ValueError, KeyError, InvalidOperation):
                message = f"the route's {name} cannot be {texts[name]!r}"
                raise RequestInvalid(ErrorCode.INVALID, message.encode()) from None
        return arguments


def _decode(decode: Decode, data: bytes) -> Any:
    try:
        return decode(data)
    except PayloadError as error:
        message = str(error)[:_MAX_ERROR].encode()
    except Exception as error:
        # The text of another exception may not be meant for the peer.
        raise RequestInvalid(ErrorCode.INVALID, b"the data cannot be read") from error
    raise RequestInvalid(ErrorCode.INVALID, message)


def _decode_scalar(kind: type, decode: Decode, data: bytes) -> Any:
    value = decode(data)
    is_kind = isinstance(value, (float, int) if kind is float else kind)
    if is_kind and (kind is bool or not isinstance(value, bool)):
        return value
    raise PayloadError(f"the data is {type(value).__name__}, not {kind.__name__}")


def _refuse_type(mime: str, data: bytes) -> NoReturn:
    raise PayloadError(f"the data must be {JSON.mime} or {MSGPACK.mime}, not {mime}")


# -- signatures ------------------------------------------------------------------------------------
def signature_parameters(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of *function* by name; annotations may be unresolvable."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        found = signature(function, annotation_format=Format.FORWARDREF)
    else:
        found = signature(function)
    return dict(found.parameters)


def _resolved_annotations(
    function: Callable[..., Any], parameters: dict[str, Parameter]
) -> dict[str, Any]:
    """The annotations of *parameters*; those that cannot be resolved stay strings."""
    inner = unwrap(function.func if isinstance(function, partial) else function)
    if not hasattr(inner, "__globals__"):  # an object with a method __call__
        inner = type(inner).__call__
    scope = {"Flow": Flow, **getattr(inner, "__globals__", {})}
    annotations = {name: each.annotation for name, each in parameters.items()}
    for name, annotation in annotations.items():
        if isinstance(annotation, str):
            # The name may be imported for type checkers alone.
            with suppress(Exception):
                annotations[name] = eval(annotation, scope)
    return annotations


# -- parameters of a route -------------------------------------------------------------------------
def _matching(pattern: str, convert: Convert, text: str) -> Any:
    if not re.fullmatch(pattern, text):
        raise ValueError(text)
    return convert(text)


_BOOLS: Final = {"true": True, "false": False, "1": True, "0": False}
_CONVERTERS: Final[dict[type, Convert]] = {
    int: partial(_matching, "-?[0-9]+", int),
    float: partial(_matching, r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", float),
    bool: lambda text: _BOOLS[text.lower()],
    Decimal: Decimal,
    UUID: UUID,
}


def _text_converter(annotation: Any) -> Convert | None:
    """The function from a text to *annotation*, None for `str`; TypeError if there is none."""
    if annotation in (str, Any, Parameter.empty):
        return None
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return {str(member.value): member for member in annotation}.__getitem__
        if annotation in _CONVERTERS:
            return _CONVERTERS[annotation]
    raise TypeError("write str, int, float, bool, Decimal, UUID or an Enum")
