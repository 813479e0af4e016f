"""Whatever a peer sends, the answer is the one that is written down, and nothing grows."""

import struct

import pytest

from reactive_aio.rsocket.protocol.codec import add_length, encode
from reactive_aio.rsocket.protocol.connection import Connection, Phase
from reactive_aio.rsocket.protocol.events import (
    Cancelled,
    Closed,
    DemandReceived,
    Elements,
    Event,
    Failed,
    RequestReceived,
)
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    Error,
    ErrorCode,
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
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.resume import Resumption

from .wire import apart, client, elements, one, sent, server, wire

RAW = struct.Struct(">IH")


def raw(stream_id: int, bits: int, body: bytes = b"") -> bytes:
    return add_length(RAW.pack(stream_id, bits) + body)


def closes(connection: Connection, events: list[Event], code: ErrorCode) -> None:
    """The answer C: an ERROR of *code* on stream 0, and after it nothing."""
    assert one(events, Closed).code == code
    assert connection.phase is Phase.CLOSING
    [error] = [frame for frame in sent(connection) if isinstance(frame, Error)]
    assert (error.stream_id, error.code) == (0, code)
    assert connection.is_closed
    assert connection.receive(wire(RequestResponse(1)), 0.0) == []
    assert connection.data_to_send() == b""
    assert connection.next_deadline() is None


def refuses(connection: Connection, events: list[Event], stream_id: int, code: ErrorCode) -> None:
    """The answer S: an ERROR of *code* on that stream, and the connection goes on."""
    assert not [event for event in events if isinstance(event, Closed | RequestReceived)]
    errors = [frame for frame in sent(connection) if isinstance(frame, Error)]
    assert [(error.stream_id, error.code) for error in errors] == [(stream_id, code)]
    assert alive(connection)


def ignores(connection: Connection, events: list[Event]) -> None:
    """The answer I."""
    assert events == []
    assert sent(connection) == []
    assert alive(connection)


def alive(connection: Connection) -> bool:
    """Whether requests are served: a keepalive is answered, and all is as it was."""
    connection.receive(wire(KeepAlive(True, data=b"?")), connection.now)
    return KeepAlive(False, data=b"?") in sent(connection)


# -- before the setup ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "data",
    [
        wire(RequestResponse(1, Payload(b"hello"))),
        wire(KeepAlive(True)),
        wire(PayloadFrame(1)),
        raw(1, 0x0400, encode(Setup())[6:]),  # SETUP on stream 1
        raw(7, 0x3400, encode(Resume(b"t", 0, 0))[6:]),
        raw(0, 0x7C00),
    ],
)
def test_a_first_frame_that_is_not_setup_is_an_invalid_setup(data: bytes) -> None:
    connection = Connection(None, 0.0)
    closes(connection, connection.receive(data, 0.0), ErrorCode.INVALID_SETUP)


@pytest.mark.parametrize(
    "body",
    [
        "0001 0000 00000001",
        "0001 0000 00000000 00000001 00 00",
        "0001 0000 00000001 00000000 00 00",
        "0001 0000 00000001 00000001 05 61",
        "0001 0000 00000001 00000001 01 ff 00",
    ],
)
def test_a_wrong_setup_is_an_invalid_setup(body: str) -> None:
    connection = Connection(None, 0.0)
    events = connection.receive(raw(0, 0x0400, bytes.fromhex(body)), 0.0)
    closes(connection, events, ErrorCode.INVALID_SETUP)


def test_a_truncated_token_is_an_invalid_setup() -> None:
    connection = Connection(None, 0.0, resumption=Resumption())
    body = bytes.fromhex("0001 0000 00000001 00000001 00ff 6161")
    closes(connection, connection.receive(raw(0, 0x0480, body), 0.0), ErrorCode.INVALID_SETUP)


@pytest.mark.parametrize("version", [(0, 2), (1, 1), (2, 0)])
def test_another_version_is_an_unsupported_setup(version: tuple[int, int]) -> None:
    connection = Connection(None, 0.0)
    events = connection.receive(wire(Setup(version=version)), 0.0)
    closes(connection, events, ErrorCode.UNSUPPORTED_SETUP)


