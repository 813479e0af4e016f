"""The check of the origin of web pages that connect over WebSocket."""

from collections.abc import Iterable
from urllib.parse import urlsplit


def is_origin_allowed(origin: str | None, host: str | None, origins: Iterable[str]) -> bool:
    """Whether a page of *origin* may connect to *host*.

    A browser lets any page connect to any server, with the cookies of that server and from inside
    the firewall; the server has to check the origin. Programs other than browsers send none.
    """
    if origin is None or "*" in (known := {*origins}) or origin in known:
        return True
    return host is not None and urlsplit(origin).netloc.lower() == host.lower() != ""
