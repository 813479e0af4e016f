"""The origins of web pages that may connect over WebSocket."""

import re
from collections.abc import Collection
from typing import Final, cast
from urllib.parse import urlsplit

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


def is_origin_allowed(origin: str | None, host: str | None, origins: frozenset[str]) -> bool:
    """Whether a page of *origin*, as the client has sent it, may connect to *host*.

    A browser lets any page connect to any server, with the cookies of that server and from inside
    the firewall; the server has to check the origin. Programs other than browsers send none.
    """
    if origin is None or "*" in origins or origin in origins:
        return True
    try:
        place = urlsplit(origin).netloc.lower()
    except ValueError:  # it is malformed, such as ``http://[``
        return False
    return host is not None and place == host.lower() != ""