def test_resuming_is_rejected_where_it_is_off() -> None:
    connection = Connection(None, 0.0)
    events = connection.receive(wire(Setup(token=b"t")), 0.0)
    closes(connection, events, ErrorCode.REJECTED_SETUP)
    connection = Connection(None, 0.0)
    events = connection.receive(wire(Resume(b"t", 0, 0)), 0.0)
    closes(connection, events, ErrorCode.REJECTED_RESUME)


def test_leases_are_unsupported_where_they_are_off() -> None:
    connection = Connection(None, 0.0)
    events = connection.receive(wire(Setup(lease=True)), 0.0)
    closes(connection, events, ErrorCode.UNSUPPORTED_SETUP)


def test_a_rejected_client_is_not_served() -> None:
    connection = Connection(None, 0.0)
    request = wire(RequestResponse(1, Payload(b"secret?")))
    events = connection.receive(wire(Setup()) + request, 0.0)
    assert [type(event) for event in events] == [Setup]
    assert connection.receive(request, 0.0) == []
    connection.reject("who are you?")
    events = connection.flush(0.0)
    assert [type(event) for event in events] == [Closed]
    assert sent(connection) == [Error(0, ErrorCode.REJECTED_SETUP, b"who are you?")]
    assert connection.receive(request, 0.0) == []
    assert connection.is_closed


def test_an_unknown_session_is_rejected() -> None:
    connection = Connection(None, 0.0, resumption=Resumption())
    one(connection.receive(wire(Resume(b"t", 0, 0)), 0.0), Resume)
    connection.reject("unknown")
    assert sent(connection) == [Error(0, ErrorCode.REJECTED_RESUME, b"unknown")]
    assert connection.is_closed


def test_no_setup_in_time_closes() -> None:
    connection = Connection(None, 10.0)
    assert connection.next_deadline() == 15.0
    assert connection.tick(14.9) == []
    closes(connection, connection.tick(15.0), ErrorCode.INVALID_SETUP)


def test_bytes_before_a_setup_are_limited() -> None:
    connection = Connection(None, 0.0)
    closes(connection, connection.receive(b"GET / HTTP/1.1\r\n", 0.0), ErrorCode.INVALID_SETUP)
    connection = Connection(None, 0.0, limits=Limits(max_early=1000))
    connection.receive(wire(Setup()), 0.0)
    assert connection.is_awaiting_accept
    assert connection.receive(bytes(1000), 0.0) == []
    closes(connection, connection.receive(b"x", 0.0), ErrorCode.CONNECTION_ERROR)


# -- time ------------------------------------------------------------------------------------------
def test_an_unfinished_frame_times_out() -> None:
    connection = server()
    assert connection.receive(b"\0\0\x09abc", 1.0) == []
    connection.receive(b"d", 9.0)
    assert connection.next_deadline() == 11.0
    closes(connection, connection.tick(11.0), ErrorCode.CONNECTION_ERROR)


def test_whole_frames_never_time_out() -> None:
    connection = server()
    data = wire(KeepAlive(False))
    connection.receive(data[:5], 0.0)
    for second in range(1, 100):
        connection.receive(data[5:] + data[:5], float(second))
        assert connection.tick(float(second)) == []
        connection.data_to_send()


def test_time_in_which_this_side_does_not_read_is_not_the_peer_s() -> None:
    connection = server(Setup(keepalive=2000, lifetime=3000))
    connection.receive(wire(KeepAlive(False))[:5], 1.0)
    connection.pause_reading(2.0)
    for second in range(3, 60):
        assert connection.tick(float(second)) == []
        assert all(isinstance(frame, KeepAlive) for frame in sent(connection))
    connection.resume_reading(60.0)
    assert connection.next_deadline() == 63.0
    connection.receive(b"", 62.0)
    connection.receive(b"", 64.0)
    connection.receive(b"", 66.0)
    connection.receive(b"", 68.0)
    assert connection.next_deadline() == 70.0, "the rest of the frame"
    closes(connection, connection.tick(70.0), ErrorCode.CONNECTION_ERROR)


