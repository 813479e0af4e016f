"""The rows of one micro-batch after the other."""

from functools import partial
from typing import Any

from ..._core.coordinator import Arm, Coordinator
from ...flow import Flow
from ...stage import Inlet
from .microbatch import MicroBatch

__all__ = ("StreamRows",)

Numbered = tuple[int, Any]


class StreamRows(Coordinator[Numbered]):
    """Asks for a micro-batch when a row is wanted, and all there were have been processed.

    So the checkpoint, which Spark writes then, covers no row that was not.
    """

    def __init__(self, inlet: Inlet[Numbered], batches: Flow[MicroBatch[Any]]) -> None:
        super().__init__(inlet)
        self._source = batches
        self._rows: Arm[Numbered] | None = None

    def started(self) -> None:
        self._batches = self.arm(self._source)

    def demanded(self) -> None:
        rows = self._rows
        if rows is None:
            self._next()
        elif (missing := self.demand.outstanding - rows.outstanding) > 0:
            rows.request(missing)

    def consumed(self) -> None:
        self._next()

    def _next(self) -> None:
        asked = self._batches.outstanding
        if self._rows is None and not asked and self.demand and self.settled == self.handed:
            self._batches.request(1)

    def arrived(self, arm: Arm[Any]) -> None:
        if arm is self._batches:
            for batch in arm.take(1):
                self._rows = self.arm(batch.rows.map(partial(_numbered, batch.id)))
            self.demanded()
        else:
            self.emit(arm.take(self.demand.outstanding))
            self._finish(arm)

    def completed(self, arm: Arm[Any]) -> None:
        if arm is self._batches:
            self.complete()
        else:
            self.arrived(arm)

    def failed(self, arm: Arm[Any], error: BaseException) -> None:
        if arm is self._rows:
            self.emit(arm.take(self.demand.outstanding))
        self.fail(error)

    def _finish(self, arm: Arm[Any]) -> None:
        if arm.ended and not arm.elements and not self.closed:
            self.drop(arm)
            self._rows = None
            self._next()


def _numbered(batch_id: int, row: Any) -> Numbered:
    return batch_id, row
