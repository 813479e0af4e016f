"""What a server must offer to be judged: a few routes, each of which does something simple.

What it does not offer is not judged. `OFFERS` says what each route has to do; names are ours, and
can be changed by whoever has others.
"""

from dataclasses import dataclass, field
from typing import Final

__all__ = ("OFFERS", "Offer", "Routing")

OFFERS: Final[dict[str, tuple[str, str]]] = {
    "echo": (
        "tck.echo",
        "request/response: answers with the data it got; as a fire-and-forget, takes it",
    ),
    "stream": (
        "tck.stream.{n}",
        "request/stream: *n* elements, the texts `0`, `1`, `2` …, and completes",
    ),
    "endless": ("tck.endless", "request/stream: elements of about 1000 bytes, without end"),
    "fail": (
        "tck.fail",
        "request/response and request/stream: fails; a stream first sends one element",
    ),
    "never": ("tck.never", "request/response: is not answered; waits until it is cancelled"),
    "channel": (
        "tck.channel",
        "request/channel: sends back each element it gets, and completes when they complete",
    ),
    "ask": (
        "tck.ask",
        "request/response: asks the kit for something, by the script in its data (see below)",
    ),
}
"""By name: the route, and what it has to do."""


class Routing:
    """How a request names its route."""

    COMPOSITE = "composite"
    PLAIN = "plain"


@dataclass(frozen=True)
class Offer:
    """What one server offers, and how much may be asked of it."""

    routes: dict[str, str] = field(
        default_factory=lambda: {name: route for name, (route, _) in OFFERS.items()}
    )
    """By name; what is missing or empty is not offered."""
    routing: str = Routing.COMPOSITE
    user: tuple[str, str] | None = None
    """Name and password that the server lets in."""
    refused: tuple[str, str] | None = None
    """Name and password that it does not."""
    largest: int = 17 * 1024 * 1024
    """The largest payload to try."""
    patience: float = 12.0
    """Seconds within which a server should let go of who says nothing."""
    pid: int | None = None
    """The process of the server, if it is on this machine: to see what memory it takes."""

    def __post_init__(self) -> None:
        if unknown := self.routes.keys() - OFFERS.keys():
            known = ", ".join(OFFERS)
            raise ValueError(f"there is no {', '.join(sorted(unknown))} to offer; there is {known}")
        if self.routing not in (Routing.COMPOSITE, Routing.PLAIN):
            raise ValueError(f"routing must be composite or plain, not {self.routing!r}")

    def route(self, name: str) -> str:
        return self.routes.get(name, "")
