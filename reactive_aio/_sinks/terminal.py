"""Terminal operators over all elements: each awaits the end of the flow."""

from collections.abc import Callable, Hashable
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from ..errors import EmptyFlow, TooManyElements
from ..stage import InlineStage, describe, require_callable, require_int, require_sync_callable
from .async_iteration import NOTHING
from .first_value import IF_FOUND, first_value, fold

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = ("all", "any", "count", "for_each", "reduce", "run", "sum", "to_dict", "to_list")

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")
K = TypeVar("K", bound=Hashable)

LIMIT: Final = 1_000_000
"""The most elements that are collected in memory, unless another limit is given."""

_USE_MAP_ASYNC = "use map_async before it"

_FOLD = fold(
    "reduce",
    "$value = $seed",
    "$value = $reducer($value, x)",
    params=("reducer", "seed"),
    result="""
    if $value is None:
        raise no_element("reduce")
    emit $value
    """,
)

_REDUCE = fold(
    "reduce",
    "$value = None",
    """
    if $value is None:
        $value = x
    else:
        $value = $reducer($value, x)
        if $value is None:
            raise no_element("reduce")
    """,
    params=("reducer",),
    result=IF_FOUND,
)


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
)


def too_many_keys(limit: int) -> TooManyElements:
    return TooManyElements(
        f"to_dict: the flow has more than limit={limit} keys; give a larger limit, or work on the "
        "elements one by one: for_each, reduce, async for"
    )


_TO_DICT = fold(
    "to_dict",
    "$found = {}",
    """
    $found[$key(x)] = x if $value is None else $value(x)
    if len($found) > $limit:
        raise too_many_keys($limit)
    """,
    params=("key", "value", "limit"),
    uses=(too_many_keys,),
    result="emit $found",
)

_COUNT = fold("count", "$value = 0", "$value += 1")

_SUM = fold("sum", "$value = $start", "$value = $value + x", params=("start",))


def _answer(name: str, is_open: str, answer: bool) -> InlineStage:
    return InlineStage(
        name,
        params=("predicate",),
        each=f"""
        if {is_open}:
            drop
        x = {answer}
        last
        """,
        after=f"emit {not answer}",
    )


_ANY = _answer("any", "not $predicate(x)", answer=True)
_ALL = _answer("all", "$predicate(x)", answer=False)


def require_plain_result(result: object) -> None:
    if isawaitable(result):
        if iscoroutine(result):
            result.close()
        raise TypeError(
            f"for_each: the function returned {describe(result)}, which is to be awaited, but is "
            "not a coroutine function; write it with async def"
        )


_EACH = fold(
    "for_each",
    "$value = 0",
    """
    $result = $function(x)
    if $result is not None:
        require_plain_result($result)
    $value += 1
    """,
    params=("function",),
    uses=(require_plain_result,),
)

_EACH_ASYNC = fold(
    "for_each", "$value = 0", "await $function(x)\n$value += 1", params=("function",)
)

_IGNORE = InlineStage("ignore", each="drop")


@overload
async def reduce(source: "Fluent[T]", reducer: Callable[[T, T], T]) -> T: ...
@overload
async def reduce(source: "Fluent[T]", reducer: Callable[[A, T], A], seed: A) -> A: ...
async def reduce(
    source: "Fluent[Any]", reducer: Callable[[Any, Any], Any], seed: Any = NOTHING
) -> Any:
    """Combine all elements into one value: ``reducer(so_far, element)``.

    The first *so_far* is *seed*, which is also the value of a flow without elements; each call
    starts with the same object, so the reducer must not change it. Without *seed* it is the first
    element, and a flow without elements raises `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow or of *reducer*.
    Cancels: when its task is cancelled.
    Holds: one value.
    Rules: 2.1
    """
    require_sync_callable("reduce", "reducer", reducer, _USE_MAP_ASYNC)
    if seed is not NOTHING:
        return await first_value(source.via(_FOLD, reducer, seed))
    found = await first_value(source.via(_REDUCE, reducer))
    if found is NOTHING:
        error = EmptyFlow("reduce: the flow has no elements; give a seed to return then")
        source.chain.annotate(error)
        raise error
    return found


async def to_list(source: "Fluent[T]", *, limit: int = LIMIT) -> list[T]:
    """Collect all elements in a list.

    More than *limit* elements raise `TooManyElements`, before they fill the memory.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow, or `TooManyElements`.
    Cancels: when its task is cancelled, and at more than *limit* elements.
    Holds: *limit* elements.
    Rules: 2.1
    """
    require_int("to_list", "limit", limit)
    found = await first_value(source.via(_TO_LIST, limit, holds=limit))
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
    require_sync_callable("to_dict", "key", key, _USE_MAP_ASYNC)
    if value is not None:
        require_sync_callable("to_dict", "value", value, _USE_MAP_ASYNC)
    require_int("to_dict", "limit", limit)
    stage = source.via(_TO_DICT, key, value, limit, holds=limit)
    return cast("dict[Any, Any]", await first_value(stage))


async def count(source: "Fluent[object]") -> int:
    """Count the elements.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    return cast("int", await first_value(source.via(_COUNT)))


@overload
async def sum(source: "Fluent[int]") -> int: ...
@overload
async def sum(source: "Fluent[float]") -> float: ...
@overload
async def sum(source: "Fluent[A]", start: A) -> A: ...
async def sum(source: "Fluent[Any]", start: Any = 0) -> Any:
    """Add the elements, starting with *start*.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow or of an addition.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    return await first_value(source.via(_SUM, start))


async def any(source: "Fluent[T]", predicate: Callable[[T], object] = bool) -> bool:
    """Return whether *predicate* is true for an element; by default, whether one is true.

    Demand: unbounded, until the answer is known.
    Completes: returns True at the first such element, False when the flow completes.
    Fails: raises the error of the flow or of *predicate*.
    Cancels: at the first such element, and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    require_sync_callable("any", "predicate", predicate, _USE_MAP_ASYNC)
    return cast("bool", await first_value(source.via(_ANY, predicate)))


async def all(source: "Fluent[T]", predicate: Callable[[T], object] = bool) -> bool:
    """Return whether *predicate* is true for every element; by default, whether all are true.

    Demand: unbounded, until the answer is known.
    Completes: returns False at the first other element, True when the flow completes.
    Fails: raises the error of the flow or of *predicate*.
    Cancels: at the first other element, and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    require_sync_callable("all", "predicate", predicate, _USE_MAP_ASYNC)
    return cast("bool", await first_value(source.via(_ALL, predicate)))


async def for_each(source: "Fluent[T]", function: Callable[[T], object]) -> int:
    """Call *function* with each element, and return the number of elements.

    The result of a coroutine function is awaited before the next element is taken; to run several
    concurrently, use ``map_async(function, concurrency=n)``.

    Demand: unbounded; elements come one at a time.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow or of *function*.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 1.3, 2.1
    """
    require_callable("for_each", "function", function)
    call = getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    if iscoroutinefunction(function) or iscoroutinefunction(call):
        stage = source.via(_EACH_ASYNC, function)
    else:
        stage = source.via(_EACH, function)
    return cast("int", await first_value(stage))


async def run(source: "Fluent[object]") -> None:
    """Run the flow for its side effects and discard its elements.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    await first_value(source.via(_IGNORE))
