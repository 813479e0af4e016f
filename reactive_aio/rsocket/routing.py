"""Routes: the table from a route to the handler that serves it."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from .handlers import ROUTE_PARAMETER, Handler, signature_parameters

__all__ = ("Router",)

F = TypeVar("F", bound=Callable[..., Any])

_PUSH_ARGUMENTS: Final = frozenset({"metadata", "user", "peer"})


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
        self._patterns: list[tuple[re.Pattern[str], Handler]] = []
        self.metadata_push: Callable[..., Any] | None = None
        """The function of `on_metadata_push`, called with its arguments by name."""

    def route(self, pattern: str) -> Callable[[F], F]:
        """Serve requests for the route *pattern* by the decorated function."""
        self._check(pattern)

        def decorate(function: F) -> F:
            self._check(pattern)
            handler = Handler(function, pattern)
            if handler.route_parameters:
                self._patterns.append((_compiled(pattern), handler))
            else:
                self._exact[pattern] = handler
            return function

        return decorate

    def on_metadata_push(self, function: F) -> F:
        """Call *function* with metadata that the peer pushes for the connection.

        It may name ``metadata`` (a tuple of items), ``user`` and ``peer``, and may be a coroutine
        function. A router has one.
        """
        if self.metadata_push is not None:
            raise ValueError("on_metadata_push: there is a function for it already")
        names = signature_parameters(function).keys()
        if unknown := names - _PUSH_ARGUMENTS:
            raise ValueError(
                f"on_metadata_push: unknown {', '.join(sorted(unknown))}; "
                f"it is given {', '.join(sorted(_PUSH_ARGUMENTS))}"
            )

        def call(**given: Any) -> Any:
            return function(**{name: given[name] for name in names})

        self.metadata_push = call
        return function

    @property
    def routes(self) -> int:
        """The number of routes."""
        return len(self._exact) + len(self._patterns)

    def find(self, route: str) -> tuple[Handler, dict[str, str]] | None:
        """The handler of *route*, and the texts that the names in braces stand for."""
        handler = self._exact.get(route)
        if handler is not None:
            return handler, {}
        for pattern, each in self._patterns:
            if match := pattern.fullmatch(route):
                return each, match.groupdict()
        return None

    def _check(self, pattern: str) -> None:
        if not pattern or len(pattern.encode()) > 255:
            raise ValueError(f"route {pattern!r}: a route is from 1 to 255 bytes long")
        names, rest = ROUTE_PARAMETER.findall(pattern), ROUTE_PARAMETER.sub("", pattern)
        if rest.strip("{}") != rest or len(set(names)) < len(names):
            raise ValueError(f"route {pattern!r}: write each parameter once, as {{name}}")
        others = [handler.pattern for _, handler in self._patterns]
        if pattern in self._exact or pattern in others:
            raise ValueError(f"route {pattern!r} is there already")
        for other in others:
            if names and _overlap(_tokens(pattern), _tokens(other)):
                raise ValueError(f"routes {pattern!r} and {other!r} both fit some routes")


def _compiled(pattern: str) -> re.Pattern[str]:
    """The expression for *pattern*: a parameter matches any text without a dot or a slash."""
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^./]+)", re.escape(pattern)))


def _tokens(pattern: str) -> list[str | None]:
    """The characters of *pattern*, with None for a parameter: one character or more."""
    parts = re.findall(r"\{\w+\}|.", pattern, re.DOTALL)
    return [each if len(each) == 1 else None for each in parts]


def _overlap(one: list[str | None], two: list[str | None]) -> bool:
    """Whether a route matches both patterns: search all pairs of positions with a common prefix."""
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        i, j = todo.pop()
        if i == len(one) and j == len(two):
            return True
        if i == len(one) or j == len(two):
            continue
        a, b = one[i], two[j]
        steps: set[tuple[int, int]] = set()
        if a is not None and b is not None:
            if a == b:
                steps = {(i + 1, j + 1)}
        elif (a if a is not None else b) not in (".", "/"):
            # Both match one character; a parameter ends with it or continues.
            steps = {(i + 1, j + 1)}
            if a is None:
                steps.add((i, j + 1))
            if b is None:
                steps.add((i + 1, j))
        todo += steps - seen
        seen |= steps
    return False
