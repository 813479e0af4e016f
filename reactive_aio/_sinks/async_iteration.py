"""``async for`` over a flow, and ``async with flow.stream()``.

The loop of a synchronous island is itself the iterator, and runs in the consumer's task without a
subscription. Any other flow gets a subscriber that requests elements for the consumer.
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import InitVar, dataclass, field
from functools import partial
from gc import get_referents
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast
from weakref import ref

from .._core.cleanup import CleanupErrors
from .._core.compiler.bound import Bound, held
from .._core.compiler.chain import Chain
from .._core.compiler.discards import OnDiscard, discard
from .._core.failures import STOPS_PROGRAM, as_failure, is_cancelled_here
from .._core.flow_subscription import drops_what_waits, is_read_one_by_one
from .._core.loop import Future, Task, current_task, leave_loop, report, yield_to_loop
from .._core.observation.awaited import wait_of
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .._core.time_slice import TimeSlice
from .._core.unwinding import suspended
from .._shared.coerce import FlowIterator
from ..stage import FlowSubscription, LoopHandle, flow_of, require_int

if TYPE_CHECKING:
    from types import TracebackType

    from ..flow import Flow
    from ..spec import Subscription
    from ..stage import Fluent

__all__ = ("ConsumerSlice", "Stream", "generate", "iterate", "stream")

T = TypeVar("T")
_ONE_CONSUMER: Final = "a stream has one consumer, and it is waiting in another task"
_NEXT: Final = "__anext__"
_LARGEST_WINDOW: Final = 256
_KEEPS_UP: Final = 0.05
"""The seconds from one window to the next up to which the next one is larger."""


def iterate(source: "Fluent[T]") -> AsyncIterator[T]:
    """Iterate a flow: ``async for element in flow``.

    Demand: one element first, then windows that double while elements take little time at both
        sides, up to 256; one element at a time where elements go stale while they wait, or where
        reading takes them from other readers. ``stream(prefetch=n)`` fixes the window.
    Holds: nothing where the flow is synchronous, else a window of elements.
    Completes: the loop ends. Fails: the loop raises the error.
    Cancels: leaving the loop by ``break``, an exception or the cancellation of the task cancels
    upstream before the next statement runs, on CPython; use ``async with flow.stream()`` to wait
    for asynchronous cleanup too, and on other interpreters.
    Rules: 1.3, 2.1, 2.6
    """
    chain = source.chain
    if not chain.is_pullable:
        return Stream(source, None)
    return generate(chain)


def stream(source: "Fluent[T]", *, prefetch: int | None = None) -> "Stream[T]":
    """Iterate a flow inside ``async with``, which also awaits asynchronous cleanup.

    ::

        async with flow.stream() as elements:
            async for element in elements:
                ...

    Demand: as by ``async for`` over the flow, or *prefetch* elements ahead.
    Completes: the loop ends.
    Fails: the loop raises the error.
    Cancels: the end of the block cancels upstream, unless the flow has ended, and waits for its
        cleanup.
    Holds: the elements requested ahead: up to 256, or *prefetch* (``stream().bound()``).
    Rules: 1.3, 2.1, 2.6
    """
    if prefetch is not None:
        require_int("stream", "prefetch", prefetch, least=1)
    return Stream(source, prefetch)


def largest_window(chain: Chain) -> int:
    """How many elements ``async for`` requests at a time at most; a list counts its elements."""
    return 1 if chain.is_one_by_one else max(1, _LARGEST_WINDOW // chain.weight)


class ConsumerSlice(TimeSlice):
    """The time slice of an iterator, which yields to the event loop in the consumer's task."""

    __slots__ = ("chain",)

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self.chain: Chain = chain
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
        self.chain.annotate(error)


def generate(chain: Chain) -> AsyncGenerator[Any]:
    """The island as an async generator that is closed at once when its consumer drops it.

    An async generator takes its finalizer from the thread's hooks when its first awaitable is
    made; that of asyncio would close it one turn later, in another task. A synchronous island can
    be closed immediately. The first awaitable runs to a ``yield`` ahead of the loop: to close it
    would end the generator (CPython 3.13), and to drop it causes a warning (3.14).
    """
    generator = chain.run("async_generator", ConsumerSlice(chain), report)
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=_close_now)
    try:
        generator.__anext__().send(None)
    except StopIteration:
        pass
    finally:
        sys.set_asyncgen_hooks(*hooks)
    return cast("AsyncGenerator[Any]", generator)


