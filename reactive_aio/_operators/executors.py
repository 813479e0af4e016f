"""Operators that call a plain function for each element in threads, or in processes."""

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import NotAnElement
from ..stage import (
    InlineStage,
    OnDiscard,
    ReorderBuffer,
    WorkerPool,
    describe,
    discard_interrupted,
    from_push,
    not_an_end,
    note_element,
    refuse_awaitable,
    require_int,
    require_sync_callable,
    with_figures,
)

if TYPE_CHECKING:
    from asyncio import Future
    from concurrent.futures import Future as CallFuture, ProcessPoolExecutor

    from ..flow import Flow

__all__ = ("map_in_process", "map_in_thread")

T = TypeVar("T")
R = TypeVar("R")

_REMEDY: Final = "use map_async for a coroutine function."
_ENDED: Final = "map_in_process: a process ended in the middle of a call, by the function or killed"
_NOT_STARTED: Final = (
    "map_in_process: a process ended before any call returned. Each imports the program's main "
    'module: let that run flows under `if __name__ == "__main__":` only. (Or the function ended '
    "the process, or something killed it.)"
)


def map_in_thread(
    source: "Flow[T]",
    mapper: Callable[[T], R],
    *,
    concurrency: int = 4,
    ordered: bool = True,
    chunk: int = 1,
) -> "Flow[R]":
    """Emit the result of ``mapper(element)`` for each element, called on threads.

    For functions that block: files, databases, drivers without asyncio. Each subscription has up to
    *concurrency* threads of its own. Results keep the order of the elements; with ``ordered=False``
    they are emitted as they arrive. With *chunk*, a thread takes so many elements at a time, which
    is faster for short calls, and waits until so many have arrived.

    ::

        a--b--c--|
        .map_in_thread(str.upper)
        A--B--C--|

    Demand: passed through, in chunks, at most *concurrency* of them ahead of it.
    Completes: when the source has completed and all results are delivered.
    Fails: when the source or *mapper* fails, after the earlier results. Calls that run meanwhile
        and fail as well are reported to the loop's exception handler.
    Cancels: the source, when the subscriber cancels. A call that runs cannot be interrupted: its
        result is dropped, and ``aclose`` waits for it.
    Holds: 2 × *concurrency* × *chunk* elements, including running calls; with a *chunk* above 1,
        *chunk* more.
    Rules: 1.1, 1.3, 3.5
    """
    require_sync_callable("map_in_thread", "mapper", mapper, _REMEDY, takes=1)
    concurrency = require_int("map_in_thread", "concurrency", concurrency, least=1)

    work = (partial(_call, "map_in_thread", mapper), partial(_call_each, "map_in_thread", mapper))
    return _mapped(source, "map_in_thread", mapper, None, work, concurrency, ordered, chunk)


def map_in_process(
    source: "Flow[T]",
    mapper: Callable[[T], R],
    *,
    concurrency: int = 4,
    ordered: bool = True,
    chunk: int = 1,
) -> "Flow[R]":
    """Emit the result of ``mapper(element)`` for each element, called in processes.

    For functions that compute: the processes have interpreters of their own. Each subscription
    starts up to *concurrency* of them, which import the program's main module; so the program needs
    an ``if __name__ == "__main__":``. *mapper*, elements and results are pickled: a function is
    defined at the top of a module. A *chunk* of elements is sent at a time.

    Demand: passed through, in chunks, at most *concurrency* of them ahead of it.
    Completes: when the source has completed and all results are delivered.
    Fails: when the source or *mapper* fails, after the earlier results, or when a process dies.
        Calls that run meanwhile and fail as well are reported to the loop's exception handler.
    Cancels: the source, when the subscriber cancels. A call that runs is not interrupted: its
        result is dropped, and ``aclose`` waits for it.
    Holds: 2 × *concurrency* × *chunk* elements, including running calls; with a *chunk* above 1,
        *chunk* more.
    Rules: 1.1, 1.3, 3.5
    """
    require_sync_callable("map_in_process", "mapper", mapper, _REMEDY, takes=1)
    concurrency = require_int("map_in_process", "concurrency", concurrency, least=1)
    pickled = _pickled(mapper)

    work = (_call_received, _call_received_each)
    return _mapped(source, "map_in_process", mapper, pickled, work, concurrency, ordered, chunk)


def _pickled(mapper: Callable[[Any], Any]) -> bytes:
    """Pickle *mapper*, which a process is to find in the module that defines it."""
    try:
        pickled = pickle.dumps(mapper)
    except Exception as error:
        raise TypeError(
            f"map_in_process: {describe(mapper)} cannot be pickled; define it with def at the top "
            "of a module"
        ) from error
    is_in_main = getattr(mapper, "__module__", None) == "__main__"
    if is_in_main and not hasattr(sys.modules["__main__"], "__file__"):
        raise TypeError(
            f"map_in_process: {describe(mapper)} is defined in a notebook or at a prompt, which no "
            "other process can import; define it in a file, and import it from there"
        )
    return pickled


