"""Counters of what endpoints do, to be shown wherever the application shows its own."""

from dataclasses import dataclass

__all__ = ("Tally",)


@dataclass(slots=True)
class Tally:
    """What happened at the endpoints that were given it (``ndjson(flow, tally=tally)``).

    Numbers only, counted by the event loop that serves: read them at any time.
    """

    open: int = 0
    """Streams that run now."""
    opened: int = 0
    completed: int = 0
    failed: int = 0
    """Streams that failed, those that were refused among them."""
    cancelled: int = 0
    """Streams that were cancelled, mostly because their client left."""
    elements: int = 0
    """Elements handed to the server."""
    bytes: int = 0
    """What they were, with everything around them; of sockets, characters."""
    outstanding: int = 0
    """Demand of the open streams: elements asked for that have not been handed over yet."""
