"""The options that `sse`, `ndjson` and `stream` share, their validated form, and counters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypedDict

from .._core.arguments import Duration, require_int, require_known_options, to_seconds
from .http import Headers, encode_headers
from .places import ClientKey, Places, address_of_client
from .problem import ErrorPolicy, error_policy

_HEADERS: Final = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # otherwise nginx buffers the response
}


SEND_TIMEOUT: Final = 15.0
"""The seconds for which a client may not read before it loses its place, by default."""


@dataclass(slots=True)
class Counters:
    """Counts the streams of the endpoints that receive it (``ndjson(flow, counters=counters)``).

    The event loop that serves updates the numbers; they can be read at any time.
    """

    open: int = 0
    """Streams that are running."""
    opened: int = 0
    completed: int = 0
    failed: int = 0
    """Streams that failed, including those that were refused."""
    cancelled: int = 0
    """Streams that were cancelled, usually because the client disconnected or did not read."""
    elements: int = 0
    """Elements handed to the server."""
    bytes: int = 0
    """Bytes of all bodies, including framing and heartbeats; for sockets, characters."""
    outstanding: int = 0
    """Demand of the open streams: elements requested and not yet handed to the server."""


class ResponseOptions(TypedDict, total=False):
    """Keyword arguments of `sse`, `ndjson` and `stream`; each has a default.

    - prefetch: the number of elements requested ahead of the client (64).
    - heartbeat: send a heartbeat after so many seconds without data (15); None sends none.
    - max_start_delay: start the response with the first element, but after so many seconds at the
      latest (1); None waits for the first element, so that every error before it sets the status.
    - count_parameter: the query parameter that limits the elements of a response; none by default.
    - send_timeout: a client that does not take what is sent to it within so many seconds (15) loses
      its place: its flow is cancelled, and its connection is closed; None waits for ever.
    - max_streams: the number of streams that the endpoint serves at a time (1000); further requests
      receive 503. It does not limit a route whose function returns a new endpoint for each request:
      `AppStreams` does.
    - max_per_client: how many of these one client may have, by its address; further requests
      receive 429. No limit by default, since all clients behind a proxy have its address.
    - client_key: tells clients apart: a function of the `HttpRequest`; by default by their IP
      address, of IPv6 by the network. None does not limit a client.
    - expose_errors: send clients the text of all errors, not only of `Refused` (False).
    - on_error: receives errors that are not meant for clients; default: the loop's exception
      handler.
    - headers: additional headers of the response.
    - counters: counts streams, elements, bytes and demand.
    """

    prefetch: int
    heartbeat: Duration | None
    max_start_delay: Duration | None
    count_parameter: str | None
    send_timeout: Duration | None
    max_streams: int
    max_per_client: int | None
    client_key: ClientKey
    expose_errors: bool
    on_error: Callable[[BaseException], object] | None
    headers: Mapping[str, str] | None
    counters: Counters | None


class ResponseConfig:
    """The validated `ResponseOptions` of the function *name*."""

    def __init__(
        self,
        name: str,
        *,
        prefetch: int = 64,
        heartbeat: Duration | None = 15.0,
        max_start_delay: Duration | None = 1.0,
        count_parameter: str | None = None,
        send_timeout: Duration | None = SEND_TIMEOUT,
        max_streams: int = 1000,
        max_per_client: int | None = None,
        client_key: ClientKey = address_of_client,
        expose_errors: bool = False,
        on_error: Callable[[BaseException], object] | None = None,
        headers: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> None:
        additional = {key.lower(): each for key, each in (headers or {}).items()}
        self.prefetch: int = require_int(name, "prefetch", prefetch, least=1)
        self.heartbeat: float | None = (
            None if heartbeat is None else to_seconds(heartbeat, f"{name}: heartbeat")
        )
        self.max_start_delay: float | None = (
            None
            if max_start_delay is None
            else to_seconds(max_start_delay, f"{name}: max_start_delay", zero=True)
        )
        self.count_parameter: str | None = count_parameter
        self.send_timeout: float | None = send_timeout_of(name, send_timeout)
        self.places: Places = Places(name, "streams", max_streams, max_per_client, client_key)
        self.errors: ErrorPolicy = error_policy(name, expose_errors, on_error)
        self.headers: Headers = encode_headers(_HEADERS | additional)
        self.counters: Counters = Counters() if counters is None else counters


def send_timeout_of(name: str, given: Duration | None) -> float | None:
    """Validate the option *send_timeout* of the function *name*."""
    return None if given is None else to_seconds(given, f"{name}: send_timeout")


def response_config(name: str, options: ResponseOptions, *own: str) -> ResponseConfig:
    """Validate *options* of the function *name*, whose *own* ones are validated by itself."""
    require_known_options(name, options, (*own, *ResponseOptions.__annotations__))
    return ResponseConfig(name, **options)
