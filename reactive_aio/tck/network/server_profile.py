"""What the kit knows about a server: its routes, its credentials and its limits.

Each route does something simple, which `ROUTES` describes; a server may have other names for them.
A law that needs a route that the server does not have is not judged.
"""

from dataclasses import dataclass, field
from typing import Final

ROUTES: Final[dict[str, tuple[str, str]]] = {
    "echo": (
        "tck.echo",
        "request/response: responds with the data it received; also accepts fire-and-forget",
    ),
    "stream": (
        "tck.stream.{n}",
        "request/stream: *n* elements, the texts `0`, `1`, `2` …, then completes",
    ),
    "endless": ("tck.endless", "request/stream: elements of about 1000 bytes, without end"),
    "fail": (
        "tck.fail",
        "request/response and request/stream: fails; a stream first sends one element",
    ),
    "never": ("tck.never", "request/response: does not respond; waits until it is cancelled"),
    "channel": (
        "tck.channel",
        "request/channel: sends back each element it receives, and completes when they complete",
    ),
    "ask": (
        "tck.ask",
        "request/response: sends a request to the kit, by the script in its data (see below)",
    ),
}
"""By name: the default route, and what it does."""


class Routing:
    """How a request names its route."""

    COMPOSITE = "composite"
    PLAIN = "plain"


@dataclass(frozen=True)
class ServerProfile:
    """One server: its routes, its credentials, and how far it may be tested."""

    routes: dict[str, str] = field(
        default_factory=lambda: {name: route for name, (route, _) in ROUTES.items()}
    )
    """By name; a missing or empty route is not offered."""
    routing: str = Routing.COMPOSITE
    user: tuple[str, str] | None = None
    """Name and password that the server accepts."""
    rejected_user: tuple[str, str] | None = None
    """Name and password that the server rejects."""
    largest: int = 17 * 1024 * 1024
    """The largest payload to send."""
    patience: float = 12.0
    """Seconds within which the server should disconnect a silent client."""
    pid: int | None = None
    """The process of the server, if it runs on this machine: to measure its memory."""

    def __post_init__(self) -> None:
        if unknown := self.routes.keys() - ROUTES.keys():
            known = ", ".join(ROUTES)
            raise ValueError(f"unknown route {', '.join(sorted(unknown))}; the routes are {known}")
        if self.routing not in (Routing.COMPOSITE, Routing.PLAIN):
            raise ValueError(f"routing must be composite or plain, not {self.routing!r}")

    def route(self, name: str) -> str:
        return self.routes.get(name, "")
