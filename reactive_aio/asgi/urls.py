"""The check of the URL of a server: a mistake must not look like a lost connection."""

from collections.abc import Sequence
from typing import cast
from urllib.parse import urlsplit

from .._core.foreign_text import why_unreadable, without_secrets


def require_url(what: str, url: str, schemes: Sequence[str]) -> str:
    """Return the scheme of *url*, which is one of *schemes*; it needs a host and a valid port."""
    if not isinstance(cast("object", url), str):
        raise TypeError(f"{what}: the URL must be a str, not {type(url).__name__}")
    shown = without_secrets(url)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        reason = why_unreadable(url, error)
        raise ValueError(f"{what}: the URL {shown!r} is not valid: {reason}") from None
    if parts.scheme not in schemes:
        known = " or ".join(f"{each}://" for each in schemes)
        raise ValueError(f"{what}: the URL must begin with {known}, not {shown!r}")
    if not host:
        raise ValueError(f"{what}: the URL must have a host, not {shown!r}")
    return parts.scheme
