"""A session that goes on after its transport was lost: nothing twice, nothing missing."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import (
    Closed,
    DemandReceived,
    Elements,
    Event,
    Failed,
    RequestReceived,
    Resumed,
)
from reactive_aio.rsocket.protocol.frames import (
    Error,
    ErrorCode,
    Frame,
    KeepAlive,
    Payload,
    PayloadFrame,
    RequestResponse,
    RequestStream,
    Resume,
    ResumeOk,
    Setup,
)
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.resume import Resumption, Sessions

from .wire import carry, client, one, pair, read, sent, wire

X = Payload(b"x")


def resumable(max_store: int = 1 << 20, **options: Any) -> tuple[Connection, Connection]:
    return pair(resumption=Resumption(timeout=30, max_store=max_store), **options)


def reconnect(asking: Connection, answering: Connection, now: float = 1.0) -> list[Event]:
    """A new transport for both; what the client learns from its first bytes."""
    asking.transport_replaced(now)
    stranger = Connection(None, now, resumption=Resumption())
    asked = one(stranger.receive(asking.data_to_send(), now), Resume)
    if not answering.resume(asked, now):
        stranger.reject("no")
        return asking.receive(stranger.data_to_send(), now)
    assert stranger.detach() == b""
    return asking.receive(answering.data_to_send(), now)


def test_a_random_token_is_generated() -> None:
    first, second = (Connection(Setup(), 0.0, resumption=Resumption()) for _ in range(2))
    tokens = {each.setup.token for each in (first, second) if each.setup}
    assert len(tokens) == 2
    assert {len(token or b"") for token in tokens} == {16}


def test_positions_count_the_frames_of_streams_without_their_length() -> None:
    asking, answering = resumable()
    asking.request_response(X)
    asking.metadata_push(b"not counted")
    carry(asking, answering)
    asking.tick(20.0)
    [frame] = sent(asking)
    assert frame == KeepAlive(True, 0)
    assert asking.output.resume_buffer is not None
    assert asking.output.resume_buffer.sent == 7
    answering.receive(wire(KeepAlive(True, 0)), 0.0)
    assert sent(answering) == [KeepAlive(False, 7)]
    asking.receive(wire(KeepAlive(False, 7)), 0.0)
    assert asking.output.resume_buffer.frames() == []


@pytest.mark.parametrize("arrived", [0, 1, 2])
def test_only_lost_frames_are_sent_again(arrived: int) -> None:
    asking, answering = resumable()
    stream_id = asking.request_stream(X, 9)
    carry(asking, answering)
    events: list[Event] = []
    data = b""
    for number in range(3):
        answering.send(stream_id, Payload(b"%d" % number))
        data = answering.data_to_send()
        if number < arrived:
            events += asking.receive(data, 0.0)
    events += asking.receive(data[:5], 0.0) if arrived == 2 else []  # half a frame is none
    assert (asking.transport_lost(0.5), asking.is_suspended) == ([], True)
    assert (answering.transport_lost(0.5), answering.is_suspended) == ([], True)
    answering.send(stream_id, Payload(b"3"), complete=True)
    asking.request(stream_id, 5)
    assert asking.data_to_send() == b""
    events += reconnect(asking, answering)
    assert events.count(Resumed()) == 1
    got = [p.data for event in events if isinstance(event, Elements) for p in event.payloads]
    assert got == [b"0", b"1", b"2", b"3"]
    assert answering.flush(1.0)[-1] == Resumed()
    carry(asking, answering, 1.0)
    assert not asking.streams.by_id
    assert not answering.streams.by_id


def test_lost_requests_and_responses_are_sent_again() -> None:
    asking, answering = resumable()
    lost = asking.request_response(X)
    asking.data_to_send()
    asking.transport_lost(0.0)
    meanwhile = asking.request_response(X)
    answering.transport_lost(0.0)
    events = reconnect(asking, answering)
    assert [
        event.stream_id for event in carry(asking, answering) if isinstance(event, RequestReceived)
    ] == [
        lost,
        meanwhile,
    ]
    for stream_id in (lost, meanwhile):
        answering.respond_all([(stream_id, b"y")])
    answering.data_to_send()
    assert (asking.transport_lost(2.0), asking.is_suspended) == ([], True)
    assert (answering.transport_lost(2.0), answering.is_suspended) == ([], True)
    events += reconnect(asking, answering, 3.0)
    assert [event.stream_id for event in events if isinstance(event, Elements)] == [lost, meanwhile]


def test_only_resume_is_sent_until_the_session_resumes() -> None:
    asking, _ = resumable()
    asking.transport_lost(0.0)
    asking.request_response(X)
    asking.transport_replaced(0.0)
    frames = read(asking.data_to_send())
    assert [type(frame) for frame in frames] == [Resume]
    assert asking.data_to_send() == b""
    asking.receive(wire(ResumeOk(0)), 0.0)
    assert [type(frame) for frame in sent(asking)] == [RequestResponse]


def test_a_session_that_is_not_resumed_ends() -> None:
    asking, answering = resumable()
    stream_id = asking.request_response(X)
    asking.transport_lost(5.0)
    assert asking.next_deadline() == 35.0
    assert asking.tick(34.0) == []
    events = asking.tick(35.0)
    assert [type(event) for event in events] == [Failed, Closed]
    assert asking.is_closed
    answering.transport_lost(5.0)
    answering.tick(35.0)
    assert not answering.resume(Resume(b"", 0, 0), 40.0)
    del stream_id


def test_an_unfinished_payload_waits_with_its_session() -> None:
    asking, answering = resumable(limits=Limits(mtu=100))
    large = Payload(bytes(150))
    asking.request_response(large)
    answering.receive(asking.data_to_send(1), 0.0)
    asking.transport_lost(0.0)
    answering.transport_lost(0.0)
    assert answering.tick(25.0) == [], "the rest may take 20 seconds, and a session has 30"
    reconnect(asking, answering, 26.0)
    assert one(carry(asking, answering, 26.0), RequestReceived).payload == large


def test_a_second_loss_does_not_prolong_the_session() -> None:
    asking, _ = resumable()
    asking.transport_lost(0.0)
    asking.transport_replaced(20.0)
    asking.data_to_send()
    assert (asking.transport_lost(21.0), asking.is_suspended) == ([], True)
    assert asking.next_deadline() == 30.0


def test_a_position_that_is_no_longer_stored_is_rejected() -> None:
    asking, answering = resumable(max_store=10)
    stream_id = asking.request_stream(X, 9)
    carry(asking, answering)
    for _ in range(5):
        answering.send(stream_id, X)
    answering.data_to_send()
    asking.transport_lost(0.0)
    answering.transport_lost(0.0)
    events = reconnect(asking, answering)
    assert one(events, Closed).code == ErrorCode.REJECTED_RESUME
    assert one(events, Failed).stream_id == stream_id
    assert answering.is_closed


def test_a_server_that_requires_dropped_frames_gets_an_error() -> None:
    asking, _ = resumable()
    asking.transport_lost(0.0)
    asking.transport_replaced(0.0)
    asking.data_to_send()
    events = asking.receive(wire(ResumeOk(99)), 0.0)
    assert one(events, Closed).code == ErrorCode.CONNECTION_ERROR


def test_a_client_can_be_rejected_after_it_was_served() -> None:
    asking, _ = resumable()
    asking.receive(wire(KeepAlive(False)), 0.0)
    asking.transport_lost(0.0)
    asking.transport_replaced(0.0)
    asking.data_to_send()
    events = asking.receive(wire(Error(0, ErrorCode.REJECTED_RESUME, b"no")), 0.0)
    assert events == [Closed(ErrorCode.REJECTED_RESUME, b"no", local=False)]


def test_a_session_without_a_transport_closes_without_a_frame() -> None:
    asking, _ = resumable()
    asking.transport_lost(0.0)
    asking.close()
    assert [type(event) for event in asking.flush(0.0)] == [Closed]
    assert asking.is_closed


@pytest.mark.parametrize("frame", [PayloadFrame(1), Error(1, 0x201), KeepAlive(False)])
def test_other_frames_before_the_session_resumes_are_refused(frame: Frame) -> None:
    asking, _ = resumable()
    asking.request_response(X)
    asking.transport_lost(0.0)
    asking.transport_replaced(0.0)
    asking.data_to_send()
    events = asking.receive(wire(frame), 0.0)
    assert one(events, Closed).code == ErrorCode.CONNECTION_ERROR
    assert not [event for event in events if isinstance(event, Elements)]


def test_a_session_resumes_before_the_loss_is_noticed() -> None:
    asking, answering = resumable()
    asking.request_response(X)
    asking.data_to_send()
    asking.transport_lost(0.0)
    reconnect(asking, answering)
    assert one(carry(asking, answering), RequestReceived).payload == X


def test_unfinished_input_of_the_old_transport_is_dropped() -> None:
    asking, answering = resumable()
    answering.receive(wire(RequestResponse(1, X))[:7], 0.0)
    answering.receive(b"", 0.0)
    answering.metadata_push(b"for the old transport")
    asking.transport_lost(0.0)
    events = reconnect(asking, answering)
    assert events == [Resumed()]
    asking.request_response(X)
    assert one(carry(asking, answering), RequestReceived).payload == X


def test_repeated_frames_are_sent_before_new_ones() -> None:
    asking, answering = resumable()
    stream_id = asking.request_stream(X, 9)
    carry(asking, answering)
    for number in range(3):
        answering.send(stream_id, Payload(b"%d" % number))
    answering.data_to_send()
    asking.transport_lost(0.0)
    asking.transport_replaced(0.0)
    [frame] = read(asking.data_to_send())
    assert isinstance(frame, Resume)
    assert answering.resume(frame, 0.0)
    answering.fail_stream(stream_id, 0x201)
    answering.receive(wire(RequestStream(99, 1), RequestStream(2, 1)), 0.0)  # 2 is refused
    frames = [each for data in iter(lambda: answering.data_to_send(1), b"") for each in read(data)]
    assert [type(each) for each in frames] == [ResumeOk, *[PayloadFrame] * 3, Error, Error]
    assert [each.stream_id for each in frames if isinstance(each, Error)] == [2, stream_id]


def test_a_client_that_dropped_unreceived_frames_is_rejected() -> None:
    asking, answering = resumable()
    asking.transport_lost(0.0)
    assert asking.setup is not None
    assert not answering.resume(Resume(asking.setup.token or b"", 0, 5), 0.0)
    assert answering.is_closed


def test_only_sessions_with_a_token_are_resumed() -> None:
    connection = client()
    assert isinstance(connection.transport_lost(0.0)[-1], Closed)
    with pytest.raises(RuntimeError, match="suspended"):
        connection.transport_replaced(0.0)


def test_bytes_after_a_resume_are_handed_over() -> None:
    stranger = Connection(None, 0.0, resumption=Resumption())
    behind = wire(RequestResponse(1, X))
    one(stranger.receive(wire(Resume(b"t", 0, 0)) + behind, 0.0), Resume)
    assert stranger.detach() == behind
    assert stranger.is_closed


@given(st.lists(st.integers(0, 120), max_size=6), st.integers(1, 12), st.data())
def test_every_element_arrives_once_whatever_is_lost(
    losses: list[int], n: int, data: st.DataObject
) -> None:
    asking, answering = resumable()
    sessions = Sessions[Connection]()
    sessions.add(b"token", answering)
    stream_id = asking.request_stream(X, n)
    got: list[bytes] = []
    sent_so_far = 0
    transports = [*losses, 10**9]  # how many bytes each brings to the client, at most
    now = 0.0
    for number, budget in enumerate(transports):
        for _ in range(40):
            events = answering.receive(asking.data_to_send(), now) + answering.flush(now)
            for event in events:
                if isinstance(event, DemandReceived):
                    for _ in range(event.n):
                        answering.send(stream_id, Payload(b"%d" % sent_so_far))
                        sent_so_far += 1
            brought = answering.data_to_send()[:budget]
            budget -= len(brought)
            for event in asking.receive(brought, now):
                if isinstance(event, Elements):
                    got += [payload.data for payload in event.payloads]
                    asking.request(stream_id, data.draw(st.integers(1, 3)))
            if not budget or len(got) > 60:
                break
        if number < len(transports) - 1:
            asking.transport_lost(now)
            answering.transport_lost(now)
            events = reconnect(asking, answering, now)
            assert not [event for event in events if isinstance(event, Closed)]
            got += [p.data for each in events if isinstance(each, Elements) for p in each.payloads]
    assert got == [b"%d" % number for number in range(len(got))]
    assert len(got) >= n


@pytest.mark.parametrize(("version", "is_taken"), [((1, 0), True), ((0, 1), True), ((2, 0), False)])
def test_resume_with_version_0_1_is_accepted_for_rsocket_js(
    version: tuple[int, int], is_taken: bool
) -> None:
    connection = Connection(None, 0.0, resumption=Resumption())
    events = connection.receive(wire(Resume(b"t", 0, 0, version)), 0.0)
    assert (type(events[0]) is Resume) is is_taken
    if not is_taken:
        assert one(events, Closed).code == ErrorCode.REJECTED_RESUME
