"""ClientPlaces: how many connections one client has, who is known by its address."""

from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final, cast

from ..link.driver import Driver

_PREFIX: Final = 64
"""The bits of an IPv6 address that one client is given: it chooses the others itself."""

KeyOf = Callable[[Any], Hashable | None]


def key_of_address(address: Any) -> Hashable | None:
    """Return the IP address of a peer, of IPv6 the network; None if it has none (a Unix socket)."""
    if not isinstance(address, tuple) or not address:
        return None
    parts = cast("tuple[object, ...]", address)
    try:
        found = ip_address(str(parts[0]).partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        return found.ipv4_mapped or ip_network((found, _PREFIX), strict=False)
    return found


class ClientPlaces:
    """Lets each client have at most *most* connections; any number if that is None."""

    def __init__(self, most: int | None, key_of: KeyOf) -> None:
        self._most = most
        self._key_of = key_of
        self._drivers: dict[Hashable, set[Driver]] = {}

    def take(self, driver: Driver) -> bool:
        """Take a place for *driver*; return False if its client has no other."""
        if self._most is None:
            return True
        key = self._key_of(driver.get_extra_info("peername"))
        if key is None:
            return True
        drivers = self._drivers.setdefault(key, set())
        if len(drivers) >= self._most:
            return False
        drivers.add(driver)
        driver.add_close_callback(lambda _: self._give_back(key, driver))
        return True

    def _give_back(self, key: Hashable, driver: Driver) -> None:
        drivers = self._drivers[key]
        drivers.discard(driver)
        if not drivers:
            del self._drivers[key]
