"""Runs of frames are read as the stream machine reads each, and all others are left to it."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import Elements, Event, ResponseRequests
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    Frame,
    KeepAlive,
    Payload,
    PayloadFrame,
    RequestChannel,
    RequestN,
    RequestResponse,
    RequestStream,
)
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.runs import read_runs

from .wire import BOOLS, apart, client, server, wire

X = Payload(b"x")
DATA = st.sampled_from([b"", b"x", b"twenty-six bytes of payload", bytes(70)])
PAYLOADS = st.builds(Payload, DATA, st.none() | DATA)
IDS = st.integers(0, 9)
FRAMES: st.SearchStrategy[Frame] = st.one_of(
    st.builds(RequestResponse, IDS, PAYLOADS, BOOLS),
    st.builds(PayloadFrame, IDS, PAYLOADS, BOOLS, BOOLS, BOOLS),
    st.builds(PayloadFrame, IDS, PAYLOADS, st.just(True), st.just(False), st.just(False)),
    st.builds(RequestStream, IDS, st.integers(1, 5), PAYLOADS),
    st.builds(RequestChannel, IDS, st.integers(1, 5), PAYLOADS),
    st.builds(RequestN, IDS, st.integers(1, 5)),
    st.builds(Cancel, IDS),
)


class LongWay(Connection):
    """A connection that reads each frame by itself."""

    @property
    def has_only_streams(self) -> bool:
        return False


def long_way(connection: Connection) -> Connection:
    """The same connection, which reads each frame by itself."""
    connection.__class__ = LongWay
    return connection


def told(events: list[Event]) -> list[Any]:
    """*events*, where it does not count how elements are put together."""
    found: list[Any] = []
    for event in apart(events):
        if isinstance(event, Elements):
            found += [(event.stream_id, payload) for payload in event.payloads]
            found += [(event.stream_id, "complete")] if event.complete else []
        else:
            found.append(event)
    return found


def asking(connection: Connection) -> Connection:
    """A client that waits for answers and elements."""
    for _ in range(2):
        connection.request_response(Payload(b"?"))
        connection.request_stream(Payload(b"?"), 4)
    connection.request_channel(Payload(b"?"), 2)
    connection.data_to_send()
    connection.receive(wire(RequestN(9, 1)), 0.0)  # from here on the server is known to be one
    return connection


@pytest.mark.parametrize("side", [client, server])
@given(frames=st.lists(FRAMES, max_size=12), cuts=st.lists(st.integers(1, 200), max_size=6))
def test_runs_are_read_as_each_frame_by_itself(
    side: Any, frames: list[Frame], cuts: list[int]
) -> None:
    limits = Limits(max_streams=3, max_useless=6)
    fast, slow = side(limits=limits), long_way(side(limits=limits))
    if side is client:
        fast, slow = asking(fast), asking(slow)
    data = b"".join(map(wire, frames))
    for cut in [*cuts, len(data)]:
        piece, data = data[:cut], data[cut:]
        assert told(fast.receive(piece, 0.0)) == told(slow.receive(piece, 0.0))
        assert fast.data_to_send() == slow.data_to_send()
    assert fast.phase is slow.phase
    live = [
        {
            key: (each.state, each.inbound_credit, each.outbound_credit)
            for key, each in ends.streams.by_id.items()
        }
        for ends in (fast, slow)
    ]
    assert live[0] == live[1]


RUNS = st.lists(
    st.tuples(st.sampled_from([1, 3]), st.sampled_from([0, 1, 26, 300]), st.integers(1, 9)),
    max_size=6,
)
"""Runs of elements: the stream, the size of its elements, and how many there are."""


@given(runs=RUNS, demand=st.integers(1, 30), cuts=st.lists(st.integers(1, 900), max_size=4))
def test_runs_of_elements_of_one_size_are_read_as_each_by_itself(
    runs: list[tuple[int, int, int]], demand: int, cuts: list[int]
) -> None:
    fast, slow = client(), long_way(client())
    for each in (fast, slow):
        for _ in range(2):
            each.request_stream(Payload(b"?"), demand)
        each.data_to_send()
        each.receive(wire(KeepAlive(False)), 0.0)  # from here on the server is known to be one
    frames = [
        PayloadFrame(stream_id, Payload(bytes([number]) * size), True)
        for stream_id, size, count in runs
        for number in range(count)
    ]
    data = b"".join(map(wire, frames))
    for cut in [*cuts, len(data)]:
        piece, data = data[:cut], data[cut:]
        assert told(fast.receive(piece, 0.0)) == told(slow.receive(piece, 0.0))
        assert fast.data_to_send() == slow.data_to_send()


@given(sizes=st.lists(st.sampled_from([0, 26, 300]), min_size=1, max_size=4), is_even=BOOLS)
def test_elements_of_one_turn_are_written_as_each_by_itself(
    sizes: list[int], is_even: bool
) -> None:
    elements = [bytes([number]) * (26 if is_even else size) for number, size in enumerate(sizes)]
    limits = Limits(mtu=100)
    together, apart_from_each_other = server(limits=limits), server(limits=limits)
    for each in (together, apart_from_each_other):
        each.receive(wire(*(RequestStream(stream_id, len(sizes)) for stream_id in (1, 3))), 0.0)
        each.flush(0.0)
    for stream_id in (1, 3):  # they take turns, and none takes more for having sent all at once
        assert together.send_all(stream_id, elements)
        assert together.streams.by_id[stream_id].queued_frames == len(elements)
        for element in elements:
            assert apart_from_each_other.send(stream_id, Payload(element))
    assert together.queued_bytes == apart_from_each_other.queued_bytes
    assert together.data_to_send() == apart_from_each_other.data_to_send()


def test_requests_for_one_element_are_read_in_runs() -> None:
    connection = server()
    frames: list[Frame] = [
        RequestResponse(1, Payload(b"x")),
        RequestResponse(3, Payload(b"y", b"m")),
    ]
    expected = ResponseRequests([(1, b"x", None), (3, b"y", b"m")])
    assert connection.receive(wire(*frames), 0.0) == [expected]


@pytest.mark.parametrize(
    "frame",
    [
        RequestResponse(2, Payload(b"of the wrong side")),
        RequestResponse(1, Payload(b"to be continued"), follows=True),
        PayloadFrame(1, Payload(b"for no stream")),
        RequestN(1, 1),
    ],
)
def test_other_frames_are_in_no_run(frame: Frame) -> None:
    assert read_runs(server(), wire(frame), 0) == 0


def test_a_run_ends_before_a_frame_that_is_cut_short() -> None:
    first, second = wire(RequestResponse(1, X)), wire(RequestResponse(3, X))
    assert read_runs(server(), (first + second)[:-1], 0) == len(first)


@pytest.mark.parametrize(
    ("frame", "most"), [(PayloadFrame(3, X), 4), (PayloadFrame(1, X, complete=True), 1)]
)
def test_what_was_not_requested_is_in_no_run(frame: Frame, most: int) -> None:
    data = wire(frame)
    assert read_runs(asking(client()), data * 5, 0) == len(data) * most
    assert asking(client()).receive(data[:-1], 0.0) == [], "it is told when it is whole"


def test_bytes_of_a_payload_are_never_read_as_frames() -> None:
    hidden = wire(RequestResponse(3, X))
    connection, data = server(), wire(RequestResponse(1, Payload(hidden)))
    events = connection.receive(data.removesuffix(hidden), 0.0) + connection.receive(hidden, 0.0)
    assert events == [ResponseRequests([(1, hidden, None)])]


def test_the_reserved_bit_of_an_id_is_ignored() -> None:
    data = bytearray(wire(RequestResponse(1, X)))
    data[3] |= 0x80
    assert server().receive(bytes(data), 0.0) == [ResponseRequests([(1, b"x", None)])]