def test_silence_closes_after_a_lifetime_that_the_server_caps() -> None:
    connection = server(Setup(lifetime=3000))
    assert connection.next_deadline() == 3.0
    closes(connection, connection.tick(3.0), ErrorCode.CONNECTION_ERROR)
    connection = server(Setup(lifetime=2**31 - 1), limits=Limits(max_lifetime=7))
    assert connection.next_deadline() == 7.0


def test_the_soonest_deadline_is_the_next() -> None:
    for limits, expected in ((Limits(), 5.0), (Limits(setup_timeout=20), 11.0)):
        connection = Connection(None, 0.0, limits=limits)
        connection.receive(wire(Setup())[:5], 1.0)
        assert connection.next_deadline() == expected
    for began, expected in ((5.0, 15.0), (15.0, 20.0)):
        connection = server()
        connection.receive(wire(RequestResponse(1, follows=True)), 0.0)
        connection.receive(b"\0", began)
        assert connection.next_deadline() == expected


# -- frames that are none --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\x05abcde",
        b"\0\0\0",
        raw(1, 0x2920, b"\0\0\x05a"),  # metadata longer than the frame
        raw(1, 0x2920, b"\0"),
        raw(1, 0x1100, b"\0\0\x05a"),
        raw(0, 0x3400, b"\0\1\0\0\0\xffaa"),  # RESUME with a token longer than the frame
        raw(1, 0x7C00),  # an unknown type
        raw(1, 0x0000),
        raw(1, 0xFC00, bytes(4)),  # an extension that must be understood
        raw(1, 0x2000, b"\0"),
        wire(RequestResponse(0)),
        wire(RequestFnf(0)),
        wire(RequestStream(0, 1)),
        wire(RequestChannel(0, 1)),
    ],
)
def test_a_malformed_frame_closes(data: bytes) -> None:
    connection = server()
    closes(connection, connection.receive(data, 0.0), ErrorCode.CONNECTION_ERROR)


def test_a_frame_that_is_too_long_closes_even_before_it_arrives() -> None:
    connection = server(limits=Limits(max_frame=100))
    closes(connection, connection.receive(b"\0\0\x65", 0.0), ErrorCode.CONNECTION_ERROR)
    connection = server(limits=Limits(max_frame=100))
    asking = client(limits=Limits(max_frame=30))
    stream_id = asking.request_stream(Payload(), 9)
    asking.receive(wire(KeepAlive(False), PayloadFrame(stream_id)), 0.0)
    events = asking.receive(wire(PayloadFrame(stream_id, Payload(bytes(25)))), 0.0)
    assert one(events, Closed).code == ErrorCode.CONNECTION_ERROR
    assert not [event for event in events if isinstance(event, Elements)]


# -- frames that make no sense ---------------------------------------------------------------------
SENSELESS: dict[str, bytes] = {
    "unknown type, to be ignored": raw(1, 0x7E00),
    "extension, to be ignored": wire(Ext(1, 5, ignore=True)),
    "second SETUP": wire(Setup()),
    "RESUME_OK": wire(ResumeOk(0)),
    "LEASE without a request for leases": wire(Lease(1000, 5)),
    "CANCEL on an unknown stream": wire(Cancel(9)),
    "CANCEL on stream 0": wire(Cancel(0)),
    "PAYLOAD on an unknown stream": wire(PayloadFrame(9)),
    "PAYLOAD on stream 0": wire(PayloadFrame(0)),
    "ERROR on an unknown stream": wire(Error(9, 0x201)),
    "REQUEST_N on an unknown stream": wire(RequestN(9, 1)),
    "REQUEST_N on stream 0": wire(RequestN(0, 1)),
    "METADATA_PUSH on a stream": raw(1, 0x3100, b"m"),
    "KEEPALIVE on a stream": raw(1, 0x0C80, bytes(8)),
    "an error of streams on stream 0": wire(Error(0, 0x201)),
    "REQUEST_N for nothing": raw(1, 0x2000, bytes(4)),
}


@pytest.mark.parametrize("name", SENSELESS)
def test_meaningless_frames_are_ignored(name: str) -> None:
    connection = server()
    ignores(connection, connection.receive(SENSELESS[name], 0.0))


