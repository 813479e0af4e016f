"""Terminal operators: each awaits the end of the flow, or the element that it returns.

A terminal operator is an inline stage that emits its result after the last element. So it runs
inside the flow's own loop, and in the consumer's task where that loop is synchronous.
"""

from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast, overload

from .._core.compiler.error_notes import note_consumer
from ..errors import EmptyFlow, TooManyElements
from ..stage import InlineStage, describe, require_int, require_sync_callable
from .first_value import NOTHING, first_value, only_value

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = (
    "all",
    "any",
    "count",
    "element_at",
    "first",
    "last",
    "max",
    "min",
    "reduce",
    "run",
    "single",
    "sum",
)

T = TypeVar("T")
A = TypeVar("A")
D = TypeVar("D")


class _Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


C = TypeVar("C", bound=_Comparable)

USE_MAP_ASYNC: Final = "use map_async before it"
_EMPTY: Final = "the flow is empty"

_IF_FOUND: Final = """
if $value is not None:
    $found, $value = $value, None
    emit $found
"""
_FOUND: Final = "() if $value is None else ($value,)"


def no_elements(_: object) -> tuple[()]:
    """A result that contains none of the elements."""
    return ()


def the_element(result: object) -> tuple[object]:
    """A result that is one of the elements."""
    return (result,)


def fold(
    name: str,
    setup: str,
    each: str,
    *,
    params: tuple[str, ...] = (),
    uses: tuple[Callable[..., Any], ...] = (),
    after: str = "emit $value",
    held: str = "",
    result: Callable[[Any], Iterable[object]] = no_elements,
) -> InlineStage:
    """A stage that takes every element into ``$value``, and emits that after the last one."""
    lines = dedent(each).strip("\n") + "\ndrop"
    return InlineStage(
        name,
        params=params,
        uses=uses,
        setup=setup,
        each=lines,
        after=after,
        held=held,
        result=result,
        checked=True,
    )


_LAST = fold(
    "last", "$value = None", "$value = x", after=_IF_FOUND, held=_FOUND, result=the_element
)


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
    after=_IF_FOUND,
    held=_FOUND,
    result=the_element,
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
    result=the_element,
)


def _extreme(name: str, is_better: str) -> InlineStage:
    return fold(
        name,
        "$value = $rank = None",
        f"""
        $new = x if $key is None else $key(x)
        sync $new of $key
        if $value is None or {is_better}:
            $value = x
            $rank = $new
        """,
        params=("key",),
        after=_IF_FOUND,
        held=_FOUND,
        result=the_element,
    )


_MIN = _extreme("min", "$new < $rank")
_MAX = _extreme("max", "$rank < $new")

_REDUCE_SEED = fold(
    "reduce",
    "$value = $seed",
    """
    $value = $reducer($value, x)
    sync $value of $reducer
    """,
    params=("reducer", "seed"),
    after="""
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
        sync $value of $reducer
        if $value is None:
            raise no_element("reduce")
    """,
    params=("reducer",),
    after=_IF_FOUND,
)


_COUNT = fold("count", "$value = 0", "$value += 1")

_SUM = fold("sum", "$value = $start", "$value = $value + x", params=("start",))


def _answer(name: str, is_open: str, answer: bool) -> InlineStage:
    return InlineStage(
        name,
        params=("predicate",),
        each=f"""
        $found = $predicate(x)
        sync $found of $predicate
        if {is_open}:
            drop
        x = {answer}
        last
        """,
        after=f"emit {not answer}",
        result=no_elements,
        checked=True,
    )


_ANY = _answer("any", "not $found", answer=True)
_ALL = _answer("all", "$found", answer=False)


_IGNORE = InlineStage("ignore", each="drop", result=no_elements)


