"""A connection without I/O: requests, demand, terminal signals, turns, time."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reactive_aio.errors import IllegalDemand, RuleViolation
from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.errors import ConnectionLost, NoLease
from reactive_aio.rsocket.protocol.events import (
    Cancelled,
    Closed,
    Completed,
    DemandReceived,
    Elements,
    Event,
    Failed,
    RequestReceived,
)
from reactive_aio.rsocket.protocol.frames import (
    MAX_31,
    Cancel,
    Error,
    ErrorCode,
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
    Setup,
)
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.resume import Resumption
from reactive_aio.rsocket.protocol.stream_states import InteractionModel

from .wire import BOOLS, apart, carry, client, elements, one, pair, read, sent, server, wire

X, Y, Z = Payload(b"x"), Payload(b"y", b"m"), Payload(b"z")


# -- setup -----------------------------------------------------------------------------------------
def test_a_client_sends_its_setup_first_and_requests_at_once() -> None:
    connection = Connection(Setup(keepalive=7), 0.0)
    connection.request_response(X)
    assert read(connection.data_to_send()) == [Setup(keepalive=7), RequestResponse(1, X)]


def test_a_setup_that_is_rejected_fails_what_was_requested() -> None:
    connection = client()
    stream_id = connection.request_response(X)
    events = connection.receive(wire(Error(0, ErrorCode.REJECTED_SETUP, b"no")), 0.0)
    assert events == [
        Failed(stream_id, ErrorCode.REJECTED_SETUP, b"no"),
        Closed(ErrorCode.REJECTED_SETUP, b"no", local=False),
    ]
    with pytest.raises(ConnectionLost):
        connection.request_response(X)


def test_frames_after_a_setup_wait_for_its_acceptance() -> None:
    connection = Connection(None, 0.0)
    data = wire(Setup(), RequestResponse(1, X), RequestFnf(3, Y))
    assert len(connection.receive(data, 0.0)) == 1
    connection.accept(0.0)
    assert apart(connection.flush(0.0)) == [
        RequestReceived(1, InteractionModel.RESPONSE, X),
        RequestReceived(3, InteractionModel.FNF, Y),
    ]


def accept(connection: Connection) -> None:
    connection.accept(0.0)


@pytest.mark.parametrize("do", [accept, Connection.reject, Connection.detach])
def test_only_an_open_stream_can_be_answered(do: Callable[[Connection], object]) -> None:
    with pytest.raises(RuntimeError, match=r"no SETUP|only a connection"):
        do(server())


# -- the four interactions, from both sides --------------------------------------------------------
def test_request_and_response() -> None:
    asking, answering = pair()
    stream_id = asking.request_response(X)
    assert carry(asking, answering) == [RequestReceived(stream_id, InteractionModel.RESPONSE, X)]
    assert answering.send(stream_id, Y)
    assert not answering.send(stream_id, Z), "one is all"
    assert carry(answering, asking) == [elements(stream_id, [Y], complete=True)]
    assert not asking.streams.by_id
    assert not answering.streams.by_id


def test_an_empty_response() -> None:
    asking, answering = pair()
    stream_id = asking.request_response(X)
    carry(asking, answering)
    assert answering.complete(stream_id)
    assert carry(answering, asking) == [Completed(stream_id)]


def test_a_failed_response_carries_its_code() -> None:
    asking, answering = pair()
    stream_id = asking.request_response(X)
    carry(asking, answering)
    assert answering.fail_stream(stream_id, 0x1234, b"why")
    assert carry(answering, asking) == [Failed(stream_id, 0x1234, b"why")]


def test_fire_and_forget() -> None:
    asking, answering = pair()
    stream_id = asking.fire_and_forget(Y)
    assert carry(asking, answering) == [RequestReceived(stream_id, InteractionModel.FNF, Y)]
    assert not asking.streams.by_id
    assert not answering.streams.by_id


def test_demand_is_sent_unchanged() -> None:
    asking, answering = pair()
    stream_id = asking.request_stream(X, 2)
    assert carry(asking, answering) == [
        RequestReceived(stream_id, InteractionModel.STREAM, X),
        DemandReceived(stream_id, 2),
    ]
    answering.send(stream_id, X)
    answering.send(stream_id, Y)
    with pytest.raises(RuleViolation, match=r"1\.1"):
        answering.send(stream_id, Z)
    with pytest.raises(RuleViolation, match=r"1\.1"):
        answering.send_all(stream_id, [b"z"])
    assert [
        len(event.payloads) for event in carry(answering, asking) if isinstance(event, Elements)
    ]
    asking.request(stream_id, 1)
    assert carry(asking, answering) == [DemandReceived(stream_id, 1)]
    answering.send(stream_id, Z, complete=True)
    assert carry(answering, asking) == [elements(stream_id, [Z], complete=True)]


def test_demand_of_one_turn_is_one_frame() -> None:
    connection = client()
    stream_id = connection.request_stream(X, 1)
    for _ in range(5):
        connection.request(stream_id, 3)
    assert sent(connection) == [RequestStream(stream_id, 1, X), RequestN(stream_id, 15)]


def test_demand_beyond_the_wire_is_topped_up() -> None:
    connection = client()
    stream_id = connection.request_stream(X, 2**63 - 1)
    assert sent(connection) == [RequestStream(stream_id, MAX_31, X)]
    stream = connection.streams.by_id[stream_id]
    stream.inbound_credit = 2**30
    connection.receive(wire(*[PayloadFrame(stream_id, X)] * 2), 0.0)
    [frame] = sent(connection)
    assert isinstance(frame, RequestN)
    assert stream.inbound_credit == MAX_31
    assert stream.unsent_demand.outstanding == 2**63 - 1


def test_large_bounded_demand_is_sent_completely() -> None:
    connection = client()
    stream_id = connection.request_stream(X, MAX_31 + 5)
    sent(connection)
    stream = connection.streams.by_id[stream_id]
    assert (stream.inbound_credit, stream.unsent_demand.outstanding) == (MAX_31, 5)
    stream.inbound_credit = 10
    connection.receive(wire(PayloadFrame(stream_id, X)), 0.0)
    assert sent(connection) == [RequestN(stream_id, 5)]
    assert (stream.inbound_credit, stream.unsent_demand.outstanding) == (14, 0)


def test_demand_is_not_topped_up_before_half_of_it_is_used() -> None:
    connection = client()
    stream_id = connection.request_stream(X, 2**63 - 1)
    sent(connection)
    connection.receive(wire(*[PayloadFrame(stream_id, X)] * 9), 0.0)
    assert sent(connection) == []


def test_each_of_several_streams_is_topped_up() -> None:
    connection = client()
    ids = [connection.request_stream(X, 2**63 - 1) for _ in range(3)]
    sent(connection)
    connection.receive(wire(KeepAlive(False)), 0.0)
    for stream_id in ids:
        connection.streams.by_id[stream_id].inbound_credit = 5
    connection.receive(wire(*[PayloadFrame(stream_id, X) for stream_id in ids]), 0.0)
    assert sent(connection) == [RequestN(stream_id, MAX_31 - 4) for stream_id in ids]


@pytest.mark.parametrize("n", [0, -1, True, 1.5])
def test_an_invalid_demand_is_never_sent(n: Any) -> None:
    connection = client()
    stream_id = connection.request_stream(X, 1)
    with pytest.raises(IllegalDemand, match=r"3\.9"):
        connection.request(stream_id, n)
    with pytest.raises(IllegalDemand, match=r"3\.9"):
        connection.request_stream(X, n)
    assert sent(connection) == [RequestStream(stream_id, 1, X)]


def test_the_two_directions_of_a_channel_end_separately() -> None:
    asking, answering = pair()
    channel = asking.request_channel(X, 2)
    assert carry(asking, answering) == [
        RequestReceived(channel, InteractionModel.CHANNEL, X),
        DemandReceived(channel, 2),
    ]
    answering.request(channel, 3)
    assert answering.flush(0.0) == [elements(channel, [X])], (
        "the first element is sent when it is requested"
    )
    assert carry(answering, asking) == [DemandReceived(channel, 2)]
    asking.send(channel, Y)
    asking.complete(channel)
    assert not asking.complete(channel)
    assert carry(asking, answering) == [elements(channel, [Y]), Completed(channel)]
    answering.send(channel, Z)
    assert carry(answering, asking) == [elements(channel, [Z])]
    answering.complete(channel)
    assert carry(answering, asking) == [Completed(channel)]
    assert not asking.streams.by_id
    assert not answering.streams.by_id


def test_a_channel_whose_first_element_is_its_last() -> None:
    asking, answering = pair()
    channel = asking.request_channel(X, 1, complete=True)
    assert carry(asking, answering)[0] == RequestReceived(
        channel, InteractionModel.CHANNEL, X, complete=True
    )
    assert not asking.send(channel, Y)
    answering.request(channel, 1)
    assert answering.flush(0.0) == [elements(channel, [X], complete=True)]
    answering.complete(channel)
    assert carry(answering, asking) == [Completed(channel)]
    assert not asking.streams.by_id


def test_the_end_of_a_channel_waits_for_its_first_element() -> None:
    asking, answering = pair()
    channel = asking.request_channel(X, 1)
    asking.complete(channel)
    assert [type(event) for event in carry(asking, answering)] == [RequestReceived, DemandReceived]
    answering.request(channel, 9)
    assert answering.flush(0.0) == [elements(channel, [X], complete=True)]


def test_the_server_may_send_requests() -> None:
    asking, answering = pair()
    stream_id = answering.request_stream(X, 1)
    assert stream_id == 2
    assert carry(answering, asking)[0] == RequestReceived(2, InteractionModel.STREAM, X)
    asking.send(2, Y, complete=True)
    assert carry(asking, answering) == [elements(2, [Y], complete=True)]


# -- cancelling ------------------------------------------------------------------------------------
def test_nothing_is_sent_after_a_cancel() -> None:
    connection = client()
    stream_id = connection.request_channel(X, 1)
    connection.receive(wire(RequestN(stream_id, 5)), 0.0)
    assert connection.flush(0.0) == [DemandReceived(stream_id, 5)]
    sent(connection)
    connection.send(stream_id, Y)
    connection.request(stream_id, 5)
    assert connection.cancel(stream_id)
    assert not connection.cancel(stream_id)
    assert not connection.send(stream_id, Y)
    assert not connection.complete(stream_id)
    assert not connection.fail_stream(stream_id, 0x201)
    connection.request(stream_id, 5)
    assert sent(connection) == [Cancel(stream_id)]
    assert connection.flush(0.0) == [Cancelled(stream_id)]


def test_an_unsent_request_is_cancelled_without_a_frame() -> None:
    connection = client()
    connection.cancel(connection.request_stream(X, 1))
    assert sent(connection) == []


def test_a_cancel_of_the_peer_drops_queued_elements() -> None:
    asking, answering = pair()
    stream_id = asking.request_stream(X, 9)
    carry(asking, answering)
    answering.send(stream_id, X)
    asking.cancel(stream_id)
    assert carry(asking, answering) == [Cancelled(stream_id)]
    assert sent(answering) == []
    assert not answering.send(stream_id, X)
    assert not answering.send_all(stream_id, [b"x"])


def test_a_responder_may_cancel_the_input_of_a_channel() -> None:
    asking, answering = pair()
    channel = asking.request_channel(X, 5)
    carry(asking, answering)
    answering.request(channel, 5)
    carry(answering, asking)
    asking.send(channel, Y)
    answering.cancel(channel)
    assert carry(answering, asking) == [Cancelled(channel)]
    assert not asking.send(channel, Z)
    assert sent(asking) == [], "what waited has been dropped"
    answering.send(channel, Z, complete=True)
    assert carry(answering, asking) == [elements(channel, [Z], complete=True)]


def test_cancelling_a_completed_input_does_not_end_the_output() -> None:
    asking, answering = pair()
    channel = asking.request_channel(X, 5)
    carry(asking, answering)
    answering.complete(channel)
    carry(answering, asking)
    assert not asking.cancel(channel)
    answering.request(channel, 2)
    carry(answering, asking)
    assert asking.send(channel, Y, complete=True)


@pytest.mark.parametrize("server_fails", [True, False])
def test_an_error_ends_both_directions_of_a_channel(server_fails: bool) -> None:
    asking, answering = pair()
    channel = asking.request_channel(X, 5)
    carry(asking, answering)
    failing, other = (answering, asking) if server_fails else (asking, answering)
    assert failing.fail_stream(channel, 0x201, b"oh")
    assert failing.flush(0.0) == [Failed(channel, 0x201, b"oh", local=True)]
    assert carry(failing, other) == [Failed(channel, 0x201, b"oh"), Cancelled(channel)]
    assert not asking.streams.by_id
    assert not answering.streams.by_id


# -- turns -----------------------------------------------------------------------------------------
def test_demand_is_passed_on_in_portions_while_the_output_is_short() -> None:
    connection = server(limits=Limits(chunk=10, watermark=1600))
    connection.receive(wire(RequestStream(1, 35)), 0.0)
    portions: list[int] = []
    while sum(portions) < 35:
        for event in connection.flush(0.0):
            assert isinstance(event, DemandReceived)
            portions.append(event.n)
            for _ in range(event.n):
                connection.send(1, X)
        sent(connection)
    assert max(portions) == 10
    assert sum(portions) == 35
    assert connection.flush(0.0) == []


def test_streams_share_the_output_buffer() -> None:
    connection = server(limits=Limits(chunk=16, watermark=1600))
    connection.receive(wire(RequestStream(1, 99), RequestStream(3, 99)), 0.0)
    assert connection.flush(0.0) == [DemandReceived(1, 8)]
    assert connection.flush(0.0) == [DemandReceived(3, 8)]


def test_portions_follow_the_size_of_elements() -> None:
    connection = server(limits=Limits(chunk=64, watermark=10_000))
    connection.receive(wire(RequestStream(1, MAX_31)), 0.0)
    portions: list[int] = []
    for _ in range(20):
        for event in connection.flush(0.0):
            assert isinstance(event, DemandReceived)
            portions.append(event.n)
            for _ in range(event.n):
                connection.send(1, Payload(bytes(1000)))
        sent(connection)
    assert max(portions[2:]) < 40, "two watermarks of them, and not 64"


def test_no_stream_begins_while_many_large_payloads_are_queued() -> None:
    connection = server(limits=Limits(mtu=100))
    ids = range(1, 19, 2)
    connection.receive(wire(*map(RequestResponse, ids)), 0.0)
    for stream_id in ids:
        connection.send(stream_id, Payload(bytes(1000)))
    connection.receive(wire(RequestStream(19, 1)), 0.0)
    assert connection.flush(0.0) == [], "its first element might be as large"
    sent(connection)
    assert connection.flush(0.0) == [DemandReceived(19, 1)]


def test_frames_beyond_those_of_one_turn_are_read_in_the_next() -> None:
    connection = server()
    connection.frames_a_turn = 2
    requests = wire(*(RequestFnf(stream_id, X) for stream_id in (1, 3, 5)))
    told = [connection.receive(requests, 0.0)]
    while connection.has_more:
        told.append(connection.read_more(0.0))
    assert list(map(len, told)) == [2, 1]


def test_a_short_turn_takes_all_output_or_none() -> None:
    connection = server()
    connection.receive(wire(*map(RequestResponse, (1, 3, 5))), 0.0)
    connection.respond_all([(1, b"y")])
    assert connection.last_output() == wire(PayloadFrame(1, Payload(b"y"), complete=True))
    assert connection.last_output() == b""
    connection.respond_all([(3, bytes(20_000)), (5, bytes(20_000))])
    assert connection.last_output() is None, "it would be all at once"
    connection = server()
    connection.receive(wire(RequestResponse(1, follows=True)), 0.0)
    assert connection.last_output() is None, "the rest of the payload has a deadline"
    assert pair(resumption=Resumption())[1].last_output() is None, "what is sent is kept"


def test_keepalives_and_other_streams_overtake_a_large_payload() -> None:
    connection = server(limits=Limits(mtu=1000))
    connection.receive(wire(RequestResponse(1), RequestResponse(3), RequestResponse(5)), 0.0)
    connection.send(1, Payload(bytes(100_000)))
    connection.send(3, Payload(bytes(2_000)))
    first = read(connection.data_to_send(3000))
    assert [frame.stream_id for frame in first if isinstance(frame, PayloadFrame)] == [1, 3, 1]
    connection.receive(wire(KeepAlive(True, data=b"now")), 0.0)
    connection.send(5, X)
    second = read(connection.data_to_send(4000))
    assert second[0] == KeepAlive(False, data=b"now")
    assert PayloadFrame(5, X, complete=True) in second
    rest = sent(connection)
    assert len(rest) > 80
    assert connection.queued_bytes == 0


def test_a_large_payload_arrives_whole() -> None:
    asking, answering = pair()
    big = Payload(bytes(range(256)) * 60_000, b"m" * 100_000)
    stream_id = asking.request_response(big)
    [event] = carry(asking, answering)
    assert event == RequestReceived(stream_id, InteractionModel.RESPONSE, big)
    answering.send(stream_id, big)
    assert asking.receive(b"".join(iter(answering.data_to_send, b"")), 0.0) == [
        elements(stream_id, [big], complete=True)
    ]


def test_a_fragmented_channel_request_may_be_complete() -> None:
    connection = server()
    first = RequestChannel(1, 1, Payload(b"a"), follows=True, complete=True)
    assert connection.receive(wire(first), 0.0) == []
    events = connection.receive(wire(PayloadFrame(1, Payload(b"b"), next=False)), 0.0)
    assert events == [RequestReceived(1, InteractionModel.CHANNEL, Payload(b"ab"), complete=True)]


@given(st.integers(40, 70), st.none() | st.integers(0, 30), st.booleans())
def test_payloads_around_the_limit_of_a_frame_leave_nothing_behind(
    size: int, metadata: int | None, stream: bool
) -> None:
    asking, answering = pair(limits=Limits(mtu=64))
    payload = Payload(bytes(size), None if metadata is None else bytes(metadata))
    if stream:
        asking.request_stream(payload, 1)
    else:
        asking.request_response(payload)
    assert one(carry(asking, answering), RequestReceived).payload == payload
    assert asking.queued_bytes == 0
    answering.send(1, payload)
    assert carry(answering, asking) == [elements(1, [payload], complete=not stream)]
    assert answering.queued_bytes == 0


def test_small_and_large_elements_of_a_stream_keep_their_order() -> None:
    asking, answering = pair(limits=Limits(mtu=100))
    stream_id = asking.request_stream(X, 3)
    carry(asking, answering)
    payloads = [Payload(bytes([size]) * size) for size in (1, 255, 2)]
    for payload in payloads:
        answering.send(stream_id, payload)
    [event] = carry(answering, asking)
    assert event == elements(stream_id, payloads)


def test_a_large_payload_that_waits_for_another_can_be_cancelled() -> None:
    connection = server(limits=Limits(mtu=100, max_started=1000))
    connection.receive(wire(*map(RequestResponse, (1, 3, 5))), 0.0)
    for stream_id in (1, 3, 5):
        connection.send(stream_id, Payload(bytes(900)))
    frames = read(connection.data_to_send(100))
    connection.receive(wire(Cancel(3)), 0.0)
    frames += sent(connection)
    sizes = Counter[int]()
    for frame in frames:
        assert isinstance(frame, PayloadFrame)
        sizes[frame.stream_id] += len(frame.payload.data)
    assert sizes == {1: 900, 5: 900}


def test_a_large_payload_can_be_cancelled() -> None:
    asking, answering = pair(limits=Limits(mtu=100))
    stream_id = asking.request_response(Payload(bytes(10_000)))
    answering.receive(asking.data_to_send(500), 0.0)
    asking.cancel(stream_id)
    assert sent(asking) == [Cancel(stream_id)]
    assert asking.queued_bytes == 0
    answering.receive(wire(Cancel(stream_id)), 0.0)
    assert answering.reassemblies.size == 0
    assert not answering.streams.by_id


# -- stream 0 --------------------------------------------------------------------------------------
def test_a_keepalive_is_echoed_with_its_data() -> None:
    connection = server()
    assert connection.receive(wire(KeepAlive(True, 5, b"data")), 0.0) == []
    assert sent(connection) == [KeepAlive(False, 0, b"data")]
    connection.receive(wire(KeepAlive(False, 5, b"data")), 0.0)
    assert sent(connection) == []


def test_a_client_sends_keepalives_and_detects_a_silent_server() -> None:
    connection = client(Setup(keepalive=1000, lifetime=2500))
    assert connection.next_deadline() == 1.0
    connection.tick(1.0)
    assert sent(connection) == [KeepAlive(True)]
    connection.tick(2.0)
    events = connection.tick(2.5)
    assert one(events, Closed).data == b"no sign of life from the peer"


def test_leases_are_kept_by_both_sides() -> None:
    asking, answering = pair(Setup(lease=True), lease=True)
    with pytest.raises(NoLease):
        asking.request_response(X)
    with pytest.raises(NoLease):
        answering.request_response(X)
    answering.receive(wire(RequestResponse(1)), 0.0)
    assert sent(answering) == [Error(1, ErrorCode.REJECTED, b"no lease")]
    answering.grant_lease(1, 1000, b"m")
    assert carry(answering, asking) == [Lease(1000, 1, b"m")]
    asking.request_response(X)
    assert one(carry(asking, answering), RequestReceived).payload == X
    with pytest.raises(NoLease):
        asking.request_response(X)
    answering.grant_lease(1, 1000)
    carry(answering, asking)
    asking.tick(1.0)
    with pytest.raises(NoLease):
        asking.request_response(X)
    with pytest.raises(ValueError, match="did not request leases"):
        server().grant_lease(1, 1)


def test_metadata_for_the_connection_is_sent() -> None:
    connection = server()
    connection.metadata_push(b"m")
    assert sent(connection) == [MetadataPush(b"m")]


# -- the end ---------------------------------------------------------------------------------------
def test_closing_fails_open_streams() -> None:
    connection = client()
    stream_id = connection.request_channel(X, 5)
    connection.close("enough")
    assert connection.flush(0.0) == [
        Failed(stream_id, ErrorCode.CONNECTION_ERROR, b"enough", local=True),
        Cancelled(stream_id),
        Closed(ErrorCode.CONNECTION_ERROR, b"enough", local=True),
    ]
    assert sent(connection) == [Error(0, ErrorCode.CONNECTION_ERROR, b"enough")]
    assert connection.is_closed


def test_draining_waits_for_open_streams() -> None:
    asking, answering = pair()
    stream_id = asking.request_response(X)
    carry(asking, answering)
    answering.close_gracefully("restart")
    answering.close_gracefully()
    announced = answering.data_to_send()
    assert read(announced) == [Error(0, ErrorCode.CONNECTION_CLOSE, b"restart")]
    asking.receive(announced, 0.0)
    with pytest.raises(ConnectionLost, match="peer is closing"):
        asking.request_response(X)
    answering.send(stream_id, Y)
    assert elements(stream_id, [Y], complete=True) in carry(answering, asking)
    assert answering.flush(0.0) == [Closed(ErrorCode.CONNECTION_CLOSE, b"", local=True)]
    assert (asking.is_closed, answering.is_closed) == (True, True)
    answering.close_gracefully("again")
    assert answering.queued_bytes == 0


def test_a_lost_transport_fails_open_streams() -> None:
    connection = client()
    stream_id = connection.request_stream(X, 5)
    assert connection.transport_lost(0.0) == [
        Failed(stream_id, ErrorCode.CONNECTION_ERROR, b"the transport was closed"),
        Closed(ErrorCode.CONNECTION_ERROR, b"the transport was closed", local=False),
    ]
    assert connection.transport_lost(0.0) == []
    assert connection.is_closed
    assert connection.data_to_send() == b""
    assert "CLOSED" in repr(connection)


# -- the fast path ---------------------------------------------------------------------------------
def told(events: list[Event]) -> list[object]:
    """Events with their elements one by one."""
    found: list[object] = []
    for event in events:
        if isinstance(event, Elements):
            found += [(event.stream_id, payload) for payload in event.payloads]
            found += ["complete"] if event.complete else []
        else:
            found.append(event)
    return found


ELEMENTS = st.builds(
    PayloadFrame, st.sampled_from([1, 3, 9]), st.sampled_from([X, Y, Z]), BOOLS, BOOLS
)


@given(st.lists(ELEMENTS, max_size=20), st.integers(1, 60), st.integers(1, 6))
def test_elements_read_in_runs_equal_those_read_one_by_one(
    frames: list[PayloadFrame], cut: int, n: int
) -> None:
    fast, slow = (
        client(),
        client(resumption=Resumption()),
    )  # resumption counts positions, so it reads no runs
    data = wire(KeepAlive(False), *frames)
    received: list[list[Event]] = [[], []]
    for connection, events in zip((fast, slow), received, strict=True):
        connection.request_stream(X, n)
        connection.request_stream(X, 2**63 - 1)
        for at in range(0, len(data), cut):
            events += connection.receive(data[at : at + cut], 0.0)
    assert told(received[0]) == told(received[1])
    assert fast.streams.by_id.keys() == slow.streams.by_id.keys()
    assert sent(fast) == sent(slow)
