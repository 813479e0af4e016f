"""Sources of given values, or of values computed by demand."""

from builtins import range as builtin_range
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Never, SupportsIndex, TypeVar, cast, overload

from .._core.compiler.error_notes import remove_notes, restorer
from .._core.subscription.subscribing import INERT
from .._shared.coerce import Source, from_factory, from_sync_iterable
from ..errors import NotAnElement
from ..stage import InlineStage, describe, from_pull, from_push, require_sync_callable

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = (
    "defer",
    "empty",
    "error",
    "from_callable",
    "from_iterable",
    "generate",
    "just",
    "never",
    "range",
)

T = TypeVar("T")
S = TypeVar("S")

_CALL = InlineStage(
    "from_callable",
    params=("function",),
    each="""
    x = $function()
    sync x of $function
    if x is None:
        raise no_element("from_callable")
    last
    """,
    checked=True,
)


def just(*elements: T) -> "Flow[T]":
    """Emit the given elements.

    ::

        just("a", "b")
        a--b|

    Demand: pulled, one element for one requested.
    Completes: with the last element.
    Fails: never.
    Cancels: at once.
    Holds: nothing.
    Rules: 1.1, 1.5, 2.13
    """
    for element in elements:
        if element is None:
            raise NotAnElement("just() got None, which is not an element; leave it out")
    return from_pull(elements.__iter__, name=partial(_name_just, elements), checked=True)


def _name_just(elements: tuple[object, ...]) -> str:
    shown = [describe(element) for element in elements[:3]]
    return f"just({', '.join([*shown, '…'] if len(elements) > 3 else shown)})"


def empty() -> "Flow[Never]":
    """Complete without an element.

    ::

        empty()
        |

    Demand: none needed.
    Completes: at once.
    Fails: never.
    Cancels: at once.
    Holds: nothing.
    Rules: 1.5
    """
    return from_pull(partial(iter, ()), name="empty()", checked=True)


def never() -> "Flow[Never]":
    """Emit nothing, and do not end.

    ::

        never()
        ---

    Demand: accepted and ignored.
    Completes: never.
    Fails: never.
    Cancels: at once.
    Holds: nothing.
    Rules: 3.13
    """
    return from_push(lambda _: INERT, name="never()", checked=True, one_by_one=True)


def error(cause: Exception | Callable[[], Exception]) -> "Flow[Never]":
    """Fail at once with *cause*, or with its result if it is a function or a class.

    ::

        error(ValueError)
        #

    A function is called for each subscription, so that each receives its own exception.

    Demand: none needed.
    Completes: never.
    Fails: at once.
    Cancels: at once.
    Holds: nothing.
    Rules: 1.4
    """
    if not isinstance(cause, Exception) and not callable(cause):
        raise TypeError(f"error: cause must be an Exception or make one, not {describe(cause)}")
    if not isinstance(cause, Exception):
        require_sync_callable("error", "cause", cause, "make the exception at once.", takes=0)
    restore = restorer(cause) if isinstance(cause, Exception) else None

    def open() -> Iterator[Never]:
        if restore is not None:
            shared = restore()
            remove_notes(shared)  # it may have failed another flow before
            raise shared
        made = cast("Any", cause)()
        if isinstance(made, Exception):
            raise made
        raise TypeError(f"error: {describe(cause)} made no Exception but {describe(made)}")

    return from_pull(open, name=f"error({describe(cause)})", checked=True)


def defer(factory: Callable[[], Source[T]]) -> "Flow[T]":
    """Call *factory* for each subscription, and emit the elements of the source it returns.

    ::

        defer(lambda: just("a", "b"))
        a--b|

    It returns a flow, a publisher, an iterable or an asynchronous iterable. It is called when the
    flow is subscribed to, in the subscriber's context.

    Demand: passed through, at most 256 at a time.
    Completes: when the source completes.
    Fails: when *factory* raises or returns something else, or the source fails.
    Cancels: the source is cancelled.
    Holds: 256 elements, which were requested and wait for a slow subscriber, besides those that the
        source holds.
    Rules: 1.1, 1.4
    """
    remedy = "make the flow without awaiting, and await inside it: from_awaitable, map_async."
    require_sync_callable("defer", "factory", factory, remedy, takes=0, may_generate=True)
    return from_factory(factory, name="defer")


