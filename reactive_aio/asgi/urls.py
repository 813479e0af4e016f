"""The check of the URL of a server: a mistake must not look like a lost connection."""

from collections.abc import Sequence
from typing import cast
from urllib.parse import urlsplit


def require_url(what: str, url: str, schemes: Sequence[str]) -> str:
    """Return the scheme of *url*, which is one of *schemes*; it needs a host and a valid port."""
    if not isinstance(cast("object", url), str):
        raise TypeError(f"{what}: the URL must be a str, not {type(url).__name__}")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{what}: the URL {url!r} is not valid: {error}") from error
    if parts.scheme not in schemes:
        known = " or ".join(f"{each}://" for each in schemes)
        raise ValueError(f"{what}: the URL must begin with {known}, not {url!r}")
    if not host:
        raise ValueError(f"{what}: the URL must have a host, not {url!r}")
    return parts.scheme
