"""The keyword arguments that `sse`, `ndjson` and `stream` share, and their validated form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypedDict

from .._core.arguments import require_int
from .._core.duration import Duration, to_seconds
from .counters import Counters
from .problem import ErrorPolicy
from .responses import Headers, encode_headers

__all__ = ("ResponseConfig", "ResponseOptions", "configure")

_HEADERS: Final = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # otherwise nginx buffers the response
}


class ResponseOptions(TypedDict, total=False):
    """Keyword arguments of `sse`, `ndjson` and `stream`; each has a default."""

    prefetch: int
    """The number of elements requested ahead of the client (64)."""
    heartbeat: Duration | None
    """Send a heartbeat after so many seconds without data (15); None sends none."""
    max_start_delay: Duration
    """Start the response with the first element, but after so many seconds at the latest (1)."""
    count_parameter: str | None
    """The query parameter that limits the elements of a response; none by default."""
    max_streams: int
    """The number of clients served at a time (1000); further ones receive 503."""
    expose_errors: bool
    """Send clients the text of all errors, not only of `Refused` (False)."""
    on_error: Callable[[BaseException], object] | None
    """Receives errors that are not meant for clients; default: the loop's exception handler."""
    headers: Mapping[str, str] | None
    """Additional headers of the response."""
    counters: Counters | None
    """Counts streams, elements, bytes and demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseConfig:
    """Validated `ResponseOptions`."""

    prefetch: int
    heartbeat: float | None
    max_start_delay: float
    count_parameter: str | None
    max_streams: int
    errors: ErrorPolicy
    headers: Headers
    counters: Counters


def configure(
    name: str,
    *,
    prefetch: int = 64,
    heartbeat: Duration | None = 15.0,
    max_start_delay: Duration = 1.0,
    count_parameter: str | None = None,
    max_streams: int = 1000,
    expose_errors: bool = False,
    on_error: Callable[[BaseException], object] | None = None,
    headers: Mapping[str, str] | None = None,
    counters: Counters | None = None,
) -> ResponseConfig:
    """Validate the options of the function *name*."""
    additional = {key.lower(): each for key, each in (headers or {}).items()}
    return ResponseConfig(
        prefetch=require_int(name, "prefetch", prefetch, least=1),
        heartbeat=None if heartbeat is None else to_seconds(heartbeat, f"{name}: heartbeat"),
        max_start_delay=to_seconds(max_start_delay, f"{name}: max_start_delay", zero=True),
        count_parameter=count_parameter,
        max_streams=require_int(name, "max_streams", max_streams, least=1),
        errors=ErrorPolicy(expose_errors, on_error),
        headers=encode_headers(_HEADERS | additional),
        counters=Counters() if counters is None else counters,
    )