def _close_now(generator: Any) -> None:
    try:
        generator.aclose().send(None)
    except StopIteration:
        pass
    except STOPS_PROGRAM as error:
        leave_loop(error)
    except BaseException as error:
        report("the cleanup of a source raised", error)


class Stream(FlowIterator, Generic[T]):
    """An asynchronous iterator over a subscription. One consumer, one pass.

    It requests elements in windows: the first is one element, and while both sides keep up, each is
    twice as large as the one before, up to the number that `bound` reports. A timed-out ``anext``
    loses nothing: the element that it waited for is kept for the next one. Upstream refers to the
    subscriber and the consumer to this handle: dropping it cancels.
    """

    # `__anext__` is an attribute of each stream: that of an asynchronous generator that iterates
    # over the elements received. A method would cost a frame, or a coroutine, for each element.
    __slots__ = (_NEXT, "__weakref__", "_subscriber")

    if TYPE_CHECKING:

        def __anext__(self) -> Awaitable[T]: ...

    def __init__(self, source: "Fluent[T]", prefetch: int | None) -> None:
        kind: type[_StreamSubscriber[T]] = _StreamSubscriber
        if source.chain.on_discard_at_end is not None:
            kind = _DiscardingSubscriber
        self._subscriber: _StreamSubscriber[T] = kind(source, prefetch, ref(self))
        self._subscriber.set_next(partial(_begin, ref(self)))

    def __aiter__(self) -> "Stream[T]":
        return self

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

    def bound(self) -> Bound:
        """Report how many elements this stream and its flow hold at most."""
        return self._subscriber.bound

    def reads(self) -> "tuple[Flow[Any], int]":
        """The flow, and how many of its elements are read ahead at most."""
        return self._subscriber.reads()

    async def aclose(self) -> None:
        """Cancel upstream, discard the elements held, and wait for the cleanup; raise its error."""
        await self._subscriber.aclose()
        self._subscriber.raise_cleanup_error()

    def __del__(self) -> None:
        try:
            self._subscriber.abandon()
        except STOPS_PROGRAM as error:
            leave_loop(error)


def _begin(handle: "ref[Stream[T]]") -> Awaitable[T]:
    """The first ``anext`` of a stream, and the first one after an ``anext`` that was cancelled."""
    stream = cast("Stream[T]", handle())
    return _start_iterating(stream, stream.__anext__)


async def _start_iterating(stream: Stream[T], begin: Callable[[], Awaitable[T]]) -> T:
    if (proceed := stream.__anext__) is not begin:  # another task was faster
        del stream
        return await proceed()
    subscriber = stream._subscriber
    elements = subscriber.iterate()
    # Else the event loop would close the generator in a task of its own when it is dropped.
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=None)
    try:
        first = elements.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)
    subscriber.set_next(elements.__anext__)
    subscriber.is_awaited = True
    # The handle must not be referenced here while a task waits: dropping it has to cancel.
    del stream
    try:
        return await first
    finally:
        subscriber.is_awaited = False
        if subscriber.is_abandoned:
            subscriber.drop()


async def _refuse() -> Any:
    raise RuntimeError(_ONE_CONSUMER)


