"""Operators with something to await: coroutine functions, one at a time or several at once."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.compiler.inline import describe
from .._core.demand import require_demand
from .._core.queues.reorder_buffer import ReorderBuffer
from .._core.upstreams.worker_pool import WorkerPool
from ..stage import InlineStage, from_push

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("filter_async", "map_async")

T = TypeVar("T")
R = TypeVar("R")

_MAP = InlineStage(
    "map_async",
    params=("mapper",),
    each="""
    x = await $mapper(x)
    if x is None:
        raise no_element("map_async")
    """,
)

_FILTER = InlineStage(
    "filter_async",
    params=("predicate",),
    each="""
    if not await $predicate(x):
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
    """Turn each element into the result of awaiting ``mapper(element)``.

    One after another, in the task of the subscription; or *concurrency* at a time, in as many
    tasks, with the results in the order of their elements, or with ``ordered=False`` as they come.
    Elements at work and results that nobody has asked for are *concurrency* together at the most;
    besides, up to *concurrency* results are on their way down.

    ::

        a--b--c--|
        .map_async(upper)
        A--B--C--|

    Demand: passed through; with *concurrency* n, n elements ahead of it at the most.
    Completes: when the source has completed and all results are delivered.
    Fails: when the source or *mapper* does, behind the results before. With *concurrency*, what is
        at work is cancelled, except for what comes before the failed element in order.
    Cancels: what is at work, and the source, when the subscriber cancels; ``aclose`` waits for it.
    Holds: nothing one at a time; else 2 × *concurrency* elements, counting those at work.
    Rules: 1.1, 1.3, 3.5
    """
    if require_demand(concurrency) == 1:
        return source.via(_MAP, mapper)
    return _concurrent(source, mapper, False, "map_async", concurrency, ordered)


def filter_async(
    source: "Flow[T]",
    predicate: Callable[[T], Awaitable[object]],
    *,
    concurrency: int = 1,
    ordered: bool = True,
) -> "Flow[T]":
    """Pass on the elements for which awaiting ``predicate(element)`` gives something true.

    One after another, or *concurrency* at a time, as `map_async` does.

    ::

        a--b--c--|
        .filter_async(is_vowel)
        a--------|

    Demand: passed through, and once more for each element that is dropped; with *concurrency* n,
        n elements ahead of it at the most.
    Completes: when the source has completed and all that pass are delivered.
    Fails: when the source or *predicate* does, behind the elements before. With *concurrency*, what
        is at work is cancelled, except for what comes before the failed element in order.
    Cancels: what is at work, and the source, when the subscriber cancels; ``aclose`` waits for it.
    Holds: nothing one at a time; else 2 × *concurrency* elements, counting those at work.
    Rules: 1.1, 1.3, 3.5
    """
    if require_demand(concurrency) == 1:
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
    )
