"""A blocking iterable, drained on a thread of its own while there is demand.

Two threads meet here, and each owns its half of the state. The loop's side (`_ThreadSubscription`)
raises `requested`, sets `cancelled` and takes from `ready`; the thread's side (`_Feed`) counts
`pulled`, appends to `ready` and sets `finished`. Neither waits for the other with a lock: the loop
rings the `bell` after a change the thread may be waiting for, and the thread posts one callback
when there is something to take and none is under way. So a slow iterable hands over every element
at once and a fast one in chunks, and nothing has to be tuned.

The window of `from_push` is the bound between the two: unbounded demand arrives here as one chunk
at a time, so a slow subscriber slows the thread down instead of having its elements pile up.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, Generic, TypeGuard, TypeVar, cast
from weakref import ref

from .._core.demand import UNBOUNDED
from .._core.loop import Future, LoopHandle
from ..stage import Downstream, from_push

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("Begun", "from_thread", "threaded")

T = TypeVar("T")

Begun = tuple[Iterable[T], Callable[[], object] | None]
"""An iterable, and what makes a call of it that blocks return early, if anything can."""

_REPEAT: Final = 0.05  # seconds between two interruptions of one blocked call
_numbers = count(1)


def from_thread(
    source: Iterable[T] | Callable[[], Iterable[T]],
    *,
    chunk: int = 1024,
    interrupt: Callable[[Iterable[T]], object] | None = None,
) -> "Flow[T]":
    """Emit what a blocking iterable yields, on a thread of its own.

    Each subscription iterates anew; give a function that makes the iterable where it can be
    iterated only once. The function, the iteration and the closing of a generator all happen on
    that thread, in the subscriber's context, so none of them may touch the loop. With
    *interrupt*, cancelling also ends a call that blocks: *interrupt* gets the iterable, on another
    thread, again and again until the call has returned; what the call raises then is dropped.

    ::

        from_thread("abc")
        a--b--c--|

    Demand: passed through, at most *chunk* elements at a time. At demand 0 the iterable is not
        touched, and its thread, started by the first request, sleeps; to let it work ahead of its
        subscriber, put a ``boundary`` behind it.
    Completes: when the iterable ends, which it can only tell when asked for one more element.
    Fails: when making or iterating it raises.
    Cancels: returns at once; the thread ends when the call it is in returns, and closes the
        iterable there if that is a generator.
    Holds: nothing.
    Rules: 1.1, 3.4, 3.5, 3.13
    """

    def begin() -> Begun[T]:
        iterable = source() if _makes(source) else cast("Iterable[T]", source)
        return iterable, None if interrupt is None else partial(interrupt, iterable)

    return threaded(begin, name="from_thread", chunk=chunk)


def _makes(
    source: Iterable[T] | Callable[[], Iterable[T]],
) -> TypeGuard[Callable[[], Iterable[T]]]:
    """Whether it is a function to call; an iterable that can be called as well is iterated."""
    return callable(source) and not isinstance(source, Iterable)


def threaded(
    begin: Callable[[], Begun[T]], *, name: str, chunk: int, holds: int | None = 0
) -> "Flow[T]":
    """The same for a *begin* that knows how to interrupt what it began; it runs on the thread.

    *holds* is how many elements the iterable itself keeps at most, if that is known.
    """
    if isinstance(chunk, bool) or chunk < 1:
        raise ValueError(f"{name}: chunk must be an int of at least 1, not {chunk!r}.")

    def attach(downstream: Downstream[T]) -> _ThreadSubscription[T]:
        return _ThreadSubscription(downstream, _Feed(begin, LoopHandle(name), name))

    return from_push(attach, name=name, holds=holds, window=chunk)


class _Feed(Generic[T]):
    """The thread's side of one subscription."""

    __slots__ = (
        "begin",
        "bell",
        "cancelled",
        "error",
        "finished",
        "heard",
        "interrupt",
        "keeping",
        "loop_handle",
        "owner",
        "parked",
        "posted",
        "pulled",
        "ready",
        "requested",
        "rung",
        "thread",
    )

    def __init__(self, begin: Callable[[], Begun[T]], loop_handle: LoopHandle, name: str) -> None:
        self.begin = begin
        self.loop_handle = loop_handle
        self.interrupt: Callable[[], object] | None = None
        self.requested = 0
        self.pulled = 0
        self.rung = self.heard = 0
        self.ready: deque[T] = deque()
        self.cancelled = self.parked = self.posted = self.finished = False
        self.error: Exception | None = None
        # Weak: a subscription that everybody has forgotten ends its thread (see __del__ there).
        self.owner: Callable[[], _ThreadSubscription[T] | None] = lambda: None
        # But what was requested comes: each request is an entry, and the thread keeps one of them
        # until it has nothing to do. What it has posted is kept by the loop.
        self.keeping: deque[_ThreadSubscription[T]] = deque()
        # A lock used as a bell: ringing needs no lock of its own, so that the garbage collector
        # may ring it from anywhere.
        self.bell = Lock()
        self.bell.acquire(blocking=False)
        self.thread = Thread(
            # A context can be entered by one thread at a time, and the loop's thread uses ours.
            target=loop_handle.context.copy().run,
            args=(self.run,),
            name=f"reactive_aio-{name}-{next(_numbers)}",
            daemon=True,  # a call that blocks for ever must not keep the interpreter from ending
        )

    def ring(self) -> None:
        """Wake the thread, if it sleeps, to look at what has changed."""
        self.rung += 1
        if self.bell.locked():
            with suppress(RuntimeError):  # two rang at once
                self.bell.release()

    def is_parked(self) -> bool:
        """Whether the thread sleeps until somebody rings: a loop with virtual time asks.

        `parked` will not do: it is still true for a moment when the bell has been heard.
        """
        return self.parked and self.heard == self.rung

    def run(self) -> None:
        """The life of the thread."""
        try:
            self._pull()
        except BaseException as error:
            if not self.cancelled:  # else it would be kept, with all that its traceback keeps
                self.error = _as_failure(error)
        self.finished = True
        self._post()
        self.keeping.clear()

    def _pull(self) -> None:
        if not self._wanted():
            return
        source, self.interrupt = self.begin()
        elements = iter(source)
        del source
        try:
            while self._wanted():
                try:
                    element = next(elements)
                except StopIteration:
                    return
                self.ready.append(element)
                self.pulled += 1
                if not self.posted:
                    self._post()
        finally:
            self._close(elements)

    def _wanted(self) -> bool:
        """Sleep until one more element is wanted; False when none will be."""
        while True:
            self.heard = self.rung  # before the look: whoever rings after it is heard
            done = len(self.keeping)  # before the look: who requests after it is kept
            if self.cancelled:
                return False
            wanted = self.pulled < self.requested
            while done > wanted:
                self.keeping.popleft()
                done -= 1
            if wanted:
                return True
            self.parked = True
            self.bell.acquire()
            self.parked = False

    def _close(self, elements: Iterator[T]) -> None:
        if not isinstance(elements, Generator):
            return  # an iterator is its maker's to close
        try:
            cast("Generator[T]", elements).close()
        except BaseException as error:
            if not self.cancelled:
                raise
            what = f"{self.thread.name}: closing the iterable raised after the cancellation"
            self.loop_handle.call_soon_threadsafe(self.loop_handle.report, what, error)

    def _post(self) -> None:
        """Let the subscription take, on the loop, what is ready."""
        owner = self.owner()
        if owner is None:
            return
        self.posted = True
        if not self.loop_handle.call_soon_threadsafe(owner.arrive):
            self.cancelled = True

    def stop(self) -> None:
        """Make the thread end: at once if it sleeps, else when the call it is in returns."""
        self.cancelled = True
        self.ring()

    def keep_interrupting(self) -> None:
        """On a thread of its own: a call may begin to block after it was interrupted."""
        while self.thread.is_alive():
            interrupt = self.interrupt
            if interrupt is not None:
                try:
                    interrupt()
                except Exception as error:
                    what = f"{self.thread.name}: interrupting the iterable raised"
                    self.loop_handle.call_soon_threadsafe(self.loop_handle.report, what, error)
                    return
            self.thread.join(_REPEAT)


