"""Terminal operators that return one of the elements, or their sum."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload

from .._core.arguments import require_int, require_sync_callable
from .._core.compiler.inline import InlineStage
from ..errors import EmptyFlow, TooManyElements
from .outcome import NOTHING, outcome

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = ("element_at", "first", "last", "max", "min", "single", "sum")

T = TypeVar("T")
D = TypeVar("D")
A = TypeVar("A")


class _Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


C = TypeVar("C", bound=_Comparable)

_MISSING: Final[Any] = object()
_FIRST_MAP_ASYNC = "use map_async before it"

_LAST = InlineStage(
    "last",
    setup="$kept = None",
    each="""
    $kept = x
    drop
    """,
    after="""
    if $kept is not None:
        emit $kept
    """,
)


def several() -> TooManyElements:
    return TooManyElements("single: the flow has more than one element; use first(), or filter it")


_SINGLE = InlineStage(
    "single",
    uses=(several,),
    setup="$kept = None",
    each="""
    if $kept is not None:
        raise several()
    $kept = x
    drop
    """,
    after="""
    if $kept is not None:
        emit $kept
    """,
)

_ELEMENT_AT = InlineStage(
    "element_at",
    params=("index",),
    setup="$left = $index",
    each="""
    if $left:
        $left -= 1
        drop
    last
    """,
)

_LEAST = InlineStage(
    "min",
    params=("key",),
    setup="$kept = $rank = None",
    each="""
    $new = x if $key is None else $key(x)
    if $kept is None or $new < $rank:
        $kept = x
        $rank = $new
    drop
    """,
    after="""
    if $kept is not None:
        emit $kept
    """,
)

_GREATEST = InlineStage(
    "max",
    params=("key",),
    setup="$kept = $rank = None",
    each="""
    $new = x if $key is None else $key(x)
    if $kept is None or $rank < $new:
        $kept = x
        $rank = $new
    drop
    """,
    after="""
    if $kept is not None:
        emit $kept
    """,
)

_SUM = InlineStage(
    "sum",
    params=("start",),
    setup="$total = $start",
    each="""
    $total = $total + x
    drop
    """,
    after="emit $total",
)


@overload
async def first(source: "Fluent[T]") -> T: ...
@overload
async def first(source: "Fluent[T]", *, default: D) -> T | D: ...
async def first(source: "Fluent[Any]", *, default: Any = _MISSING) -> Any:
    """Return the first element, and cancel.

    A flow without elements gives *default*, or raises `EmptyFlow`.

    Demand: 1.
    Completes: returns at the first element.
    Fails: raises what the flow failed with before it.
    Cancels: after the element, waiting for the source's cleanup; and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1, 3.4
    """
    return _or(source, default, await outcome(source, 1), "first")


@overload
async def last(source: "Fluent[T]") -> T: ...
@overload
async def last(source: "Fluent[T]", *, default: D) -> T | D: ...
async def last(source: "Fluent[Any]", *, default: Any = _MISSING) -> Any:
    """Return the last element.

    A flow without elements gives *default*, or raises `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with.
    Cancels: when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    return _or(source, default, await outcome(source.via(_LAST, holds=1)), "last")


@overload
async def single(source: "Fluent[T]") -> T: ...
@overload
async def single(source: "Fluent[T]", *, default: D) -> T | D: ...
async def single(source: "Fluent[Any]", *, default: Any = _MISSING) -> Any:
    """Return the only element; a second one raises `TooManyElements`.

    A flow without elements gives *default*, or raises `EmptyFlow`.

    Demand: one at a time, two at most.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, or `TooManyElements`.
    Cancels: at a second element, and when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    found = await outcome(source.via(_SINGLE, holds=1), 1)
    return _or(source, default, found, "single")


@overload
async def element_at(source: "Fluent[T]", index: int) -> T: ...
@overload
async def element_at(source: "Fluent[T]", index: int, *, default: D) -> T | D: ...
async def element_at(source: "Fluent[Any]", index: int, *, default: Any = _MISSING) -> Any:
    """Return the element at *index*, counted from 0, and cancel.

    A flow with fewer elements gives *default*, or raises `EmptyFlow`.

    Demand: one at a time, never more than are needed.
    Completes: returns at that element.
    Fails: raises what the flow failed with before it.
    Cancels: after the element, waiting for the source's cleanup; and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1, 3.4
    """
    require_int("element_at", "index", index)
    found = await outcome(source.via(_ELEMENT_AT, index), 1)
    return _or(source, default, found, f"element_at({index})")


@overload
async def min(source: "Fluent[C]") -> C: ...
@overload
async def min(source: "Fluent[C]", *, default: D) -> C | D: ...
@overload
async def min(source: "Fluent[T]", *, key: Callable[[T], _Comparable]) -> T: ...
@overload
async def min(source: "Fluent[T]", *, key: Callable[[T], _Comparable], default: D) -> T | D: ...
async def min(
    source: "Fluent[Any]",
    *,
    key: Callable[[Any], Any] | None = None,
    default: Any = _MISSING,
) -> Any:
    """Return the smallest element, or the one whose ``key(element)`` is; the first of several.

    A flow without elements gives *default*, or raises `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, or *key* or a comparison raised.
    Cancels: when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    if key is not None:
        require_sync_callable("min", "key", key, _FIRST_MAP_ASYNC)
    return _or(source, default, await outcome(source.via(_LEAST, key, holds=1)), "min")


@overload
async def max(source: "Fluent[C]") -> C: ...
@overload
async def max(source: "Fluent[C]", *, default: D) -> C | D: ...
@overload
async def max(source: "Fluent[T]", *, key: Callable[[T], _Comparable]) -> T: ...
@overload
async def max(source: "Fluent[T]", *, key: Callable[[T], _Comparable], default: D) -> T | D: ...
async def max(
    source: "Fluent[Any]",
    *,
    key: Callable[[Any], Any] | None = None,
    default: Any = _MISSING,
) -> Any:
    """Return the greatest element, or the one whose ``key(element)`` is; the first of several.

    A flow without elements gives *default*, or raises `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, or *key* or a comparison raised.
    Cancels: when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    if key is not None:
        require_sync_callable("max", "key", key, _FIRST_MAP_ASYNC)
    return _or(source, default, await outcome(source.via(_GREATEST, key, holds=1)), "max")


@overload
async def sum(source: "Fluent[int]") -> int: ...
@overload
async def sum(source: "Fluent[float]") -> float: ...
@overload
async def sum(source: "Fluent[A]", start: A) -> A: ...
async def sum(source: "Fluent[Any]", start: Any = 0) -> Any:
    """Add the elements up, beginning with *start*.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises what the flow failed with, or an addition raised.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    return await outcome(source.via(_SUM, start))


def _or(source: "Fluent[Any]", default: Any, found: Any, what: str) -> Any:
    if found is not NOTHING:
        return found
    if default is not _MISSING:
        return default
    error = EmptyFlow(f"{what}: the flow has no such element; give default=… to return then")
    source.chain.annotate(error)
    raise error
