"""Payloads cut and put together again, within bounds."""

import pytest
from hypothesis import given, strategies as st

from reactive_aio.rsocket.protocol.codec import decode, encode, split_messages
from reactive_aio.rsocket.protocol.errors import ProtocolError
from reactive_aio.rsocket.protocol.fragmentation import Reassemblies, fragments
from reactive_aio.rsocket.protocol.frames import (
    Payload,
    PayloadFrame,
    RequestChannel,
    RequestFnf,
    RequestFrame,
    RequestResponse,
    RequestStream,
)
from reactive_aio.rsocket.protocol.limits import Limits

LONG = st.binary(max_size=600)
BIG = st.builds(Payload, LONG, st.none() | LONG)
CUTTABLE = st.one_of(
    st.builds(RequestResponse, st.just(1), BIG),
    st.builds(RequestFnf, st.just(1), BIG),
    st.builds(RequestStream, st.just(1), st.integers(1, 9), BIG),
    st.builds(RequestChannel, st.just(1), st.integers(1, 9), BIG, st.just(False), st.booleans()),
    st.builds(PayloadFrame, st.just(1), BIG, st.just(True), st.booleans()),
)
Fragmentable = RequestFrame | PayloadFrame


def cut(frame: Fragmentable, mtu: int) -> list[bytes]:
    """The fragments of *frame*, without their lengths."""
    bits = int.from_bytes(encode(frame)[4:6], "big") & ~0x100
    n = getattr(frame, "n", 0)
    pieces = fragments(frame.stream_id, bits, frame.payload, n, mtu)
    return [split_messages(piece)[0] for piece in pieces]


@given(CUTTABLE, st.integers(64, 200))
def test_fragments_reassemble_to_the_payload(frame: Fragmentable, mtu: int) -> None:
    pieces = cut(frame, mtu)
    assert max(map(len, pieces)) <= mtu
    if len(pieces) == 1:
        assert decode(pieces[0]) == frame
        return
    partials = Reassemblies(Limits())
    partial = partials.begin(1, 0.0)
    for number, piece in enumerate(pieces):
        part = decode(piece)
        assert isinstance(part, type(frame) if number == 0 else PayloadFrame)
        assert isinstance(part, Fragmentable)
        assert part.follows == (number < len(pieces) - 1)
        assert part.payload != Payload(), "no fragment is empty"
        partials.add(partial, part.payload, part.follows, 0.0)
    assert partial.whole() == frame.payload
    last = decode(pieces[-1])
    assert isinstance(last, PayloadFrame)
    assert last.complete == getattr(frame, "complete", False)
    partials.end(partial)
    assert (partials.count, partials.size) == (0, 0)


@given(CUTTABLE, st.integers(64, 200))
def test_metadata_goes_before_data(frame: Fragmentable, mtu: int) -> None:
    data_seen = False
    for piece in cut(frame, mtu):
        part = decode(piece)
        assert isinstance(part, Fragmentable)
        assert not (data_seen and part.payload.metadata is not None)
        data_seen |= bool(part.payload.data)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(max_payload=10), "more than 10 bytes"),
        (Limits(max_partial=10), "more than 10 bytes of unfinished"),
        (Limits(max_empty_fragments=1), "more than 1 empty"),
    ],
)
def test_an_unfinished_payload_is_bounded(limits: Limits, says: str) -> None:
    partials = Reassemblies(limits)
    partial = partials.begin(1, 0.0)
    content = b"" if "empty" in says else b"123456"
    partials.add(partial, Payload(content), True, 0.0)
    with pytest.raises(ProtocolError, match=says):
        partials.add(partial, Payload(content), True, 0.0)


def test_the_number_and_the_sum_of_unfinished_payloads_are_bounded() -> None:
    partials = Reassemblies(Limits(max_partials=2, max_partial=10))
    first, second = partials.begin(1, 0.0), partials.begin(3, 0.0)
    partials.add(first, Payload(b"12345"), True, 0.0)
    partials.add(second, Payload(b"12345"), True, 0.0)
    third = partials.begin(5, 0.0)
    with pytest.raises(ProtocolError, match="more than 2 unfinished"):
        partials.add(third, Payload(b""), True, 0.0)
    partials.end(third)
    with pytest.raises(ProtocolError, match="more than 10 bytes of unfinished"):
        partials.add(second, Payload(b"1"), True, 0.0)
    partials.end(second)
    partials.add(first, Payload(b"1"), True, 0.0)
    assert (partials.count, partials.size) == (1, 6)
