"""Sinks that collect the elements of a flow in a container, up to a limit."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from .._core.arguments import refuse_awaitable
from ..errors import TooManyElements
from ..stage import describe, require_int, require_sync_callable
from .first_value import only_value
from .terminal import USE_MAP_ASYNC, fold

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = ("to_dict", "to_list")

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)

LIMIT: Final = 1_000_000
"""The most elements that are collected in memory, unless another limit is given."""


def too_long(limit: int) -> TooManyElements:
    return TooManyElements(
        f"to_list: the flow has more than limit={limit} elements; give a larger limit, take(n) of "
        "them, or work on them one by one: for_each, reduce, async for"
    )


_TO_LIST = fold(
    "to_list",
    """
    $value = []
    $add = $value.append
    $remaining = $limit
    """,
    """
    if not $remaining:
        raise too_long($limit)
    $remaining -= 1
    $add(x)
    """,
    params=("limit",),
    uses=(too_long,),
    after="""
    $found, $value = $value, []
    emit $found
    """,
    held="$value",
    result=iter,
)


def too_many_keys(limit: int) -> TooManyElements:
    return TooManyElements(
        f"to_dict: the flow has more than limit={limit} keys; give a larger limit, or work on the "
        "elements one by one: for_each, reduce, async for"
    )


def unhashable_key(key: object) -> TypeError:
    return TypeError(f"to_dict: {describe(key)} cannot be hashed; return a key such as a tuple")


_TO_DICT = fold(
    "to_dict",
    "$found = {}",
    """
    $name = $key(x)
    sync $name of $key
    try:
        hash($name)
    except TypeError as error:
        raise unhashable_key($name) from error
    if len($found) >= $limit and $name not in $found:
        raise too_many_keys($limit)
    $found[$name] = x if $value is None else $value(x)
    """,
    params=("key", "value", "limit"),
    uses=(too_many_keys, unhashable_key),
    after="""
    $all, $found = $found, {}
    emit $all
    """,
    held="$found.values()",
    result=dict[Any, Any].values,
)


def _refusing_awaitables(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(element: object) -> object:
        result = function(element)
        refuse_awaitable("to_dict", function, result)
        return result

    return call


async def to_list(source: "Fluent[T]", *, limit: int = LIMIT) -> list[T]:
    """Collect all elements in a list.

    ::

        a--b--c--|
        .to_list()
        ---------[a, b, c]|

    More than *limit* elements raise `TooManyElements`, before they fill the memory.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow, or `TooManyElements`.
    Cancels: when its task is cancelled, and at more than *limit* elements.
    Holds: *limit* elements.
    Rules: 2.1
    """
    require_int("to_list", "limit", limit)
    found = await only_value(source.via(_TO_LIST, limit, holds=limit))
    return cast("list[T]", found)


@overload
async def to_dict(
    source: "Fluent[T]", key: Callable[[T], K], *, limit: int = LIMIT
) -> dict[K, T]: ...
@overload
async def to_dict(
    source: "Fluent[T]", key: Callable[[T], K], value: Callable[[T], R], *, limit: int = LIMIT
) -> dict[K, R]: ...
async def to_dict(
    source: "Fluent[Any]",
    key: Callable[[Any], Any],
    value: Callable[[Any], Any] | None = None,
    *,
    limit: int = LIMIT,
) -> dict[Any, Any]:
    """Collect the elements, or ``value(element)``, in a dict by ``key(element)``.

    Of several elements with the same key, the last one remains. More than *limit* keys raise
    `TooManyElements`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow or of a function, or `TooManyElements`.
    Cancels: when its task is cancelled, and at more than *limit* keys.
    Holds: *limit* elements.
    Rules: 2.1
    """
    require_sync_callable("to_dict", "key", key, USE_MAP_ASYNC, takes=1)
    if value is not None:
        require_sync_callable("to_dict", "value", value, USE_MAP_ASYNC, takes=1)
        value = _refusing_awaitables(value)
    require_int("to_dict", "limit", limit)
    stage = source.via(_TO_DICT, key, value, limit, holds=limit)
    return cast("dict[Any, Any]", await only_value(stage))
