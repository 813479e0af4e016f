"""Frames and their bytes: by the protocol's own layouts, both ways, and whatever the bytes."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from reactive_aio.rsocket.protocol.codec import add_length, decode, encode, encode_payload, header
from reactive_aio.rsocket.protocol.errors import ProtocolError
from reactive_aio.rsocket.protocol.frames import (
    MAX_31,
    MAX_FRAME,
    Cancel,
    Error,
    ErrorCode,
    Ext,
    Frame,
    FrameType,
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

from .wire import ANY_FRAME, BOOLS, FRAMES, PAYLOADS, N

# Encoded manually from the diagrams: stream id, type and flags, then each field.
GOLDEN: dict[str, tuple[Frame, str]] = {
    "setup": (
        Setup(500, 3000, "a/b", "c", Payload(b"data", b"meta")),
        "00000000 0500 0001 0000 000001f4 00000bb8 03612f62 0163 000004 6d657461 64617461",
    ),
    "setup that resumes and honours leases": (
        Setup(1, 2, "", "", token=b"tok", lease=True),
        "00000000 04c0 0001 0000 00000001 00000002 0003 746f6b 00 00",
    ),
    "lease": (Lease(1000, 5), "00000000 0800 000003e8 00000005"),
    "lease with metadata": (Lease(1, 2, b"m"), "00000000 0900 00000001 00000002 6d"),
    "keepalive to be answered": (
        KeepAlive(True, 258, b"x"),
        "00000000 0c80 0000000000000102 78",
    ),
    "keepalive": (KeepAlive(False), "00000000 0c00 0000000000000000"),
    "request response": (RequestResponse(1, Payload(b"hi")), "00000001 1000 6869"),
    "request response, fragment": (
        RequestResponse(1, Payload(b"d", b"m"), follows=True),
        "00000001 1180 000001 6d 64",
    ),
    "fire and forget": (RequestFnf(3, Payload(b"", b"")), "00000003 1500 000000"),
    "request stream": (RequestStream(5, 7, Payload(b"s")), "00000005 1800 00000007 73"),
    "request channel": (
        RequestChannel(MAX_31, MAX_31, Payload(b"c", b"mm"), complete=True),
        "7fffffff 1d40 7fffffff 000002 6d6d 63",
    ),
    "request n": (RequestN(1, 256), "00000001 2000 00000100"),
    "cancel": (Cancel(9), "00000009 2400"),
    "payload": (PayloadFrame(1, Payload(b"ab")), "00000001 2820 6162"),
    "payload, the last": (
        PayloadFrame(1, Payload(b"a", b"m"), complete=True),
        "00000001 2960 000001 6d 61",
    ),
    "payload, complete only": (
        PayloadFrame(1, next=False, complete=True),
        "00000001 2840",
    ),
    "payload, fragment": (PayloadFrame(1, follows=True), "00000001 28a0"),
    "error": (
        Error(2, ErrorCode.APPLICATION_ERROR, b"no"),
        "00000002 2c00 00000201 6e6f",
    ),
    "error of an application": (Error(2, 0xFFFFFFFE), "00000002 2c00 fffffffe"),
    "metadata push": (MetadataPush(b"mp"), "00000000 3100 6d70"),
    "resume": (
        Resume(b"tok", 1, 2),
        "00000000 3400 0001 0000 0003 746f6b 0000000000000001 0000000000000002",
    ),
    "resume ok": (ResumeOk(255), "00000000 3800 00000000000000ff"),
    "ext": (Ext(4, 1, b"e", ignore=True), "00000004 fe00 00000001 65"),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_frames_are_encoded_and_decoded_as_in_the_specification(name: str) -> None:
    frame, drawn = GOLDEN[name]
    assert encode(frame).hex() == drawn.replace(" ", "")
    assert decode(bytes.fromhex(drawn)) == frame


def test_every_type_of_frame_has_an_example() -> None:
    assert {type(frame) for frame, _ in GOLDEN.values()} == set(FRAMES)
    kinds = {header(bytes.fromhex(drawn))[1] for _, drawn in GOLDEN.values()}
    assert kinds == {int(kind) for kind in FrameType}


@pytest.mark.parametrize("kind", FRAMES, ids=lambda kind: kind.__name__)
def test_frames_round_trip(kind: type[Any]) -> None:
    @given(FRAMES[kind])
    @settings(max_examples=50)
    def check(frame: Frame) -> None:
        written = encode(frame)
        assert decode(written) == frame
        assert decode(memoryview(written)) == frame

    check()


@given(PAYLOADS, N, BOOLS)
def test_the_fast_encoder_produces_the_same_bytes(payload: Payload, n: int, complete: bool) -> None:
    bits = 0x40 if complete else 0
    element = PayloadFrame(n, payload, complete=complete)
    stream, response = RequestStream(n, n, payload), RequestResponse(n, payload)
    channel = RequestChannel(n, n, payload, complete=complete)
    assert encode_payload(n, 0x2820 | bits, payload) == add_length(encode(element))
    assert encode_payload(n, 0x1800, payload, n) == add_length(encode(stream))
    assert encode_payload(n, 0x1C00 | bits, payload, n) == add_length(encode(channel))
    assert encode_payload(n, 0x1000, payload) == add_length(encode(response))


# -- bits that say nothing -------------------------------------------------------------------------
@given(ANY_FRAME)
def test_the_top_bit_of_a_stream_id_is_masked(frame: Frame) -> None:
    written = bytearray(encode(frame))
    written[0] |= 0x80
    assert decode(bytes(written)) == frame


@pytest.mark.parametrize(
    ("frame", "at"),
    [
        (RequestN(1, 5), 6),
        (RequestStream(1, 5), 6),
        (RequestChannel(1, 5), 6),
        (Lease(5, 6), 6),
        (Lease(5, 6), 10),
        (KeepAlive(True, 5), 6),
        (ResumeOk(5), 6),
        (Setup(), 10),
        (Setup(), 14),
        (Ext(1, 5), 6),
    ],
)
def test_top_bits_of_numbers_are_masked(frame: Frame, at: int) -> None:
    written = bytearray(encode(frame))
    written[at] |= 0x80
    assert decode(bytes(written)) == frame


@pytest.mark.parametrize("frame", [Cancel(1), RequestN(1, 2), RequestResponse(1)])
def test_flags_without_a_meaning_are_not_interpreted(frame: Frame) -> None:
    written = bytearray(encode(frame))
    written[5] |= 0x1F
    assert decode(bytes(written)) == frame


def test_follows_is_ignored_on_a_payload_that_is_complete() -> None:
    assert decode(bytes.fromhex("00000001 28c0")) == PayloadFrame(1, next=False, complete=True)


# -- what cannot be read ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("", "shorter than its header"),
        ("0000000100", "shorter than its header"),
        ("00000001 2000 0000", "REQUEST_N frame of 8 bytes is cut short"),
        ("00000001 2c00 00", "ERROR"),
        ("00000001 1800 000000", "REQUEST_STREAM"),
        ("00000001 2920 000005 61", "metadata of 5 bytes"),
        ("00000001 2920 0000", "length of its metadata"),
        ("00000000 0c00 00", "KEEPALIVE"),
        ("00000000 0800 00000000", "LEASE"),
        ("00000000 3800 00", "RESUME_OK"),
        ("00000001 0000", "unknown type 0x00"),
        ("00000001 7c00", "unknown type 0x1F"),
        ("00000001 fc00 00", "EXT"),
    ],
)
def test_a_malformed_frame_is_a_connection_error(data: str, says: str) -> None:
    with pytest.raises(ProtocolError, match=says) as caught:
        decode(bytes.fromhex(data))
    assert caught.value.code == ErrorCode.CONNECTION_ERROR


@pytest.mark.parametrize("data", ["00000001 7e00", "00000001 2b20 000005 61", "00000001 fe00 00"])
def test_unknown_frames_that_may_be_ignored_are_skipped(data: str) -> None:
    assert decode(bytes.fromhex(data)) is None


@pytest.mark.parametrize(
    "data",
    [
        "00000000 0400 0001 0000 00000001 000000",
        "00000000 0400 0001 0000 00000000 00000001 00 00",
        "00000000 0400 0001 0000 00000001 00000000 00 00",
        "00000000 0400 0001 0000 00000001 00000001",
        "00000000 0400 0001 0000 00000001 00000001 05 6161",
        "00000000 0400 0001 0000 00000001 00000001 01 ff 00",
        "00000000 0480 0001 0000 00000001 00000001 00ff 6161",
        "00000000 0480 0001 0000 00000001 00000001 00",
        "00000000 0500 0001 0000 00000001 00000001 00 00 000005 61",
        "00000000 0600 0001 0000 00000001 000000",
    ],
)
def test_a_wrong_setup_is_an_invalid_setup(data: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(bytes.fromhex(data))
    assert caught.value.code == ErrorCode.INVALID_SETUP


@given(st.binary(max_size=80))
def test_any_bytes_decode_to_a_frame_or_a_protocol_error(data: bytes) -> None:
    try:
        frame = decode(data)
    except ProtocolError:
        return
    assert frame is None or isinstance(frame, tuple(FRAMES))


@given(ANY_FRAME, st.data())
def test_a_changed_frame_decodes_to_a_frame_or_a_protocol_error(
    frame: Frame, data: st.DataObject
) -> None:
    written = bytearray(encode(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(written)))
    try:
        decode(bytes(written[:cut]))
    except ProtocolError:
        pass


# -- what cannot be written ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "frame",
    [
        Cancel(-1),
        Cancel(MAX_31 + 1),
        RequestN(1, 0),
        RequestN(1, MAX_31 + 1),
        RequestStream(1, 0),
        RequestChannel(1, -1),
        Setup(keepalive=0),
        Setup(lifetime=0),
        Setup(data_mime="x" * 256),
        Setup(data_mime="ü"),
        Setup(token=b"x" * 65536),
        Lease(-1, 1),
        KeepAlive(True, -1),
        Error(1, 2**32),
        PayloadFrame(1, Payload(bytes(MAX_FRAME))),
        PayloadFrame(1, Payload(b"", bytes(MAX_FRAME + 1))),
    ],
    ids=lambda frame: repr(frame)[:40],
)
def test_values_that_do_not_fit_their_field_are_refused(frame: Frame) -> None:
    with pytest.raises(ValueError, match=r"must be|does not fit|fragment it|ascii"):
        encode(frame)


def test_the_longest_frame_fits_its_length() -> None:
    frame = encode(PayloadFrame(1, Payload(bytes(MAX_FRAME - 6))))
    assert add_length(frame)[:3] == b"\xff\xff\xff"
