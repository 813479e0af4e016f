"""The origins of web pages that may connect over WebSocket."""

import re
from collections.abc import Collection
from typing import Final, cast
from urllib.parse import urlsplit

from ...._core.foreign_text import excerpt
from ...._core.hosts import is_address, is_local_name

_ORIGIN: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://[^/?#@\s]+")
_OTHERS: Final = ("*", "null")  # any page; pages without an origin, such as files
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def require_origins(name: str, origins: Collection[str] | None) -> frozenset[str]:
    """The *origins* must be written as browsers send them: others would never match."""
    if isinstance(origins, str):
        raise TypeError(f"{name}: origins must be a list of origins, not one str")
    for each in origins or ():
        origin = cast("object", each)
        if not isinstance(origin, str) or (origin not in _OTHERS and not _is_origin(origin)):
            raise ValueError(
                f"{name}: origins has {origin!r}, which no browser sends; write it as "
                "'https://shop.example' or 'http://localhost:8000', or '*' for all"
            )
    return frozenset(origins or ())


def _is_origin(text: str) -> bool:
    found = _ORIGIN.fullmatch(text)
    if found is None or not text.isascii() or text != text.lower():
        return False
    port = _DEFAULT_PORTS.get(found["scheme"])
    return port is None or not text.endswith(port)


def is_origin_allowed(
    origin: str | None,
    host: str | None,
    origins: frozenset[str],
    *,
    own_name: str = "",
    is_secure: bool = False,
) -> bool:
    """Whether a page of *origin*, as the client has sent it, may connect to *host*.

    A browser lets any page connect to any server, with the cookies of that server and from inside
    the firewall; the server has to check the origin. Programs other than browsers send none.

    A page of the same host may connect if that host is certainly this server: an IP address,
    ``localhost``, the *own_name* at which the server was told to listen, or any name in a secure
    connection, which has proved it by a certificate. Another name may belong to a stranger who has
    let it point to this server after the page was loaded (DNS rebinding).
    """
    if origin is None or "*" in origins or origin in origins:
        return True
    try:
        place = urlsplit(origin).netloc.lower()
        name = urlsplit(f"//{place}").hostname or ""
    except ValueError:  # it is malformed, such as ``http://[``
        return False
    if host is None or not place or place != host.lower():
        return False
    return is_secure or name == own_name.lower() or is_local_name(name) or is_address(name)


def refusal_of(origin: str | None, function: str) -> str:
    """Why pages of *origin* are refused, for people who look at the answer."""
    pages = excerpt(f"{origin}")
    return f"pages of {pages} may not connect; {function}(origins=…) says whose may\n"
