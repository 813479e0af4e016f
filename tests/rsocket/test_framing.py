"""Frames out of a stream of bytes, wherever it is cut."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from reactive_aio.rsocket.protocol.codec import add_length, encode
from reactive_aio.rsocket.protocol.errors import ProtocolError
from reactive_aio.rsocket.protocol.frame_reader import FrameReader
from reactive_aio.rsocket.protocol.frames import Frame

from .wire import ANY_FRAME


@given(st.lists(ANY_FRAME, max_size=6), st.lists(st.integers(0, 400), max_size=12))
def test_frames_are_whole_wherever_the_bytes_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    written = [encode(frame) for frame in frames]
    data = b"".join(map(add_length, written))
    splitter, found = FrameReader(), list[bytes]()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        splitter.feed(data[start:end])
        while (frame := splitter.next()) is not None:
            found.append(frame)
        assert splitter.held <= max(map(len, written), default=0) + 3
    assert found == written
    assert splitter.held == 0


@given(ANY_FRAME)
def test_frames_are_whole_byte_by_byte(frame: Frame) -> None:
    written, splitter = encode(frame), FrameReader()
    for byte in add_length(written):
        assert splitter.next() is None
        splitter.feed(bytes((byte,)))
    assert splitter.next() == written
    assert splitter.held == 0


@pytest.mark.parametrize("length", range(6))
def test_a_length_below_a_header_is_refused_at_once(length: int) -> None:
    splitter = FrameReader()
    splitter.feed(bytes((0, 0, length)))
    with pytest.raises(ProtocolError, match="shorter than its header"):
        splitter.next()


def test_a_length_above_the_limit_is_refused_before_the_frame_arrives() -> None:
    splitter = FrameReader(100)
    splitter.feed(b"\0\0\x65")
    with pytest.raises(ProtocolError, match="101 bytes; at most 100"):
        splitter.next()


def test_the_rest_can_be_taken_out() -> None:
    splitter = FrameReader()
    splitter.feed(b"\0\0\x06abcdefghi")
    assert splitter.next() == b"abcdef"
    assert splitter.rest() == b"ghi"
    assert splitter.held == 0
    assert splitter.next() is None