@pytest.mark.parametrize("name", [name for name in SENSELESS if "SETUP" not in name])
def test_a_client_ignores_meaningless_frames(name: str) -> None:
    connection = client()
    connection.receive(wire(KeepAlive(False)), 0.0)
    ignores(connection, connection.receive(SENSELESS[name], 0.0))
    ignores(connection, connection.receive(wire(Setup(), Resume(b"", 0, 0)), 0.0))


@pytest.mark.parametrize("name", SENSELESS)
def test_a_flood_of_meaningless_frames_closes(name: str) -> None:
    connection = server()
    events = connection.receive(SENSELESS[name] * 1001, 0.0)
    closes(connection, events, ErrorCode.CONNECTION_ERROR)


@pytest.mark.parametrize(
    "data", [wire(KeepAlive(False)), wire(MetadataPush(b"m")), wire(RequestStream(1, 1), Cancel(1))]
)
def test_a_flood_of_expensive_frames_closes(data: bytes) -> None:
    connection = server()
    events = connection.receive(data * 1100, 0.0)
    assert one(events, Closed).code == ErrorCode.CONNECTION_ERROR


def test_frames_in_transit_during_a_cancel_do_not_count_as_a_flood() -> None:
    connection = client()
    stream_id = connection.request_stream(Payload(), 10_000)
    sent(connection)
    connection.cancel(stream_id)
    sent(connection)
    ignores(connection, connection.receive(wire(*[PayloadFrame(stream_id)] * 10_000), 0.0))
    events = connection.receive(wire(*[PayloadFrame(stream_id)] * 1100), 0.0)
    assert one(events, Closed).code == ErrorCode.CONNECTION_ERROR


def test_frames_in_transit_at_the_end_of_a_stream_do_not_count_as_a_flood() -> None:
    connection = server()
    for stream_id in range(1, 4001, 2):
        connection.receive(wire(RequestStream(stream_id, 1)), 0.0)
        connection.flush(0.0)
        connection.send(stream_id, Payload(), complete=True)
        sent(connection)
        events = connection.receive(wire(RequestN(stream_id, 1), Cancel(stream_id)), 0.0)
        assert events == []


def test_requests_that_are_cancelled_at_once_are_a_flood() -> None:
    """Each would start a handler in vain: ten times *max_useless* a second are too many."""
    connection = server(limits=Limits(max_useless=10))
    for stream_id in range(1, 401, 2):
        one(connection.receive(wire(RequestStream(stream_id, 1)), 0.0), RequestReceived)
        one(connection.receive(wire(Cancel(stream_id)), 0.0), Cancelled)  # its handler had begun
    ids = range(401, 801, 2)
    data = b"".join(wire(RequestStream(each, 1), Cancel(each)) for each in ids)
    events = connection.receive(data, 0.0)
    assert one(events, Closed).code == ErrorCode.CONNECTION_ERROR
    assert one(events, Closed).data == b"a flood of requests that are cancelled at once"
    assert len([each for each in events if isinstance(each, RequestReceived)]) == 101


def test_frames_on_streams_that_have_ended_are_a_flood_at_last() -> None:
    connection = server(limits=Limits(max_useless=10))
    connection.receive(wire(RequestStream(1, 1)), 0.0)
    connection.fail_stream(1, 0x201)
    sent(connection)
    ignores(connection, connection.receive(wire(RequestN(1, 1)) * 900, 0.0))
    closes(connection, connection.receive(wire(Cancel(1)) * 101, 0.0), ErrorCode.CONNECTION_ERROR)


def test_cancels_of_what_only_receives_are_a_flood_at_last() -> None:
    connection = client(limits=Limits(max_useless=10))
    cancel = wire(Cancel(connection.request_stream(Payload(), 1)))
    sent(connection)
    connection.receive(wire(KeepAlive(False)), 0.0)
    ignores(connection, connection.receive(cancel * 900, 0.0))
    closes(connection, connection.receive(cancel * 101, 0.0), ErrorCode.CONNECTION_ERROR)


@pytest.mark.parametrize("request_", [RequestStream(1, 1), RequestResponse(1)])
def test_a_stream_id_used_again_and_again_is_a_flood(request_: Frame) -> None:
    connection = server(limits=Limits(max_useless=10))
    for _ in range(11):
        one(connection.receive(wire(request_), 0.0), RequestReceived)
        connection.receive(wire(Cancel(1)), 0.0)
    events = connection.receive(wire(request_), 0.0)
    closes(connection, events, ErrorCode.CONNECTION_ERROR)