_Work = tuple[Callable[[Any], Any], Callable[[list[Any]], "_Chunk"]]
"""What is done with one element, and with a list of them."""


def _mapped(
    source: "Flow[Any]",
    name: str,
    mapper: Callable[[Any], Any],
    pickled: bytes | None,
    work: _Work,
    concurrency: int,
    ordered: bool,
    chunk: int,
) -> "Flow[Any]":
    require_int(name, "chunk", chunk, least=1)
    one, many = work
    chunks: Flow[Any] = source
    if chunk > 1:
        chunks = source.via(_PACK, chunk, holds=chunk, contents=chunk)
    pooled: Flow[Any] = from_push(
        lambda downstream: _ExecutorWorkers(
            downstream,
            name,
            chunks,
            ReorderBuffer[Any](concurrency, ordered=ordered),
            ThreadPoolExecutor(concurrency, f"reactive_aio-{name}"),
            None if pickled is None else _Processes(concurrency, pickled),
            many if chunk > 1 else one,
        ),
        name=f"{name}({describe(mapper)}, concurrency={concurrency})",
        holds=2 * concurrency,
        checked=True,
        upstreams=(chunks,),
        one_by_one=False,
    )
    return pooled.via(_UNPACK, contents=1) if chunk > 1 else pooled


class _ExecutorWorkers(WorkerPool):
    """The tasks wait for calls on threads, which end with the subscription.

    With *processes*, the threads make their calls there: to start a process, or to send it
    something, would block the loop.
    """

    def __init__(
        self,
        downstream: Any,
        name: str,
        source: "Flow[Any]",
        buffer: ReorderBuffer[Any],
        threads: ThreadPoolExecutor,
        processes: "_Processes | None",
        work: Callable[[Any], Any],
    ) -> None:
        super().__init__(downstream, source, self._submit, False, buffer)
        self._name = name
        self._threads = threads
        self._processes = processes
        self._call = work if processes is None else partial(processes.call, work)
        self._has_failed = False

    async def _submit(self, element: Any) -> Any:
        """The result of a call; if the flow ends before it returns, the result is discarded."""
        outcome = self.loop_handle.create_future()
        run = self.loop_handle.context.copy().run  # only one thread at a time may enter a context
        on_returned = partial(self._on_returned, element, outcome)
        self._threads.submit(run, self._call, element).add_done_callback(
            lambda call: self.loop_handle.call_soon_threadsafe(on_returned, call)
        )
        try:
            return await outcome
        except BaseException:
            if self.is_being_cancelled() and outcome.done() and not outcome.cancelled():
                self._on_late_outcome(element, outcome)
            raise

    def _on_returned(self, element: Any, outcome: "Future[Any]", call: "CallFuture[Any]") -> None:
        """A call has returned or raised; nothing waits for it if the flow has ended meanwhile."""
        error = failure = call.exception()
        result = element if error is not None else call.result()
        if isinstance(result, _Chunk):
            result.rest = element[len(result.results) :]
            failure = result.error
        if failure is not None:
            self._on_failed(failure, element, is_awaited=not outcome.cancelled())
        if error is not None or outcome.cancelled():
            self.discard((result,))
        if outcome.cancelled():
            return
        if error is None:
            outcome.set_result(result)
        else:
            outcome.set_exception(not_an_end(error, self._name))

    def _on_late_outcome(self, element: Any, outcome: "Future[Any]") -> None:
        """The task was cancelled in the turn of the outcome, and does not receive it."""
        error = outcome.exception()
        if error is None:
            self.discard((outcome.result(),))
        else:
            self._on_failed(error, element, is_awaited=False)

    def _on_failed(self, error: BaseException, element: object, *, is_awaited: bool) -> None:
        """A call has failed; it is reported if the flow has failed by another one meanwhile.

        That of a flow whose consumer has left is dropped, as its result would be.
        """
        if is_awaited:
            self._has_failed = True
            self._start_no_more()  # where the error of a chunk comes after its results
        elif self._has_failed and not isinstance(error, BrokenExecutor):  # all fail by that
            if not isinstance(element, _Elements):
                note_element(error, element)
            self.loop_handle.report(f"{self._name}: another call failed as well", error)

    # -- elements in chunks: each is discarded by itself ------------------------------------------
    @property
    def on_discard(self) -> OnDiscard | None:
        on_discard = self.downstream.on_discard
        if on_discard is None:
            return None
        return with_figures(on_discard, _EachOfChunk(on_discard))

    def discard(self, elements: Iterable[object]) -> None:
        if (on_discard := self.on_discard) is not None:
            for element in elements:
                on_discard(element)

    def discard_element(self, element: Any) -> None:
        """Not yet, since a call on a thread may still use it: see `_on_returned`."""

    def on_stop(self) -> None:
        super().on_stop()
        if self._processes is not None:
            self._threads.submit(self._processes.end)
        self._threads.shutdown(wait=False)

    async def aclose(self) -> None:
        await super().aclose()
        await self.loop_handle.run_in_executor(None, self._threads.shutdown)


