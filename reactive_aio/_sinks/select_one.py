"""Terminal operators that return one of the elements."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from ..errors import EmptyFlow, TooManyElements
from ..stage import InlineStage, require_int, require_sync_callable
from .async_iteration import NOTHING
from .first_value import IF_FOUND, first_value, fold

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = ("element_at", "first", "last", "max", "min", "single")

T = TypeVar("T")
D = TypeVar("D")


class _Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


C = TypeVar("C", bound=_Comparable)

_LAST = fold("last", "$value = None", "$value = x", result=IF_FOUND)


def more_than_one() -> TooManyElements:
    return TooManyElements("single: the flow has more than one element; use first(), or filter it")


_SINGLE = fold(
    "single",
    "$value = None",
    """
    if $value is not None:
        raise more_than_one()
    $value = x
    """,
    uses=(more_than_one,),
    result=IF_FOUND,
)

_ELEMENT_AT = InlineStage(
    "element_at",
    params=("index",),
    setup="$remaining = $index",
    each="""
    if $remaining:
        $remaining -= 1
        drop
    last
    """,
)


def _extreme(name: str, is_better: str) -> InlineStage:
    return fold(
        name,
        "$value = $rank = None",
        f"""
        $new = x if $key is None else $key(x)
        if $value is None or {is_better}:
            $value = x
            $rank = $new
        """,
        params=("key",),
        result=IF_FOUND,
    )


_MIN = _extreme("min", "$new < $rank")
_MAX = _extreme("max", "$rank < $new")


@overload
async def first(source: "Fluent[T]") -> T: ...
@overload
async def first(source: "Fluent[T]", *, default: D) -> T | D: ...
async def first(source: "Fluent[Any]", *, default: Any = NOTHING) -> Any:
    """Return the first element, and cancel.

    For a flow without elements, return *default* or raise `EmptyFlow`.

    Demand: 1.
    Completes: returns at the first element.
    Fails: raises the error of a flow that fails before it.
    Cancels: after the element, waiting for the source's cleanup; and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1, 3.4
    """
    return _value_or_default(source, default, await first_value(source, 1), "first")


@overload
async def last(source: "Fluent[T]") -> T: ...
@overload
async def last(source: "Fluent[T]", *, default: D) -> T | D: ...
async def last(source: "Fluent[Any]", *, default: Any = NOTHING) -> Any:
    """Return the last element.

    For a flow without elements, return *default* or raise `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow.
    Cancels: when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    return _value_or_default(source, default, await first_value(source.via(_LAST, holds=1)), "last")


@overload
async def single(source: "Fluent[T]") -> T: ...
@overload
async def single(source: "Fluent[T]", *, default: D) -> T | D: ...
async def single(source: "Fluent[Any]", *, default: Any = NOTHING) -> Any:
    """Return the only element; a second one raises `TooManyElements`.

    For a flow without elements, return *default* or raise `EmptyFlow`.

    Demand: one at a time, two at most.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow, or `TooManyElements`.
    Cancels: at a second element, and when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    found = await first_value(source.via(_SINGLE, holds=1), 1)
    return _value_or_default(source, default, found, "single")


@overload
async def element_at(source: "Fluent[T]", index: int) -> T: ...
@overload
async def element_at(source: "Fluent[T]", index: int, *, default: D) -> T | D: ...
async def element_at(source: "Fluent[Any]", index: int, *, default: Any = NOTHING) -> Any:
    """Return the element at *index*, counted from 0, and cancel.

    For a flow with fewer elements, return *default* or raise `EmptyFlow`.

    Demand: one at a time, never more than needed.
    Completes: returns at that element.
    Fails: raises the error of a flow that fails before it.
    Cancels: after the element, waiting for the source's cleanup; and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1, 3.4
    """
    require_int("element_at", "index", index)
    found = await first_value(source.via(_ELEMENT_AT, index), 1)
    return _value_or_default(source, default, found, f"element_at({index})")


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
    default: Any = NOTHING,
) -> Any:
    """Return the smallest element, by ``key(element)`` if given; the first of equal ones.

    For a flow without elements, return *default* or raise `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow, of *key* or of a comparison.
    Cancels: when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    return await _extreme_of(source, _MIN, key, default)


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
    default: Any = NOTHING,
) -> Any:
    """Return the greatest element, by ``key(element)`` if given; the first of equal ones.

    For a flow without elements, return *default* or raise `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow, of *key* or of a comparison.
    Cancels: when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    return await _extreme_of(source, _MAX, key, default)


async def _extreme_of(source: "Fluent[Any]", stage: InlineStage, key: Any, default: Any) -> Any:
    if key is not None:
        require_sync_callable(stage.name, "key", key, "use map_async before it")
    return _value_or_default(
        source, default, await first_value(source.via(stage, key, holds=1)), stage.name
    )


def _value_or_default(source: "Fluent[Any]", default: Any, found: Any, what: str) -> Any:
    if found is not NOTHING:
        return found
    if default is not NOTHING:
        return default
    error = EmptyFlow(f"{what}: the flow has no such element; give default=… to return then")
    source.chain.annotate(error)
    raise error
