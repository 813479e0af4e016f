"""Routes, the functions that serve them, and the arguments that their parameters name.

Parts of a route become numbers, enums and the like, data becomes objects of a class, each by the
annotation of its parameter.
"""

import re
import sys
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from functools import partial
from inspect import Parameter, signature, unwrap
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast, get_args
from uuid import UUID

from ..._core.arguments import require_callable
from ..._shared.coerce import is_source, to_flow
from ...flow import Flow
from ...stage import describe
from ..payloads import (
    JSON,
    MSGPACK,
    Codec,
    PayloadError,
    bounded,
    error_text,
    readable,
    typed,
)
from ..protocol.errors import RequestInvalid
from ..protocol.frames import ErrorCode, Payload
from .route_patterns import MAX_ROUTE, RoutePattern, overlap

if TYPE_CHECKING:
    from .request import Request

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT: Final = ""
"""The pattern of the default handler; no route is empty."""

Convert = Callable[[str], Any]
Decode = Callable[[bytes], Any]

_PUSH_ARGUMENTS: Final = frozenset({"metadata", "user", "peer"})
_ARGUMENTS: Final = frozenset({"payload", "request", "incoming", "user", "peer"})
_SCALARS: Final = frozenset({int, float, str, bool, bytes, dict, list})
SINGLE_TYPES: Final = frozenset({bytes, str, int, float, bool, dict, list, tuple})
"""Types of results that are one element."""
_MAX_DECODERS: Final = 64
_MAX_ERROR: Final = 1000
"""The number of characters of a decoding error that are sent to the peer."""


