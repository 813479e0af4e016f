"""Admission: which connections a server has, from the moment at which they are accepted.

Until the application has accepted a client, its connection is one of few (`arrivals`). Then it has
one of `max_connections` places (`client_places`).
"""

from collections.abc import Callable, Hashable

from ..link.arrivals import Arrivals
from ..link.driver import Driver
from ..link.transports.sockets import peer_address
from .client_places import ClientPlaces, KeyOf, first_of_most


class Admission:
    """The places of one server; *on_full* is called with the limit for which one is refused."""

    def __init__(
        self,
        max_connections: int,
        max_arriving: int,
        max_per_client: int | None,
        client_key: KeyOf,
        on_full: Callable[[str], object],
    ) -> None:
        self.arrivals: Arrivals = Arrivals(max_arriving)
        self.places: ClientPlaces = ClientPlaces(max_connections, max_per_client, client_key)
        self._keys: dict[Driver, Hashable | None] = {}
        """What identifies the client of each connection."""
        self._on_full = on_full

    def arrived(self, driver: Driver) -> None:
        """*driver* has a transport: it has a place among the arrivals, or is aborted."""
        key = self.places.key_at(peer_address(driver.get_extra_info))
        self._keys[driver] = key
        driver.add_close_callback(self._left)
        self.arrivals.arrive(driver, key, driver.loop_handle.time())

    def _left(self, driver: Driver) -> None:
        self.arrivals.leave(driver)
        self._keys.pop(driver, None)

    def set_up(self, driver: Driver) -> str:
        """The SETUP of *driver* has come: why there is no place for it, if it is accepted."""
        self.arrivals.set_up(driver)
        return self.refusal(self._keys.get(driver), driver.loop_handle.time())

    def refusal(self, key: Hashable | None, now: float) -> str:
        """Why there is no place for a client with this *key*; empty if there is one."""
        full = self.places.reached(key, now)
        if full is None:
            return ""
        self._on_full(full.limit)
        return full.reason

    def serve(self, driver: Driver) -> str:
        """Give *driver*, whose client is accepted, a place; why there is none any more."""
        self.arrivals.leave(driver)
        key, now = self._keys.get(driver), driver.loop_handle.time()
        reason = self.refusal(key, now)
        if not reason:
            self.places.take(driver, key, now)
        return reason

    def least_wanted(self, drivers: "list[Driver]") -> Driver | None:
        """Of the client that has most of *drivers*: the first of them."""
        return first_of_most((self._keys.get(each), each) for each in drivers)
