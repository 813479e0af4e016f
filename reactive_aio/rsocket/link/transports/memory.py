"""Two ends in one process: what one writes, the other receives in the loop's next iteration."""

from ..driver import Driver
from .buffered import BufferedTransport


class MemoryTransport(BufferedTransport):
    """One end. Pausing the writer bounds what is written and not yet received."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.other: MemoryTransport | None = None
        self.is_closed: bool = False
        self._is_delivery_scheduled = False

    def abort(self) -> None:
        if not self.is_closed:
            self._output.clear()
            self._output_size = 0
            self._is_closing = True
            self.driver.loop_handle.call_soon(self._end)

    def _output_changed(self) -> None:
        if not self._is_delivery_scheduled and not self.is_closed:
            self._is_delivery_scheduled = True
            self.driver.loop_handle.call_soon(self._deliver)

    def _reading_resumed(self) -> None:
        if self.other is not None:
            self.other._output_changed()

    def _deliver(self) -> None:
        self._is_delivery_scheduled = False
        other = self.other
        if self.is_closed or other is None:
            return
        if self._output and other._is_reading and not other.is_closed:
            other.driver.data_received(b"".join(self._take_output()))
            self._output_sent()
        if self._is_closing and (not self._output or other.is_closed):
            self._end()

    def _end(self) -> None:
        """Close both ends; the other end first receives what was written to it."""
        if self.is_closed:
            return
        self.is_closed = self._is_closing = True
        self.driver.connection_lost(None)
        other = self.other
        if other is not None and not other.is_closed:
            other.is_closed = other._is_closing = True
            other.driver.loop_handle.call_soon(other._report_loss)

    def _report_loss(self) -> None:
        self.driver.connection_lost(None)  # the driver may have changed meanwhile


def join(one: Driver, two: Driver) -> tuple[MemoryTransport, MemoryTransport]:
    """Connect two drivers on the same loop."""
    left, right = MemoryTransport(one), MemoryTransport(two)
    left.other, right.other = right, left
    one.attach(left)
    two.attach(right)
    return left, right
