"""Two ends in one process: what one writes, the other receives in the next turn of the loop."""

from typing import Final

from ..driver import Driver

__all__ = ("MemoryTransport", "join")

HIGH: Final = 64 * 1024


class MemoryTransport:
    """One end. What was written and not yet received is bounded by pausing the writer."""

    def __init__(self, driver: Driver) -> None:
        self.driver: Driver = driver
        self.other: MemoryTransport | None = None
        self._written: list[bytes] = []
        self._size = 0
        self._paused = False  # the writer
        self._reading = True
        self._closing = False
        self._planned = False
        self.gone: bool = False

    def rebind(self, driver: Driver) -> None:
        self.driver = driver

    def write(self, data: bytes, /) -> None:
        if self._closing or self.gone:
            return
        self._written.append(data)
        self._size += len(data)
        if self._size >= HIGH and not self._paused:
            self._paused = True
            self.driver.pause_writing()
        self._plan()

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        if self.other is not None:
            self.other._plan()

    def close(self) -> None:
        self._closing = True
        self._plan()

    def abort(self) -> None:
        if not self.gone:
            self._written.clear()
            self._closing = True
            self._size = 0
            self.driver.loop_handle.call_soon(self._end)

    def _plan(self) -> None:
        if not self._planned and not self.gone:
            self._planned = True
            self.driver.loop_handle.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._planned = False
        other = self.other
        if self.gone or other is None:
            return
        if self._written and other._reading and not other.gone:
            data = b"".join(self._written)
            self._written.clear()
            self._size = 0
            other.driver.data_received(data)
            if self._paused:
                self._paused = False
                self.driver.resume_writing()
        if self._closing and (not self._written or other.gone):
            self._end()

    def _end(self) -> None:
        """Both ends are gone; the other first takes what was written to this one."""
        if self.gone:
            return
        self.gone = True
        self.driver.connection_lost(None)
        other = self.other
        if other is not None and not other.gone:
            other.gone = True
            other.driver.loop_handle.call_soon(other._lost)

    def _lost(self) -> None:
        self.driver.connection_lost(None)  # whoever has it by now


def join(one: Driver, two: Driver) -> tuple[MemoryTransport, MemoryTransport]:
    """Connect two drivers on the same loop."""
    left, right = MemoryTransport(one), MemoryTransport(two)
    left.other, right.other = right, left
    one.attach(left)
    two.attach(right)
    return left, right