def test_a_resume_after_the_setup_closes() -> None:
    connection = server(resumption=Resumption())
    events = connection.receive(wire(Resume(b"t", 0, 0)), 0.0)
    closes(connection, events, ErrorCode.CONNECTION_ERROR)


def test_requests_for_zero_elements_are_ignored_a_limited_number_of_times() -> None:
    connection = server()
    nothing = raw(1, 0x2000, bytes(4))
    ignores(connection, connection.receive(nothing * 16, 0.0))
    closes(connection, connection.receive(nothing, 0.0), ErrorCode.CONNECTION_ERROR)


# -- requests --------------------------------------------------------------------------------------
def test_a_request_on_an_open_stream_is_ignored() -> None:
    connection = server()
    connection.receive(wire(RequestResponse(1)), 0.0)
    ignores(connection, connection.receive(wire(RequestStream(1, 5)), 0.0))


@pytest.mark.parametrize(
    "frame",
    [
        RequestResponse(2),
        RequestStream(2, 1),
        RequestChannel(4, 1),
        RequestResponse(2, follows=True),
    ],
)
def test_an_id_of_the_other_side_is_invalid(frame: RequestResponse | RequestStream) -> None:
    connection = server()
    events = connection.receive(wire(frame), 0.0)
    refuses(connection, events, frame.stream_id, ErrorCode.INVALID)


def test_a_lower_id_is_legal() -> None:
    connection = server()
    connection.receive(wire(RequestResponse(7)), 0.0)
    assert one(connection.receive(wire(RequestResponse(1)), 0.0), RequestReceived).stream_id == 1


@pytest.mark.parametrize("bits", [0x1800, 0x1C00])
def test_an_initial_request_for_zero_elements_is_invalid(bits: int) -> None:
    connection = server()
    events = connection.receive(raw(1, bits, bytes(4)), 0.0)
    refuses(connection, events, 1, ErrorCode.INVALID)


def test_too_many_streams_are_rejected() -> None:
    connection = server(limits=Limits(max_streams=2))
    connection.receive(wire(RequestStream(1, 1), RequestResponse(3)), 0.0)
    events = connection.receive(wire(RequestStream(5, 1)), 0.0)
    refuses(connection, events, 5, ErrorCode.REJECTED)
    assert connection.send(3, Payload())
    sent(connection)
    one(connection.receive(wire(RequestStream(5, 1)), 0.0), RequestReceived)


def test_requests_beyond_a_limit_are_no_flood_and_invalid_ones_are() -> None:
    connection = server(limits=Limits(max_streams=1, max_useless=10))
    connection.receive(wire(RequestStream(1, 1)), 0.0)
    assert connection.receive(wire(*(RequestStream(n, 1) for n in range(3, 103, 2))), 0.0) == []
    assert {frame.code for frame in sent(connection) if isinstance(frame, Error)} == {
        ErrorCode.REJECTED
    }
    events = connection.receive(wire(RequestStream(2, 1)) * 11, 0.0)
    closes(connection, events, ErrorCode.CONNECTION_ERROR)


def test_answered_and_unsent_streams_still_count() -> None:
    connection = server(limits=Limits(max_streams=1))
    connection.receive(wire(RequestResponse(1)), 0.0)
    connection.send(1, Payload(b"answer"))
    connection.receive(wire(RequestResponse(3)), 0.0)
    assert Error(3, ErrorCode.REJECTED, b"1 streams are open") in sent(connection)


def test_credit_saturates() -> None:
    connection = server()
    connection.receive(wire(RequestStream(1, 2**31 - 1)), 0.0)
    connection.receive(wire(*[RequestN(1, 2**31 - 1)] * 300), 0.0)
    stream = connection.streams.by_id[1]
    stream.peer_demand.add(2**63 - 2**40)
    connection.receive(wire(*[RequestN(1, 2**31 - 1)] * 600), 0.0)
    assert stream.peer_demand.outstanding == 2**63 - 1


