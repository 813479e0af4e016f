"""Requests for one element that are not served yet, since the last ones still cost too much.

Streams send no more than their demand while little output is queued, but a response is one element,
which was requested with the request. So a request is served only while less than `max_unread` bytes
of output wait for the peer.

A request that is cancelled makes room for another, but its handler may clean up for seconds. So a
request is served only while fewer than `max_streams` of such handlers have not ended: at most twice
as many run. The connection is read meanwhile, which keeps both sides alive, until more than
`MAX_UNSERVED` bytes of requests wait as well. Requests that use up the time slice of a turn wait
for the next one in the same way.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..link.driver import Driver
    from ..protocol.connection import Connection
    from .direct_responses import RequestTuple

MAX_UNSERVED: Final = 1024 * 1024
REFUSED_ABOVE: Final = 8 * MAX_UNSERVED
"""For a side that must read on, since it awaits something of the peer itself."""
_OVERHEAD: Final = 256
_FEW_LARGE: Final = 8
NO_ROOM: Final = b"too many requests wait to be served"
STILL_ENDING: Final = b"too many handlers of cancelled requests have not ended"


class UnservedRequests:
    """Those of one connection, in their order."""

    __slots__ = ("_waiting", "size")

    def __init__(self) -> None:
        self._waiting: list[RequestTuple] = []
        self.size: int = 0
        """Their bytes."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return self.size > MAX_UNSERVED

    def hold(self, requests: "Iterable[RequestTuple]") -> list[int]:
        """Hold *requests*; the streams of those for which there is no room."""
        refused: list[int] = []
        for request in requests:
            if self.size > REFUSED_ABOVE:
                refused.append(request[0])
            else:
                self._waiting.append(request)
                self.size += len(request[1]) + len(request[2] or b"") + _OVERHEAD
        return refused

    def take(self, connection: "Connection") -> "list[RequestTuple]":
        """All whose streams are still open; none is held after that."""
        by_id = connection.streams.open.by_id
        waiting, self._waiting, self.size = self._waiting, [], 0
        return [request for request in waiting if request[0] in by_id]


def may_serve(driver: "Driver", size: int = 0) -> bool:
    """Whether a request for one element may be served, after *size* more bytes of responses.

    A few large payloads do not count: small responses overtake them. While the process holds as
    much for its peers as it may, a connection keeps only what its transport needs next.
    """
    limits, output = driver.connection.limits, driver.connection.streams.output
    queued = output.queued_bytes + size
    if driver.ending >= limits.max_streams:
        return False
    if queued <= limits.watermark or limits.budget.is_exceeded:
        return queued <= limits.watermark
    if output.rotation.fragmented_count <= _FEW_LARGE:
        queued -= output.rotation.fragmented_bytes
    return queued <= max(limits.watermark, limits.max_unread)