@overload
async def first(source: "Fluent[T]") -> T: ...
@overload
async def first(source: "Fluent[T]", *, default: D) -> T | D: ...
async def first(source: "Fluent[Any]", *, default: Any = NOTHING) -> Any:
    """Return the first element, and cancel.

    ::

        a--b--c--|
        .first()
        (a|)

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

    ::

        a--b--c--|
        .last()
        ---------(c|)

    For a flow without elements, return *default* or raise `EmptyFlow`.

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow.
    Cancels: when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    return _value_or_default(source, default, await only_value(source.via(_LAST, holds=1)), "last")


@overload
async def single(source: "Fluent[T]") -> T: ...
@overload
async def single(source: "Fluent[T]", *, default: D) -> T | D: ...
async def single(source: "Fluent[Any]", *, default: Any = NOTHING) -> Any:
    """Return the only element; a second one raises `TooManyElements`.

    ::

        ---a--|
        .single()
        ------(a|)

    For a flow without elements, return *default* or raise `EmptyFlow`.

    Demand: one at a time, two at most.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow, or `TooManyElements`.
    Cancels: at a second element, and when its task is cancelled.
    Holds: one element.
    Rules: 2.1
    """
    found = await only_value(source.via(_SINGLE, holds=1), 1)
    return _value_or_default(source, default, found, "single")


@overload
async def element_at(source: "Fluent[T]", index: int) -> T: ...
@overload
async def element_at(source: "Fluent[T]", index: int, *, default: D) -> T | D: ...
async def element_at(source: "Fluent[Any]", index: int, *, default: Any = NOTHING) -> Any:
    """Return the element at *index*, counted from 0, and cancel.

    ::

        a--b--c--|
        .element_at(1)
        ---(b|)

    For a flow with fewer elements, return *default* or raise `EmptyFlow`.

    Demand: one at a time, never more than needed.
    Completes: returns at that element.
    Fails: raises the error of a flow that fails before it.
    Cancels: after the element, waiting for the source's cleanup; and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1, 3.4
    """
    require_int("element_at", "index", index)
    found = await only_value(source.via(_ELEMENT_AT, index), 1)
    has_less = f"the flow has fewer than {index + 1} elements" if index else _EMPTY
    return _value_or_default(source, default, found, f"element_at({index})", has_less)


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

    ::

        2--1--3--|
        .min()
        ---------(1|)

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

    ::

        2--3--1--|
        .max()
        ---------(3|)

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
        require_sync_callable(stage.name, "key", key, USE_MAP_ASYNC, takes=1)
    return _value_or_default(
        source, default, await only_value(source.via(stage, key, holds=1)), stage.name
    )


def _value_or_default(
    source: "Fluent[Any]", default: Any, found: Any, what: str, has_less: str = _EMPTY
) -> Any:
    if found is not NOTHING:
        return found
    if default is not NOTHING:
        return default
    raise _empty(source, what, f"{what}: {has_less}; give default=… to return a value instead")


def _empty(source: "Fluent[Any]", what: str, message: str) -> EmptyFlow:
    error = EmptyFlow(message)
    note_consumer(source.chain, error, what if what.endswith(")") else f"{what}()")
    return error


@overload
async def reduce(source: "Fluent[T]", reducer: Callable[[T, T], T]) -> T: ...
@overload
async def reduce(source: "Fluent[T]", reducer: Callable[[A, T], A], seed: A) -> A: ...
async def reduce(
    source: "Fluent[Any]", reducer: Callable[[Any, Any], Any], seed: Any = NOTHING
) -> Any:
    """Combine all elements into one value: ``reducer(so_far, element)``.

    ::

        1--2--3--|
        .reduce(operator.mul)
        ---------(6|)

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
    require_sync_callable("reduce", "reducer", reducer, USE_MAP_ASYNC, takes=2)
    if seed is not NOTHING:
        return await only_value(source.via(_REDUCE_SEED, reducer, seed))
    found = await only_value(source.via(_REDUCE, reducer))
    if found is NOTHING:
        message = f"reduce: {_EMPTY}; give a seed, which is returned instead"
        raise _empty(source, f"reduce({describe(reducer)})", message)
    return found


async def count(source: "Fluent[object]") -> int:
    """Count the elements.

    ::

        a--b--c--|
        .count()
        ---------(3|)

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    return cast("int", await only_value(source.via(_COUNT)))


@overload
async def sum(source: "Fluent[int]") -> int: ...
@overload
async def sum(source: "Fluent[float]") -> float: ...
@overload
async def sum(source: "Fluent[A]", start: A) -> A: ...
async def sum(source: "Fluent[Any]", start: Any = 0) -> Any:
    """Add the elements, starting with *start*.

    ::

        1--2--3--|
        .sum()
        ---------(6|)

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow or of an addition.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    return await only_value(source.via(_SUM, start))


async def any(source: "Fluent[T]", predicate: Callable[[T], object] = bool) -> bool:
    """Return whether *predicate* is true for an element; by default, whether one is true.

    ::

        a--B--c--|
        .any(str.isupper)
        ---True|

    Demand: unbounded, until the answer is known.
    Completes: returns True at the first such element, False when the flow completes.
    Fails: raises the error of the flow or of *predicate*.
    Cancels: at the first such element, and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    require_sync_callable("any", "predicate", predicate, USE_MAP_ASYNC, takes=1)
    return cast("bool", await only_value(source.via(_ANY, predicate)))


async def all(source: "Fluent[T]", predicate: Callable[[T], object] = bool) -> bool:
    """Return whether *predicate* is true for every element; by default, whether all are true.

    ::

        a--B--c--|
        .all(str.islower)
        ---False|

    Demand: unbounded, until the answer is known.
    Completes: returns False at the first other element, True when the flow completes.
    Fails: raises the error of the flow or of *predicate*.
    Cancels: at the first other element, and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    require_sync_callable("all", "predicate", predicate, USE_MAP_ASYNC, takes=1)
    return cast("bool", await only_value(source.via(_ALL, predicate)))


async def run(source: "Fluent[object]") -> None:
    """Run the flow for its side effects and discard its elements.

    ::

        a--b--c--|
        .run()
        ---------|

    Demand: unbounded.
    Completes: returns when the flow completes.
    Fails: raises the error of the flow.
    Cancels: when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    await only_value(source.via(_IGNORE))
