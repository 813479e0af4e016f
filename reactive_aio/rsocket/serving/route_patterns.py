"""The patterns of routes: texts with parameters in braces, matched in linear time.

A parameter stands for one or more characters other than a dot and a slash. If several texts fit,
the first parameter takes as many characters as it can, then the next one, as in a greedy regular
expression. Nothing is tried twice: a route comes from a peer, and an expression with several
parameters in one part would take a power of its length.
"""

import re
from typing import Final

MAX_ROUTE: Final = 255
"""How many bytes a route has at most, as RSocket writes it; longer texts are compared with none."""

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_SEPARATORS: Final = (".", "/")


class RoutePattern:
    """A pattern, compiled."""

    __slots__ = ("_dots", "_first", "_last", "_others", "_slashes", "names", "text")

    def __init__(self, text: str) -> None:
        self.text: str = text
        first, *rest = _PARAMETER.split(text)
        self.names: list[str] = rest[::2]
        self._first, self._last = first, rest[-1] if rest else ""
        befores = ["", *rest[1:-1:2]]
        """The text before each parameter; of the first one, `_first` has it."""
        self._others = [*zip(self.names, befores, strict=False)][:0:-1]
        """The other parameters, from the last one on, and the texts before them."""
        self._dots, self._slashes = (self.constant.count(each) for each in _SEPARATORS)

    @property
    def constant(self) -> str:
        """The pattern without its parameters."""
        return _PARAMETER.sub("", self.text)

    def match(self, route: str) -> dict[str, str] | None:
        """The texts that the parameters stand for in *route*; None if it does not fit.

        Each text between parameters is found as far to the right as can be, from the last one on.
        With as many dots and slashes as the pattern has, none is in a parameter.
        """
        first, last = self._first, self._last
        if not (route.startswith(first) and route.endswith(last)):
            return None
        if route.count(".") != self._dots or route.count("/") != self._slashes:
            return None
        texts: dict[str, str] = {}
        begin, end = len(first), len(route) - len(last)
        for name, before in self._others:
            at = route.rfind(before, begin + 1, max(end - 1, 0))
            if at < 0:
                return None
            texts[name] = route[at + len(before) : end]
            end = at
        if begin >= end:
            return None
        texts[self.names[0]] = route[begin:end]
        return texts


def overlap(one: str, two: str) -> bool:
    """Whether a route matches both patterns: search all pairs of positions with a common prefix."""
    return _overlap(_tokens(one), _tokens(two))


def _tokens(pattern: str) -> list[str | None]:
    """The characters of *pattern*, with None for a parameter: one character or more."""
    parts = re.findall(r"\{\w+\}|.", pattern, re.DOTALL)
    return [each if len(each) == 1 else None for each in parts]


def _overlap(one: list[str | None], two: list[str | None]) -> bool:
    seen = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        i, j = todo.pop()
        if i == len(one) or j == len(two):
            if i == len(one) and j == len(two):
                return True
            continue
        a, b = one[i], two[j]
        if a != b and (None not in (a, b) or a in (".", "/") or b in (".", "/")):
            continue
        # Both match one character; a parameter ends with it or continues.
        steps = {(i + 1, j + 1)}
        if a is None:
            steps.add((i, j + 1))
        if b is None:
            steps.add((i + 1, j))
        todo += steps - seen
        seen |= steps
    return False
