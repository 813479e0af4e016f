"""for_each: call a function with each element, one call after another or several at a time."""

from collections.abc import Callable
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..stage import (
    InlineStage,
    ReorderBuffer,
    WorkerPool,
    describe,
    explain_await,
    from_push,
    is_coroutine_function,
    require_callable,
    require_int,
)
from .first_value import first_value

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = ("for_each",)

T = TypeVar("T")


def require_plain_result(result: object) -> None:
    if isawaitable(result):
        if iscoroutine(result):
            result.close()
        raise TypeError(
            f"for_each: the function returned {describe(result)}, which is to be awaited, but is "
            "not a coroutine function; write it with async def"
        )


_EACH = InlineStage(
    "for_each",
    params=("function",),
    uses=(require_plain_result,),
    setup="$count = 0",
    each="""
    $result = $function(x)
    if $result is not None:
        require_plain_result($result)
    $count += 1
    drop
    """,
    after="emit $count",
)

_EACH_ASYNC = InlineStage(
    "for_each",
    params=("function",),
    setup="$count = 0",
    each="""
    await $function(x)
    $count += 1
    drop
    """,
    after="emit $count",
)

_COUNT = InlineStage("count", setup="$count = 0", each="$count += 1\ndrop", after="emit $count")


async def for_each(
    source: "Fluent[T]", function: Callable[[T], object], *, concurrency: int = 1
) -> int:
    """Call *function* with each element, and return the number of elements.

    The result of a coroutine function is awaited: before the next element is taken, or with up to
    *concurrency* calls at a time. What a function returns is ignored, and may be None.

    Demand: unbounded; elements come one at a time, or *concurrency* at a time.
    Completes: returns when the flow has completed and every call has returned.
    Fails: raises the error of the flow or of *function*; the other calls are cancelled.
    Cancels: the running calls and the source, when its task is cancelled, waiting for them.
    Holds: nothing one at a time; else 2 × *concurrency* elements, including running calls.
    Rules: 1.3, 2.1
    """
    require_callable("for_each", "function", function, takes=1)
    if require_int("for_each", "concurrency", concurrency, least=1) > 1:
        stage = _each_concurrently(source, function, concurrency).via(_COUNT)
    elif is_coroutine_function(function):
        stage = source.via(_EACH_ASYNC, function)
    else:
        stage = source.via(_EACH, function)
    return cast("int", await first_value(stage))


def _each_concurrently(
    source: "Fluent[Any]", function: Callable[[Any], Any], concurrency: int
) -> "Fluent[Any]":
    """A flow of the elements with which *function* has been called."""

    async def call(element: Any) -> bool:
        try:
            await function(element)
        except TypeError as error:
            remedy = "leave out concurrency for a plain function"
            raise explain_await("for_each", "function", function, error, remedy)  # noqa: B904
        return True

    return from_push(
        lambda downstream: WorkerPool(
            downstream, source, call, True, ReorderBuffer[Any](concurrency, ordered=False)
        ),
        name=f"for_each({describe(function)}, concurrency={concurrency})",
        holds=2 * concurrency,
        checked=True,
        upstreams=(source,),
    )
