"""Turns: how busy connections of one server share its event loop.

A turn of a connection is short, but a loop that lets five hundred busy connections have one each
has everybody else wait for all of them. So in one iteration of the loop, connections whose turns
take long have `ROUND` seconds of the processor together. The others of them wait for the next
iteration, in their order, and are not read meanwhile. Connections that do little go before them,
and wait only if the iteration has taken several times as long, since many have become busy at the
same time: what has arrived for them then is read in their turn.
"""

from time import thread_time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

ROUND: Final = 0.01
MOST: Final = 3 * ROUND
HEAVY: Final = 0.0005
"""A connection whose last turn took longer than this is one of the busy ones."""


class Turns:
    """Runs the turns of connections, now or in a later iteration of the loop."""

    __slots__ = ("_first", "_is_scheduled", "_spent", "_waiting", "clock")

    def __init__(self) -> None:
        self.clock: Callable[[], float] = thread_time
        self._first: dict[Driver, None] = {}
        """Those that do little, and wait."""
        self._waiting: dict[Driver, None] = {}
        self._spent = 0.0
        self._is_scheduled = False

    def read(self, driver: "Driver", data: bytes) -> None:
        """Let *driver* read *data*, now or in its turn: what peers ask for may be most of it."""
        spent = self._spent
        if spent >= MOST or driver.unread:
            driver.unread += data
            (self._waiting if driver.is_heavy else self._first)[driver] = None
            self._schedule(driver)
            driver.wait_for_turn()
            return
        began = self.clock()
        driver.read(data)
        took = self.clock() - began
        if took >= HEAVY:
            self._spent = spent + took  # with the turn that it may have been
            driver.is_heavy = True
            self._schedule(driver)

    def run(self, driver: "Driver") -> None:
        """Run a turn of *driver*, or let it wait."""
        if driver.is_heavy:
            queue, must_wait = self._waiting, bool(self._waiting) or self._spent >= ROUND
        else:
            queue, must_wait = self._first, self._spent >= MOST
        if must_wait:
            queue[driver] = None
            self._schedule(driver)
            driver.wait_for_turn()
        else:
            self._run(driver)

    def is_waiting(self, driver: "Driver") -> bool:
        """Whether *driver* waits for its turn."""
        return driver in self._waiting or driver in self._first

    def _run(self, driver: "Driver") -> None:
        began = self.clock()
        driver.take_turn()
        took = self.clock() - began
        if took >= HEAVY:
            driver.is_heavy = True
            self._spent += took
            self._schedule(driver)
        elif driver.is_heavy:
            driver.is_heavy = False

    def _schedule(self, driver: "Driver") -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            driver.loop_handle.event_loop.call_soon(self._next)

    def _next(self) -> None:
        """The next iteration of the loop."""
        self._is_scheduled, self._spent = False, 0.0
        for queue in (self._first, self._waiting):
            while queue and self._spent < ROUND:
                driver = next(iter(queue))
                del queue[driver]
                driver.loop_handle.run(self._run, driver)
        for driver in self._first or self._waiting:
            self._schedule(driver)
            break
