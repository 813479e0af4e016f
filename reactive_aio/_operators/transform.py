"""Operators that turn each element into another."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..stage import Inline

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("filter", "map")

T = TypeVar("T")
R = TypeVar("R")

_MAP = Inline(
    "map",
    params=("mapper",),
    each="""
    x = $mapper(x)
    if x is None:
        raise no_element("map")
    """,
)

_FILTER = Inline(
    "filter",
    params=("predicate",),
    each="""
    if not $predicate(x):
        drop
    """,
)


def map(source: "Flow[T]", mapper: Callable[[T], R]) -> "Flow[R]":  # noqa: A001
    return source.via(_MAP, mapper)


def filter(source: "Flow[T]", predicate: Callable[[T], object]) -> "Flow[T]":  # noqa: A001
    return source.via(_FILTER, predicate)
