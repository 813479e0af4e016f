"""Counters of endpoints, for the metrics of an application."""

from dataclasses import dataclass

__all__ = ("Counters",)


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
    """Streams that were cancelled, usually because the client disconnected."""
    elements: int = 0
    """Elements handed to the server."""
    bytes: int = 0
    """Bytes of all bodies, including framing and heartbeats; for sockets, characters."""
    outstanding: int = 0
    """Demand of the open streams: elements requested and not yet handed to the server."""