class Handler:
    """A function, the parameters of its route, and which *arguments* of a request it takes."""

    def __init__(
        self,
        function: Callable[..., Any],
        pattern: str,
        name: str = "",
        arguments: frozenset[str] = _ARGUMENTS,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self.pattern: str = pattern
        self._name = name or f"route {pattern!r}"
        require_callable(self._name, "the handler", function, may_generate=True)
        self.route_parameters: list[str] = RoutePattern(pattern).names
        parameters = signature_parameters(function)
        named = {
            name for name, each in parameters.items() if each.kind is not Parameter.VAR_KEYWORD
        }
        self._check_names(parameters, named)
        self._takes = named & (arguments - set(self.route_parameters))
        self.takes_payload: bool = "payload" in self._takes
        self.takes_incoming: bool = not self._takes.isdisjoint({"incoming", "request"})
        """Whether it may subscribe to the elements of a channel."""
        self.needs_only_data: bool = self._takes <= {"payload"}
        """Whether its arguments are the payload and the parameters of the route alone."""
        hints = _resolved_annotations(function, parameters)
        self._converters = self._route_converters(hints)
        kind = hints.get("payload", Parameter.empty)
        if not self.takes_payload:
            # the type of the elements: int of Flow[int]
            kind = next(iter(get_args(hints.get("incoming"))), Parameter.empty)
        self._scalar = kind if isinstance(kind, type) and kind in _SCALARS else None
        self._class_decoders: dict[str, Decode] = {}
        if self._scalar is None and readable(kind):
            self._class_decoders = {each.mime: typed(kind, each).decode for each in (JSON, MSGPACK)}
        self.is_typed: bool = self._scalar is not None or bool(self._class_decoders)
        """Whether the annotation of its payload, or of its incoming elements, names a type."""
        self._decoders: dict[tuple[Codec[Any], int], Decode] = {}
        self._has_default = "payload" in named and (
            parameters["payload"].default is not Parameter.empty
        )

    def _check_names(self, parameters: dict[str, Parameter], named: set[str]) -> None:
        name = getattr(self._function, "__name__", repr(self._function))
        if missing := set(self.route_parameters) - named:
            raise ValueError(f"{self._name}: {name} has no {', '.join(sorted(missing))}")
        required = {each for each in named if parameters[each].default is Parameter.empty}
        if unknown := required - self._arguments - set(self.route_parameters):
            raise ValueError(
                f"{self._name}: unknown {', '.join(sorted(unknown))}; a handler takes "
                f"{', '.join(sorted(self._arguments))}, and the names in braces"
            )

    def _route_converters(self, hints: dict[str, Any]) -> dict[str, Convert]:
        for name in (*self.route_parameters, "payload"):
            if isinstance(hint := hints.get(name), str):
                raise TypeError(
                    f"{self._name}: the type {hint} of {name} is not known where the "
                    f"handler is defined; import it there, and not for type checkers alone"
                )
        converters: dict[str, Convert] = {}
        for name in self.route_parameters:
            try:
                convert = _text_converter(hints[name])
            except TypeError as error:
                message = f"{self._name}: {name} cannot be of type {hints[name]!r}; {error}"
                raise TypeError(message) from None
            if convert is not None:
                converters[name] = convert
        return converters

    def __call__(self, request: "Request", route_arguments: dict[str, Any]) -> Any:
        given = {
            name: request if name == "request" else getattr(request, name)
            for name in self._takes
            if not (name == "payload" and self._has_default and not request.data)
        }
        return self._function(**given, **route_arguments)

    def bind(
        self, codec: Codec[Any], route_arguments: dict[str, Any], most: int
    ) -> Callable[[bytes], Any]:
        """A function of the data alone, for a handler that needs only data."""
        function, decode, has_default = self._function, self.decoder(codec, most), self._has_default
        if not self.takes_payload:
            return lambda data: function(**route_arguments)
        if decode is bytes and not (has_default or route_arguments):
            return lambda data: function(payload=data)

        def call(data: bytes) -> Any:
            if has_default and not data:
                return function(**route_arguments)
            return function(payload=decode(data), **route_arguments)

        return call

    def decoder(self, codec: Codec[Any], most: int = sys.maxsize) -> Decode:
        """The function that decodes the data of requests; it raises `RequestInvalid`.

        Data of more than *most* bytes are refused, as `bounded` says.
        """
        key = codec, most
        decode = self._decoders.get(key)
        if decode is None:
            inner: Decode | None = None
            if codec.decode is bytes and self._scalar in (None, bytes) and not self._class_decoders:
                return bytes  # there is nothing to refuse
            if self._scalar is not None:
                inner = partial(_decode_scalar, self._scalar, codec)
            elif self._class_decoders:
                inner = self._class_decoders.get(codec.mime) or partial(_refuse_type, codec.mime)
            if len(self._decoders) >= _MAX_DECODERS:  # peers choose the types of their data
                self._decoders.clear()
            decode = self._decoders[key] = partial(_decode, bounded(codec, most, inner))
        return decode

    def route_arguments(self, texts: dict[str, str]) -> dict[str, Any]:
        """The parameters of a route, converted as the function annotates them."""
        if not self._converters:
            return texts
        arguments: dict[str, Any] = dict(texts)
        for name, convert in self._converters.items():
            try:
                arguments[name] = convert(texts[name])
            except (ValueError, KeyError):
                message = f"the route's {name} cannot be {texts[name]!r}"
                raise RequestInvalid(ErrorCode.INVALID, message.encode()) from None
        return arguments


def _decode(decode: Decode, data: bytes) -> Any:
    try:
        return decode(data)
    except PayloadError as error:
        message = error_text(error)[:_MAX_ERROR].encode()
    except Exception as error:
        # The text of another exception may not be meant for the peer.
        raise RequestInvalid(ErrorCode.INVALID, b"the data cannot be read") from error
    raise RequestInvalid(ErrorCode.INVALID, message)


def _decode_scalar(kind: type, codec: Codec[Any], data: bytes) -> Any:
    value = codec.decode(data)
    is_kind = isinstance(value, (float, int) if kind is float else kind)
    if is_kind and (kind is bool or not isinstance(value, bool)):
        return value
    given = type(value).__name__
    raise PayloadError(f"the data is {given}, not {kind.__name__}; it was sent as {codec.mime}")


def _refuse_type(mime: str, data: bytes) -> NoReturn:
    raise PayloadError(f"the data must be {JSON.mime} or {MSGPACK.mime}, not {mime}")


# -- results ---------------------------------------------------------------------------------------
def publisher_of(value: Any) -> "Flow[Any] | None":
    """*value* as a flow if it is many elements; None if it is one."""
    if value is None or type(cast("object", value)) in SINGLE_TYPES or type(value) is Payload:
        return None
    many = isinstance(value, AsyncIterable | Iterator) or callable(
        getattr(cast("object", value), "subscribe", None)
    )
    return to_flow(cast("AsyncIterable[Any]", value)) if many else None


def answers_of(value: Any) -> "Flow[Any]":
    """What a handler has returned, as a flow: many elements, one, or none for None."""
    publisher = publisher_of(value)
    return to_flow([] if value is None else [value]) if publisher is None else publisher


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


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


# ASCII alone, and numbers that cost little: `int` of a Decimal with an exponent of six digits has a
# million digits.
_INTEGER: Final = "-?[0-9]+"
_NUMBER: Final = r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?"
_HEX: Final = "[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"
_BOOLS: Final = {"true": True, "false": False, "1": True, "0": False}
_CONVERTERS: Final[dict[type, Convert]] = {
    int: partial(_matching, _INTEGER, int),
    float: partial(_matching, _NUMBER, _finite),
    bool: lambda text: _BOOLS[text.lower()],
    Decimal: partial(_matching, _NUMBER, Decimal),
    UUID: partial(_matching, _HEX, UUID),
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


# -- the table of routes ---------------------------------------------------------------------------
class Router:
    """A table of routes.

    ::

        router = Router()

        @router.route("prices.{symbol}.{count}")
        def prices(symbol: str, count: int) -> Flow[float]: ...

    A handler returns a flow (any publisher), an asynchronous iterator, a generator, a plain value,
    or an awaitable of one of these. Its parameters name its arguments: the names in braces,
    converted to the types of their annotations, and any of ``payload``, ``incoming`` (the elements
    of a channel), ``request``, ``user`` and ``peer``. A payload, or an element of incoming, is
    decoded into the class with which it is annotated: one of msgspec or pydantic, a dataclass or a
    TypedDict.

    A name in braces matches any text without a dot or a slash. Routes without braces take
    precedence; a route that matches the same texts as another one is refused.
    """

    def __init__(self) -> None:
        self._exact: dict[str, Handler] = {}
        self._default: Handler | None = None
        self._patterns: list[tuple[RoutePattern, Handler]] = []
        self.metadata_push: Handler | None = None
        """The function of `on_metadata_push`: a push is a request without data or a response."""

    def route(self, pattern: str) -> Callable[[F], F]:
        """Serve requests for the route *pattern* by the decorated function."""
        self._check(pattern)

        def decorate(function: F) -> F:
            self._check(pattern)
            handler = Handler(function, pattern)
            if handler.route_parameters:
                self._patterns.append((RoutePattern(pattern), handler))
            else:
                self._exact[pattern] = handler
            return function

        return decorate

    def default(self, function: F) -> F:
        """Serve requests that no route matches by the decorated function.

        ::

            @router.default
            def other(request: Request) -> bytes: ...

        These are requests for an unknown route, requests without a route, and those of a client
        whose metadata is not composite: its one item is in ``request.metadata``. A router has one
        default handler; without it, such requests fail with `RequestInvalid`.
        """
        if self._default is not None:
            raise ValueError("default: there is a function for it already")
        self._default = Handler(function, DEFAULT, "default handler")
        return function

    def on_metadata_push(self, function: F) -> F:
        """Call *function* with metadata that the peer pushes for the connection.

        It may name ``metadata`` (a tuple of items), ``user`` and ``peer``, and may be a coroutine
        function. A router has one. `authorize` and interceptors are called before it, with a
        `Request` whose model is ``PUSH``.
        """
        if self.metadata_push is not None:
            raise ValueError("on_metadata_push: there is a function for it already")
        self.metadata_push = Handler(function, DEFAULT, "on_metadata_push", _PUSH_ARGUMENTS)
        return function

    @property
    def routes(self) -> int:
        """The number of routes, including the default handler."""
        return len(self._exact) + len(self._patterns) + (self._default is not None)

    def find(self, route: str) -> tuple[Handler, dict[str, str]] | None:
        """The handler of *route*, and the texts that the names in braces stand for.

        An empty *route*, as any other that is unknown, has the default handler, if there is one.
        """
        handler = self._exact.get(route)
        if handler is not None:
            return handler, {}
        if len(route) <= MAX_ROUTE:
            for pattern, each in self._patterns:
                if (texts := pattern.match(route)) is not None:
                    return each, texts
        return None if self._default is None else (self._default, {})

    def _check(self, pattern: str) -> None:
        given = cast("object", pattern)
        if not isinstance(given, str):
            shown = f"{describe(given)} ({type(given).__name__})"
            remedy = '; write @router.route("name") above it' if callable(given) else ""
            raise TypeError(f"route: the route must be a str, not {shown}{remedy}")
        if not pattern or len(pattern.encode()) > MAX_ROUTE:
            remedy = "" if pattern else "; Router.default serves requests without a route"
            raise ValueError(
                f"route {pattern!r}: a route is from 1 to {MAX_ROUTE} bytes long{remedy}"
            )
        parsed = RoutePattern(pattern)
        names, rest = parsed.names, parsed.constant
        if rest.strip("{}") != rest or len(set(names)) < len(names):
            raise ValueError(f"route {pattern!r}: write each parameter once, as {{name}}")
        others = [handler.pattern for _, handler in self._patterns]
        if pattern in self._exact or pattern in others:
            raise ValueError(f"route {pattern!r} is there already")
        for other in others:
            if names and overlap(pattern, other):
                raise ValueError(f"routes {pattern!r} and {other!r} both fit some routes")


def to_router(routes: Router | Mapping[str, Any], what: str, parameter: str = "routes") -> Router:
    """Return the router of *routes*, which the function *what* was given as *parameter*."""
    if isinstance(routes, Router):
        return routes
    given = cast("object", routes)
    if not isinstance(given, Mapping):
        shown = f"{describe(given)} ({type(given).__name__})"
        raise TypeError(
            f"{what}: {parameter} must be a Router, or a mapping from routes to handlers or flows, "
            f"not {shown}"
        )
    router = Router()
    for pattern, served in routes.items():
        if is_source(served):
            router.route(pattern)(_returning(to_flow(served, name=what)))
        else:
            require_callable(what, f"{parameter}[{pattern!r}]", served, may_generate=True)
            router.route(pattern)(served)
    return router


def _returning(flow: Flow[Any]) -> Callable[[], Flow[Any]]:
    return lambda: flow


def no_such_route(route: str) -> RequestInvalid:
    """The error of a request for *route*, which no handler serves."""
    message = f"there is no such route: {route!r}" if route else (
        "no route was given, and there is no default handler: request a route, or serve such "
        "requests with Router.default"
    )  # fmt: skip
    return RequestInvalid(ErrorCode.INVALID, message.encode())
