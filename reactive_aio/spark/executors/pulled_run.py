"""The run of a flow of synchronous stages: iterated on the main thread, without the event loop.

Nothing waits in such a flow, so nothing is gained by a second thread, and every batch would be
handed over twice.
"""

from collections.abc import Generator
from contextlib import closing
from itertools import chain, islice
from typing import Any, cast

from ..._core.compiler.chain import Chain, PullSource
from ..._core.loop import report
from .batch_size import BatchSize
from .input_rows import NAME, InputRows
from .partition_input import PartitionInput


def pulled(flow: Chain, source: InputRows, batches: PartitionInput) -> Chain | None:
    """Return *flow* with a source that is iterated; None if it needs the event loop."""
    if flow.source is not source.flow.chain.source:
        return None  # an operator with a queue, a timer or several upstreams is between

    def open() -> Any:
        parts = chain.from_iterable(map(source.parts, batches))
        return chain.from_iterable(map(source.convert, parts))

    made = Chain(PullSource(NAME, open, checked=True, holds=flow.source.holds))
    for stage in flow.stages:
        made = made.then(stage)
    return made if made.is_pullable and not made.is_full() else None


def pulled_chunks(flow: Chain, size: BatchSize) -> Generator[list[Any]]:
    """Yield lists of elements, each as long as *size* says."""
    with closing(cast("Generator[Any]", flow.run("generator", None, report))) as elements:
        while True:
            try:
                rows = list(islice(elements, size.rows))
            except Exception as error:
                flow.annotate(error)
                raise
            if not rows:
                return
            yield rows
