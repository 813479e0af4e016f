"""Which hosts are this machine: who may come in without a token, a certificate or a list."""

from ipaddress import IPv6Address, ip_address


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
