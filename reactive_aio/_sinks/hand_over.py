"""Sinks that hand each element over: to a queue, a stream of anyio, or a subscriber."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from .._core.arguments import is_coroutine_function
from ..spec import Subscriber
from ..stage import describe
from .for_each import for_each

if TYPE_CHECKING:
    from ..stage import Fluent

__all__ = ("into", "to_anyio", "to_queue")

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
S = TypeVar("S", bound=Subscriber[Any])


class _Queue(Protocol[T_contra]):
    """The part of an ``asyncio.Queue`` that is used here."""

    async def put(self, item: T_contra, /) -> None: ...


class _SendStream(Protocol[T_contra]):
    """The part of a sending stream of anyio that is used here."""

    async def send(self, item: T_contra, /) -> None: ...

    async def aclose(self) -> None: ...


async def to_queue(source: "Fluent[T]", queue: "_Queue[T]") -> int:
    """Put each element into an ``asyncio.Queue``, and return their number.

    ::

        a--b--c--|
        .to_queue(Queue())
        ---------(3|)

    A bounded queue that is full makes the source wait. Nothing is put at the end: ``concat_with``
    can add an element that says so.

    Demand: unbounded; elements come one at a time, as the queue has room.
    Completes: returns when the flow has completed and every element is in the queue.
    Fails: raises the error of the flow, or of the queue, such as QueueShutDown.
    Cancels: the source, when its task is cancelled.
    Holds: nothing.
    Rules: 1.3, 2.1
    """
    return await for_each(source, _method(queue, "to_queue", "queue", "put", "an asyncio.Queue"))


async def to_anyio(source: "Fluent[T]", stream: "_SendStream[T]", *, close: bool = True) -> int:
    """Send each element into a stream of anyio, and return their number.

    ::

        a--b--c--|
        .to_anyio(stream)
        ---------(3|)

    The stream makes the source wait while nothing receives from it. At the end, also by an error,
    the stream is closed, unless *close* is false: then another one may go on sending.

    Demand: unbounded; elements come one at a time, as the stream accepts them.
    Completes: returns when the flow has completed and every element is sent.
    Fails: raises the error of the flow, or of the stream: BrokenResourceError when its receivers
        are closed, which cancels the source.
    Cancels: the source, when its task is cancelled.
    Holds: nothing.
    Rules: 1.3, 2.1
    """
    send = _method(stream, "to_anyio", "stream", "send", "an anyio stream that sends")
    try:
        return await for_each(source, send)
    finally:
        if close:
            await stream.aclose()


def _method(
    target: object, operator: str, parameter: str, name: str, expected: str
) -> Callable[[Any], Awaitable[object]]:
    method = getattr(target, name, None)
    if not is_coroutine_function(method):
        kind = type(target).__name__
        raise TypeError(
            f"{operator}: {parameter} must be {expected}, not {describe(target)} ({kind})"
        )
    return cast("Callable[[Any], Awaitable[object]]", method)


def into(source: "Fluent[T]", subscriber: S) -> S:
    """Subscribe *subscriber*, such as a processor, and return it.

    ::

        a--b--c--|
        .into(UnicastProcessor())
        a--b--c--|

    So a flow that feeds a processor is one expression: ``flow.map(f).into(MulticastProcessor())``.

    Demand: that of the subscriber.
    Completes: completes the subscriber.
    Fails: fails the subscriber.
    Cancels: when the subscriber cancels.
    Holds: nothing.
    Rules: 1.9
    """
    source.subscribe(subscriber)
    return subscriber