def _as_failure(error: BaseException) -> Exception:
    """What would mean something else on the loop (its end, the end of an iterator) is wrapped."""
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    failure = RuntimeError(f"the iterable raised {error!r}")
    failure.__cause__ = error
    return failure


class _ThreadSubscription(Generic[T]):
    """The loop's side of one subscription."""

    __slots__ = ("__weakref__", "_closing", "_downstream", "_feed", "_started")

    def __init__(self, downstream: Downstream[T], feed: _Feed[T]) -> None:
        self._downstream: Downstream[T] | None = downstream
        self._feed = feed
        self._started = False
        self._closing: Future[None] | None = None
        feed.owner = ref(self)

    def request(self, n: int) -> None:
        feed = self._feed
        feed.requested = min(feed.requested + n, UNBOUNDED)
        feed.keeping.append(self)
        if self._started:
            feed.ring()
            return
        self._started = True
        try:
            feed.thread.start()
        except RuntimeError as error:  # the system has no thread to give
            feed.keeping.clear()
            self._end(error)

    def arrive(self) -> None:
        """Take what is ready."""
        self._feed.posted = False  # before the look: what is appended from now on is posted anew
        self.deliver()

    def deliver(self) -> None:
        feed, downstream = self._feed, self._downstream
        finished = feed.finished  # before the look at `ready`: all that precedes the end is there
        if finished and self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        if downstream is None:
            return
        if feed.ready:
            downstream.push([feed.ready.popleft() for _ in range(len(feed.ready))])
        if finished:
            error, feed.error = feed.error, None
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return  # cancelled while the last elements were pushed
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    def cancel(self) -> None:
        feed, self._downstream = self._feed, None
        asleep = feed.parked
        feed.stop()
        feed.ready.clear()
        if self._started and not asleep and not feed.finished:
            self._interrupt()

    async def aclose(self) -> None:
        """Wait, after a cancellation, until the thread has closed the iterable and ends."""
        if self._started and not self._feed.finished:
            self._closing = self._closing or self._feed.loop_handle.create_future()
            await self._closing

    def _interrupt(self) -> None:
        feed = self._feed
        work = feed.loop_handle.context.copy().run
        helper = Thread(
            target=work,
            args=(feed.keep_interrupting,),
            name=f"{feed.thread.name}-interrupt",
            daemon=True,
        )
        with suppress(RuntimeError):  # no thread to be had: the call ends by itself, some day
            helper.start()

    def __del__(self) -> None:
        # Forgotten without a signal, for example with a loop that was closed under it. Only what
        # is safe inside the garbage collector: no thread is started and no lock is taken.
        if self._downstream is not None:
            self._feed.stop()