@dataclass(slots=True, eq=False, repr=False)
class _StreamSubscriber(TimeSlice, BulkSubscriber, Generic[T]):
    """The subscriber of a stream: holds at most as many elements as its largest window."""

    _source: "Fluent[T] | None"
    prefetch: InitVar[int | None]
    _stream: "ref[Stream[T]]"
    _chain: Chain = field(init=False)
    _smallest: int = field(init=False)
    _largest: int = field(init=False)
    _window: int = field(init=False)
    """How many elements may be requested and not yet iterated over."""
    _ahead: int = 0
    """How many are."""
    _taken: int = 0
    """How many were iterated over since the window was chosen."""
    _window_began: float = 0.0
    _elements: list[T] = field(default_factory=list[T])
    append: Callable[[T], None] = field(init=False)
    _chunk: list[T] = field(default_factory=list[T])
    """The elements that the consumer iterates over; clearing it ends that."""
    _batch: int = 8
    """The most elements of a chunk."""
    _unmeasured: int = 0
    """How many were iterated over since the clock was read."""
    only_wakes: bool = True
    pulls: bool = True
    tells_finished: bool = True
    is_notified: bool = True
    is_awaited: bool = False
    is_abandoned: bool = False
    cleanup: CleanupErrors = field(  # pyright: ignore[reportIncompatibleMethodOverride]
        default_factory=CleanupErrors
    )
    _is_done: bool = False
    _error: BaseException | None = None
    _subscription: "Subscription | None" = None
    _loop_handle: LoopHandle = field(init=False)
    _consumer: "ref[Task[Any]] | None" = None
    """The task that has begun to iterate, for reports."""
    _waiter: Future[Any] | None = None

    def __post_init__(self, prefetch: int | None) -> None:
        self.append = self._elements.append
        self._chain = cast("Fluent[T]", self._source).chain
        self._smallest = self._window = prefetch or 1
        self._largest = prefetch or largest_window(self._chain)

    @property
    def bound(self) -> Bound:
        ahead = self._largest * self._chain.weight
        return Bound((*held(self._chain), ("async for", ahead)))

    def reads(self) -> "tuple[Flow[Any], int]":
        return flow_of(self._chain), self._largest

    # -- the consumer's side ----------------------------------------------------------------------
    async def iterate(self) -> AsyncGenerator[T]:
        """Iterate over the elements received; a cancelled ``anext`` ends it, but not the stream."""
        if self._source is not None:
            source, self._source = self._source, None
            self._loop_handle = LoopHandle("async for")
            if (task := current_task()) is not None:
                self._consumer = ref(task)
            self.start_slice()
            self._window_began = self._loop_handle.time()
            source.subscribe(self)
        element: T | None
        while True:
            chunk = self._next_chunk()
            for element in chunk:
                yield element
            if chunk:
                if self.is_slice_over:
                    await self._wait(yield_to_loop())
            elif self._is_done:
                break
            else:
                element = None  # a loop that waits keeps none alive
                self._waiter = self._loop_handle.create_future()
                await self._wait(self._waiter)
        if (error := await self._end()) is not None:
            raise error

    def _next_chunk(self) -> list[T]:
        """Take the elements that have arrived; the list is empty if none have."""
        elements = self._elements
        if count := len(self._chunk):
            self._ahead -= count
            self._taken += count
            self._unmeasured += count
            if self._unmeasured >= self._batch:
                self._unmeasured = 0
                self._batch = self.next_batch_size(self._batch)
        if not elements and not self._is_done:
            if isinstance(subscription := self._subscription, FlowSubscription):
                subscription.pull()
            if not elements and not self._is_done:
                self._request_missing()
        if len(elements) > self._batch:
            self._chunk = elements[: self._batch]
            del elements[: self._batch]
        else:
            self._chunk = elements.copy()
            elements.clear()
        return self._chunk

    def _request_missing(self) -> None:
        """Request what is missing of the window."""
        if self._chain.is_lossy is not False and self._is_out_of_reach():
            self._window = 1
        elif self._taken >= self._window:
            self._taken = 0
            self._adapt_window()
        missing = self._window - self._ahead
        if missing * 4 >= self._window and self._subscription is not None:
            self._ahead += missing
            self._subscription.request(missing)

    def _adapt_window(self) -> None:
        """Choose the next window by the time that the last one took."""
        began, self._window_began = self._window_began, self._loop_handle.time()
        took = self._window_began - began
        if took > 2 * _KEEPS_UP:
            self._window = max(self._window // 2, self._smallest)
        elif took < _KEEPS_UP and self._window < self._largest and not self._reads_one_by_one():
            self._window = min(self._window * 2, self._largest)

    def _is_out_of_reach(self) -> bool:
        """Whether an overflow policy upstream could not drop what waits here."""
        subscription = self._subscription
        return isinstance(subscription, FlowSubscription) and drops_what_waits(subscription)

    def _reads_one_by_one(self) -> bool:
        """Whether a source that is known only since the subscription must not be read ahead."""
        subscription = self._subscription
        return isinstance(subscription, FlowSubscription) and is_read_one_by_one(subscription)

    async def _wait(self, for_what: Awaitable[object]) -> None:
        """Wait until elements or the end arrive, or for a turn of the loop."""
        before = self.set_next(_refuse)
        self.is_notified, self.is_awaited = False, True
        try:
            await for_what
        except BaseException:
            before = partial(_begin, self._stream)
            raise
        finally:
            self.set_next(before)
            self.is_notified, self.is_awaited = True, False
            if self.is_abandoned:
                self._keep_one()
        self.start_slice()

    def set_next(self, function: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Set what the next ``anext`` of the stream calls; return what it would have called."""
        stream = self._stream()
        if stream is None:
            return function
        before: Callable[[], Awaitable[T]] = getattr(stream, _NEXT, function)
        setattr(stream, _NEXT, function)
        return before

    async def _end(self) -> BaseException | None:
        """Wait for the cleanup of cancelled operators, and return the error of the flow."""
        subscription, self._subscription = self._subscription, None
        if isinstance(subscription, FlowSubscription):
            subscription.finished()
            await self.cleanup.wait(subscription)
        error, self._error = self._error, None
        if error is None:
            return self.cleanup.take()
        self.cleanup.report()
        return error

    def consumer_line(self) -> str | None:
        task, stream = None if self._consumer is None else self._consumer(), self._stream()
        if task is None or stream is None:
            return None
        coroutine = task.get_coro()
        for _, each in suspended(coroutine):
            # A frame that iterates refers to the stream; another task may have gone on with it.
            if _refers_to(each, stream):
                wait = wait_of(each)
                return None if wait is None else wait.text
        return None

    def raise_cleanup_error(self) -> None:
        """After `aclose`: raise what the cleanup has raised."""
        if (error := self.cleanup.take()) is not None:
            raise error

    async def aclose(self) -> None:
        subscription = self._subscription
        self.cancel()
        if isinstance(subscription, FlowSubscription):
            await self.cleanup.wait(subscription)

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

    def _keep_one(self) -> None:
        """Cancel, and keep the element that an ``anext`` has waited for."""
        first = self._elements[:1]
        del self._elements[:1]
        self.drop()
        self._elements += first

    def cancel(self) -> None:
        self._source = None
        was_done, self._is_done = self._is_done, True
        self._elements.clear()
        self._chunk.clear()
        self.flush()
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        if not was_done:
            subscription.cancel()
        if isinstance(subscription, FlowSubscription):
            subscription.finished()

    # -- the subscriber's side --------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription") -> None:
        self._subscription = subscription

    def on_next(self, element: T) -> None:
        self._elements.append(element)
        self.flush()

    @property
    def container(self) -> list[T]:
        return self._elements

    def flush(self) -> None:
        waiter = self._waiter
        if waiter is not None and (self._elements or self._is_done):
            self._waiter, self.is_notified = None, True
            if not waiter.done():
                waiter.set_result(None)

    def on_error(self, error: BaseException) -> None:
        self._error = error
        self.on_complete()

    def on_complete(self) -> None:
        self._is_done = True
        self.flush()


def _refers_to(frame: object, stream: object, depth: int = 4) -> bool:
    """Whether *frame* iterates over *stream*, or over generators that do."""
    found = get_referents(frame)
    if any(each is stream for each in found):
        return True
    generators = [cast("Any", each) for each in found if isinstance(each, AsyncGeneratorType)]
    return depth > 0 and any(_refers_to(each, stream, depth - 1) for each in generators)


class _Chunk(list[T]):
    """A list that knows how far it was iterated over."""

    __slots__ = ("rest",)

    def __init__(self, elements: list[T]) -> None:
        super().__init__(elements)
        self.rest: Iterator[T] = iter(())

    def __iter__(self) -> Iterator[T]:
        self.rest = super().__iter__()
        return self.rest


@dataclass(slots=True, eq=False, repr=False)
class _DiscardingSubscriber(_StreamSubscriber[T]):
    """The subscriber of a stream that ends with `do_on_discard`."""

    _on_discard: OnDiscard | None = field(init=False)

    def __post_init__(self, prefetch: int | None) -> None:
        super(_DiscardingSubscriber, self).__post_init__(prefetch)
        self._on_discard = self._chain.on_discard_at_end

    def _next_chunk(self) -> list[T]:
        self._chunk = _Chunk(super(_DiscardingSubscriber, self)._next_chunk())
        return self._chunk

    def cancel(self) -> None:
        held = [*self._chunk.rest] if isinstance(self._chunk, _Chunk) else []
        held += self._elements
        super(_DiscardingSubscriber, self).cancel()
        discard(self._on_discard, held)
