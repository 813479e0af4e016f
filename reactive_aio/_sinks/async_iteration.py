"""``async for`` over a flow, ``async with flow.stream()``, and the first value of a flow.

The loop of a synchronous island is itself the iterator, and runs in the consumer's task without a
subscription. Any other flow gets a subscriber that requests elements for the consumer.
"""

import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from .._core.cleanup import CleanupErrors
from .._core.compiler.chain import Chain
from .._core.compiler.error_notes import note_result
from .._core.compiler.loop_compiler import SLICE_OVER
from .._core.failures import STOPS_PROGRAM, as_failure, is_cancelled_here
from .._core.loop import CancelledError, Future, report, yield_to_loop
from .._core.subscription.bulk_subscriber import BulkSubscriber
from ..stage import UNBOUNDED, FlowSubscription, LoopHandle, TimeSlice, require_demand

if TYPE_CHECKING:
    from types import TracebackType

    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("NOTHING", "Stream", "first_value", "iterate", "stream")

T = TypeVar("T")
NOTHING: Final[Any] = object()
"""The value of a flow without elements."""
_CHECK_INTERVAL: Final = 16  # elements between checks of the clock


def iterate(source: "Fluent[T]") -> AsyncIterator[T]:
    """Iterate a flow: ``async for element in flow``.

    Demand: one element at a time, requested by the loop; ``stream(prefetch=n)`` keeps n ahead.
    Completes: the loop ends. Fails: the loop raises the error.
    Cancels: leaving the loop by ``break``, an exception or the cancellation of the task cancels
    upstream before the next statement runs, on CPython; use ``async with flow.stream()`` to wait
    for asynchronous cleanup too, and on other interpreters.
    Rules: 1.3, 2.1, 2.6
    """
    chain = source.chain
    if not chain.is_pullable:
        return Stream(source, 1)
    if sys.version_info >= (3, 12):  # since then, a class is faster than an async generator
        return _IslandIterator(chain)
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


class _ConsumerSlice(TimeSlice):
    """The time slice of an iterator, which yields to the event loop in the consumer's task."""

    __slots__ = ("_chain",)

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self._chain = chain
        self.start_slice()

    async def yield_slice(self) -> None:
        """Yield to the event loop, and start a slice."""
        await yield_to_loop()
        self.start_slice()

    def is_cancelled(self, error: BaseException) -> bool:
        """Whether *error* is the cancellation of the consumer's task."""
        return is_cancelled_here(error)

    def failure_of(self, error: BaseException) -> BaseException:
        """What the consumer receives for *error*, which must not look like its cancellation."""
        # What stops the program is raised in the consumer's task, as in any generator.
        if isinstance(error, (GeneratorExit, *STOPS_PROGRAM)) or is_cancelled_here(error):
            return error
        failure = as_failure(error)
        self.annotate(failure)
        return failure

    def annotate(self, error: BaseException) -> None:
        """Note in *error* where it was raised."""
        self._chain.annotate(error)


def _generate(chain: Chain) -> AsyncIterator[Any]:
    """The island as an async generator that is closed at once when its consumer drops it.

    An async generator takes its finalizer from the thread's hooks when its first awaitable is
    made; that of asyncio would close it one turn later, in another task. A synchronous island can
    be closed immediately.
    """
    generator = chain.run("async_generator", _ConsumerSlice(chain), report)
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
    except Exception as error:
        report("the cleanup of a source raised", error)


class _IslandIterator:
    """The island as a class with ``__anext__``; dropping it closes the source."""

    __slots__ = ("_elements", "_time_slice")

    def __init__(self, chain: Chain) -> None:
        self._time_slice = _ConsumerSlice(chain)
        self._elements = chain.run("fair_generator", self._time_slice, report)

    def __aiter__(self) -> "_IslandIterator":
        return self

    async def __anext__(self) -> Any:
        try:
            for element in self._elements:
                if element is SLICE_OVER:
                    await self._time_slice.yield_slice()
                    continue
                return element
        except StopAsyncIteration as error:
            raise RuntimeError("the flow failed with StopAsyncIteration") from error
        except CancelledError as error:
            raise self._time_slice.failure_of(error)  # noqa: B904 - it may be the same error
        except Exception as error:
            self._time_slice.annotate(error)
            raise
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._elements.close()

    def __del__(self) -> None:
        _close_dropped(self._elements)


