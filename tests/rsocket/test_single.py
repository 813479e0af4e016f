"""Requests and responses of the fast path: their order, their end, their accounting."""

from collections.abc import Callable

from hypothesis import given, strategies as st

from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    KeepAlive,
    Payload,
    PayloadFrame,
    RequestFrame,
    RequestResponse,
)
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.outbound_queue import COALESCE_LIMIT

from .wire import BOOLS, carry, client, pair, read, sent, server, wire

X = Payload(b"x")
LARGE = Payload(bytes(3000))


def test_a_request_cancelled_before_it_is_sent_sends_nothing() -> None:
    connection = client()
    for payload in (X, LARGE):
        connection.cancel(connection.request_response(payload))
    assert sent(connection) == []
    assert connection.queued_bytes == 0
    assert not connection.streams.by_id


def test_a_sent_request_is_cancelled_by_a_frame() -> None:
    connection = client()
    stream_id = connection.request_response(X)
    assert len(sent(connection)) == 1
    connection.cancel(stream_id)
    assert sent(connection) == [Cancel(stream_id)]


def test_a_response_before_its_request_is_sent_drops_the_request() -> None:
    connection = client()
    connection.receive(wire(KeepAlive(False)), 0.0)
    stream_id = connection.request_response(X)
    answer = PayloadFrame(stream_id, X, next=True, complete=True)
    connection.receive(wire(answer), 0.0)
    assert sent(connection) == []
    assert connection.queued_bytes == 0


def ask(connection: Connection) -> None:
    connection.request_response(Payload(bytes(500), b"m"))


def forget(connection: Connection) -> None:
    connection.fire_and_forget(X)


def stream(connection: Connection) -> None:
    connection.request_stream(X, 1)


def channel(connection: Connection) -> None:
    connection.request_channel(X, 1)


def large(connection: Connection) -> None:
    connection.request_response(LARGE)


@given(
    st.lists(st.sampled_from([ask, forget, stream, channel, large]), max_size=200),
    st.integers(1, 4000),
    BOOLS,
)
def test_streams_open_in_the_order_of_their_ids(
    requests: list[Callable[[Connection], None]], at_most: int, at_once: bool
) -> None:
    connection, data = client(limits=Limits(mtu=1000)), b""
    for request in requests:
        request(connection)
        data += b"" if at_once else connection.data_to_send(at_most)
    while more := connection.data_to_send(at_most):
        data += more
    begun = [frame.stream_id for frame in read(data) if isinstance(frame, RequestFrame)]
    assert begun == [2 * at + 1 for at in range(len(requests))]
    assert connection.queued_bytes == 0


def test_the_ids_of_requests_begin_again_without_those_in_use() -> None:
    connection = client()
    connection.streams.last_id = 7
    assert [connection.request_response(X) for _ in range(4)] == [1, 3, 5, 7]
    sent(connection)
    connection.receive(wire(*(PayloadFrame(each, X, complete=True) for each in (3, 7))), 0.0)
    assert [connection.request_response(X) for _ in range(2)] == [3, 7]


def test_a_response_to_a_cancelled_request_is_not_sent() -> None:
    connection = server(limits=Limits(max_useless=2))
    for stream_id in range(1, 41, 2):
        connection.receive(wire(RequestResponse(stream_id, X)), 0.0)
        assert connection.respond_all([(stream_id, b"y")])
        assert not connection.respond_all([(stream_id, b"z")]), "one is all"
        assert connection.receive(wire(Cancel(stream_id)), 0.0) == [], "the flood is not meant"
        assert not connection.respond_all([(stream_id, b"y")])
    assert sent(connection) == []
    assert connection.queued_bytes == 0
    assert not connection.streams.by_id
    assert connection.streams.remote_count == 0


def test_an_answered_stream_is_removed() -> None:
    connection = server()
    ids = range(1, 201, 2)
    connection.receive(wire(*(RequestResponse(stream_id, X) for stream_id in ids)), 0.0)
    for stream_id in ids:
        assert connection.respond_all([(stream_id, b"y")])
    assert sent(connection) == [
        PayloadFrame(stream_id, Payload(b"y"), next=True, complete=True) for stream_id in ids
    ]
    assert not connection.streams.by_id
    assert connection.streams.remote_count == 0


def test_a_stream_is_served_among_endless_responses() -> None:
    asking, answering = pair(limits=Limits(max_streams=2000, max_requests=2000))
    stream_id = asking.request_stream(X, 5)
    many = [asking.request_response(X) for _ in range(1000)]
    carry(asking, answering)
    for each in many:
        answering.respond_all([(each, bytes(500))])
    answering.send(stream_id, X)
    assert COALESCE_LIMIT <= answering.queued_bytes < COALESCE_LIMIT * 20
    turns = 0
    while PayloadFrame(stream_id, X, next=True) not in read(
        data := answering.data_to_send(COALESCE_LIMIT * 2)
    ):
        turns += 1
        assert len(data) < COALESCE_LIMIT * 3
        for each in [asking.request_response(X) for _ in range(100)]:
            answering.receive(wire(RequestResponse(each, X)), 0.0)
            answering.respond_all([(each, bytes(500))])
    assert turns <= 1000 * 500 // COALESCE_LIMIT


def test_frames_of_the_connection_are_sent_first() -> None:
    connection = server()
    connection.receive(wire(RequestResponse(1, X)), 0.0)
    connection.respond_all([(1, b"y")])
    connection.receive(wire(KeepAlive(True)), 0.0)
    assert [type(frame) for frame in sent(connection)] == [KeepAlive, PayloadFrame]


def test_respond_is_equivalent_to_send() -> None:
    for data in (b"", b"y", bytes(70_000)):
        fast, slow = (pair() for _ in range(2))
        for asking, answering in (fast, slow):
            asking.request_response(X)
            carry(asking, answering)
        assert fast[1].respond_all([(1, data)])
        assert slow[1].send(1, Payload(data))
        assert sent(fast[1]) == sent(slow[1])
        assert fast[1].streams.remote_count == slow[1].streams.remote_count == 0
