"""Turns: how busy connections of one server share its event loop.

A turn of a connection is short, but a loop that lets five hundred busy connections have one each
has everybody else wait for all of them. So in one iteration of the loop, connections whose turns
take long have `ROUND` seconds of the processor together. The others of them wait for the next
iteration, in their order, and are not read meanwhile. Connections that do little go before them,
and wait only if the iteration has taken several times as long, since many have become busy at the
same time: what has arrived for them then is read in their turn.
"""

from time import thread_time
from typing import TYPE_CHECKING, Final, Protocol

from ..._core.loop import LoopHandle

if TYPE_CHECKING:
    from collections.abc import Callable

ROUND: Final = 0.01
MOST: Final = 3 * ROUND
HEAVY: Final = 0.0005
"""A connection whose last turn took longer than this is one of the busy ones."""


class TakesTurns(Protocol):
    """What drives a connection."""

    loop_handle: LoopHandle
    is_heavy: bool
    """Whether its last turn took long."""

    unread: bytes
    """What has arrived while others had their turns."""

    def read(self, data: bytes) -> object:
        """Take in *data*, and do what it asks for."""
        ...

    def take_turn(self) -> object: ...

    def wait_for_turn(self) -> object:
        """Read nothing until the turn."""
        ...


class Turns:
    """Runs the turns of connections, now or in a later iteration of the loop."""

    __slots__ = ("_first", "_is_scheduled", "_spent", "_waiting", "clock")

    def __init__(self) -> None:
        self.clock: Callable[[], float] = thread_time
        self._first: dict[TakesTurns, None] = {}
        """Those that do little, and wait."""
        self._waiting: dict[TakesTurns, None] = {}
        self._spent = 0.0
        self._is_scheduled = False

    def read(self, driver: TakesTurns, data: bytes) -> None:
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

    def run(self, driver: TakesTurns) -> None:
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

    def is_waiting(self, driver: TakesTurns) -> bool:
        """Whether *driver* waits for its turn."""
        return driver in self._waiting or driver in self._first

    def _run(self, driver: TakesTurns) -> None:
        began = self.clock()
        driver.take_turn()
        took = self.clock() - began
        if took >= HEAVY:
            driver.is_heavy = True
            self._spent += took
            self._schedule(driver)
        elif driver.is_heavy:
            driver.is_heavy = False

    def _schedule(self, driver: TakesTurns) -> None:
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
