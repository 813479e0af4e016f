"""The patterns of routes fit what the same regular expressions fit, in linear time."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import re

from hypothesis import given, strategies as st

from reactive_aio.rsocket import Router
from reactive_aio.rsocket.serving.route_patterns import MAX_ROUTE, RoutePattern

NAMES = "abcd"
LITERALS = st.text(":.x/", max_size=2)


def expression(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^./]+)", re.escape(pattern)))


@given(st.lists(LITERALS, min_size=2, max_size=5), st.text(":.x/y", max_size=9))
def test_a_pattern_fits_as_a_greedy_expression(literals: list[str], route: str) -> None:
    pattern = literals[0]
    for name, literal in zip(NAMES, literals[1:], strict=False):
        pattern += f"{{{name}}}{literal}"
    found = expression(pattern).fullmatch(route)
    assert RoutePattern(pattern).match(route) == (found and found.groupdict())


@given(st.lists(LITERALS, min_size=2, max_size=5), st.lists(st.text(":xy", min_size=1), min_size=4))
def test_a_pattern_fits_what_is_made_of_it(literals: list[str], texts: list[str]) -> None:
    pattern = route = literals[0]
    for name, literal, text in zip(NAMES, literals[1:], texts, strict=False):
        pattern += f"{{{name}}}{literal}"
        route += text + literal
    found = RoutePattern(pattern).match(route)
    assert found is not None
    assert pattern.format(**found) == route


class CountingRoute(str):
    """Counts the searches made in it."""

    searches = 0

    def rfind(self, *args: object) -> int:
        self.searches += 1
        return super().rfind(*args)  # type: ignore[arg-type]  # whatever the caller passes


def test_each_text_of_a_pattern_is_searched_once() -> None:
    pattern = RoutePattern("{a}:{b}:{c}:{d}x")
    route = CountingRoute(":" * 253 + "yx")
    assert pattern.match(route) == {"a": ":" * 248, "b": ":", "c": ":", "d": "y"}
    assert route.searches == 3


def test_a_route_that_is_too_long_is_compared_with_no_pattern() -> None:
    router = Router()
    router.route("{a}:{b}")(lambda a, b: a + b)
    assert router.find("x:" + "y" * (MAX_ROUTE - 2)) is not None
    assert router.find("x:" + "y" * (MAX_ROUTE - 1)) is None
