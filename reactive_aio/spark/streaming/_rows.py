"""The rows of one micro-batch after the other."""

from functools import partial
from typing import Any

from ..._core.upstreams.coordinator import Coordinator, InnerSubscriber
from ...flow import Flow
from ...stage import Downstream
from .microbatch import MicroBatch

__all__ = ("StreamRows",)

Numbered = tuple[int, Any]


class StreamRows(Coordinator[Numbered]):
    """Asks for a micro-batch when a row is wanted, and all there were have been processed.

    So the checkpoint, which Spark writes then, covers no row that was not.
    """

    def __init__(self, downstream: Downstream[Numbered], batches: Flow[MicroBatch[Any]]) -> None:
        super().__init__(downstream)
        self._source = batches
        self._rows: InnerSubscriber[Numbered] | None = None

    def on_start(self) -> None:
        self._batches = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        rows = self._rows
        if rows is None:
            self._next()
        elif (missing := self.demand.outstanding - rows.outstanding) > 0:
            rows.request(missing)

    def on_processed(self) -> None:
        self._next()

    def _next(self) -> None:
        asked = self._batches.outstanding
        if (
            self._rows is None
            and not asked
            and self.demand
            and self.processed_count == self.emitted
        ):
            self._batches.request(1)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._batches:
            for batch in inner.take(1):
                self._rows = self.subscribe_to(batch.rows.map(partial(_numbered, batch.id)))
            self.on_demand()
        else:
            self.emit(inner.take(self.demand.outstanding))
            self._finish(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._batches:
            self.complete()
        else:
            self.on_elements(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if inner is self._rows:
            self.emit(inner.take(self.demand.outstanding))
        self.fail(error)

    def _finish(self, inner: InnerSubscriber[Any]) -> None:
        if inner.is_done and not inner.elements and not self.is_closed:
            self.release(inner)
            self._rows = None
            self._next()


def _numbered(batch_id: int, row: Any) -> Numbered:
    return batch_id, row