# -- more than was requested -----------------------------------------------------------------------
def test_more_elements_than_requested_cancel_and_are_reported() -> None:
    connection = client()
    stream_id = connection.request_stream(Payload(), 2)
    assert sent(connection) == [RequestStream(stream_id, 2)]
    events = connection.receive(wire(*[PayloadFrame(stream_id)] * 3), 0.0)
    assert events == [
        elements(stream_id, [Payload()] * 2),
        Failed(stream_id, ErrorCode.INVALID, b"more elements than were requested", local=True),
    ]
    assert sent(connection) == [Cancel(stream_id)]
    ignores(connection, connection.receive(wire(PayloadFrame(stream_id)), 0.0))


def test_more_on_a_channel_than_the_responder_requested_is_refused() -> None:
    connection = server()
    connection.receive(wire(RequestChannel(1, 5, Payload(b"first"))), 0.0)
    connection.request(1, 2)
    assert connection.flush(0.0)[0] == elements(1, [Payload(b"first")])
    assert sent(connection) == [RequestN(1, 1)]
    events = connection.receive(wire(PayloadFrame(1), PayloadFrame(1)), 0.0)
    assert events[0] == elements(1, [Payload()])
    assert one(events, Failed).local
    assert one(events, Cancelled).stream_id == 1
    refuses(connection, [], 1, ErrorCode.INVALID)


def test_neither_next_nor_complete_is_ignored() -> None:
    connection = client()
    stream_id = connection.request_stream(Payload(), 2)
    sent(connection)
    connection.receive(wire(KeepAlive(False)), 0.0)
    ignores(connection, connection.receive(wire(PayloadFrame(stream_id, next=False)), 0.0))


def test_a_response_is_complete_even_without_the_flag() -> None:
    connection = client()
    stream_id = connection.request_response(Payload())
    events = connection.receive(wire(PayloadFrame(stream_id, Payload(b"x"))), 0.0)
    assert events == [elements(stream_id, [Payload(b"x")], complete=True)]
    assert not connection.streams.by_id


# -- fragments -------------------------------------------------------------------------------------
def fragment(stream_id: int, size: int) -> Frame:
    return PayloadFrame(stream_id, Payload(bytes(size)), follows=True)


SMALL = Limits(max_payload=100, max_partial=250, max_partials=3, max_empty_fragments=2)


@pytest.mark.parametrize(
    "frames",
    [
        [RequestResponse(1, Payload(bytes(60)), follows=True), fragment(1, 60)],
        [RequestResponse(1, Payload(), follows=True), fragment(1, 0), fragment(1, 0)],
    ],
)
def test_a_request_that_never_ends_is_invalid_and_a_second_one_closes(frames: list[Frame]) -> None:
    connection = server(limits=SMALL)
    refuses(connection, connection.receive(wire(*frames), 0.0), 1, ErrorCode.INVALID)
    assert connection.reassemblies.size == 0
    closes(connection, connection.receive(wire(*frames), 0.0), ErrorCode.CONNECTION_ERROR)


def test_too_many_unfinished_requests_are_refused() -> None:
    connection = server(limits=SMALL)
    half = [RequestResponse(2 * n + 1, Payload(b"x"), follows=True) for n in range(4)]
    refuses(connection, connection.receive(wire(*half), 0.0), 7, ErrorCode.INVALID)
    assert connection.reassemblies.count == 3


def test_the_sum_of_unfinished_requests_is_bounded() -> None:
    connection = server(limits=SMALL)
    half = [RequestResponse(2 * n + 1, Payload(bytes(90)), follows=True) for n in range(3)]
    refuses(connection, connection.receive(wire(*half), 0.0), 5, ErrorCode.INVALID)
    assert connection.reassemblies.size == 180


def test_only_the_streams_that_are_too_much_are_refused() -> None:
    """Payloads that are correct by themselves never end the connection."""
    connection = server(limits=SMALL)
    half = [RequestResponse(2 * n + 1, Payload(b"x"), follows=True) for n in range(50)]
    events = connection.receive(wire(*half), 0.0)
    assert not [event for event in events if isinstance(event, Closed)]
    errors = [frame for frame in sent(connection) if isinstance(frame, Error)]
    assert [error.stream_id for error in errors] == [*range(7, 100, 2)]
    rest = [PayloadFrame(n, Payload(b"y")) for n in range(1, 100, 2)]  # some are on their way
    events = connection.receive(wire(*rest), 0.0)
    assert [event.payload for event in apart(events) if isinstance(event, RequestReceived)] == [
        Payload(b"xy")
    ] * 3
    assert alive(connection)


