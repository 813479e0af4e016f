"""The run of a flow of synchronous stages: it is iterated on the loop, one batch at a time.

Nothing waits in such a flow, so it needs neither a subscription nor the main thread's help: while
it is iterated, it reads the record batches of the partition by itself. That blocks the loop, on
which nothing else has to happen meanwhile, and takes two thirds of the time.
"""

from collections.abc import Generator
from itertools import chain, islice
from typing import Any, cast

from ..._core.compiler.chain import Chain, PullSource
from ..._core.failures import PLAIN_READER
from ..._core.loop import report
from ...stage import Fluent
from .batch_size import BatchSize
from .input_rows import NAME, InputRows
from .spark_connection import SparkConnection
from .worker_loop import WorkerLoop


def pulled(flow: Fluent[Any], source: InputRows, connection: SparkConnection) -> Chain | None:
    """Return *flow* with a source that is iterated; None if it cannot be."""
    if flow.chain.source is not source.flow.chain.source:
        return None  # an operator with a queue, a timer or several upstreams is between

    def open() -> Any:
        parts = chain.from_iterable(map(source.parts, connection))
        return chain.from_iterable(map(source.convert, parts))

    made = Chain(PullSource(NAME, open, checked=True, holds=flow.chain.source.holds))
    for stage in flow.chain.stages:
        made = made.then(stage)
    return made if made.is_pullable and not made.is_full() else None


class PulledRun:
    """One flow; every method but `chunks` is called on the loop."""

    def __init__(self, flow: Chain, worker: WorkerLoop) -> None:
        self._flow = flow
        self._worker = worker
        self._elements: Generator[Any] | None = None

    async def start(self) -> None:
        """Open the source."""
        self._elements = cast("Generator[Any]", self._flow.run("generator", PLAIN_READER, report))

    def chunks(self, size: BatchSize) -> Generator[list[Any]]:
        """Yield lists of elements, each as long as *size* says. On the main thread."""
        while rows := self._worker.call(self._next, size.rows):
            yield rows

    async def _next(self, count: int) -> list[Any]:
        assert self._elements is not None
        try:
            return list(islice(self._elements, count))
        except Exception as error:
            self._flow.annotate(error)
            raise

    async def aclose(self) -> None:
        """Run the cleanup of the flow; raise its error."""
        if self._elements is not None:
            self._elements.close()
