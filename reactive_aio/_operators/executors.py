"""Operators that call a plain function for each element in threads, or in processes.

Elements travel to a pool in chunks, and a chunk follows the time that the function takes: about two
milliseconds, since to hand it over takes a tenth of that. Nobody has to guess a size, and a wrong
guess does no harm: a thread or a process that has worked for twice as long returns the results so
far, and the rest of the chunk is sent again, cut for the time that was measured.
"""

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future as CallFuture,
    ThreadPoolExecutor,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from weakref import WeakKeyDictionary

from .._core.arguments import describe_given, refuse_awaitable
from .._core.compiler.error_notes import note_element, short_text
from .._core.failures import not_an_end
from .._core.observation.awaited import Wait, place_of_function
from .._core.observation.waiting import line_of_thread
from .._core.run_control import OnDiscard, discard_interrupted, interrupt_call
from ..errors import NotAnElement
from ..pools import ProcessPool, SentOnce, SharedThreads, sendable, shared_processes
from ..stage import (
    Coordinator,
    Downstream,
    InnerSubscriber,
    LoopHandle,
    describe,
    from_push,
    require_int,
    require_sync_callable,
)

if TYPE_CHECKING:
    from asyncio import Future, TimerHandle
    from contextvars import Context

    from ..flow import Flow

__all__ = ("map_in_process", "map_in_thread")

T = TypeVar("T")
R = TypeVar("R")

_REMEDY: Final = "use map_async for a coroutine function."
_MOST: Final = 2048
"""The most elements of a chunk that follows the time."""
_GROWTH: Final = 16
"""How many times larger than the last one a chunk is at most."""
_CHUNK_SECONDS: Final = 0.002
_FIXED_CHUNK_SECONDS: Final = 0.05
"""After twice this time, a chunk of a fixed size returns the results so far: a flow that has ended
need not wait for the rest of it."""


