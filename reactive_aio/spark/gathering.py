"""The elements of a flow in parts that are bounded by rows and by bytes."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from ..stage import LoopHandle
from .executors.batch_size import BatchSize
from .executors.output_rows import OutputRows

if TYPE_CHECKING:
    from ..flow import Flow

_PARTS: Final = 8
"""How many parts of a commit a large record batch is cut into, so that a commit is about full."""
_CHUNK: Final = 10_000
"""Rows that are converted to Arrow at a time, at most."""


def cut(batch: Any, rows: int, size: int) -> list[Any]:
    """Return slices of a record batch, of at most *rows* rows and about *size* bytes each."""
    if batch.num_rows <= rows and batch.nbytes <= size:
        return [batch]
    step = max(1, min(rows, batch.num_rows * size // max(1, batch.nbytes)))
    return [batch.slice(start, step) for start in range(0, batch.num_rows, step)]


class Gathering(AbstractAsyncContextManager["Gathering"]):
    """Requests elements of a flow, some at a time: as many as were small and quick before."""

    def __init__(self, name: str, flow: "Flow[Any]", whole: int) -> None:
        """Elements are handed over before the flow fails, wherever *whole* of them are complete."""
        self._loop_handle = LoopHandle(f"{name}()")
        self._flow = flow
        self._whole = whole
        self._requested = 0
        self._output = OutputRows(self._on_rows, self._on_end)
        self._size = BatchSize(min(whole, _CHUNK))
        self._event = anyio.Event()
        self._rows: list[Any] = []
        self._is_ended = False
        self._error: BaseException | None = None

    def _on_rows(self, rows: list[Any]) -> None:
        self._rows = rows
        self._event.set()

    def _on_end(self, error: BaseException | None) -> None:
        self._is_ended, self._error = True, error
        self._event.set()

    def measure(self, rows: int, size: int, seconds: float) -> None:
        """*rows* elements had *size* bytes, and took *seconds*."""
        self._size.measure(rows, size, seconds)

    async def __aenter__(self) -> Self:
        """Subscribe, and request the first element."""
        self._flow.subscribe(self._output)
        self._request()
        return self

    def _request(self) -> None:
        self._event = anyio.Event()
        count = min(self._size.rows, self._whole - self._requested % self._whole)
        self._requested += count
        self._output.fill(count)

    async def next(self, deadline: float) -> list[Any] | None:
        """Return the next elements, and request more; None at the end, and none at *deadline*."""
        with anyio.CancelScope(deadline=deadline):
            await self._event.wait()
        if not self._event.is_set():
            self._output.flush_partial()
        if not self._event.is_set():
            return []
        rows, self._rows = self._rows, []
        if rows and not self._is_ended:
            self._request()
        elif not rows and self._error is not None:
            raise self._error
        return rows or None

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Cancel, and wait for the cleanup; raise its error, or report it beside another one."""
        try:
            await self._output.aclose()
        except Exception as cleanup:
            if error is None:
                raise
            self._loop_handle.report("the cleanup of the flow has failed", cleanup)


class Commits:
    """The record batches that wait for a commit, which has *rows* rows or *size* bytes."""

    def __init__(self, rows: int, size: int) -> None:
        self._most_rows = rows
        self._most_bytes = size
        self._batches: list[Any] = []

    def add(self, batches: list[Any]) -> None:
        """Take the next record batches."""
        for each in batches:
            self._batches += cut(each, self._most_rows, max(1, self._most_bytes // _PARTS))

    @property
    def is_empty(self) -> bool:
        return not any(each.num_rows for each in self._batches)

    def next(self) -> list[Any]:
        """Return the record batches of a full commit; none if there are not enough."""
        rows = size = 0
        for at, batch in enumerate(self._batches):
            if at and size + batch.nbytes > self._most_bytes:
                return self._take(at)
            missing = self._most_rows - rows
            if batch.num_rows > missing:
                self._batches[at : at + 1] = [batch.slice(0, missing), batch.slice(missing)]
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= self._most_rows or size >= self._most_bytes:
                return self._take(at + 1)
        return []

    def _take(self, count: int) -> list[Any]:
        taken, self._batches = self._batches[:count], self._batches[count:]
        return taken

    def rest(self) -> list[Any]:
        """Return all that waits."""
        rest, self._batches = self._batches, []
        return rest
