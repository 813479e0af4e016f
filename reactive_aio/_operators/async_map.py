"""Operators that await a coroutine function per element, one at a time or concurrently."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..stage import (
    InlineStage,
    ReorderBuffer,
    WorkerPool,
    describe,
    explain_await,
    from_push,
    require_async_callable,
    require_int,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("filter_async", "map_async")

T = TypeVar("T")
R = TypeVar("R")

_MAP = InlineStage(
    "map_async",
    params=("mapper",),
    uses=(explain_await,),
    each="""
    try:
        x = await $mapper(x)
    except TypeError as error:
        raise explain_await("map_async", "mapper", $mapper, error)
    if x is None:
        raise no_element("map_async")
    """,
)

_FILTER = InlineStage(
    "filter_async",
    params=("predicate",),
    uses=(explain_await,),
    each="""
    try:
        $passes = await $predicate(x)
    except TypeError as error:
        raise explain_await("filter_async", "predicate", $predicate, error)
    if not $passes:
        drop
    """,
)


def map_async(
    source: "Flow[T]",
    mapper: Callable[[T], Awaitable[R]],
    *,
    concurrency: int = 1,
    ordered: bool = True,
) -> "Flow[R]":
    """Replace each element by the result of awaiting ``mapper(element)``.

    The calls run one after another in the subscription's task, or up to *concurrency* at a time in
    as many tasks. Results are emitted in the order of their elements, or with ``ordered=False`` as
    they arrive. Running calls and results without demand are *concurrency* together at most; up to
    *concurrency* more results are being delivered.

    ::

        a--b--c--|
        .map_async(upper)
        A--B--C--|

    Demand: passed through; with *concurrency* n, at most n elements ahead of it.
    Completes: when the source has completed and all results are delivered.
    Fails: when the source or *mapper* fails, after the earlier results. With *concurrency*, running
        calls are cancelled, except those for elements before the failed one in order.
    Cancels: running calls and the source, when the subscriber cancels; ``aclose`` waits for them.
    Holds: nothing one at a time; else 2 × *concurrency* elements, including running calls.
    Rules: 1.1, 1.3, 3.5
    """
    require_async_callable("map_async", "mapper", mapper)
    if require_int("map_async", "concurrency", concurrency, least=1) == 1:
        return source.via(_MAP, mapper)
    return _concurrent(source, mapper, False, "map_async", concurrency, ordered)


def filter_async(
    source: "Flow[T]",
    predicate: Callable[[T], Awaitable[object]],
    *,
    concurrency: int = 1,
    ordered: bool = True,
) -> "Flow[T]":
    """Pass on the elements for which awaiting ``predicate(element)`` returns a true value.

    The calls run as those of `map_async`.

    ::

        a--b--c--|
        .filter_async(is_vowel)
        a--------|

    Demand: passed through; one more is requested for each element left out; with *concurrency* n,
        at most n elements ahead of it.
    Completes: when the source has completed and all that pass are delivered.
    Fails: when the source or *predicate* fails, after the earlier elements. With *concurrency*,
        running calls are cancelled, except those for elements before the failed one in order.
    Cancels: running calls and the source, when the subscriber cancels; ``aclose`` waits for them.
    Holds: nothing one at a time; else 2 × *concurrency* elements, including running calls.
    Rules: 1.1, 1.3, 3.5
    """
    require_async_callable("filter_async", "predicate", predicate)
    if require_int("filter_async", "concurrency", concurrency, least=1) == 1:
        return source.via(_FILTER, predicate)
    return _concurrent(source, predicate, True, "filter_async", concurrency, ordered)


def _concurrent(
    source: "Flow[Any]",
    function: Callable[[Any], Awaitable[Any]],
    keeps: bool,
    name: str,
    concurrency: int,
    ordered: bool,
) -> "Flow[Any]":
    return from_push(
        lambda downstream: WorkerPool(
            downstream, source, function, keeps, ReorderBuffer[Any](concurrency, ordered=ordered)
        ),
        name=f"{name}({describe(function)}, concurrency={concurrency})",
        holds=2 * concurrency,
        checked=True,
        upstreams=(source,),
        one_by_one=False,
    )
