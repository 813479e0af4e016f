"""ClientPlaces: how much one client has of what a server offers, who is known by its address."""

from collections.abc import Hashable, Sequence
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final, cast

_PREFIX: Final = 64
"""The bits of an IPv6 address that one client is given: it chooses the others itself."""


def key_of_address(address: Any) -> Hashable | None:
    """Return the IP address of a peer, of IPv6 the network; None if it has none (a Unix socket)."""
    if not isinstance(address, tuple | list) or not address:  # ASGI allows both
        return None
    parts = cast("Sequence[object]", address)
    try:
        found = ip_address(str(parts[0]).partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        return found.ipv4_mapped or ip_network((found, _PREFIX), strict=False)
    return found


class ClientPlaces:
    """Lets each client have at most *most* places; any number if that is None."""

    def __init__(self, most: int | None) -> None:
        self.most: int | None = most
        self._taken: dict[Hashable, int] = {}

    def take(self, key: Hashable | None) -> bool:
        """Take a place for the client *key*; return False if it has no other.

        A client that cannot be told from others, whose key is None, always has one.
        """
        if self.most is None or key is None:
            return True
        taken = self._taken.get(key, 0)
        if taken >= self.most:
            return False
        self._taken[key] = taken + 1
        return True

    def give_back(self, key: Hashable | None) -> None:
        """Give back a place that was taken."""
        if self.most is None or key is None:
            return
        left = self._taken.pop(key) - 1
        if left:
            self._taken[key] = left
