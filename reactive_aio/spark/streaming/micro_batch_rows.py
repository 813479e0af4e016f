"""The rows of one micro-batch after the other, each with the number of its micro-batch."""

from functools import partial
from typing import Any

from ..._core.upstreams.coordinator import Coordinator
from ..._core.upstreams.inner_subscriber import InnerSubscriber
from ...flow import Flow
from ...stage import Downstream
from .micro_batch import MicroBatch

__all__ = ("MicroBatchRows",)

Numbered = tuple[int, Any]


class MicroBatchRows(Coordinator[Numbered]):
    """Requests a micro-batch when a row is requested and all rows before have been processed.

    Spark writes the checkpoint then, so it covers only rows that have been processed.
    """

    def __init__(
        self, downstream: Downstream[Numbered], micro_batches: Flow[MicroBatch[Any]]
    ) -> None:
        super().__init__(downstream)
        self._source = micro_batches
        self._rows: InnerSubscriber[Numbered] | None = None

    def on_start(self) -> None:
        self._micro_batches = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        rows = self._rows
        if rows is None:
            self._request_micro_batch()
        elif (missing := self.demand.outstanding - rows.outstanding) > 0:
            rows.request(missing)

    def on_processed(self) -> None:
        self._request_micro_batch()

    def _request_micro_batch(self) -> None:
        is_requested = self._micro_batches.outstanding > 0
        is_processed = self.processed_count == self.emitted
        if self._rows is None and not is_requested and self.demand and is_processed:
            self._micro_batches.request(1)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._micro_batches:
            for batch in inner.take(1):
                self._rows = self.subscribe_to(batch.rows.map(partial(_numbered, batch.id)))
            self.on_demand()
        else:
            self.emit(inner.take(self.demand.outstanding))
            self._finish(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._micro_batches:
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
            self._request_micro_batch()


def _numbered(batch_id: int, row: Any) -> Numbered:
    return batch_id, row
