"""Which hosts are this machine, and which one a peer is: who may come in, and how often."""

from collections.abc import Hashable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

_PREFIX: Final = 64
"""The bits of an IPv6 address that one client is given: it chooses the others itself."""


def is_address(host: str) -> bool:
    """Whether *host* is an IP address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_local_name(name: str) -> bool:
    """Whether *name* is this machine for browsers, which look it up in no DNS."""
    return name == "localhost" or name.endswith(".localhost")


def is_loopback(host: str) -> bool:
    """Whether programs of this machine alone can connect to *host*, or are there."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def client_of(host: str) -> Hashable | None:
    """Return what tells clients apart by their address: of IPv6 the network; None for a name."""
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        return found.ipv4_mapped or ip_network((found, _PREFIX), strict=False)
    return found
