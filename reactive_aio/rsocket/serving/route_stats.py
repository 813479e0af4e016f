"""What a server counts: requests, streams and elements, by route.

The counters are incremented as requests are served. What changes with each element, such as the
outstanding demand, is computed when it is read, from the streams that are open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..link.driver import Driver
from ..protocol.errors import is_refusal
from ..requesting.stream_adapters import ElementCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStats:
    """The counts of one route: totals since the server was made, and the streams open now."""

    requests: int = 0
    """Requests received, of every interaction model."""
    streams: int = 0
    """Requests that are being answered now."""
    elements: int = 0
    """Elements sent, including single responses."""
    demand: int = 0
    """Elements that clients have requested and not received yet, on open streams."""
    held: int = 0
    """Elements of open streams that wait for the transport."""
    refused: int = 0
    """Requests refused: without authorization, or invalid."""
    failed: int = 0
    """Requests that failed otherwise, by an error of the handler or by their deadline."""
    lost: int = 0
    """Requests without a response that were dropped, since too many were running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStats:
    """The counts of a server, at one moment."""

    connections: int
    """Open connections, including suspended sessions."""
    suspended: int
    """Sessions that wait for another transport."""
    arriving: int
    """Connections in a handshake of TLS or WebSocket, before SETUP, or being authenticated."""
    refused_connections: int
    """Connections refused because too many were open, or the server was closing."""
    displaced_connections: int
    """Connections that gave way to others, since the server was full and they were used least."""
    unread_connections: int
    """Connections that were ended since the client did not read for `Limits.send_timeout`."""
    failed_handshakes: int
    """TLS handshakes that failed."""
    held_bytes: int
    """The bytes that all connections with the same `Limits.budget` hold for their peers: unread
    output, parts of frames and payloads, requests that wait, frames kept for sessions."""
    routes: Mapping[str, RouteStats]
    """By the pattern of the route, once it was requested. The key ``""`` has all requests that no
    route matches: those of the default handler, or refused."""


class RouteCounters(ElementCounter):
    """The totals of one route."""

    __slots__ = ("answered", "failed", "lost", "refused", "requests")

    def __init__(self) -> None:
        super().__init__()
        self.requests: int = 0
        self.answered: int = 0
        """Requests answered at once with one element; not in `requests` and `elements`."""
        self.refused: int = 0
        self.failed: int = 0
        self.lost: int = 0

    def count_error(self, error: BaseException) -> None:
        """Count a request that ends with *error*."""
        if is_refusal(error):
            self.refused += 1
        else:
            self.failed += 1


class Counters:
    """The counters of the routes of one router, made when a route is first requested."""

    __slots__ = ("_by_pattern",)

    def __init__(self) -> None:
        self._by_pattern: dict[str, RouteCounters] = {}

    def of(self, pattern: str) -> RouteCounters:
        """The counters of the route *pattern*."""
        found = self._by_pattern.get(pattern)
        if found is None:
            found = self._by_pattern[pattern] = RouteCounters()
        return found

    def snapshot(self, drivers: Iterable[Driver]) -> dict[str, RouteStats]:
        """The counts of each route, with the open streams of *drivers*."""
        open_streams = _open_streams(drivers)
        return {
            pattern: RouteStats(
                requests=each.requests + each.answered,
                elements=each.elements + each.answered,
                refused=each.refused,
                failed=each.failed,
                lost=each.lost,
                **open_streams.get(id(each), {}),
            )
            for pattern, each in self._by_pattern.items()
        }


def _open_streams(drivers: Iterable[Driver]) -> dict[int, dict[str, int]]:
    """The number of open streams, their demand and the elements they hold, by their counters."""
    found: dict[int, dict[str, int]] = {}
    for driver in drivers:
        by_id = driver.connection.streams.by_id
        for stream_id, sender in driver.streams.senders.items():
            key = id(sender.counters)
            counts = found.setdefault(key, {"streams": 0, "demand": 0, "held": 0})
            counts["streams"] += 1
            counts["held"] += sender.held
            if (stream := by_id.get(stream_id)) is not None:
                counts["demand"] += stream.peer_demand.outstanding + stream.outbound_credit
                counts["held"] += stream.queued_frames
    return found
