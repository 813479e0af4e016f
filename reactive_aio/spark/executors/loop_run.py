"""The run of a flow on the worker's event loop, while the main thread reads and sends for it.

The main thread asks for the rows of a batch, and then does what the loop requests until it has
them: it reads record batches of the partition, which blocks. The loop goes on meanwhile, so that
calls in flight are answered, and time limits are kept, while Spark is slow.
"""

from collections.abc import Callable, Generator
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final

from ...stage import Fluent, LoopHandle
from .batch_size import BatchSize
from .input_rows import InputRows
from .output_rows import OutputRows
from .spark_connection import SparkConnection

TICK: Final = 0.25
"""Seconds after which the main thread looks whether Spark still waits for this task."""
LONGEST_WAIT: Final = 1.0
"""Seconds after which rows are sent although their batch is not full."""

_WANTED: Final = object()
"""The loop requests a record batch."""


class LoopRun:
    """One flow on the loop; every method but `start` and `aclose` is called on the main thread."""

    def __init__(self, flow: Fluent[Any], source: InputRows, connection: SparkConnection) -> None:
        self._flow = flow
        self._source = source
        self._connection = connection
        # What the loop has for the main thread: rows, an error, None at the end, or _WANTED.
        self._events: SimpleQueue[list[Any] | BaseException | object | None] = SimpleQueue()
        self._output = OutputRows(self._events.put, self._events.put)
        self._loop_handle: LoopHandle | None = None
        source.on_wanted = lambda: self._events.put(_WANTED)

    # -- on the loop ------------------------------------------------------------------------------
    async def start(self) -> None:
        """Subscribe, with no demand."""
        self._loop_handle = LoopHandle("map_flow()")
        self._flow.subscribe(self._output)

    async def aclose(self) -> None:
        """Cancel, and wait for the cleanup; raise its error."""
        await self._output.aclose()

    # -- on the main thread -----------------------------------------------------------------------
    def chunks(self, size: BatchSize) -> Generator[list[Any]]:
        """Yield lists of elements, each as long as *size* says, or those of a second."""
        while True:
            self._on_loop(self._output.fill, size.rows)
            rows = self._next_rows()
            if rows is None:
                return
            yield rows

    def _next_rows(self) -> list[Any] | None:
        deadline = monotonic() + LONGEST_WAIT
        while True:
            if monotonic() >= deadline:
                deadline += LONGEST_WAIT
                self._on_loop(self._output.flush_partial)
            try:
                event = self._events.get(timeout=TICK)
            except Empty:
                self._connection.require_open()
                continue
            if event is _WANTED:
                self._on_loop(self._source.feed, self._connection.next())
            elif isinstance(event, BaseException):
                raise event
            else:
                return event  # type: ignore[return-value]

    def _on_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        assert self._loop_handle is not None
        if not self._loop_handle.call_soon_threadsafe(self._call, callback, *arguments):
            raise RuntimeError("the event loop of this worker has stopped before the flow ended")

    def _call(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call *callback* on the loop; the main thread waits for its answer, or for an error."""
        try:
            callback(*arguments)
        except BaseException as error:
            self._events.put(error)
            if not isinstance(error, Exception):
                raise
