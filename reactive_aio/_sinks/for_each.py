"""for_each: call a function with each element, one call after another or several at a time."""

from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial, update_wrapper
from inspect import isawaitable, iscoroutine
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._core.arguments import explain_await, is_coroutine_function
from .._core.queues.reorder_buffer import ReorderBuffer
from .._core.run_control import control_of
from .._shared.element_work import ElementWork, OnError, work_options
from ..limits import Limits
from ..retry import RetryPolicy
from ..stage import (
    Duration,
    Fluent,
    InlineStage,
    WorkerPool,
    describe,
    flow_of,
    from_push,
    require_callable,
    require_int,
)
from .first_value import only_value

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("after_calls", "for_each")

T = TypeVar("T")


def require_plain_result(result: object) -> None:
    if isawaitable(result):
        if iscoroutine(result):
            result.close()
        raise TypeError(
            f"for_each: the function returned {describe(result)}, which is to be awaited, but is "
            "not a coroutine function; write it with async def"
        )
    if isinstance(result, (Fluent, GeneratorType, AsyncGeneratorType)):
        shown = describe(cast("object", result))
        raise TypeError(
            f"for_each: the function returned {shown}, which nothing would read; write "
            "flow.flat_map(function).run()"
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
    checked=True,
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
    checked=True,
)

_COUNT = InlineStage(
    "count", setup="$count = 0", each="$count += 1\ndrop", after="emit $count", checked=True
)


async def for_each(
    source: "Fluent[T]",
    function: Callable[[T], object],
    *,
    concurrency: int = 1,
    ordered: bool = False,
    key: Callable[[T], Hashable] | None = None,
    retry: RetryPolicy | int | None = None,
    timeout: Duration | None = None,
    on_error: OnError[T] = "fail",
    limiter: Limits | None = None,
) -> int:
    """Call *function* with each element, and return the number of elements.

    ::

        a--b--c--|
        .for_each(print)
        ---------(3|)

    The result of a coroutine function is awaited: before the next element is taken, or with up to
    *concurrency* calls at a time. What a function returns is ignored, and may be None. With
    *ordered*, an element counts as done only when all elements before it are: the one that is
    behind holds the others back.

    A plain function that returns an awaitable, such as a lambda, is awaited only with *concurrency*
    above 1 or one of the options below, and otherwise refused: write it with ``async def``.

    *key*, *retry*, *timeout*, *on_error* and *limiter* are those of ``map_async``. An element whose
    work has failed, and was left to *on_error*, is not counted.

    Demand: unbounded; elements come one at a time, or *concurrency* at a time.
    Completes: returns when the flow has completed and every call has returned.
    Fails: raises the error of the flow, of *function* or of *on_error*; the other calls are
        cancelled.
    Cancels: the running calls and the source, when its task is cancelled, waiting for them.
    Holds: nothing one at a time; else 2 × *concurrency* elements, including running calls.
    Rules: 1.3, 2.1
    """
    stage = _in_workers(
        "for_each",
        source,
        function,
        concurrency=concurrency,
        ordered=ordered,
        key=key,
        retry=retry,
        timeout=timeout,
        on_error=on_error,
        limiter=limiter,
    )
    if stage is not None:
        return cast("int", await only_value(stage.via(_COUNT)))
    each = _EACH_ASYNC if is_coroutine_function(function) else _EACH
    return cast("int", await only_value(source.via(each, function)))


_CALL = InlineStage(
    "running",
    params=("function",),
    uses=(require_plain_result,),
    each="""
    $result = $function(x)
    if $result is not None:
        require_plain_result($result)
    """,
)

_CALL_ASYNC = InlineStage("running", params=("function",), each="await $function(x)")


def after_calls(
    operator: str, source: "Fluent[Any]", function: Callable[[Any], object], **options: Any
) -> "Fluent[Any]":
    """The elements of *source*, each after the call of *function* with it, as `for_each` does."""
    stage = _in_workers(operator, source, function, **options)
    if stage is not None:
        return stage
    return source.via(_CALL_ASYNC if is_coroutine_function(function) else _CALL, function)


async def _call(operator: str, function: Callable[[Any], Any], element: Any) -> bool:
    try:
        await function(element)
    except TypeError as error:
        remedy = "leave out concurrency for a plain function"
        raise explain_await(operator, "function", function, error, remedy)  # noqa: B904
    return True


class _Calls(WorkerPool):
    """Each element that is handed to the function is delivered."""

    def discard(self, elements: Iterable[object]) -> None:
        """*elements* were requested, and not handed to the function."""
        elements = list(elements)
        super().discard(elements)
        if (on_discard := self._source.chain.on_discard_at_end) is not None:
            for element in elements:
                on_discard(element)

    def discard_element(self, element: Any) -> None:
        """The function has had it: it is not discarded."""
        if (control := control_of(self.on_discard)) is not None:
            control.interrupted += 1

    def discard_results(self, results: list[Any]) -> None:
        """Their calls have returned: a run counts them as delivered, although no turn came."""
        if (control := control_of(self.on_discard)) is not None:
            control.finished += len(results)


def _in_workers(
    operator: str,
    source: "Fluent[Any]",
    function: Callable[[Any], Any],
    *,
    concurrency: int,
    ordered: bool,
    **work: Any,
) -> "Fluent[Any] | None":
    """A flow of the elements whose calls have returned; None if the calls need no workers."""
    require_callable(operator, "function", function, takes=1)
    require_int(operator, "concurrency", concurrency, least=1)
    options = work_options(operator, **work)
    make: Callable[[], Callable[[Any], Awaitable[object]]]
    if options is not None:
        make = partial(ElementWork, operator, function, options, needs_result=False)
    elif concurrency > 1:
        call = update_wrapper(partial(_call, operator, function), function)
        make = lambda: call  # noqa: E731
    else:
        return None
    shown = f", concurrency={concurrency}" if concurrency > 1 else ""
    chain, name = source.chain.without_name()
    unnamed = flow_of(chain)
    called: Flow[Any] = from_push(
        lambda downstream: _Calls(
            downstream, unnamed, make(), True, ReorderBuffer[Any](concurrency, ordered=ordered)
        ),
        name=f"{operator}({describe(function)}{shown})",
        holds=2 * concurrency,
        checked=True,
        upstreams=(unnamed,),
    )
    # The figures of a named flow include the calls, as they do without workers.
    return called if name is None else flow_of(called.chain.then(name))
