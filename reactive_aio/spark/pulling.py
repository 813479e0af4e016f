"""A blocking iterator of Spark, pulled under demand by calls that end when demand does.

Between two calls the iterator waits without a thread. A call ends after some milliseconds, and the
next one begins when its elements have been processed, or are being processed: so what is held is
bounded by time, however large the elements are. Within a call each element is handed over at once
if the loop is idle: the next one may take long.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import finalize

from .._core.compiler.discards import discard
from ..stage import Downstream, from_push
from .call_threads import CallThreads
from .progress import MakeMeter, ProgressMeter
from .stepping import SteppedSubscription

if TYPE_CHECKING:
    from ..flow import Flow

T = TypeVar("T")
Interruptible = tuple[Iterable[T], Callable[[], object]]
"""What to iterate over, and a function that makes a blocked call of it return early."""

_TIME_SLICE: Final = 0.005  # seconds of a call, once it has an element


def from_pulling(
    open: Callable[[ProgressMeter], Interruptible[T]], *, name: str, chunk: int,
    make_meter: MakeMeter, holds: int | None = 0,
) -> "Flow[T]":  # fmt: skip
    """Emit what *open* returns, called on a thread, at most *chunk* elements at a time.

    *holds* is how many elements the iterable itself keeps at most, None if that is unknown.
    """

    def subscription(downstream: Downstream[T]) -> PullSubscription[T]:
        return PullSubscription(downstream, open, name, chunk, make_meter)

    held = None if holds is None else holds + chunk
    return from_push(subscription, name=name, holds=held, window=chunk)


class Puller(Generic[T]):
    """The iterator of one subscription. Its calls are made on threads, one after another.

    There is no lock, since each operation of a list is atomic: a call appends to `_ready` and then
    looks at `_is_posted`; the loop resets `_is_posted` and then takes from `_ready`. So no element
    is left without a callback.
    """

    def __init__(self, open: Callable[[], Interruptible[T]]) -> None:
        self._open = open
        self._elements: Iterator[T] | None = None
        self._interrupt: Callable[[], object] | None = None
        self._ready: list[T] = []
        self._is_posted = False
        self.is_cancelled: bool = False
        """Set on the loop: nothing more is pulled."""

    # -- on threads -------------------------------------------------------------------------------
    def pull(self, count: int, post: Callable[[], object]) -> bool:
        """Pull up to *count* elements, fewer if that takes long; return whether there may be more.

        Calls *post* when the loop has to look at `take`.
        """
        if self._elements is None:
            source, self._interrupt = self._open()
            self._elements = iter(source)
        add, pulled, until = self._ready.append, 0, perf_counter() + _TIME_SLICE
        for element in islice(self._elements, count):
            pulled += 1
            add(element)
            if not self._is_posted:
                self._is_posted = True
                post()
            if self.is_cancelled or perf_counter() >= until:
                return True
        return pulled == count

    def interrupt(self) -> None:
        """Make a blocked call return early; called repeatedly until it has."""
        if self._interrupt is not None:
            self._interrupt()

    def close(self) -> None:
        """Close the iterator; all other calls have returned."""
        elements, self._elements = self._elements, None
        if isinstance(elements, Generator):
            elements.close()

    # -- on the loop ------------------------------------------------------------------------------
    def has_elements(self) -> bool:
        return bool(self._ready)

    def take(self) -> list[T]:
        """Take the elements that were pulled."""
        self._is_posted = False
        ready = self._ready
        elements = ready[:]
        del ready[: len(elements)]  # a thread may have appended more
        return elements


class PullSubscription(SteppedSubscription[T]):
    """One subscription. Every method runs on the loop's thread."""

    __slots__ = ("_chunk", "_error", "_finalizer", "_is_at_end", "_is_pulling", "_on_discard",
                 "_puller", "_threads")  # fmt: skip

    def __init__(
        self,
        downstream: Downstream[T],
        open: Callable[[ProgressMeter], Interruptible[T]],
        name: str,
        chunk: int,
        make_meter: MakeMeter,
    ) -> None:
        super().__init__(downstream, f"{name}()", make_meter)
        self._on_discard = downstream.on_discard
        self._puller = puller = Puller(partial(open, self._meter))
        self._chunk = chunk
        self._is_pulling = False
        self._is_at_end = False
        self._error: BaseException | None = None
        self._threads = CallThreads(self._loop_handle, name, interrupt=puller.interrupt)
        self._finalizer = finalize(self, _release, puller, self._threads)
        self._finalizer.atexit = False
        self._threads.on_loop_closed = self._finalizer

    async def aclose(self) -> None:
        """Wait, after a cancellation, until the iterator is closed."""
        await self._threads.wait_done()

    # -- decisions --------------------------------------------------------------------------------
    def _act(self) -> bool:
        if self._puller.has_elements():
            if not self._is_processed:
                return False
            elements = self._puller.take()
            self._demand.take(len(elements))
            self._is_processed = False
            self._pull()  # the next elements, while these are processed
            self.push(elements)
            return True
        if self._is_at_end:
            self._end(self._error)
        else:
            self._pull()
        return False

    def _pull(self) -> None:
        if self._demand and not self._is_pulling and not self._is_at_end:
            self._is_pulling = True
            count = min(self._chunk, self._demand.outstanding)
            self._threads.call(partial(self._puller.pull, count, self._post), self._on_pulled)

    def _post(self) -> None:
        """Let the loop look at what was pulled. On a thread."""
        self._loop_handle.call_soon_threadsafe(self._advance)

    def _on_pulled(self, has_more: bool | None, error: BaseException | None) -> None:
        self._is_pulling = False
        self._is_at_end, self._error = not has_more, error
        if self._downstream is None:
            self._close()
        else:
            self._advance()

    def _close(self) -> None:
        """Close the iterator on a thread, since that may block, when it is not being pulled."""
        self._puller.is_cancelled = True
        discard(self._on_discard, self._puller.take())
        self._error = None
        if self._is_pulling:
            self._threads.interrupt()
            return
        if self._threads.has_called and not self._is_at_end:
            self._threads.call(self._puller.close, _ignore)
        self._finalizer()


def _ignore(result: object, error: BaseException | None) -> None:
    """Closing an iterator of Spark raises nothing that the flow has not raised."""


def _release(puller: Puller[Any], threads: CallThreads) -> None:
    """Safe inside the garbage collector: it starts no call and does not touch the loop."""
    puller.is_cancelled = True
    threads.stop(puller.close)
