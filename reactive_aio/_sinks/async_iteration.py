"""``async for`` over a flow, and ``async with flow.stream()``.

Over a synchronous island nothing is subscribed: its loop *is* the iterator, and runs in the
consumer's task. Everything else is a subscriber that requests what the consumer asks for.
"""

import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, cast

from .._core.compiler.chain import Chain
from .._core.compiler.loop_compiler import TURN
from .._core.demand import require_demand
from .._core.loop import Future, LoopHandle, report, yield_to_loop
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .._core.time_slice import TimeSlice

if TYPE_CHECKING:
    from types import TracebackType

    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("Stream", "iterate", "stream")

T = TypeVar("T")
_LOOK: Final = 16  # elements at hand between looks at the clock


def iterate(source: "Fluent[T]") -> AsyncIterator[T]:
    """Iterate a flow: ``async for element in flow``.

    Demand: one element at a time, when the loop asks for it; ``stream(prefetch=n)`` keeps n ahead.
    Completes: the loop ends. Fails: the loop raises the error.
    Cancels: leaving the loop by ``break``, an exception or the cancellation of the task cancels
    upstream before the next statement runs, on CPython; use ``async with flow.stream()`` to wait
    for asynchronous cleanup too, and on other interpreters.
    Rules: 1.3, 2.1, 2.6
    """
    chain = source.chain
    if not chain.is_pullable:
        return Stream(source, 1)
    if sys.version_info >= (3, 12):  # async generators have become slow; a class has not
        return _Pulled(chain)
    return _generate(chain)


def stream(source: "Fluent[T]", *, prefetch: int = 1) -> "Stream[T]":
    """Iterate a flow inside ``async with``, which also awaits asynchronous cleanup.

    ::

        async with flow.stream() as elements:
            async for element in elements:
                ...

    *prefetch* elements are requested ahead, and at most that many are held.
    """
    return Stream(source, require_demand(prefetch))


class ConsumerSlice(TimeSlice):
    """The time slice of an iterator, which yields to the event loop in the consumer's task."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.start_slice()

    async def yield_slice(self) -> None:
        """Yield to the event loop, and start a slice."""
        await yield_to_loop()
        self.start_slice()


def _generate(chain: Chain) -> AsyncIterator[Any]:
    """The island as an async generator that is closed the moment its consumer leaves.

    An async generator's finalizer is taken from the thread's hooks when its first awaitable is
    made; asyncio's would close it a turn later, in another task. A synchronous island can be
    closed on the spot.
    """
    generator = chain.run("agen", ConsumerSlice(), report)
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=_close_now)
    try:
        generator.__anext__().close()
    finally:
        sys.set_asyncgen_hooks(*hooks)
    return cast("AsyncIterator[Any]", generator)


def _close_now(generator: Any) -> None:
    try:
        generator.aclose().send(None)
    except StopIteration:
        pass


class _Pulled:
    """The island as a class with ``__anext__``; dropping it closes the source."""

    __slots__ = ("_elements", "_time_slice")

    def __init__(self, chain: Chain) -> None:
        self._time_slice = ConsumerSlice()
        self._elements = chain.run("turns", self._time_slice, report)

    def __aiter__(self) -> "_Pulled":
        return self

    async def __anext__(self) -> Any:
        try:
            for element in self._elements:
                if element is TURN:
                    await self._time_slice.yield_slice()
                    continue
                return element
        except StopAsyncIteration as error:
            raise RuntimeError("the flow failed with StopAsyncIteration") from error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._elements.close()


class Stream(Generic[T]):
    """An asynchronous iterator over a subscription. One consumer, one pass.

    A timed-out ``anext`` loses nothing: the element it waited for is kept for the next one.
    Upstream holds the receiver, the consumer holds this handle: letting go of it cancels.
    """

    __slots__ = ("_receiver",)

    def __init__(self, source: "Fluent[T]", prefetch: int) -> None:
        self._receiver = _Receiver(source, prefetch)

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        receiver = self._receiver
        # A task that is cancelled while it waits here must be the only one to hold the handle.
        del self
        return await receiver.next()

    async def __aenter__(self) -> "Stream[T]":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel upstream, wait for its cleanup, and discard what is still here."""
        await self._receiver.aclose()

    def __del__(self) -> None:
        self._receiver.leave()


