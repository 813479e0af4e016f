"""Content negotiation: the media type that a client prefers (RFC 9110, 12.5.1)."""

from collections.abc import Mapping
from typing import TypeVar

__all__ = ("negotiate",)

T = TypeVar("T")


def negotiate(offered: Mapping[str, T], accept: str) -> T | None:
    """Return the value of the media type that *accept* ranks highest; the first one of equals."""
    qualities = _qualities(accept)
    best: T | None = None
    highest = 0.0
    for media_type, offer in offered.items():
        family = media_type.partition("/")[0]
        # The most specific range that matches is the one that counts.
        quality = next(
            (qualities[each] for each in (media_type, f"{family}/*", "*/*") if each in qualities),
            0.0,
        )
        if quality > highest:
            best, highest = offer, quality
    return best


def _qualities(accept: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in accept.split(","):
        media_range, *parameters = (each.strip().lower() for each in part.split(";"))
        found[media_range] = next(
            (_number(each[2:]) for each in parameters if each.startswith("q=")), 1.0
        )
    return found


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
