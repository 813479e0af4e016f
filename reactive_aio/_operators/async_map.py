"""Operators that await a coroutine function per element, one at a time or concurrently."""

from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.arguments import explain_await
from .._core.queues.reorder_buffer import ReorderBuffer
from .._shared.element_work import ElementWork, OnError, WorkOptions, work_options
from ..limits import Limits
from ..retry import RetryPolicy
from ..stage import (
    Duration,
    InlineStage,
    WorkerPool,
    describe,
    from_push,
    require_callable,
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
    checked=True,
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
    ahead: int | None = None,
    ordered: bool = True,
    key: Callable[[T], Hashable] | None = None,
    retry: RetryPolicy | int | None = None,
    timeout: Duration | None = None,
    on_error: OnError[T] = "fail",
    limiter: Limits | None = None,
) -> "Flow[R]":
    """Emit the result of awaiting ``mapper(element)`` for each element.

    Up to *concurrency* calls run at the same time. Results keep the order of the elements; with
    ``ordered=False`` they are emitted as they arrive.

    ::

        a--b--c--|
        .map_async(upper)
        A--B--C--|

    In order, a slow call holds back the results after it: when *concurrency* elements are running,
    or are ready and wait for an earlier one, no further call begins. An element that waits for
    another attempt, or for a limit, counts as running. *ahead* lets more elements be under way:
    with ``concurrency=4, ahead=64`` there are always four calls, also while one of them is late or
    an element waits for its next attempt, until 64 elements have been taken.

    With *key*, the elements for which ``key(element)`` is equal are worked on one after another, in
    their order; one that waits for its turn counts as a running call. With *retry*, a call that
    fails is made again, as the policy allows; *timeout* is the limit for each attempt. With a
    *limiter*, or a list of them, each attempt begins when all of these admit it: see
    `reactive_aio.limits`.

    When the last attempt has failed, *on_error* decides: ``"fail"``, ``"skip"`` (the element is
    left out), or a function that is called with the element and the error, and may be a coroutine
    function; its result is ignored, and the element is left out. `losses` counts the elements left
    out.

    Demand: passed through; with *concurrency* or *ahead* n, at most n elements ahead of it.
    Completes: when the source has completed and all results are delivered.
    Fails: when the source or *mapper* fails, after the earlier results, or when *on_error* does.
        With *concurrency*, running calls are cancelled, except those for elements before the failed
        one in order.
    Cancels: running calls and the source, when the subscriber cancels; ``aclose`` waits for them.
    Holds: nothing one at a time; else 2 × *concurrency* elements, or 2 × *ahead*, including running
        calls.
    Rules: 1.1, 1.3, 3.5
    """
    require_callable("map_async", "mapper", mapper, takes=1)
    require_int("map_async", "concurrency", concurrency, least=1)
    if ahead is not None:
        require_int("map_async", "ahead", ahead, least=concurrency)
    options = work_options(
        "map_async",
        key=key,
        retry=retry,
        timeout=timeout,
        on_error=on_error,
        limiter=limiter,
        at_a_time=None if ahead is None else concurrency,
    )
    if options is not None:
        return _worked(source, mapper, options, concurrency, ahead, ordered)
    if concurrency == 1:
        return source.via(_MAP, mapper)
    return _concurrent(source, mapper, False, "map_async", concurrency, ordered)


def _worked(
    source: "Flow[Any]",
    mapper: Callable[[Any], Awaitable[Any]],
    options: WorkOptions,
    concurrency: int,
    ahead: int | None,
    ordered: bool,
) -> "Flow[Any]":
    shown = f", concurrency={concurrency}" if concurrency > 1 else ""
    shown += "" if ahead is None else f", ahead={ahead}"
    started = concurrency if ahead is None else ahead
    return from_push(
        lambda downstream: WorkerPool(
            downstream,
            source,
            ElementWork("map_async", mapper, options, needs_result=True),
            False,
            ReorderBuffer[Any](started, ordered=ordered),
            may_skip=True,
        ),
        name=f"map_async({describe(mapper)}{shown})",
        holds=2 * started,
        checked=True,
        upstreams=(source,),
        one_by_one=False,
    )


def filter_async(
    source: "Flow[T]",
    predicate: Callable[[T], Awaitable[object]],
    *,
    concurrency: int = 1,
    ordered: bool = True,
) -> "Flow[T]":
    """Pass on the elements for which awaiting ``predicate(element)`` returns a true value.

    The calls run as those of `map_async`: up to *concurrency* of them at the same time, and in the
    order of the elements, unless *ordered* is false.

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
    require_callable("filter_async", "predicate", predicate, takes=1)
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