class _Receiver(BulkSubscriber, Generic[T]):
    """The subscriber behind a stream: holds at most *prefetch* elements."""

    __slots__ = (
        "_ahead",
        "_elements",
        "_ended",
        "_error",
        "_left",
        "_loop_handle",
        "_prefetch",
        "_source",
        "_subscription",
        "_time_slice",
        "_waiter",
        "append",
        "is_notified",
    )  # fmt: skip

    def __init__(self, source: "Fluent[T]", prefetch: int) -> None:
        self._source: Fluent[T] | None = source
        self._prefetch = prefetch
        self._elements: deque[T] = deque()
        self.append = self._elements.append
        self.is_notified = False
        self._ahead = 0  # requested, and not given to the consumer yet
        self._ended = False
        self._error: BaseException | None = None
        self._subscription: Subscription | None = None
        self._waiter: Future[Any] | None = None
        self._time_slice = ConsumerSlice()
        self._left = _LOOK

    # -- the consumer's side ----------------------------------------------------------------------
    async def next(self) -> T:
        source, self._source = self._source, None
        if source is not None:
            self._loop_handle = LoopHandle("async for")
            source.subscribe(self)
        self._left -= 1
        if self._left < 0:
            await self._fair()
        while not self._elements:
            if self._ended:
                await self._end()
            waiter = self._ask()
            if waiter is not None:
                await waiter
                self._time_slice.start_slice()
        self._ahead -= 1
        return self._elements.popleft()

    async def _fair(self) -> None:
        """A source that always has something at hand must not keep the loop from others."""
        self._left = _LOOK
        if self._time_slice.check_slice():
            await self._time_slice.yield_slice()

    async def _end(self) -> NoReturn:
        subscription, self._subscription = self._subscription, None
        if hasattr(subscription, "aclose"):
            # What an operator has cancelled may still clean up, and that belongs to this loop.
            await cast("Any", subscription).aclose()
        error, self._error = self._error, None
        if isinstance(error, StopAsyncIteration):
            # As an asynchronous generator has it: an error must not look like the end.
            raise RuntimeError("the flow failed with StopAsyncIteration") from error
        if error is not None:
            raise error
        raise StopAsyncIteration

    def _ask(self) -> "Future[Any] | None":
        """Request what is missing; return what to wait for, unless it has come at once."""
        if self._waiter is not None and not self._waiter.done():
            raise RuntimeError("a stream has one consumer, and it is waiting in another task")
        need = self._prefetch - self._ahead
        if need > 0 and self._subscription is not None and not self._ended:
            self._ahead += need
            self._subscription.request(need)
        if self._elements or self._ended:
            return None
        self._waiter = self._loop_handle.create_future()
        return self._waiter

    async def aclose(self) -> None:
        subscription = self._subscription
        self.leave()
        if hasattr(subscription, "aclose"):
            await cast("Any", subscription).aclose()

    def leave(self) -> None:
        self._source = None
        over, self._ended = self._ended, True
        self._elements.clear()
        subscription, self._subscription = self._subscription, None
        if subscription is not None and not over:
            subscription.cancel()

    # -- the subscriber's side --------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription

    def on_next(self, element: T) -> None:
        self._elements.append(element)
        self.flush()

    def flush(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done() and (self._elements or self._ended):
            waiter.set_result(None)

    def on_error(self, error: BaseException) -> None:
        self._error = error
        self.on_complete()

    def on_complete(self) -> None:
        self._ended = True
        self.flush()
