"""ClientPlaces: the connections that a server has, and which of them gives way to a new one.

Until the application has accepted a client, its connection is one of few (`arrivals`). Then it has
one of `max_connections` places.

A full server that only refused could be shut out by whoever comes first: connections cost a client
nothing, and it may keep them for ever. So the connection that is used least gives way: one without
an open request for `IDLE_AFTER` seconds, of the client that has the most. If all are in use, a
client that has more than twice as many as the new one gives one up as well. Where all have the
address of a proxy, nobody's request is ended for another.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from ..._core.hosts import client_of
from ..._core.loop import report
from ..link.arrivals import Arrivals
from ..link.by_client import ByClient
from ..link.driver import Driver
from ..link.transports.sockets import UnixPeer, peer_address
from ..protocol.connection import Phase
from ..protocol.frames import ErrorCode

IDLE_AFTER: Final = 10.0
"""Seconds without an open request, after which a connection gives way if the server is full."""
TOO_MANY: Final = "the server has too many connections; try again later"
_CLIENT_HAS_ALL: Final = (
    "this client has too many connections (max_per_client={}): close one, or send more over it"
)
GAVE_WAY: Final = "the server has too many connections, and this one was used least"
_LOOK_AGAIN: Final = 0.1
"""How long the server stays full, once nobody was found who gives way."""
_LIST_IS_OLD: Final = 1.0

KeyOf = Callable[[Any], Hashable | None]


def key_of_address(address: Any) -> Hashable | None:
    """Return the IP address of a peer, of IPv6 the network, or its user at a Unix socket."""
    if isinstance(address, UnixPeer):
        return ("uid", address.uid)
    if not isinstance(address, tuple | list) or not address:  # a list is allowed in ASGI
        return None
    return client_of(str(cast("Sequence[object]", address)[0]))


class Full(NamedTuple):
    """The limit that a connection more would exceed."""

    limit: str
    reason: str
    """What its client is told."""


@dataclass(slots=True, eq=False)
class Place:
    """What is known of one connection that is served."""

    driver: Driver
    key: Hashable | None
    idle_since: float
    last_ids: tuple[int, int]
    """The last stream ids of both sides when `idle_since` was set."""

    def look(self, now: float) -> bool:
        """Whether the connection has been idle for long enough to give way."""
        driver = self.driver
        streams = driver.connection.streams
        ids = (streams.highest_remote_id, streams.next)
        if driver.is_working or ids != self.last_ids:
            self.idle_since, self.last_ids = now, ids
            return False
        return now - self.idle_since >= IDLE_AFTER


class ClientPlaces:
    """Lets the server have *most* connections, and each client *most_per_client* of them.

    Suspended sessions do not count, so that their clients can resume them. *on_full* is called with
    the limit for which a connection is refused.
    """

    def __init__(
        self,
        most: int,
        most_arriving: int,
        most_per_client: int | None,
        key_of: KeyOf,
        on_full: Callable[[str], object],
    ) -> None:
        self.arrivals: Arrivals = Arrivals(most_arriving)
        self.most: int = most
        self.gave_way: int = 0
        """How many connections were ended for others."""
        self._most_per_client = most_per_client
        self._key_of = key_of
        self._on_full = on_full
        self._keys: dict[Driver, Hashable | None] = {}
        """What identifies the client of each connection."""
        self._places: dict[Driver, Place] = {}
        self._by_client: ByClient[Driver, Place] = ByClient()
        self.waiting_bytes: int = 0
        """What the suspended sessions hold."""
        self.waiting: dict[Driver, int] = {}
        """The suspended sessions, with what they held when they were suspended."""
        self._waiting_by_client: ByClient[Driver, None] = ByClient()
        self._idle: deque[Place] = deque()
        self._listed_at = float("-inf")

    def key_at(self, address: object) -> Hashable | None:
        """What identifies the client at *address*."""
        try:
            return self._key_of(address)
        except Exception as error:
            report("client_key failed: the client is taken for one without an address", error)
            return None

    def reached(self, key: Hashable | None, now: float) -> Full | None:
        """The limit because of which a client with this key may have no connection more, if any."""
        most = self._most_per_client
        if most is not None and key is not None and len(self._by_client.of(key)) >= most:
            return Full(f"max_per_client={most}", _CLIENT_HAS_ALL.format(most))
        has_room = not self._is_full() or self._least_used(key, now) is not None
        return None if has_room else Full(f"max_connections={self.most}", TOO_MANY)

    def refusal(self, key: Hashable | None, now: float) -> str:
        """Why there is no place for a client with this *key*; empty if there is one."""
        full = self.reached(key, now)
        if full is None:
            return ""
        self._on_full(full.limit)
        return full.reason

    # -- the life of a connection ------------------------------------------------------------------
    def arrived(self, driver: Driver) -> None:
        """*driver* has a transport: it has a place among the arrivals, or is aborted."""
        key = self.key_at(peer_address(driver.get_extra_info))
        self._keys[driver] = key
        driver.add_close_callback(self._left)
        self.arrivals.arrive(driver.ending, key, driver.loop_handle.time())

    def set_up(self, driver: Driver) -> str:
        """The SETUP of *driver* has come: why there is no place for it, if it is accepted."""
        self.arrivals.set_up(driver.ending)
        return self.refusal(self._keys.get(driver), driver.loop_handle.time())

    def serve(self, driver: Driver) -> str:
        """Give *driver*, whose client is accepted, a place; why there is none any more."""
        self.arrivals.leave(driver.ending)
        key, now = self._keys.get(driver), driver.loop_handle.time()
        if reason := self.refusal(key, now):
            return reason
        if self._is_full() and (place := self._least_used(key, now)) is not None:
            self.gave_way += 1
            self._leave(place.driver)
            place.driver.ending.give_up(ErrorCode.CONNECTION_ERROR, GAVE_WAY)
        place = Place(driver, key, now, (0, 0))
        place.look(now)
        self._places[driver] = place
        self._by_client.add(key, driver, place)
        return ""

    def running(self, driver: Driver) -> int:
        """How many handlers run for the client of *driver*, over all of its connections."""
        place = self._places.get(driver)
        if place is None or place.key is None:
            return 0
        return sum(each.running for each in self._by_client.of(place.key))

    def _left(self, driver: Driver) -> None:
        self.arrivals.leave(driver.ending)
        self._leave(driver)
        self._keys.pop(driver, None)

    def _leave(self, driver: Driver) -> None:
        """*driver* has no place any more, and is no session that waits."""
        self.resumed(driver)
        place = self._places.pop(driver, None)
        if place is not None:
            self._by_client.remove(place.key, driver)

    def _is_full(self) -> bool:
        return len(self._places) - len(self.waiting) >= self.most

    # -- sessions that wait for their clients ------------------------------------------------------
    def suspended(self, driver: Driver) -> None:
        """The session of *driver* waits for its client: it needs no place."""
        self.waiting[driver] = size = driver.intake.counted
        self.waiting_bytes += size
        self._waiting_by_client.add(self._keys.get(driver), driver, None)

    def resumed(self, driver: Driver) -> None:
        """The session of *driver*, if it waited, waits no more."""
        if (size := self.waiting.pop(driver, None)) is not None:
            self.waiting_bytes -= size
            self._waiting_by_client.remove(self._keys.get(driver), driver)

    def least_wanted(self) -> Driver | None:
        """Of the sessions that wait: the one that has waited longest, of the client with the most.

        It is to end, and counts no more.
        """
        crowd = self._waiting_by_client.of(self._waiting_by_client.largest)
        driver = next(iter(crowd), None)
        if driver is not None:
            self.resumed(driver)
        return driver

    # -- who gives way -----------------------------------------------------------------------------
    def _least_used(self, key: Hashable | None, now: float) -> Place | None:
        """The place that a client with this key may have; None if all are in use as they should."""
        if now - self._listed_at >= (_LIST_IS_OLD if self._idle else _LOOK_AGAIN):
            self._list_idle(now)
        while self._idle:
            place = self._idle[0]
            if place.driver in self._places and place.look(now):
                return place
            self._idle.popleft()
        largest = self._by_client.largest
        crowd = self._by_client.of(largest)
        own = len(self._by_client.of(key)) + 1
        if None in (key, largest) or len(crowd) <= 2 * own:
            return None
        return next(reversed(crowd.values()))

    def _list_idle(self, now: float) -> None:
        """List those that give way, first those of the client with the most connections.

        All are looked at, but not for each client that wants a place.
        """
        idle = [
            place
            for driver, place in self._places.items()
            if driver.connection.phase is Phase.OPEN and place.look(now)
        ]
        idle.sort(key=lambda each: (-len(self._by_client.of(each.key)), each.idle_since))
        self._idle, self._listed_at = deque(idle), now
