"""What a connection tells whoever drives it. Nobody changes an event once it is returned."""

from dataclasses import dataclass
from typing import TypeAlias

from .frames import Ext, Lease, Payload, Resume, Setup
from .stream_states import InteractionModel

__all__ = (
    "Cancelled",
    "Closed",
    "Completed",
    "DemandReceived",
    "Draining",
    "Elements",
    "Event",
    "ExtensionReceived",
    "Failed",
    "LeaseReceived",
    "MetadataReceived",
    "RequestReceived",
    "ResponseRequests",
    "Responses",
    "ResumeReceived",
    "Resumed",
    "SetupReceived",
    "Suspended",
)


# Not frozen: a frozen dataclass takes three times as long to make, and these are made by the
# hundred thousand a second.
@dataclass(slots=True)
class Elements:
    """Elements of one stream, in their order; *complete* if the last of them is the last of all.

    Most have no metadata. What there is of it is kept apart, by the place of its element.
    """

    stream_id: int
    data: list[bytes]
    complete: bool = False
    metadata: dict[int, bytes] | None = None

    def add(self, payload: Payload) -> None:
        data, metadata = payload
        if metadata is not None:
            if self.metadata is None:
                self.metadata = {}
            self.metadata[len(self.data)] = metadata
        self.data.append(data)

    @property
    def payloads(self) -> list[Payload]:
        """Data and metadata of each."""
        found = self.metadata or {}
        return [Payload(data, found.get(place)) for place, data in enumerate(self.data)]


@dataclass(slots=True)
class Responses:
    """Responses without metadata, each with the id of its stream, which is complete with it."""

    responses: list[tuple[int, bytes]]


@dataclass(slots=True)
class Completed:
    """What came in on a stream is complete."""

    stream_id: int


@dataclass(slots=True)
class Failed:
    """What came in on a stream has failed: by the peer, or (*local*) because it broke a rule."""

    stream_id: int
    code: int
    data: bytes = b""
    local: bool = False


@dataclass(slots=True)
class Cancelled:
    """What goes out on a stream is wanted no more; whatever is still sent on it is dropped."""

    stream_id: int


@dataclass(slots=True)
class DemandReceived:
    """*n* more elements may be sent on a stream."""

    stream_id: int
    n: int


@dataclass(slots=True)
class RequestReceived:
    """The peer opened a stream. *complete*: a channel whose first element was its last.

    The first element of a channel is not in *payload* alone: like those after it, it comes by
    `Elements` once it has been asked for.
    """

    stream_id: int
    model: InteractionModel
    payload: Payload
    complete: bool = False


@dataclass(slots=True)
class ResponseRequests:
    """Requests of the peer for one element: the ids of their streams, data and metadata."""

    requests: list[tuple[int, bytes, bytes | None]]


@dataclass(slots=True)
class SetupReceived:
    """A client wants in: `Connection.accept` or `Connection.reject` it."""

    setup: Setup


@dataclass(slots=True)
class ResumeReceived:
    """A client wants its session back: find it, or `Connection.reject`."""

    resume: Resume


@dataclass(slots=True)
class LeaseReceived:
    """The peer allows requests."""

    lease: Lease


@dataclass(slots=True)
class MetadataReceived:
    """Metadata for the whole connection."""

    metadata: bytes


@dataclass(slots=True)
class ExtensionReceived:
    """A frame of an extension that this side said it knows."""

    frame: Ext


@dataclass(slots=True)
class Draining:
    """The peer closes the connection when the open streams have ended; open no more."""

    data: bytes


@dataclass(slots=True)
class Suspended:
    """The transport is gone; the session waits for another one."""


@dataclass(slots=True)
class Resumed:
    """The session goes on, on its new transport."""


@dataclass(slots=True)
class Closed:
    """The connection has ended; nothing follows. *local*: this side ended it."""

    code: int
    data: bytes = b""
    local: bool = True


Event: TypeAlias = (
    Responses
    | Elements
    | Completed
    | Failed
    | Cancelled
    | DemandReceived
    | RequestReceived
    | ResponseRequests
    | SetupReceived
    | ResumeReceived
    | LeaseReceived
    | MetadataReceived
    | ExtensionReceived
    | Draining
    | Suspended
    | Resumed
    | Closed
)