def from_iterable(iterable: Iterable[T]) -> "Flow[T]":
    """Emit the elements of an iterable that does not block (else use ``from_thread``).

    ::

        from_iterable("abc")
        a--b--c|

    Each subscription iterates *iterable*. An iterator, which can be iterated only once, serves the
    first subscription; the next ones fail with `AlreadySubscribed`.

    Demand: pulled, one element for one requested.
    Completes: when the iterable ends: with the last element where its iterator has a length hint
        (lists, tuples, strings, ranges), otherwise when one more is requested.
    Fails: when the iterable raises, or yields None.
    Cancels: at once; a generator is closed.
    Holds: nothing.
    Rules: 1.1, 1.11, 2.13
    """
    given = cast("object", iterable)
    if not isinstance(given, Iterable):
        raise TypeError(
            f"from_iterable: {describe(given)} ({type(given).__name__}) is not an iterable; "
            "use from_aiter for an asynchronous one, just for an element"
        )
    return from_sync_iterable(iterable)


def from_callable(function: Callable[[], T]) -> "Flow[T]":
    """Call *function* for each subscription, and emit its result.

    ::

        from_callable(lambda: "a")
        a|

    It must not block. For a coroutine function, use ``from_awaitable``.

    Demand: the function is called with the first request.
    Completes: with the element.
    Fails: when the function raises, or returns None.
    Cancels: at once.
    Holds: nothing.
    Rules: 1.4, 2.13
    """
    if not callable(function):
        raise TypeError(f"from_callable: {function!r} cannot be called; use just for an element")
    remedy = "use from_awaitable."
    require_sync_callable("from_callable", "function", function, remedy, takes=0)
    calls: Callable[[], Iterator[object]] = partial(repeat, None)
    return from_pull(calls, name="repeated", checked=True).via(_CALL, function)


def generate(step: Callable[[S], tuple[T, S] | None], initial: S) -> "Flow[T]":
    """Compute each element and the next state from the current state, by demand.

    ::

        generate(lambda n: (n, n * 2) if n < 9 else None, 1)
        1--2--4--8--|

    ``step(state)`` returns an element and the next state, or None to complete. Each subscription
    starts with *initial*; if that is mutable, make one for each:
    ``defer(lambda: generate(step, [...]))``.

    Demand: pulled, one call for one requested.
    Completes: when *step* returns None.
    Fails: when *step* raises, returns something else, or its element is None.
    Cancels: at once.
    Holds: nothing.
    Rules: 1.1, 1.4
    """
    remedy = "use from_aiter with an asynchronous generator."
    require_sync_callable("generate", "step", step, remedy, takes=1)
    return from_pull(partial(_steps, step, initial), name=f"generate({describe(step)})")


def _steps(step: Callable[[S], tuple[T, S] | None], state: S) -> Iterator[T]:
    while (made := step(state)) is not None:
        try:
            element, state = made
        except (TypeError, ValueError):
            raise TypeError(
                f"generate: step must return (element, state) or None, not {describe(made)}"
            ) from None
        yield element


@overload
def range(stop: SupportsIndex, /) -> "Flow[int]": ...
@overload
def range(start: SupportsIndex, stop: SupportsIndex, step: SupportsIndex = 1, /) -> "Flow[int]": ...
def range(*bounds: SupportsIndex) -> "Flow[int]":
    """Emit integers; the arguments are those of the built-in ``range``.

    ::

        range(1, 4)
        1--2--3|

    Demand: pulled, one element for one requested.
    Completes: with the last element.
    Fails: never.
    Cancels: at once.
    Holds: nothing.
    Rules: 1.1, 1.5
    """
    numbers = cast("Callable[..., Iterable[int]]", builtin_range)(*bounds)
    return from_pull(partial(iter, numbers), name=repr(numbers), checked=True)
