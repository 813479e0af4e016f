"""Routes: which function serves which request, and what it is given."""

import re
from collections.abc import Callable
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .handler_arguments import Convert, converter, element_of, hints, reader, signature_parameters
from .payloads import Codec, PayloadError
from .protocol.errors import RequestInvalid
from .protocol.frames import ErrorCode

if TYPE_CHECKING:
    from .request import Request

__all__ = ("Handler", "Router")

F = TypeVar("F", bound=Callable[..., Any])
Decode = Callable[[bytes], Any]

_GIVEN: Final = frozenset({"payload", "request", "incoming", "user", "peer"})
_DATA: Final = frozenset({"payload"})
_PUSHED: Final = frozenset({"metadata", "user", "peer"})
_HOLE: Final = re.compile(r"\{(\w+)\}")
_FILLING: Final = "[^./]+"


class Handler:
    """A function, and which of the things that it may be given it wants."""

    def __init__(self, function: Callable[..., Any], pattern: str) -> None:
        self._function = function
        self.pattern: str = pattern
        self.holes: list[str] = _HOLE.findall(pattern)
        found = signature_parameters(function)
        named = {name for name, each in found.items() if each.kind is not Parameter.VAR_KEYWORD}
        name = getattr(function, "__name__", repr(function))
        if wrong := set(self.holes) - named:
            raise ValueError(f"route {pattern!r}: {name} has no {', '.join(sorted(wrong))}")
        needed = {name for name in named if found[name].default is Parameter.empty}
        if wrong := needed - _GIVEN - set(self.holes):
            raise ValueError(
                f"route {pattern!r}: unknown {', '.join(sorted(wrong))}; a handler takes "
                f"{', '.join(sorted(_GIVEN))}, and the names in braces"
            )
        self._wants = named & (_GIVEN - set(self.holes))
        self.incoming: bool = bool(self._wants & {"incoming", "request"})
        kinds = hints(function)
        self._converters = {
            hole: convert
            for hole in self.holes
            if (convert := self._converter(hole, kinds.get(hole, str))) is not None
        }
        kind = kinds.get("payload", Parameter.empty)
        if "payload" not in self._wants:
            kind = element_of(kinds.get("incoming", Parameter.empty))
        if isinstance(kind, str):
            raise TypeError(self._unknown("payload", kind))
        self._reader = reader(kind)
        self._decoders: dict[Codec[Any], Decode] = {}
        self._optional = "payload" in named and found["payload"].default is not Parameter.empty

    def _converter(self, hole: str, annotation: Any) -> Convert | None:
        if isinstance(annotation, str):
            raise TypeError(self._unknown(hole, annotation))
        try:
            return converter(annotation)
        except TypeError as error:
            message = f"route {self.pattern!r}: {hole} cannot be of type {annotation!r}; {error}"
            raise TypeError(message) from None

    def _unknown(self, name: str, annotation: str) -> str:
        return (
            f"route {self.pattern!r}: the type {annotation} of {name} is not known where the "
            f"handler is defined; import it there, and not for type checkers alone"
        )

    def __call__(self, request: "Request", values: dict[str, Any]) -> Any:
        given = {
            name: request if name == "request" else getattr(request, name)
            for name in self._wants
            if not (name == "payload" and self._optional and not request.data)
        }
        return self._function(**given, **values)

    @property
    def plain(self) -> bool:
        """Whether it wants nothing of a request but its data, and what stands in the route."""
        return self._wants <= _DATA

    def by_data(self, codec: Codec[Any], values: dict[str, Any]) -> Callable[[bytes], Any]:
        """Call it, if it is plain, with data that *codec* reads and these *values*."""
        function, decode, optional = self._function, self.decode_by(codec), self._optional
        if "payload" not in self._wants:
            return lambda data: function(**values)

        def call(data: bytes) -> Any:
            if optional and not data:
                return function(**values)
            return function(payload=decode(data), **values)

        return call

    def decode_by(self, codec: Codec[Any]) -> Decode:
        """How the data of requests is read; what it cannot read is an invalid request."""
        decode = self._decoders.get(codec)
        if decode is None:
            decode = self._decoders[codec] = self._decoder(codec)
        return decode

    def _decoder(self, codec: Codec[Any]) -> Decode:
        reader = self._reader
        read: Decode | None = codec.decode if reader is None else None

        def decode(data: bytes) -> Any:
            nonlocal read
            try:
                if read is None and reader is not None:
                    read = reader(codec.mime, codec.decode)
                return data if read is None else read(data)
            except PayloadError as error:
                told = str(error)[:1000].encode()
            except Exception as error:
                # What a codec of somebody else says may not be meant for the peer.
                message = b"the data cannot be read"
                raise RequestInvalid(ErrorCode.INVALID, message) from error
            raise RequestInvalid(ErrorCode.INVALID, told)

        return decode

    def values(self, texts: dict[str, str]) -> dict[str, Any]:
        """What the braces stand for, of the types that the function asks for."""
        if not self._converters:
            return texts
        values: dict[str, Any] = dict(texts)
        for name, convert in self._converters.items():
            try:
                values[name] = convert(texts[name])
            except (ValueError, KeyError):
                message = f"the route's {name} cannot be {texts[name]!r}"
                raise RequestInvalid(ErrorCode.INVALID, message.encode()) from None
        return values