def map_in_thread(
    source: "Flow[T]",
    mapper: Callable[[T], R],
    *,
    concurrency: int = 4,
    ordered: bool = True,
    chunk: int | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> "Flow[R]":
    """Emit the result of ``mapper(element)`` for each element, called on threads.

    For functions that block: files, databases, drivers without asyncio. Up to *concurrency* calls
    run at the same time, in the context of the subscriber. Results keep the order of the elements;
    with ``ordered=False`` they are emitted as they arrive.

    The threads are those of *pool*, which is yours to shut down; without it, flows share threads
    that end with the last of these flows. A thread takes as many elements at a time as take it
    about two milliseconds: one, if a call takes longer, and more of a short function, up to 2048 if
    so many have arrived. With *chunk*, it takes exactly so many, and waits until they have arrived.

    ::

        a--b--c--|
        .map_in_thread(str.upper)
        A--B--C--|

    Demand: passed through, in chunks, at most *concurrency* of them ahead of it.
    Completes: when the source has completed and all results are delivered.
    Fails: when the source or *mapper* fails, after the earlier results. Calls that run meanwhile
        and fail as well are reported to the loop's exception handler.
    Cancels: the source, when the subscriber cancels. A call that runs cannot be interrupted: its
        result is dropped, and the other elements of its chunk are not worked on. A terminal
        operator and ``aclose`` wait for the call. Where nothing waits, the end of the event loop
        does, for at most 5 seconds, and then Python, until the call has returned.
    Holds: 2 × *concurrency* × *chunk* elements; else 2 × *concurrency* × 2048 elements, as many as
        short calls alone can reach.
    Rules: 1.1, 1.3, 3.5
    """
    require_sync_callable("map_in_thread", "mapper", mapper, _REMEDY, takes=1)
    concurrency = require_int("map_in_thread", "concurrency", concurrency, least=1)
    _require_pool("map_in_thread", pool, ThreadPoolExecutor)

    def calls() -> _Calls:
        return _ThreadCalls(mapper, pool)

    return _mapped(source, "map_in_thread", mapper, calls, concurrency, ordered, chunk)


def map_in_process(
    source: "Flow[T]",
    mapper: Callable[[T], R],
    *,
    concurrency: int | None = None,
    ordered: bool = True,
    chunk: int | None = None,
    pool: Executor | None = None,
) -> "Flow[R]":
    """Emit the result of ``mapper(element)`` for each element, called in processes.

    For functions that compute: the processes have interpreters of their own. They are those of
    *pool*, which is yours to shut down: a `ProcessPool`, or another `concurrent.futures.Executor`.
    Without it, all flows of the program share one `ProcessPool`, which has a process for each core,
    starts them when they are needed first, and ends with the program. Each of them imports the
    program's main module; so the program needs an ``if __name__ == "__main__":``.

    As many elements are sent at a time as take a process about two milliseconds: one, if a call
    takes longer, and more of a short function, up to 2048 if so many have arrived. Results are sent
    back together, so that an element that takes long holds up those before it in its chunk. With
    *chunk*, exactly so many are sent, when they have arrived. At most *concurrency* chunks are on
    their way: by default two for each process, so that the next one waits there when one is done.
    Results keep the order of the elements; with ``ordered=False`` they are emitted as they arrive.

    *mapper*, elements and results are pickled, also for an executor of threads. A function that is
    defined at the top of a module is found there; a lambda, a function inside another one or in a
    notebook needs the package ``cloudpickle``.

    Demand: passed through, in chunks, at most *concurrency* of them ahead of it.
    Completes: when the source has completed and all results are delivered.
    Fails: when the source or *mapper* fails, after the earlier results, or when a process dies,
        which takes the results of its chunk with it. Calls that run meanwhile and fail as well are
        reported to the loop's exception handler.
    Cancels: the source, when the subscriber cancels. A call that runs is not interrupted, and its
        result is dropped. A terminal operator and ``aclose`` wait for the call. Where nothing
        waits, the end of the event loop does, for at most 5 seconds, and then Python, until the
        call has returned.
    Holds: 2 × *concurrency* × *chunk* elements; else 2 × *concurrency* × 2048 elements, as many as
        short calls alone can reach.
    Rules: 1.1, 1.3, 3.5
    """
    require_sync_callable("map_in_process", "mapper", mapper, _REMEDY, takes=1)
    _require_pool("map_in_process", pool, Executor)
    if concurrency is None:
        used = shared_processes() if pool is None else pool
        concurrency = 2 * (used.workers if isinstance(used, ProcessPool) else os.cpu_count() or 1)
    concurrency = require_int("map_in_process", "concurrency", concurrency, least=1)
    sent = _EachInProcess(mapper)

    def calls() -> _Calls:
        return _ProcessCalls(mapper, sent, shared_processes() if pool is None else pool)

    return _mapped(source, "map_in_process", mapper, calls, concurrency, ordered, chunk)


def _require_pool(name: str, pool: object, kind: type[Executor]) -> None:
    if pool is not None and not isinstance(pool, kind):
        raise TypeError(
            f"{name}: pool must be a concurrent.futures.{kind.__name__}, not {describe_given(pool)}"
        )


def _mapped(
    source: "Flow[Any]",
    name: str,
    mapper: Callable[[Any], Any],
    calls: "Callable[[], _Calls]",
    concurrency: int,
    ordered: bool,
    chunk: int | None,
) -> "Flow[Any]":
    if chunk is not None:
        require_int(name, "chunk", chunk, least=1)
    return from_push(
        lambda downstream: _ChunkCalls(
            downstream, source, name, calls(), concurrency, ordered, _Size(chunk)
        ),
        name=f"{name}({describe(mapper)}, concurrency={concurrency})",
        holds=2 * concurrency * (chunk or _MOST),
        checked=True,
        upstreams=(source,),
        one_by_one=False,
    )


# -- chunks ----------------------------------------------------------------------------------------
class _Size:
    """How many elements are sent at a time: a fixed number, or what the time of the last allows."""

    __slots__ = ("_is_fixed", "least", "now", "seconds")

    def __init__(self, fixed: int | None) -> None:
        self._is_fixed = fixed is not None
        self.now: int = fixed or 1
        """How many elements the next chunk has at most."""
        self.least: int = fixed or 1
        """How many have to arrive for that, unless the source ends."""
        self.seconds: float = _CHUNK_SECONDS if fixed is None else _FIXED_CHUNK_SECONDS

    def learn(self, count: int, seconds: float) -> None:
        """*count* elements have taken *seconds*."""
        if not self._is_fixed and count:
            fitting = int(self.seconds * count / max(seconds, 1e-9))
            self.now = max(1, min(fitting, self.now * _GROWTH, _MOST))


@dataclass(slots=True, eq=False)
class _Chunk:
    """The elements of one call, and the results of those before them."""

    elements: deque[Any]
    results: deque[Any] = field(default_factory=deque[Any])
    error: BaseException | None = None
    call: "CallFuture[Any] | None" = None
    """The call that works on the elements."""
    unseen: int = 0
    """How many of the elements that the call was given it still has: they, or their results."""
    thread: int = 0
    """Where the call runs, if that is a thread."""
    is_late: bool = False
    """Whether it was working already when the timer looked before."""
    is_left: bool = False
    """Whether no more results of it are needed."""
    receivers: list[OnDiscard] = field(default_factory=list[OnDiscard])
    """What receives elements that were counted before their call has returned."""


@dataclass(slots=True, kw_only=True)
class _Outcome:
    """What one call has done."""

    results: Sequence[Any] = ()
    """Results of the first elements of the chunk, if they are not in it yet."""
    error: BaseException | None = None
    """The error of the next element, which is the first of the chunk or *failed*."""
    failed: Sequence[Any] = ()
    """The element with which it failed, if it is not in the chunk any more."""
    count: int = 0
    """How many elements it has worked on, and in how many seconds."""
    seconds: float = 0.0
    has_begun: bool = True
    """False if something could not be pickled, so that the work has not begun."""


class _ChunkCalls(Coordinator[Any]):
    """Calls of a pool, each with a chunk of the elements.

    Results that may not be emitted yet, elements in calls and those that have arrived are at most
    *concurrency* chunks together.
    """

    passes_each: ClassVar[bool] = True

    def __init__(
        self,
        downstream: Downstream[Any],
        source: "Flow[Any]",
        name: str,
        calls: "_Calls",
        concurrency: int,
        ordered: bool,
        size: _Size,
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._name = name
        self._pool = calls
        self._concurrency = concurrency
        self._is_ordered = ordered
        self._size = size
        self._inner: InnerSubscriber[Any] | None = None
        self._chunks: deque[_Chunk] = deque()  # not all emitted; in their order if that matters
        self._unsent: deque[_Chunk] = deque()  # those of them that wait for a call
        self._ready: deque[Any] = deque()
        self._in_chunks = 0  # elements, and results that are not ready
        self._running: dict[CallFuture[Any], _Chunk] = {}
        self._has_failed = False  # so no more elements are taken
        self._timer: TimerHandle | None = None
        self._all_returned = self.loop_handle.create_future()

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._inner = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        self._advance()

    def on_processed(self) -> None:
        self._advance()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._advance()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._advance()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._advance()  # after the elements before it

    def on_stop(self) -> None:
        chunks, self._chunks, self._unsent = self._chunks, deque(), deque()
        self._leave(chunks)
        ready, self._ready = self._ready, deque()
        self.discard(ready)
        self._stop_timer()
        self._pool.close()

    def stop_threads(self) -> None:
        self.cancel()

    def join_threads(self, seconds: float) -> str:
        _, left = wait(list(self._running), seconds)
        return f"a call of {self._name}" if left else ""

    @property
    def tasks(self) -> "Sequence[Future[Any]]":
        """With the calls that run, for which whoever closes this has to wait."""
        own = [*super().tasks]
        if self._running:
            own.append(self._all_returned)
        return own

    @property
    def held(self) -> int:
        """All that it holds, but for one element of each call, which are in `calls`."""
        return super().held + self._in_chunks + len(self._ready) - len(self._running)

    @property
    def calls(self) -> int:
        return len(self._running)

    def call_waits(self) -> "Iterator[Wait]":
        for chunk in self._running.values():
            yield Wait("function", self._pool.place_of(chunk))

    def numbers(self, waiting: int) -> tuple[int, int]:
        departed = self.emitted - waiting
        return departed, departed + waiting + self.held + len(self._running)

    # -- acts -------------------------------------------------------------------------------------
    def _advance(self) -> None:
        """Emit what is ready, send what can be sent, request what is missing, or end."""
        if self.is_closed:
            return
        while self._ready and (count := self.demand.outstanding) > 0:
            if count < len(self._ready):
                results = [self._ready.popleft() for _ in range(count)]
            else:
                results, self._ready = [*self._ready], deque()
            self.emit(results)
        while len(self._running) < self._concurrency and (chunk := self._next_chunk()) is not None:
            self._send(chunk)
        self._request()
        self._end_if_done()

    def _next_chunk(self) -> _Chunk | None:
        if self._unsent:
            return self._unsent.popleft()
        inner = self._inner
        if inner is None or self._has_failed:
            return None
        count = len(inner.elements)
        if not count or (count < self._size.least and not inner.is_done):
            return None
        chunk = _Chunk(deque(inner.take(self._size.now)))
        self._in_chunks += len(chunk.elements)
        self._chunks.append(chunk)
        return chunk

    def _send(self, chunk: _Chunk) -> None:
        context = self.loop_handle.context.copy()  # only one thread at a time may enter a context
        chunk.unseen = len(chunk.elements)
        chunk.call = call = self._pool.submit(chunk, 2 * self._size.seconds, context)
        if not self._running:
            self._all_returned = self.loop_handle.create_future()
            self.loop_handle.join_at_end(self)
        self._running[call] = chunk
        if len(chunk.elements) > 1:
            self._start_timer()
        call.add_done_callback(partial(self._on_done, chunk))

    def _on_done(self, chunk: _Chunk, call: "CallFuture[Any]") -> None:
        """A call has ended; called on a thread of the pool, or where it was cancelled."""
        if call.cancelled():
            outcome = _Outcome()
        elif (error := call.exception()) is not None:
            outcome = _Outcome(error=error, has_begun=isinstance(error, BrokenExecutor))
        else:
            outcome = self._pool.outcome(call.result())
        on_returned = partial(self._on_returned, call)
        self.loop_handle.call_soon_threadsafe(self.submit, on_returned, chunk, outcome)

    def _request(self) -> None:
        inner = self._inner
        if inner is None or self._has_failed or self.is_closed:
            return
        limit = self._concurrency * self._size.now
        unprocessed = self.emitted - self.processed_count
        open_demand = min(self.demand.outstanding, limit - unprocessed)
        excess = max(0, len(self._ready) - open_demand)
        missing = limit - self._in_chunks - inner.outstanding - excess
        if missing > 0:
            inner.request(missing)

    def _end_if_done(self) -> None:
        if self.is_closed or self._ready:
            return
        if self._chunks:
            if (error := self._chunks[0].error) is not None:
                self._chunks.popleft()
                self.fail(error)
        elif (inner := self._inner) is not None:
            self.end_with(inner)

    # -- a call has returned ----------------------------------------------------------------------
    def _on_returned(self, call: "CallFuture[Any]", chunk: _Chunk, outcome: _Outcome) -> None:
        del self._running[call]
        if not self._running:
            self.loop_handle.need_not_join(self)
            self._stop_timer()
            self._all_returned.set_result(None)
        chunk.call = None
        if len(outcome.results) == len(chunk.elements):
            chunk.elements.clear()
        else:
            for _ in outcome.results:
                chunk.elements.popleft()
        chunk.results.extend(outcome.results)
        rest = [*outcome.failed, *chunk.elements]
        chunk.elements.clear()
        error = outcome.error
        if chunk.is_left:
            self._discard_returned(chunk, rest, error)
            return
        self._put_first(chunk)
        if error is None:
            self._size.learn(outcome.count, outcome.seconds)
            self._send_again(chunk, rest, self._size.now)
        elif not outcome.has_begun and len(rest) > 1:
            self._send_again(chunk, rest, 1)  # which finds the one that cannot be sent
        else:
            self._on_failed(chunk, rest, error)
        self._collect()
        self._advance()

    def _put_first(self, chunk: _Chunk) -> None:
        """The results of *chunk* are ready, unless order matters."""
        if not self._is_ordered:
            self._chunks.remove(chunk)
            self._chunks.appendleft(chunk)

    def _send_again(self, chunk: _Chunk, rest: list[Any], size: int) -> None:
        """Send *rest*, which *chunk* has not come to, before the elements that follow it."""
        place = self._chunks.index(chunk) + 1
        for end in range(len(rest), 0, -size):
            piece = _Chunk(deque(rest[max(0, end - size) : end]))
            self._chunks.insert(place, piece)
            self._unsent.appendleft(piece)

    def _on_failed(self, chunk: _Chunk, rest: list[Any], error: BaseException) -> None:
        """The work on the first of *rest* has failed: do none on those after it."""
        self._has_failed = True
        self._discard_unfinished(rest)
        chunk.error = self._failure_of(error, rest)
        if self._inner is not None:
            self._inner.cancel()
        place = self._chunks.index(chunk) + 1
        later = [self._chunks.pop() for _ in range(len(self._chunks) - place)]
        self._leave(later)
        for each in later:
            if each.error is not None:  # it has failed before this one, which comes first
                self._report(each.error)
        self._unsent = deque(each for each in self._unsent if not each.is_left)

    def _failure_of(self, error: BaseException, rest: list[Any]) -> BaseException:
        """What the subscriber receives for *error*, raised by the work on the first of *rest*.

        A process that has died does not tell which of its elements it was.
        """
        failure = self.failure_of(not_an_end(error, self._name))
        if isinstance(error, BrokenExecutor) and len(rest) > 1:
            failure.add_note(f"{self._name}: the call was to work on {len(rest)} elements")
        elif rest:
            note_element(failure, rest[0])
        return failure

    def _collect(self) -> None:
        """Make the results ready that come next."""
        chunks = self._chunks
        while chunks:
            chunk = chunks[0]
            self._make_ready(chunk)
            if chunk.call is not None or chunk.elements or chunk.error is not None:
                return
            chunks.popleft()

    def _make_ready(self, chunk: _Chunk) -> None:
        if chunk.call is None:
            self._in_chunks -= len(chunk.results)
            self._ready += chunk.results
            chunk.results.clear()
            return
        results = self._take_results(chunk)
        self._in_chunks -= len(results)
        self._ready += results

    # -- a thread that takes long -----------------------------------------------------------------
    def _start_timer(self) -> None:
        """Look soon at what threads are doing, which have more elements than one."""
        if self._timer is None and self._pool.gives_back:
            seconds = 2 * self._size.seconds
            self._timer = self.loop_handle.call_later(seconds, self.submit, self._on_time)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        """Emit what threads that take long have done, and give others the rest of their chunks."""
        self._timer = None
        running = [each for each in self._chunks if each.call is not None]
        if not all(chunk.is_late for chunk in running):
            self._start_timer()
        for chunk in running:
            if chunk.is_late and (rest := self._take_back(chunk)):
                self._size.learn(1, 2 * self._size.seconds)
                self._send_again(chunk, rest, self._size.now)
            if chunk.is_late and not self._is_ordered:
                self._make_ready(chunk)
            chunk.is_late = True
        self._collect()
        self._advance()

    # -- what is not needed any more --------------------------------------------------------------
    def _leave(self, chunks: Iterable[_Chunk]) -> None:
        """Discard *chunks*. What a call works on counts now, and goes when that has returned."""
        for chunk in chunks:
            chunk.is_left = True
            if chunk.call is None:
                rest = [*chunk.results, *chunk.elements]
                chunk.elements.clear()
            else:
                rest = [*self._take_results(chunk), *self._take_back(chunk)]
                if not chunk.call.cancel():
                    chunk.receivers = [interrupt_call(self.on_discard) for _ in range(chunk.unseen)]
            self._in_chunks -= len(rest)
            self.discard(rest)

    def _take_back(self, chunk: _Chunk) -> list[Any]:
        """Take those elements from a call that runs on which it does not work yet."""
        rest = self._pool.take_back(chunk)
        chunk.unseen -= len(rest)
        return rest

    def _take_results(self, chunk: _Chunk) -> list[Any]:
        """Take the results of a call that runs, which may be adding more."""
        results = [chunk.results.popleft() for _ in range(len(chunk.results))]
        chunk.unseen -= len(results)
        return results

    def _discard_returned(
        self, chunk: _Chunk, rest: list[Any], error: BaseException | None
    ) -> None:
        """A call has returned that nothing waits for.

        An error is reported if the flow has failed by another one. That of a flow whose consumer
        has left is dropped, as its result would be.
        """
        left = [*chunk.results, *rest]
        self._in_chunks -= len(left)
        for receive, each in zip(chunk.receivers, left, strict=False):
            receive(each)
        self.discard(left[len(chunk.receivers) :])
        if error is None:
            return
        failure = self._failure_of(error, rest)
        if self._has_failed and not isinstance(error, BrokenExecutor):  # which all fail by
            self._report(failure)

    def _discard_unfinished(self, rest: list[Any]) -> None:
        """Discard elements; the work on the first of them has begun."""
        self._in_chunks -= len(rest)
        for element in rest[:1]:
            discard_interrupted(self.on_discard, element)
        self.discard(rest[1:])

    def _report(self, error: BaseException) -> None:
        self.loop_handle.report(f"{self._name}: another call failed as well", error)


# -- the calls of one subscription -----------------------------------------------------------------
class _LoopThreads(SharedThreads):
    """The threads that the flows of one event loop share: they end with that loop at the latest."""

    def stop_threads(self) -> None:
        """The loop ends, whether all of its flows have ended or not."""
        self.end()

    def join_threads(self, seconds: float) -> str:
        return ""  # each flow joins its own calls


_threads_of_loops: "WeakKeyDictionary[Any, _LoopThreads]" = WeakKeyDictionary()


def _shared_threads() -> _LoopThreads:
    loop_handle = LoopHandle("map_in_thread")
    threads = _threads_of_loops.get(loop_handle.event_loop)
    if threads is None:
        threads = _LoopThreads("reactive_aio-map_in_thread")
        _threads_of_loops[loop_handle.event_loop] = threads
        loop_handle.join_at_end(threads)
    return threads


class _ThreadCalls:
    """They are made on threads of a pool, or on those that flows share."""

    gives_back: Final = True
    """Whether it can take back elements from a call that runs."""

    def __init__(self, mapper: Callable[[Any], Any], pool: ThreadPoolExecutor | None) -> None:
        self._mapper = mapper
        self._pool = pool
        self._threads: _LoopThreads | None = None

    def submit(self, chunk: _Chunk, seconds: float, context: "Context") -> "CallFuture[_Outcome]":
        """Work on *chunk* for some *seconds*."""
        if self._pool is None:
            self._threads = _shared_threads()
            self._pool = self._threads.acquire()
        pool = self._pool
        return pool.submit(context.run, self._work, chunk, seconds)

    def _work(self, chunk: _Chunk, seconds: float) -> _Outcome:
        chunk.thread = get_ident()
        return _call_each(self._mapper, "map_in_thread", chunk.elements, chunk.results, seconds)

    def place_of(self, chunk: _Chunk) -> str:
        """Where the call for *chunk* is."""
        line = line_of_thread(chunk.thread) if chunk.thread else None
        return f"{line or place_of_function(self._mapper)}, in a thread"

    def outcome(self, returned: _Outcome) -> _Outcome:
        """What a call has done that has returned *returned*."""
        return returned

    def take_back(self, chunk: _Chunk) -> list[Any]:
        """Take the elements of *chunk* that no call works on."""
        rest: deque[Any] = deque()
        with suppress(IndexError):  # a thread takes them from the other end meanwhile
            while True:
                rest.appendleft(chunk.elements.pop())
        return [*rest]

    def close(self) -> None:
        """No more calls follow."""
        if self._threads is not None:
            self._threads.release()
            self._threads = self._pool = None

    def __del__(self) -> None:
        self.close()  # the subscription was dropped without an end


class _ProcessCalls:
    """They are made in processes of a pool. Elements and results are pickled apart from the call.

    So what cannot be pickled, or unpickled, is an error of that call and does no harm to the pool.
    """

    gives_back: Final = False

    def __init__(
        self, mapper: Callable[[Any], Any], sent: "_EachInProcess", pool: Executor
    ) -> None:
        self._mapper = mapper
        self._sent = sent
        self._pool = pool

    def submit(self, chunk: _Chunk, seconds: float, context: "Context") -> "CallFuture[_Pickled]":
        return self._pool.submit(self._sent, _Elements([*chunk.elements]), seconds)

    def outcome(self, returned: "_Pickled") -> _Outcome:
        pickled, failure, seconds, has_begun = returned
        try:
            results = pickle.loads(pickled)
            raised = None if failure is None else pickle.loads(failure)
        except BaseException as reason:
            reason.add_note("map_in_process: the results of a call cannot be unpickled")
            return _Outcome(error=reason)
        return _Outcome(
            results=results,
            error=raised,
            count=len(results),
            seconds=seconds,
            has_begun=has_begun,
        )

    def place_of(self, _: _Chunk) -> str:
        return f"{place_of_function(self._mapper)}, in a process"

    def take_back(self, chunk: _Chunk) -> list[Any]:
        return []  # they have been sent

    def close(self) -> None:
        pass


_Calls = _ThreadCalls | _ProcessCalls
_Pickled = tuple[bytes, bytes | None, float, bool]
"""Pickled results, a pickled error, and the seconds and `has_begun` of an `_Outcome`."""


# -- in a thread, or in a process ------------------------------------------------------------------
def _call_each(
    mapper: Callable[[Any], Any],
    name: str,
    elements: deque[Any],
    results: deque[Any],
    seconds: float,
) -> _Outcome:
    """Call *mapper* with one of *elements* after another, as long as there is time for it."""
    count, kind = 0, None
    begin = now = perf_counter()
    end = begin + seconds
    while elements and now < end:
        try:
            element = elements.popleft()
        except IndexError:
            break  # the loop has taken it back
        try:
            result = mapper(element)
            if result is None:
                raise NotAnElement(
                    f"{name}: {describe(mapper)} returned None, which is not an element; for work "
                    "without a result, return the element"
                )
            if result.__class__ is not kind:
                refuse_awaitable(name, mapper, result)
                kind = result.__class__
        except BaseException as error:
            return _Outcome(error=error, failed=(element,))
        results.append(result)
        count += 1
        now = perf_counter()
    return _Outcome(count=count, seconds=now - begin)


class _EachInProcess(SentOnce):
    """Calls a function in a process, with some elements."""

    def __init__(self, mapper: Callable[[Any], Any]) -> None:
        super().__init__(_pickled(mapper))

    def __call__(self, elements: "_Elements", seconds: float) -> _Pickled:
        begin = perf_counter()
        try:
            mapper, received = self.function, deque(elements.received())
        except BaseException as error:
            return pickle.dumps([]), pickle.dumps(sendable(error)), 0.0, False
        done: deque[Any] = deque()
        failure = _call_each(mapper, "map_in_process", received, done, seconds).error
        results = [*done]
        try:
            pickled = pickle.dumps(results, -1)
        except BaseException as error:
            pickled, failure = _pickled_until_one_fails(results, error)
        # The time that it takes to pickle counts: there is no use in chunks of large elements.
        taken = perf_counter() - begin
        sent = None if failure is None else pickle.dumps(sendable(failure))
        return pickled, sent, taken, True


def _pickled_until_one_fails(
    results: list[Any], error: BaseException
) -> tuple[bytes, BaseException]:
    """Pickle as many of *results* as can be; *error* was raised for all together."""
    dumped: list[Any] = []
    for result in results:
        try:
            pickle.dumps(result)
        except BaseException as reason:
            reason.add_note(f"map_in_process: the result cannot be pickled: {short_text(result)}")
            return pickle.dumps(dumped), reason
        dumped.append(result)
    return pickle.dumps([]), error


class _Elements:
    """Elements on their way into a process, pickled when they are sent.

    An executor of threads sends nothing. There they are pickled when they are received, so that a
    function gets copies of its own, as in a process.
    """

    __slots__ = ("_elements", "_pickled")

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements
        self._pickled: bytes | None = None

    def __getstate__(self) -> bytes:
        return pickle.dumps(self._elements, -1)

    def __setstate__(self, state: bytes) -> None:
        self._pickled = state

    def received(self) -> list[Any]:
        """In the process: the elements."""
        pickled = self.__getstate__() if self._pickled is None else self._pickled
        received: list[Any] = pickle.loads(pickled)
        return received


# -- the function ----------------------------------------------------------------------------------
def _pickled(mapper: Callable[[Any], Any]) -> bytes:
    """Pickle *mapper*: where it is to be found or, with ``cloudpickle``, what it consists of."""
    is_main_importable = _is_main_importable()
    is_in_main = getattr(mapper, "__module__", None) == "__main__"
    error: Exception | None = None
    if is_main_importable or not is_in_main:
        try:
            return pickle.dumps(mapper)
        except Exception as reason:
            error = reason
    try:
        from cloudpickle import dumps  # pyright: ignore[reportUnknownVariableType]
    except ImportError:
        remedy = "install the package cloudpickle, which sends what the function consists of"
    else:
        try:
            pickled: bytes = dumps(mapper)
            return pickled
        except Exception as reason:
            error, remedy = reason, f"cloudpickle cannot either ({reason})"
    if error is None:
        raise TypeError(
            f"map_in_process: {describe(mapper)} is defined in a notebook or at a prompt, which no "
            f"other process can import; define it in a file, and import it from there, or {remedy}"
        )
    raise TypeError(
        f"map_in_process: {describe(mapper)} cannot be pickled; define it with def at the top of a "
        f"module, or {remedy}"
    ) from error


def _is_main_importable() -> bool:
    """Whether a process can import the main module of the program, which a notebook's is not."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return main.__spec__ is not None or (file is not None and not file.startswith("<"))