class Stream(Generic[T]):
    """An asynchronous iterator over a subscription. One consumer, one pass.

    A timed-out ``anext`` loses nothing: the element it waited for is kept for the next one.
    Upstream refers to the subscriber and the consumer to this handle: dropping it cancels.
    """

    __slots__ = ("_subscriber",)

    def __init__(self, source: "Fluent[T]", prefetch: int) -> None:
        self._subscriber: _StreamSubscriber[T] = _StreamSubscriber(source, prefetch)

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        subscriber = self._subscriber
        subscriber.is_awaited = True
        # The handle must not be referenced here while a task waits: dropping it has to cancel.
        del self
        try:
            return await subscriber.next()
        finally:
            subscriber.is_awaited = False
            if subscriber.is_abandoned:
                subscriber.drop()

    async def __aenter__(self) -> "Stream[T]":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        await self._subscriber.aclose()
        if error is None:
            self._subscriber.raise_cleanup_error()
        else:
            self._subscriber.cleanup.report()

    async def aclose(self) -> None:
        """Cancel upstream, discard the elements held, and wait for the cleanup; raise its error."""
        await self._subscriber.aclose()
        self._subscriber.raise_cleanup_error()

    def __del__(self) -> None:
        self._subscriber.abandon()


@dataclass(slots=True, eq=False, repr=False)
class _StreamSubscriber(BulkSubscriber, Generic[T]):
    """The subscriber of a stream: holds at most *prefetch* elements."""

    caller: ClassVar[str] = "async for"
    _source: "Fluent[T] | None"
    _prefetch: int
    _ahead: int = 0  # requested, and not taken by the consumer yet
    _elements: deque[T] = field(default_factory=deque[T])
    append: Callable[[T], None] = field(init=False)
    is_notified: bool = False
    is_awaited: bool = False
    is_abandoned: bool = False
    cleanup: CleanupErrors = field(default_factory=CleanupErrors)
    _is_done: bool = False
    _error: BaseException | None = None
    _subscription: "Subscription | None" = None
    _loop_handle: LoopHandle = field(init=False)
    _waiter: Future[Any] | None = None
    _time_slice: _ConsumerSlice = field(init=False)
    _until_check: int = _CHECK_INTERVAL

    def __post_init__(self) -> None:
        self.append = self._elements.append
        self._time_slice = _ConsumerSlice(cast("Fluent[T]", self._source).chain)

    # -- the consumer's side ----------------------------------------------------------------------
    async def next(self) -> T:
        source, self._source = self._source, None
        if source is not None:
            self._loop_handle = LoopHandle(self.caller)
            source.subscribe(self)
        self._until_check -= 1
        if self._until_check < 0:
            await self._check_slice()
        while not self._elements:
            if self._is_done:
                return await self._finish()
            waiter = self._request_missing()
            if waiter is not None:
                await waiter
                self._time_slice.start_slice()
        self._ahead -= 1
        return self._elements.popleft()

    async def _check_slice(self) -> None:
        """Yield to the loop, for sources that always have an element ready."""
        self._until_check = _CHECK_INTERVAL
        if self._time_slice.check_slice():
            await self._time_slice.yield_slice()

    async def _finish(self) -> T:
        error = await self._end()
        if isinstance(error, StopAsyncIteration):
            # As in an asynchronous generator: an error must not look like the end.
            raise RuntimeError("the flow failed with StopAsyncIteration") from error
        raise StopAsyncIteration if error is None else error

    async def _end(self) -> BaseException | None:
        """Wait for the cleanup of cancelled operators, and return the error of the flow."""
        subscription, self._subscription = self._subscription, None
        await self._wait_for_cleanup(subscription)
        error, self._error = self._error, None
        if error is None:
            return self.cleanup.take()
        self.cleanup.report()
        return error

    async def _wait_for_cleanup(self, subscription: "Subscription | None") -> None:
        try:
            if isinstance(subscription, FlowSubscription):
                await subscription.aclose()
        except BaseException:
            self.cleanup.report()
            raise

    def raise_cleanup_error(self) -> None:
        """After `aclose`: raise what the cleanup has raised."""
        if (error := self.cleanup.take()) is not None:
            raise error

    def _request_missing(self) -> "Future[Any] | None":
        """Request missing elements; return a future to wait for, unless one arrived at once."""
        if self._waiter is not None and not self._waiter.done():
            raise RuntimeError("a stream has one consumer, and it is waiting in another task")
        need = self._prefetch - self._ahead
        if need > 0 and self._subscription is not None and not self._is_done:
            self._ahead += need
            self._subscription.request(need)
        if self._elements or self._is_done:
            return None
        self._waiter = self._loop_handle.create_future()
        return self._waiter

    async def aclose(self) -> None:
        subscription = self._subscription
        self.cleanup.is_awaited = True
        self.cancel()
        await self._wait_for_cleanup(subscription)

    def abandon(self) -> None:
        """Cancel; after the element that an ``anext`` waits for, as in ``anext(aiter(flow))``."""
        if self.is_awaited:
            self.is_abandoned = True
        else:
            self.drop()

    def drop(self) -> None:
        """Cancel; nothing waits for the cleanup."""
        self.cleanup.report()
        self.cancel()

    def cancel(self) -> None:
        self._source = None
        was_done, self._is_done = self._is_done, True
        self._elements.clear()
        subscription, self._subscription = self._subscription, None
        if subscription is not None and not was_done:
            subscription.cancel()

    # -- the subscriber's side --------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription

    def on_next(self, element: T) -> None:
        self._elements.append(element)
        self.flush()

    @property
    def container(self) -> deque[T]:
        return self._elements

    def flush(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done() and (self._elements or self._is_done):
            waiter.set_result(None)

    def on_error(self, error: BaseException) -> None:
        self._error = error
        self.on_complete()

    def on_complete(self) -> None:
        self._is_done = self.cleanup.is_awaited = True
        self.flush()


async def first_value(flow: "Fluent[Any]", request: int = UNBOUNDED) -> Any:
    """Return the first element of *flow*, or `NOTHING`; raise the error of a flow that fails.

    It requests *request* elements, cancels once it has one, and waits for the cleanup of the flow,
    also when it fails or is cancelled itself.
    """
    if flow.chain.is_pullable:
        return await _first_pulled(flow.chain)
    subscriber = _FirstValueSubscriber(flow, request)
    try:
        element = await subscriber.next()
    except BaseException:
        await subscriber.aclose()
        subscriber.cleanup.report()
        raise
    await subscriber.aclose()
    if (error := subscriber.cleanup.take()) is not None:
        if element is not NOTHING:
            note_result(error, element)
        raise error
    return element


async def _first_pulled(chain: Chain) -> Any:
    time_slice = _ConsumerSlice(chain)
    elements = chain.run("fair_generator", time_slice, report)
    element: Any = NOTHING
    try:
        for element in elements:
            if element is not SLICE_OVER:
                break
            await time_slice.yield_slice()
        else:
            return NOTHING
    except (CancelledError, GeneratorExit) as error:
        _close_dropped(elements)
        raise time_slice.failure_of(error)  # noqa: B904 - it may be the same error
    except Exception as error:
        chain.annotate(error)
        raise
    try:
        elements.close()
    except BaseException as error:
        failure = time_slice.failure_of(error)
        note_result(failure, element)
        raise failure  # noqa: B904 - usually it is the same error
    return element


def _close_dropped(elements: Any) -> None:
    """Run the cleanup of an iterator where its error cannot be raised: report that."""
    try:
        elements.close()
    except BaseException as error:
        if isinstance(error, STOPS_PROGRAM):
            raise
        report("the cleanup of a source raised", error)


class _FirstValueSubscriber(_StreamSubscriber[Any]):
    """Cancels as soon as it has one element."""

    __slots__ = ()
    caller: ClassVar[str] = "a terminal operator"

    def on_subscribe(self, subscription: "Subscription") -> None:
        super().on_subscribe(subscription)
        self._ahead = self._prefetch
        subscription.request(self._prefetch)

    def flush(self) -> None:
        super().flush()
        if self._elements and not self._is_done and self._subscription is not None:
            self._is_done = self.cleanup.is_awaited = True
            self._subscription.cancel()

    async def _finish(self) -> Any:
        error = await self._end()
        if error is not None:
            raise error
        return NOTHING