class Router:
    """A table of routes.

    ::

        router = Router()

        @router.route("prices.{symbol}.{count}")
        def prices(symbol: str, count: int) -> Flow[float]: ...

    A handler returns a flow (any publisher), an asynchronous iterator, a generator, a plain value,
    or an awaitable of one of these. It is given what its parameters are named after: those in
    braces as the types of their annotations, and ``payload``, ``incoming`` (the elements of a
    channel), ``request``, ``user`` and ``peer``, as far as it names them. A payload, or elements of
    incoming, annotated with a class of msgspec or pydantic, a dataclass or a TypedDict are read
    into it. A parameter in braces stands for anything without a dot or a slash. Routes without
    braces go first; two with braces that both fit one route are refused, as is a route that is
    there already.
    """

    def __init__(self) -> None:
        self._exact: dict[str, Handler] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Handler]] = []
        self.pushed: Callable[..., Any] | None = None
        self._pushed_wants: frozenset[str] = frozenset()

    def route(self, pattern: str) -> Callable[[F], F]:
        """Serve requests of the route *pattern* by the function below."""
        self._check(pattern)

        def decorate(function: F) -> F:
            self._check(pattern)
            handler = Handler(function, pattern)
            if not handler.holes:
                self._exact[pattern] = handler
            else:
                parts = _HOLE.split(pattern)
                parts[::2] = map(re.escape, parts[::2])
                parts[1::2] = [f"(?P<{name}>{_FILLING})" for name in parts[1::2]]
                self._patterns.append((pattern, re.compile("".join(parts)), handler))
            return function

        return decorate

    def on_metadata_push(self, function: F) -> F:
        """Have *function* called with metadata that the peer pushes for the whole connection.

        It may name ``metadata`` (a tuple of items), ``user`` and ``peer``, and be a coroutine
        function. There is one for a router.
        """
        if self.pushed is not None:
            raise ValueError("on_metadata_push: there is a function for it already")
        named = frozenset(signature_parameters(function))
        if wrong := named - _PUSHED:
            raise ValueError(
                f"on_metadata_push: unknown {', '.join(sorted(wrong))}; "
                f"it is given {', '.join(sorted(_PUSHED))}"
            )
        self.pushed = function
        self._pushed_wants = named
        return function

    def push(self, **given: Any) -> Any:
        """Call that function with those of *given* that it names."""
        if self.pushed is None:
            return None
        return self.pushed(**{name: given[name] for name in self._pushed_wants})

    @property
    def routes(self) -> int:
        """How many there are."""
        return len(self._exact) + len(self._patterns)

    def find(self, route: str) -> tuple[Handler, dict[str, str]] | None:
        """Who serves *route*, and what its braces stand for."""
        handler = self._exact.get(route)
        if handler is not None:
            return handler, {}
        for _, pattern, each in self._patterns:
            if match := pattern.fullmatch(route):
                return each, match.groupdict()
        return None

    def _check(self, pattern: str) -> None:
        if not pattern or len(pattern.encode()) > 255:
            raise ValueError(f"route {pattern!r}: a route is from 1 to 255 bytes long")
        holes = _HOLE.findall(pattern)
        if _HOLE.sub("", pattern).strip("{}") != _HOLE.sub("", pattern) or len(set(holes)) < len(
            holes
        ):
            raise ValueError(f"route {pattern!r}: write each parameter once, as {{name}}")
        if pattern in self._exact:
            raise ValueError(f"route {pattern!r} is there already")
        for other, _, _ in self._patterns:
            if other == pattern:
                raise ValueError(f"route {pattern!r} is there already")
            if holes and _both(_tokens(pattern), _tokens(other)):
                raise ValueError(f"routes {pattern!r} and {other!r} both fit some routes")


def _tokens(pattern: str) -> list[str | None]:
    """Its characters, and None for what a parameter stands for: one character or more."""
    parts = _HOLE.split(pattern)
    tokens: list[str | None] = []
    for number, part in enumerate(parts):
        if number % 2:
            tokens.append(None)
        else:
            tokens += part
    return tokens


def _both(one: list[str | None], two: list[str | None]) -> bool:
    """Whether some route fits both: all pairs of places that a common beginning can reach."""
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        i, j = todo.pop()
        if i == len(one) and j == len(two):
            return True
        if i == len(one) or j == len(two):
            continue
        a, b = one[i], two[j]
        if a is not None and b is not None:
            steps = [(i + 1, j + 1)] if a == b else []
        elif (a if a is not None else b) in (".", "/"):
            steps = []
        else:  # one character is taken; a parameter may go on or end with it
            ends = {(i + 1, j + 1)}
            if a is None:
                ends.add((i, j + 1))
            if b is None:
                ends.add((i + 1, j))
            steps = list(ends)
        for step in steps:
            if step not in seen:
                seen.add(step)
                todo.append(step)
    return False
