"""The small machines of a connection: ids, leases, signs of life, floods, the store."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reactive_aio.rsocket.link.by_client import ByClient
from reactive_aio.rsocket.protocol.errors import (
    ApplicationError,
    ConnectionLost,
    NoStreamLeft,
    ProtocolError,
    RequestRejected,
    SetupRejected,
    StreamFailed,
    error_of,
)
from reactive_aio.rsocket.protocol.flood import Bucket, FloodGuard
from reactive_aio.rsocket.protocol.frames import PayloadFrame
from reactive_aio.rsocket.protocol.keepalive import KeepAliveTimer
from reactive_aio.rsocket.protocol.limits import Allowance, Limits
from reactive_aio.rsocket.protocol.resume import ResumeBuffer, Resumption, Sessions
from reactive_aio.rsocket.protocol.stream_states import InteractionModel, State
from reactive_aio.rsocket.protocol.streams import Stream, Streams


# -- ids -------------------------------------------------------------------------------------------
def opened(streams: Streams) -> Stream:
    stream = Stream(streams.next_id(), InteractionModel.STREAM, State.REQUESTER_STREAM, 1)
    streams.add(stream)
    return stream


@pytest.mark.parametrize(("client", "ids"), [(True, [1, 3, 5]), (False, [2, 4, 6])])
def test_ids_go_up_by_two(client: bool, ids: list[int]) -> None:
    streams = Streams(client=client)
    assert [opened(streams).id for _ in ids] == ids
    assert all(streams.is_local_id(each) and not streams.is_local_id(each + 1) for each in ids)


def test_ids_wrap_around_and_skip_those_in_use() -> None:
    streams = Streams(client=True, last=7)
    first, second, third, fourth = (opened(streams) for _ in range(4))
    with pytest.raises(NoStreamLeft, match="all 4 stream ids"):
        streams.next_id()
    assert streams.remove(second)
    assert streams.next_id() == 3
    assert streams.remove(fourth)
    assert not streams.remove(fourth)
    assert streams.next_id() == 7
    assert streams.by_id == {1: first, 5: third}


# -- leases ----------------------------------------------------------------------------------------
def test_a_lease_limits_requests_and_time() -> None:
    lease = Allowance()
    assert not lease.take(0.0)
    lease.grant(2, 1.0, now=10.0)
    assert lease.take(10.0)
    assert lease.take(10.9)
    assert not lease.take(10.9)
    lease.grant(1, 1.0, now=11.0)
    assert not lease.take(12.0)


def test_a_lease_replaces_the_previous_one() -> None:
    lease = Allowance()
    lease.grant(5, 10.0, now=0.0)
    lease.grant(0, 10.0, now=0.0)
    assert not lease.take(0.0)


# -- signs of life ---------------------------------------------------------------------------------
def test_a_client_sends_a_keepalive_each_interval() -> None:
    timer = KeepAliveTimer(0.0, lifetime=5.0, interval=1.0)
    assert timer.next_deadline() == 1.0
    assert not timer.is_due(0.9)
    assert timer.is_due(1.0)
    assert not timer.is_due(1.5)
    assert timer.next_deadline() == 2.0


def test_silence_closes_the_connection_and_any_bytes_prevent_that() -> None:
    timer = KeepAliveTimer(0.0, lifetime=5.0, interval=None)
    assert timer.next_deadline() == 5.0
    timer.reset(4.0)
    assert not timer.is_expired(8.9)
    assert timer.is_expired(9.0)


def test_a_late_clock_extends_the_lifetime_by_a_second() -> None:
    timer = KeepAliveTimer(0.0, lifetime=5.0, interval=None)
    assert not timer.is_expired(60.0)
    assert timer.next_deadline() == 61.0
    assert timer.is_expired(61.0)
    timer.reset(61.0)
    assert not timer.is_expired(100.0)
    assert timer.is_expired(200.0)


# -- floods ----------------------------------------------------------------------------------------
def test_a_thousand_useless_frames_a_second_are_too_many() -> None:
    flood = Bucket(1000)
    assert not any(flood.exceeded_by_one(0.0) for _ in range(1000))
    assert flood.exceeded_by_one(0.0)
    assert not any(flood.exceeded_by_one(1.0 + number / 900) for number in range(5000))


def test_useful_frames_compensate_for_useless_ones() -> None:
    flood = Bucket(10)
    for _ in range(1000):
        assert not flood.exceeded_by_one(0.0)
        flood.useful()


def test_elements_in_transit_are_not_counted() -> None:
    streams = Streams(client=True)
    guard = FloodGuard(Limits(max_useless=10), streams)
    stream_id = streams.next_id()
    element = PayloadFrame(stream_id)
    guard.expect(100)
    for _ in range(110):
        guard.count_late_payload(element, 0.0)
    with pytest.raises(ProtocolError, match="a flood"):
        guard.count_late_payload(element, 0.0)


def test_elements_on_streams_that_never_were_are_counted() -> None:
    guard = FloodGuard(Limits(max_useless=10), Streams(client=True))
    guard.expect(100)
    for _ in range(10):
        guard.count_late_payload(PayloadFrame(1), 0.0)
    with pytest.raises(ProtocolError, match="a flood"):
        guard.count_late_payload(PayloadFrame(2), 0.0)


def test_a_peer_is_read_again_when_the_time_that_it_owes_is_over() -> None:
    guard = FloodGuard(Limits(), Streams(client=False))
    guard.spend(1.5, 10.0)
    assert guard.may_be_owed
    assert guard.owed(10.0) == 0.5
    assert guard.owed(10.4999) == 0.0, "too little to wait for"
    assert not guard.may_be_owed, "or a timer would be set for a time that is over"


# -- resuming --------------------------------------------------------------------------------------
@given(st.lists(st.binary(min_size=1, max_size=9), max_size=20), st.integers(1, 1400))
def test_the_store_keeps_the_last_frames_within_its_bound(frames: list[bytes], limit: int) -> None:
    store = ResumeBuffer(limit)
    for frame in frames:
        store.add(frame, len(frame))
    kept = store.frames()
    assert store.size == sum(len(frame) + 128 for frame in kept) <= limit
    assert store.sent == sum(map(len, frames))
    assert store.first == store.sent - sum(map(len, kept))
    assert kept == frames[len(frames) - len(kept) :]
    starts = {sum(map(len, frames[:number])) for number in range(len(frames) + 1)}
    for position in range(store.sent + 2):
        assert store.can_resume(position) == (position in starts and position >= store.first)


def test_acknowledged_frames_are_dropped() -> None:
    store = ResumeBuffer(1000)
    for frame in (b"aaa", b"bb", b"c"):
        store.add(frame, len(frame))
    store.acknowledge(4)
    assert store.frames() == [b"bb", b"c"]
    store.acknowledge(99)
    assert store.frames() == [b"bb", b"c"], "a position that never was"
    store.acknowledge(6)
    assert store.frames() == []


def test_sessions_are_bounded_and_a_token_is_held_once() -> None:
    sessions = Sessions[str](2)
    assert sessions.add(b"a", "one")
    assert not sessions.add(b"a", "other")
    assert sessions.add(b"b", "two")
    assert not sessions.add(b"c", "three")
    assert (sessions.find(b"a"), sessions.find(b"x"), len(sessions)) == ("one", None, 2)
    sessions.remove(b"a")
    assert sessions.add(b"c", "three")


# -- clients ---------------------------------------------------------------------------------------
def test_it_is_known_which_client_has_the_most() -> None:
    random, found = Random(7), ByClient[int, None]()
    expected = list[tuple[int, int]]()
    for number in range(2_000):
        if expected and random.random() < 0.45 + 0.1 * (number % 400 > 200):
            key, who = expected.pop(random.randrange(len(expected)))
            found.remove(key, who)
        else:
            expected.append((random.randrange(5), number))
            found.add(*expected[-1], None)
        counts = Counter(key for key, _ in expected)
        assert {key: len(found.of(key)) for key in range(5) if found.of(key)} == counts
        largest = found.largest
        if expected:
            assert isinstance(largest, int)
            assert counts[largest] == max(counts.values())
        else:
            assert largest is None


# -- settings and errors ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong",
    [{"mtu": 63}, {"mtu": 2**24}, {"max_frame": 2**24}, {"max_streams": 0}, {"setup_timeout": 0}],
)
def test_invalid_limits_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)


def test_invalid_resumption_limits_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="timeout"):
        Resumption(timeout=0)
    with pytest.raises(ValueError, match="limit"):
        Sessions[int](0)


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (0x201, ApplicationError, "APPLICATION_ERROR (0x201): no"),
        (0x202, RequestRejected, "REJECTED (0x202): no"),
        (0x003, SetupRejected, "REJECTED_SETUP (0x003): no"),
        (0x101, ConnectionLost, "CONNECTION_ERROR (0x101): no"),
        (0x1234, ApplicationError, "0x1234: no"),
    ],
)
def test_codes_become_exceptions(code: int, kind: type[StreamFailed], says: str) -> None:
    error = error_of(code, b"no")
    assert type(error) is kind
    assert (error.code, error.data, str(error)) == (code, b"no", says)
