"""Routes: which function serves which request, and what it is given."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .protocol.states import Model

if TYPE_CHECKING:
    from ..flow import Flow
    from .protocol.metadata import Item
    from .requester import Requester

__all__ = ("Request", "Router")

F = TypeVar("F", bound=Callable[..., Any])

_GIVEN: Final = frozenset({"payload", "request", "incoming"})
_HOLE: Final = re.compile(r"\{(\w+)\}")


@dataclass(slots=True)
class Request:
    """A request of the peer, as a handler may want to see it."""

    model: Model
    route: str
    payload: Any
    """Its data, decoded; of a channel, the first element."""
    open: "Callable[[], Flow[Any]]" = field(repr=False)
    """Makes `incoming`."""
    metadata: "list[Item]" = field(default_factory=list["Item"])
    user: Any = None
    """What the authentication of the connection returned."""
    peer: "Requester[Any] | None" = None
    """For requests to the one who asked."""

    @property
    def incoming(self) -> "Flow[Any]":
        """The elements of a channel, for one subscriber; else its payload alone."""
        return self.open()


class Handler:
    """A function, and which of the things that it may be given it wants."""

    def __init__(self, function: Callable[..., Any], pattern: str) -> None:
        self._function = function
        self.holes: list[str] = _HOLE.findall(pattern)
        parameters = signature(function).parameters.values()
        named = {each.name for each in parameters if each.kind is not Parameter.VAR_KEYWORD}
        if wrong := set(self.holes) - named:
            raise ValueError(f"route {pattern!r}: {function.__name__} has no {', '.join(wrong)}")
        needed = {each.name for each in parameters if each.default is Parameter.empty}
        if wrong := needed - _GIVEN - set(self.holes):
            raise ValueError(
                f"route {pattern!r}: unknown {', '.join(sorted(wrong))}; a handler takes "
                f"payload, request, incoming, and the names in braces"
            )
        self._wants = named & _GIVEN
        self.incoming: bool = bool(named & {"incoming", "request"})

    def __call__(self, request: Request, values: dict[str, str]) -> Any:
        given = {name: getattr(request, name, request) for name in self._wants}
        return self._function(**given, **values)


class Router:
    """A table of routes.

    ::

        router = Router()

        @router.route("prices.{symbol}")
        def prices(symbol: str) -> Flow[float]: ...

    A handler returns a flow (any publisher), an asynchronous iterator, a generator, a plain value,
    or an awaitable of one of these; it serves every interaction model. It names what it wants:
    ``payload``, ``request``, ``incoming`` (the elements of a channel), and the names in braces,
    each of which stands for a piece without dots and slashes. What is written out goes before what
    has braces; else the route that was given first counts.
    """

    def __init__(self) -> None:
        self._exact: dict[str, Handler] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Handler]] = []

    def route(self, pattern: str) -> Callable[[F], F]:
        """Serve requests of the route *pattern* by the function below."""
        if pattern in self._exact or any(pattern == each for each, _, _ in self._patterns):
            raise ValueError(f"route {pattern!r} is there already")

        def decorate(function: F) -> F:
            handler = Handler(function, pattern)
            if not handler.holes:
                self._exact[pattern] = handler
            else:
                parts = _HOLE.split(pattern)
                parts[::2] = map(re.escape, parts[::2])
                parts[1::2] = [f"(?P<{name}>[^./]+)" for name in parts[1::2]]
                self._patterns.append((pattern, re.compile("".join(parts)), handler))
            return function

        return decorate

    def find(self, route: str) -> tuple[Handler, dict[str, str]] | None:
        """Who serves *route*, and what its braces stand for."""
        handler = self._exact.get(route)
        if handler is not None:
            return handler, {}
        for _, pattern, each in self._patterns:
            if match := pattern.fullmatch(route):
                return each, match.groupdict()
        return None
