"""Operators with something to await: coroutine functions, one at a time or several at once."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ..stage import Inline

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("filter_async", "map_async")

T = TypeVar("T")
R = TypeVar("R")

_MAP = Inline(
    "map_async",
    params=("mapper",),
    each="""
    x = await $mapper(x)
    if x is None:
        raise no_element("map_async")
    """,
)


def map_async(
    source: "Flow[T]",
    mapper: Callable[[T], Awaitable[R]],
) -> "Flow[R]":
    return source.via(_MAP, mapper)