def test_an_endless_response_is_cancelled() -> None:
    connection = client(limits=SMALL)
    stream_id = connection.request_response(Payload())
    sent(connection)
    events = connection.receive(wire(fragment(stream_id, 60), fragment(stream_id, 60)), 0.0)
    assert one(events, Failed).local
    assert sent(connection) == [Cancel(stream_id)]
    assert connection.reassemblies.size == 0


def test_unrequested_fragments_are_not_buffered() -> None:
    connection = server()
    connection.receive(wire(RequestChannel(1, 5)), 0.0)
    events = connection.receive(wire(fragment(1, 60)), 0.0)
    assert one(events, Failed).local
    assert connection.reassemblies.count == 0


# -- errors of the peer ----------------------------------------------------------------------------
def test_a_connection_error_ends_everything() -> None:
    connection = client()
    stream_id = connection.request_channel(Payload(), 5)
    events = connection.receive(wire(Error(0, ErrorCode.CONNECTION_ERROR, b"bye")), 0.0)
    assert events == [
        Failed(stream_id, ErrorCode.CONNECTION_ERROR, b"bye"),
        Cancelled(stream_id),
        Closed(ErrorCode.CONNECTION_ERROR, b"bye", local=False),
    ]
    assert connection.is_closed


def test_a_connection_that_is_being_closed_ends_with_its_last_stream() -> None:
    connection = server()
    connection.receive(wire(RequestResponse(1)), 0.0)
    events = connection.receive(wire(Error(0, ErrorCode.CONNECTION_CLOSE, b"bye")), 0.0)
    assert (events, connection.may_request) == ([], False)
    connection.receive(wire(RequestResponse(3)), 0.0)
    assert [frame.stream_id for frame in sent(connection) if isinstance(frame, Error)] == [3]
    connection.send(1, Payload(b"x"))
    assert sent(connection) == [PayloadFrame(1, Payload(b"x"), complete=True)]
    assert connection.flush(0.0) == [Closed(ErrorCode.CONNECTION_CLOSE, b"bye", local=False)]
    assert connection.is_closed


# -- a peer that does not read ---------------------------------------------------------------------
def test_answers_to_a_peer_that_does_not_read_are_bounded() -> None:
    connection = server(limits=Limits(max_backlog=10_000))
    big = wire(KeepAlive(True, data=bytes(1000)))
    closed: list[Event] = []
    for _ in range(20):
        closed += connection.receive(big, 0.0)
    assert one(closed, Closed).data == b"the peer does not read"
    assert connection.queued_bytes == 0
    assert connection.is_closed


def test_a_large_keepalive_is_answered_to_a_peer_that_reads() -> None:
    connection = server(limits=Limits(max_backlog=10_000))
    large = KeepAlive(True, data=b"k" * 50_000)
    for _ in range(3):
        assert connection.receive(wire(large), 0.0) == []
        [answer] = sent(connection)
        assert isinstance(answer, KeepAlive)
        assert answer.data == large.data
    connection.receive(wire(large), 0.0)  # the answers are not read any more
    closed = connection.receive(wire(large), 0.0)
    assert one(closed, Closed).data == b"the peer does not read"


def test_demand_of_a_peer_that_does_not_read_is_not_passed_on() -> None:
    connection = server()
    connection.receive(wire(RequestStream(1, 2**31 - 1)), 0.0)
    element = Payload(bytes(1000))
    elements = 0
    for _ in range(1000):
        for event in connection.flush(0.0):
            assert isinstance(event, DemandReceived)
            for _ in range(event.n):
                assert connection.send(1, element)
                elements += 1
    assert 64 <= elements <= 200
    assert connection.queued_bytes <= 200_000


def test_metadata_is_passed_on() -> None:
    connection = server()
    assert connection.receive(wire(MetadataPush(b"m")), 0.0) == [MetadataPush(b"m")]
