"""The events of a connection, for its driver. An event does not change once it is returned.

Frames of stream 0 that the application acts on are events themselves: `Setup` (a client connects:
`Connection.accept` or `Connection.reject` it), `Resume` (a client resumes its session: find the
session, or `Connection.reject`), `Lease` (the peer allows requests), and `MetadataPush`.
"""

from dataclasses import dataclass
from typing import TypeAlias

from .frames import Lease, MetadataPush, Payload, Resume, Setup
from .stream_states import InteractionModel

RequestTuple: TypeAlias = tuple[int, bytes, bytes | None]
"""The stream, the data and the metadata of a request for one element."""


# Not frozen: a frozen dataclass takes three times as long to make, and these are made by the
# hundred thousand a second.
@dataclass(slots=True)
class Elements:
    """Elements of one stream, in their order; *complete* if the last of them ends the stream.

    Most have no metadata: it is kept apart, by the position of its element.
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
    """Responses without metadata, each with the id of its stream, which it completes."""

    responses: list[tuple[int, bytes]]


@dataclass(slots=True)
class Completed:
    """The peer has completed its direction of a stream."""

    stream_id: int


@dataclass(slots=True)
class Failed:
    """The peer has failed its direction of a stream, or (*local*) broke a rule on it."""

    stream_id: int
    code: int
    data: bytes = b""
    local: bool = False


@dataclass(slots=True)
class Cancelled:
    """The peer no longer receives on a stream; elements still sent on it are dropped."""

    stream_id: int


@dataclass(slots=True)
class DemandReceived:
    """*n* more elements may be sent on a stream."""

    stream_id: int
    n: int


@dataclass(slots=True)
class RequestReceived:
    """The peer requested something else than one element: those are `ResponseRequests`.

    *complete*: a channel whose first element is its last.

    The first element of a channel is not only in *payload*: like the others it is in `Elements`,
    once it has been requested.
    """

    stream_id: int
    model: InteractionModel
    payload: Payload
    complete: bool = False


@dataclass(slots=True)
class ResponseRequests:
    """Requests of the peer for one element."""

    requests: list[RequestTuple]


@dataclass(slots=True)
class Resumed:
    """The session continues on its new transport."""


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
    | Setup
    | Resume
    | Lease
    | MetadataPush
    | Resumed
    | Closed
)
