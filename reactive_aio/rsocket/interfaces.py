"""Who a driver works with: transports, those who get and send elements, who serves the peer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .protocol.errors import StreamFailed
from .protocol.events import Elements, RequestReceived

if TYPE_CHECKING:
    from .driver import Driver
    from .protocol.frames import Resume, Setup

__all__ = ("BatchSender", "Rebind", "Responder", "StreamReceiver", "StreamSender", "Transport")


class Transport(Protocol):
    """What moves the bytes. It tells the driver `received`, `pause_writing` … and `lost`, once."""

    def write(self, data: bytes, /) -> object:
        """Send *data*; never blocks."""
        ...

    def pause_reading(self) -> object: ...
    def resume_reading(self) -> object: ...

    def close(self) -> object:
        """Send what was written, then end."""
        ...

    def abort(self) -> object:
        """End now."""
        ...


class StreamReceiver(Protocol):
    """Who gets what comes in on a stream."""

    def elements(self, event: Elements) -> None: ...
    def completed(self) -> None: ...
    def failed(self, error: StreamFailed) -> None: ...


class StreamSender(Protocol):
    """Who sends on a stream."""

    def demanded(self, n: int) -> None: ...
    def cancelled(self) -> None: ...


class BatchSender(Protocol):
    """Who has gathered elements to be sent together."""

    def send(self) -> None: ...


class Responder(Protocol):
    """Who serves the peer's requests."""

    def admit(self, driver: "Driver", setup: "Setup") -> None:
        """A client asks to be let in: accept or reject it, now or later."""
        ...

    def resume(self, driver: "Driver", frame: "Resume") -> None:
        """A client wants its session back: give it the transport of *driver*, or reject it."""
        ...

    def serve(self, driver: "Driver", request: RequestReceived) -> None: ...
    def respond(self, driver: "Driver", requests: "list[tuple[int, bytes, bytes | None]]") -> None:
        """The same for requests for one element: ids, data, metadata."""
        ...

    def pushed(self, driver: "Driver", metadata: bytes) -> None: ...


Rebind = Callable[["Driver"], object]
"""What a transport hears from now on goes to another driver."""
