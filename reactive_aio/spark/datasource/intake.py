"""The flow's end of what Spark writes: one piece at a time, when there is demand."""

from typing import TYPE_CHECKING, Any

from ..._core.demand import Demand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...stage import Downstream

__all__ = ("Intake",)


class Intake:
    """One subscription. On the loop's thread, as all of this."""

    def __init__(
        self,
        downstream: "Downstream[Any]",
        *,
        told: "Callable[[], object]",
        gone: "Callable[[], object]",
    ) -> None:
        self._downstream: Downstream[Any] | None = downstream
        self._told = told
        self._gone = gone
        self._demand = Demand()
        self._rows: Iterator[Any] = iter(())
        self._left = 0
        self._clear = True  # what was handed over has been processed

    @property
    def open(self) -> bool:
        """Whether anything is wanted still."""
        return self._downstream is not None

    @property
    def hungry(self) -> bool:
        """Whether all there was has been processed, and more is asked for."""
        return not self._left and self._clear and bool(self._demand)

    # -- what the connections do ------------------------------------------------------------------
    def put(self, rows: "Iterator[Any]", count: int) -> None:
        """Take a piece; only while it is `hungry`."""
        self._rows, self._left = rows, count
        self._go()

    def end(self, error: BaseException | None = None) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return
        self._gone()
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    # -- what the island tells --------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        self._demand.add(n)
        self._clear = True
        self._go()

    def processed(self) -> None:
        self._clear = True
        self._go()

    def cancel(self) -> None:
        if self._downstream is not None:
            self._downstream = None
            self._rows, self._left = iter(()), 0
            self._gone()

    def _go(self) -> None:
        downstream = self._downstream
        if downstream is None or not self._clear or not self._demand:
            return
        if self._left:
            count = self._demand.take(self._left)
            self._left -= count
            self._clear = False
            downstream.push_from(self._rows, count)
        else:
            self._told()
