"""What the tests of the wire share: strategies for frames, connections that have shaken hands."""

from typing import Any, TypeVar

from hypothesis import strategies as st

from reactive_aio.rsocket.protocol.codec import add_length, decode, encode
from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import (
    Elements,
    Event,
    RequestReceived,
    ResponseRequests,
    Responses,
)
from reactive_aio.rsocket.protocol.frame_reader import FrameReader
from reactive_aio.rsocket.protocol.frames import (
    MAX_31,
    MAX_63,
    Cancel,
    Error,
    Ext,
    Frame,
    KeepAlive,
    Lease,
    MetadataPush,
    Payload,
    PayloadFrame,
    RequestChannel,
    RequestFnf,
    RequestN,
    RequestResponse,
    RequestStream,
    Resume,
    ResumeOk,
    Setup,
)
from reactive_aio.rsocket.protocol.stream_states import InteractionModel

E = TypeVar("E")

# -- strategies ------------------------------------------------------------------------------------
SHORT = st.binary(max_size=40)
PAYLOADS = st.builds(Payload, SHORT, st.none() | SHORT)
IDS = st.integers(1, MAX_31)
N = st.integers(1, MAX_31)
U31 = st.integers(0, MAX_31)
U63 = st.integers(0, MAX_63)
U16 = st.integers(0, 0xFFFF)
VERSIONS = st.tuples(U16, U16)
MIMES = st.text("abcdefghijklmnopqrstuvwxyz/.-+0123456789", max_size=40)
BOOLS = st.booleans()


def payload_frame(
    stream_id: int, payload: Payload, *, next: bool, complete: bool, follows: bool
) -> PayloadFrame:
    return PayloadFrame(stream_id, payload, next, complete, follows and not complete)


FRAMES: dict[type[Any], st.SearchStrategy[Frame]] = {
    Setup: st.builds(Setup, N, N, MIMES, MIMES, PAYLOADS, st.none() | SHORT, BOOLS, VERSIONS),
    Lease: st.builds(Lease, U31, U31, st.none() | SHORT),
    KeepAlive: st.builds(KeepAlive, BOOLS, U63, SHORT),
    RequestResponse: st.builds(RequestResponse, IDS, PAYLOADS, BOOLS),
    RequestFnf: st.builds(RequestFnf, IDS, PAYLOADS, BOOLS),
    RequestStream: st.builds(RequestStream, IDS, N, PAYLOADS, BOOLS),
    RequestChannel: st.builds(RequestChannel, IDS, N, PAYLOADS, BOOLS, BOOLS),
    RequestN: st.builds(RequestN, IDS, N),
    Cancel: st.builds(Cancel, IDS),
    PayloadFrame: st.builds(
        payload_frame, IDS, PAYLOADS, next=BOOLS, complete=BOOLS, follows=BOOLS
    ),
    Error: st.builds(Error, U31, st.integers(0, 2**32 - 1), SHORT),
    MetadataPush: st.builds(MetadataPush, SHORT),
    Resume: st.builds(Resume, SHORT, U63, U63, VERSIONS),
    ResumeOk: st.builds(ResumeOk, U63),
    Ext: st.builds(Ext, U31, U31, SHORT, BOOLS, BOOLS),
}
ANY_FRAME = st.one_of(*FRAMES.values())


# -- connections -----------------------------------------------------------------------------------
def wire(*frames: Frame) -> bytes:
    """Frames as they stand in a stream of bytes."""
    return b"".join(add_length(encode(frame)) for frame in frames)


def read(data: bytes) -> list[Frame]:
    """The frames in a stream of bytes."""
    splitter = FrameReader()
    splitter.feed(data)
    frames: list[Frame] = []
    while (frame := splitter.next()) is not None:
        decoded = decode(frame)
        assert decoded is not None
        frames.append(decoded)
    assert not splitter.held
    return frames


def sent(connection: Connection) -> list[Frame]:
    """All output of *connection*."""
    data = b""
    while connection.queued_bytes or connection.has_output:
        more = connection.data_to_send()
        if not more:
            break
        data += more
    return read(data)


def apart(events: list[Event]) -> list[Event]:
    """*events*, with each request and each answer of one element by itself."""
    found: list[Event] = []
    for event in events:
        if isinstance(event, ResponseRequests):
            for stream_id, data, metadata in event.requests:
                found.append(
                    RequestReceived(stream_id, InteractionModel.RESPONSE, Payload(data, metadata))
                )
        elif isinstance(event, Responses):
            for stream_id, data in event.responses:
                found.append(Elements(stream_id, [data], complete=True))
        else:
            found.append(event)
    return found


def one(events: list[Event], kind: type[E]) -> E:
    """The only event of its *kind*."""
    [event] = [each for each in apart(events) if isinstance(each, kind)]
    return event


def client(setup: Setup = Setup(), now: float = 0.0, **options: Any) -> Connection:  # noqa: B008
    """A client whose SETUP has left."""
    connection = Connection(setup, now, **options)
    connection.data_to_send()
    return connection


def server(setup: Setup = Setup(), now: float = 0.0, **options: Any) -> Connection:  # noqa: B008
    """A server that has accepted a client."""
    connection = Connection(None, now, **options)
    one(connection.receive(wire(setup), now), Setup)
    connection.accept(now)
    assert connection.flush(now) == []
    return connection


def pair(setup: Setup = Setup(), **options: Any) -> tuple[Connection, Connection]:  # noqa: B008
    """A client and a server that know each other."""
    asking, answering = Connection(setup, 0.0, **options), Connection(None, 0.0, **options)
    answering.receive(asking.data_to_send(), 0.0)
    answering.accept(0.0)
    return asking, answering


def carry(source: Connection, target: Connection, now: float = 0.0) -> list[Event]:
    """Bring all that *source* has to say to *target*."""
    events: list[Event] = []
    while data := source.data_to_send():
        events += target.receive(data, now)
    return apart([*events, *target.flush(now)])


def elements(stream_id: int, payloads: list[Payload], complete: bool = False) -> Elements:
    """The event of *payloads* that have come."""
    made = Elements(stream_id, [], complete)
    for payload in payloads:
        made.add(payload)
    return made
