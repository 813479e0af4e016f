"""Sources made of what is asynchronous already: iterables, awaitables, queues, publishers."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast

from .._core.arguments import Absent, is_coroutine_function
from .._core.compiler.awaitable_chain import AwaitableChain
from .._core.compiler.places import call_place
from .._core.loop import QUEUE_SHUT_DOWN
from .._shared.coerce import AwaitOnce, from_async_iterable, from_foreign
from ..errors import AlreadySubscribed
from ..stage import Fluent, describe, flow_of, from_async, require_callable

if TYPE_CHECKING:
    from ..flow import Flow
    from ..spec import Publisher

__all__ = ("from_aiter", "from_anyio", "from_awaitable", "from_publisher", "from_queue")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def from_aiter(source: AsyncIterable[T] | Callable[[], AsyncIterable[T]]) -> "Flow[T]":
    """Emit the elements of an asynchronous iterable.

    ::

        from_aiter(letters)
        a--b--c--|

    It is iterated inside the subscription's task, only while there is demand, and its ``aclose`` is
    awaited at the end. Each subscription iterates *source*: give the generator *function* rather
    than a generator. An iterator, which can be iterated only once, serves the first subscription
    with demand; the next ones fail with `AlreadySubscribed`. A flow is returned unchanged.

    Demand: pulled, one element for one requested.
    Completes: when the iterable ends, which shows only when one more element is requested.
    Fails: when the iterable raises or yields None, or *source* returns something else.
    Cancels: the running ``__anext__`` is cancelled, the iterable is closed; ``aclose`` waits.
    Holds: nothing; of a ``flow.stream()``, the elements that it reads ahead.
    Rules: 1.1, 1.11, 2.13, 3.13
    """
    given = cast("object", source)
    if isinstance(given, AsyncIterable):
        return from_async_iterable(cast("AsyncIterable[T]", given))
    _refuse_other_sources(given)
    require_callable(
        "from_aiter", "source", cast("Callable[[], Any]", source), takes=0, may_generate=True
    )
    make = cast("Callable[[], AsyncIterable[T]]", source)
    return from_async(partial(_iterate, make), name=f"from_aiter({describe(source)})")


def _refuse_other_sources(source: object) -> None:
    """Say which source takes what is neither an asynchronous iterable nor a function of one."""
    shown, remedy = describe(source), ""
    if iscoroutine(source):
        source.close()
        remedy = "is a coroutine; use from_awaitable for its result"
    elif is_coroutine_function(source):
        remedy = "is a coroutine function, without yield; use from_awaitable for its result"
    elif isinstance(source, Awaitable):
        remedy = "is an awaitable; use from_awaitable for its result"
    elif not callable(source) and isinstance(source, Iterable):
        remedy = "is iterated synchronously; use from_iterable, or from_thread if it blocks"
    if remedy:
        raise TypeError(f"from_aiter: {shown} {remedy}")


def _iterate(make: Callable[[], AsyncIterable[T]]) -> AsyncIterator[T]:
    made = cast("object", make())
    if isinstance(made, Fluent):  # nothing is read ahead that `bound` could not know of
        return cast("Flow[T]", made).stream(prefetch=1)
    if isinstance(made, AsyncIterable):
        return aiter(cast("AsyncIterable[T]", made))
    if iscoroutine(made):
        made.close()
    raise TypeError(
        f"from_aiter: {describe(make)} returned {type(made).__name__}, which is not an "
        "asynchronous iterable; a coroutine's result is emitted by from_awaitable"
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
    given: Any = source
    if given.__class__ is CoroutineType or isawaitable(given):
        make: Callable[[], Awaitable[T]] = AwaitOnce(given, "from_awaitable")
    elif callable(given):
        make = cast("Callable[[], Awaitable[T]]", given)
        require_callable("from_awaitable", "source", make, takes=0)
    else:
        remedy = "give an awaitable or a function that makes one; just(...) emits a value"
        if isinstance(cast("object", given), Fluent):
            remedy = "await one of its results: first(), to_list(), run()"
        shown = f"{describe(cast('object', given))} ({type(given).__name__})"
        raise TypeError(f"from_awaitable: {shown} cannot be awaited; {remedy}")
    return flow_of(AwaitableChain(given, make, call_place(2)))


class _Queue(Protocol[T_co]):
    """The part of an ``asyncio.Queue`` that is used here."""

    async def get(self) -> T_co: ...


_NO_END: Final = Absent("no end")


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
    name = f"from_queue({type(queue).__name__})"
    return from_async(partial(_drain, queue, end), name=name, one_by_one=True)


async def _drain(queue: _Queue[T], end: object) -> AsyncIterator[T]:
    while True:
        try:
            element = await queue.get()
        except QUEUE_SHUT_DOWN:
            return
        if end is not _NO_END and (element is end or element == end):
            return
        yield element


def from_anyio(stream: AsyncIterable[T]) -> "Flow[T]":
    """Emit what a receiving stream of anyio yields, objects or bytes.

    ::

        from_anyio(receiving("a", "b"))
        a--b--|

    Elements are received only by demand, so that the stream holds its senders back. The stream
    serves the first subscription that begins to receive, and is closed with it; one that is
    cancelled before leaves it as it is. Each ``clone()`` of a memory stream serves one more.

    Demand: pulled, one element for one requested.
    Completes: when the senders have closed the stream.
    Fails: when the stream fails, such as with BrokenResourceError.
    Cancels: at once, and closes the stream; no element is lost that a clone could receive.
    Holds: nothing.
    Rules: 1.1, 1.11, 3.13
    """
    if not _receives(stream):
        kind = type(stream).__name__
        raise TypeError(
            f"from_anyio: stream must be a stream of anyio that receives, not {describe(stream)} "
            f"({kind})"
        )
    once = _OneStream(stream)
    return from_async(once.open, name=f"from_anyio({type(stream).__name__})", one_by_one=True)


def _receives(stream: object) -> bool:
    return callable(getattr(stream, "receive", None)) and isinstance(stream, AsyncIterable)


@dataclass(slots=True, eq=False, repr=False)
class _OneStream(Generic[T]):
    """A stream that serves one subscription."""

    _stream: AsyncIterable[T]
    _is_used: bool = False

    def open(self) -> AsyncIterator[T]:
        if self._is_used:
            raise AlreadySubscribed(
                "rule 1.11: from_anyio was given a stream, which serves one subscription and has "
                "served it; give stream.clone() for another one"
            )
        self._is_used = True
        return aiter(self._stream)


def from_publisher(publisher: "Publisher[T]") -> "Flow[T]":
    """Read any object with ``subscribe`` as a flow, guarded against its rule violations.

    ::

        from_publisher(foreign("a", "b"))
        a--b--|

    A flow is returned unchanged. Every subscription subscribes to the publisher at once, in the
    subscriber's context. Signals from other threads are moved to the loop. A publisher that
    violates a rule is cancelled, and the flow fails with an error that names the rule: an element
    before ``on_subscribe`` (1.9), a second ``on_subscribe`` (2.12), more elements
    than were requested (1.1), None as an element (2.13, raised to the publisher as well), a
    ``subscribe`` or ``request`` that raises (1.9, 3.16). Signals after the terminal one are ignored
    (1.7), a ``cancel`` that raises is reported to the loop's exception handler (3.15).

    Demand: passed through, at most 256 at a time.
    Completes: when the publisher completes.
    Fails: when the publisher fails, or violates a rule.
    Cancels: the publisher is cancelled.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 1.3, 1.7, 1.9, 2.5, 2.12, 2.13, 3.16
    """
    if isinstance(publisher, Fluent):
        return cast("Flow[T]", publisher)
    given = cast("object", publisher)
    if not callable(getattr(given, "subscribe", None)):
        raise TypeError(
            f"from_publisher: {describe(given)} ({type(given).__name__}) is not a publisher: it "
            "has no subscribe(); for iterables use from_iterable or from_aiter"
        )
    return from_foreign(publisher)