class _Processes:
    """The processes of one subscription. Its methods block, and are called on threads."""

    def __init__(self, size: int, pickled: bytes) -> None:
        self._size = size
        self._pickled = pickled
        self._lock = Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._has_returned = False  # so the processes have started
        self._broken: Exception | None = None

    def call(self, work: Callable[[Any], Any], element: Any) -> Any:
        with self._lock:
            if self._pool is None:
                self._pool = self._start()
        from concurrent.futures.process import BrokenProcessPool

        try:
            result = self._pool.submit(work, element).result()
        except BrokenProcessPool as error:
            with self._lock:
                if self._broken is None:
                    text = _ENDED if self._has_returned else _NOT_STARTED
                    self._broken = BrokenProcessPool(text)
            raise self._broken from error  # the same for every call: it is one failure
        self._has_returned = True
        return result

    def _start(self) -> "ProcessPoolExecutor":
        from concurrent.futures import ProcessPoolExecutor  # 20 ms, which few programs need
        from multiprocessing import get_context

        return ProcessPoolExecutor(
            self._size, get_context("spawn"), initializer=_receive, initargs=(self._pickled,)
        )

    def end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


# -- in a thread, or in a process ------------------------------------------------------------------
class _Elements(list[Any]):
    """The elements of one call."""


class _Chunk:
    """The results for some elements, up to the first that failed."""

    __slots__ = ("error", "rest", "results")

    def __init__(self) -> None:
        self.results: deque[Any] = deque()
        self.error: BaseException | None = None
        self.rest: list[Any] = []
        """The elements from the one that failed on, once the loop has received the chunk."""

    def held(self) -> list[Any]:
        """What is not delivered."""
        return [*self.results, *self.rest]


@dataclass(slots=True, eq=False)
class _EachOfChunk:
    """Counts each element of a chunk by itself."""

    _on_discard: OnDiscard

    def discard(self, element: object, /) -> None:
        for each in _elements_in(element):
            self._on_discard(each)

    def interrupt(self, element: object, /) -> None:
        for each in _elements_in(element):
            discard_interrupted(self._on_discard, each)


def _elements_in(element: object) -> list[object]:
    """The elements of a chunk; of anything else, itself."""
    if isinstance(element, _Chunk):
        return element.held()
    return element if isinstance(element, _Elements) else [element]


def _call(name: str, mapper: Callable[[Any], Any], element: Any) -> Any:
    result = mapper(element)
    if result is None:
        raise NotAnElement(
            f"{name}: {describe(mapper)} returned None, which is not an element; for work without "
            "a result, return the element"
        )
    refuse_awaitable(name, mapper, result)
    return result


def _call_each(
    name: str, mapper: Callable[[Any], Any], elements: list[Any], *, in_process: bool = False
) -> _Chunk:
    chunk = _Chunk()
    for element in elements:
        try:
            chunk.results.append(_call(name, mapper, element))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            chunk.error = error
            if in_process:  # the traceback stays behind
                text = "".join(format_exception(error)).rstrip()
                error.add_note(f"raised in a process:\n{text}")
            note_element(error, element)
            break
    return chunk


_received: list[Callable[[Any], Any]] = []
"""The function of this process."""


def _receive(pickled: bytes) -> None:
    _received.append(pickle.loads(pickled))


def _call_received(element: Any) -> Any:
    return _call("map_in_process", _received[-1], element)


def _call_received_each(elements: list[Any]) -> _Chunk:
    return _call_each("map_in_process", _received[-1], elements, in_process=True)


def unpacked(chunk: _Chunk) -> Iterator[Any]:
    """The results, and then the error."""
    results = chunk.results
    while results:
        yield results.popleft()
    if chunk.error is not None:
        raise chunk.error


_PACK = InlineStage(
    "buffer",
    params=("size",),
    uses=(_Elements,),
    setup="$kept = _Elements()",
    each="""
    $kept.append(x)
    if len($kept) < $size:
        drop
    x, $kept = $kept, _Elements()
    """,
    after="""
    if $kept:
        $last, $kept = $kept, _Elements()
        emit $last
    """,
    held="$kept",
    demand="need = need * $size - len($kept)",
)

_UNPACK = InlineStage(
    "unpack",
    uses=(_Chunk, unpacked),
    setup="$chunk = _Chunk()",
    each="""
    $chunk = x
    x = None
    emit each unpacked($chunk)
    """,
    held="$chunk.held()",
)
