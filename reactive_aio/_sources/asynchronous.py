"""Sources that are awaited: asynchronous iterables, awaitables, queues."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from .._core.loop import QUEUE_SHUT_DOWN, Future, shield
from ..coerce import from_async_iterable
from ..errors import AlreadySubscribed
from ..stage import InlineStage, describe, from_async, from_pull, require_callable

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("from_aiter", "from_awaitable", "from_queue")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def from_aiter(source: AsyncIterable[T] | Callable[[], AsyncIterable[T]]) -> "Flow[T]":
    """Emit the elements of an asynchronous iterable.

    ::

        from_aiter(from_iterable("abc"))
        a--b--c--|

    It is iterated inside the subscription's task, only while there is demand, and its ``aclose`` is
    awaited at the end. Each subscription iterates *source*: give the generator *function* rather
    than a generator. An iterator, which can be iterated only once, serves the first subscription
    with demand; the next ones fail with `AlreadySubscribed`.

    Demand: pulled, one element for one requested.
    Completes: when the iterable ends, which shows only when one more element is requested.
    Fails: when the iterable raises or yields None, or *source* returns something else.
    Cancels: the running ``__anext__`` is cancelled, the iterable is closed; ``aclose`` waits.
    Holds: nothing.
    Rules: 1.1, 1.11, 2.13, 3.13
    """
    given = cast("object", source)
    if isinstance(given, AsyncIterable):
        return from_async_iterable(cast("AsyncIterable[T]", given))
    require_callable("from_aiter", "source", cast("Callable[[], Any]", source))
    make = cast("Callable[[], AsyncIterable[T]]", source)
    return from_async(partial(_iterate, make), name=f"from_aiter({describe(source)})")


def _iterate(make: Callable[[], AsyncIterable[T]]) -> AsyncIterator[T]:
    made = cast("object", make())
    if isinstance(made, AsyncIterable):
        return aiter(cast("AsyncIterable[T]", made))
    if iscoroutine(made):
        made.close()
    raise TypeError(
        f"from_aiter: {describe(make)} returned {type(made).__name__}, which is not an "
        "asynchronous iterable; a coroutine's result is emitted by from_awaitable"
    )


_AWAIT = InlineStage(
    "awaited",
    params=("make",),
    each="""
    x = await $make()
    if x is None:
        raise no_element("from_awaitable")
    last
    """,
)


def from_awaitable(source: Awaitable[T] | Callable[[], Awaitable[T]]) -> "Flow[T]":
    """Emit the result of an awaitable.

    ::

        from_awaitable(first_of("a"))
        a|

    A function that makes one, such as a coroutine function, is called for each subscription. A bare
    coroutine can be awaited only once: it serves the first subscription with demand, the next ones
    fail with `AlreadySubscribed`. A future or task serves any number of subscriptions, and is not
    cancelled with them: it belongs to its creator.

    Demand: awaited with the first request.
    Completes: with the element.
    Fails: when awaiting raises, or returns None.
    Cancels: the awaitable is cancelled, unless it is a future or task; ``aclose`` waits for that.
    Holds: nothing.
    Rules: 1.4, 1.11, 2.13
    """
    make: Callable[[], Awaitable[T]]
    if isawaitable(source):
        make = _SingleUse(source)
    else:
        require_callable("from_awaitable", "source", cast("Callable[[], Any]", source))
        make = source
    calls: Callable[[], Iterator[object]] = partial(repeat, make)
    name = f"from_awaitable({describe(source)})"
    return from_pull(calls, name=name, checked=True).via(_AWAIT, make)


class _SingleUse:
    """An awaitable for each subscription; a coroutine serves only the first."""

    __slots__ = ("_awaitable", "_is_used")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._awaitable = awaitable
        self._is_used = False

    def __call__(self) -> Awaitable[Any]:
        if isinstance(self._awaitable, Future):
            return shield(self._awaitable)
        if iscoroutine(self._awaitable):
            if self._is_used:
                raise AlreadySubscribed(
                    "rule 1.11: from_awaitable was given a coroutine, which serves one "
                    "subscription and has served it; give the coroutine function"
                )
            self._is_used = True
        return self._awaitable

    def __repr__(self) -> str:
        return describe(self._awaitable)


class _Queue(Protocol[T_co]):
    """The part of an ``asyncio.Queue`` that is used here."""

    async def get(self) -> T_co: ...


_NO_END: Final = object()


def from_queue(queue: "_Queue[T]", *, end: object = _NO_END) -> "Flow[T]":
    """Emit the elements put into an ``asyncio.Queue``.

    ::

        from_queue(filled_with("a", "b", end), end=end)
        a--b--|

    Elements are taken out only by demand, so that a bounded queue holds its producers back.
    Subscribers share the queue: each element goes to one of them. *end* is the element that
    completes the flow; ``queue.shutdown()`` (Python 3.13) completes it too. ``task_done()`` is not
    called.

    Demand: pulled, one element for one requested.
    Completes: at *end*, or when the queue has been shut down and is empty.
    Fails: when an element is None (unless that is *end*).
    Cancels: at once; no element is lost.
    Holds: nothing.
    Rules: 1.1, 2.13
    """
    if not iscoroutinefunction(getattr(queue, "get", None)):
        kind = type(queue).__name__
        raise TypeError(f"from_queue: queue must be an asyncio.Queue, not {kind}")
    return from_async(partial(_drain, queue, end), name=f"from_queue({type(queue).__name__})")


async def _drain(queue: _Queue[T], end: object) -> AsyncIterator[T]:
    while True:
        try:
            element = await queue.get()
        except QUEUE_SHUT_DOWN:
            return
        if end is not _NO_END and (element is end or element == end):
            return
        yield element
