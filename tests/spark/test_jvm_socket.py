"""Reading reader from a socket: whole, in pieces, and cut off."""

import errno
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from mmap import mmap
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given, strategies as st

from reactive_aio.spark.arrow import jvm_socket
from reactive_aio.spark.arrow.jvm_socket import (
    END,
    LARGE,
    LARGEST_IN_MEMORY,
    PARTITION_END,
    FrameNotStored,
    FrameReader,
    connect,
)
from tests.harness.outages import Lacking


@pytest.fixture
def pair() -> Iterator[tuple[FrameReader, socket.socket]]:
    local, peer = socket.socketpair()
    reader = FrameReader(local)
    yield reader, peer
    reader.close()
    peer.close()


def framed(*bodies: bytes) -> bytes:
    return b"".join(pack("!i", len(body)) + body for body in bodies)


@given(st.lists(st.binary(min_size=1, max_size=50)), st.lists(st.integers(1, 20), min_size=1))
def test_frames_are_read_whole_however_they_arrive(bodies: list[bytes], pieces: list[int]) -> None:
    local, peer = socket.socketpair()
    reader, stream, found = FrameReader(local), framed(*bodies), list[bytes]()
    while stream:
        for piece in pieces:
            peer.sendall(stream[:piece])
            stream = stream[piece:]
            while (frame := reader.read()) is not None:
                found.append(bytes(frame))
    peer.close()
    assert reader.read() is END
    assert found == bodies
    reader.close()


def test_without_data_read_returns_none(pair: tuple[FrameReader, socket.socket]) -> None:
    assert pair[0].read() is None


def test_a_reader_that_is_dropped_closes_its_socket() -> None:
    local, peer = socket.socketpair()
    with peer:
        FrameReader(local)  # an unclosed socket would be a ResourceWarning, and so an error
        assert peer.recv(1) == b""


def test_an_empty_frame_is_not_the_end(pair: tuple[FrameReader, socket.socket]) -> None:
    reader, peer = pair
    peer.sendall(framed(b"", b"x"))
    assert reader.read() is not END
    assert reader.read() == b"x"


def test_only_the_head_is_read_without_body(
    pair: tuple[FrameReader, socket.socket],
) -> None:
    reader, peer = pair
    peer.sendall(framed(b"abc"))
    before = reader.is_between_frames
    assert reader.read(body=False) is None
    assert (before, reader.is_between_frames) == (True, False)
    assert reader.connection.recv(9, socket.MSG_PEEK) == b"abc"
    assert reader.read() == b"abc"
    peer.close()
    assert reader.read(body=False) is END


def test_a_null_is_the_end_of_a_partition_and_has_no_body(
    pair: tuple[FrameReader, socket.socket],
) -> None:
    reader, peer = pair
    null = pack("!i", -5)
    peer.sendall(framed(b"abc") + null[:3])
    assert reader.read() == b"abc"
    assert reader.read(body=False) is None
    peer.sendall(null[3:] + null + framed(b"d"))
    assert [reader.read(body=False) for _ in range(2)] == [PARTITION_END] * 2
    assert reader.is_between_frames
    assert reader.read() == b"d"


@pytest.mark.parametrize("sent", [b"\0\0", pack("!i", 3), pack("!i", 3) + b"ab"])
def test_an_end_inside_a_frame_is_an_error(
    pair: tuple[FrameReader, socket.socket], sent: bytes
) -> None:
    reader, peer = pair
    peer.sendall(sent)
    peer.close()
    with pytest.raises(EOFError, match="inside"):
        reader.read()


def served(listener: socket.socket, talk: Callable[[socket.socket], object]) -> threading.Thread:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            talk(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def answering(answer: bytes) -> Callable[[socket.socket], object]:
    def talk(connection: socket.socket) -> None:
        assert connection.recv(64) == framed(b"secret")
        connection.sendall(answer)

    return talk


def test_the_secret_opens_a_port_and_the_first_frame_is_not_lost() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = served(listener, answering(framed(b"ok", b"first")))
        reader = connect(listener.getsockname()[1], "secret")
        thread.join()
        assert reader.read() == b"first"
        assert reader.read() is END
        reader.close()


@pytest.mark.parametrize(("answer", "words"), [(framed(b"no"), "secret"), (b"", "closed")])
def test_a_refused_secret_is_an_error(answer: bytes, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = served(listener, answering(answer))
        with pytest.raises(ConnectionError, match=words):
            connect(listener.getsockname()[1], "secret")
        thread.join()


def test_a_path_needs_no_secret(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = served(listener, lambda connection: connection.sendall(framed(b"x")))
        reader = connect(path, None)
        thread.join()
        assert reader.read() == b"x"
        reader.close()


def test_a_refused_connection_leaves_no_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connect(port, "secret")


# -- large frames ----------------------------------------------------------------------------------
def sending(peer: socket.socket, *parts: bytes) -> threading.Thread:
    thread = threading.Thread(target=peer.sendall, args=(b"".join(parts),))
    thread.start()
    return thread


def until_large(reader: FrameReader) -> None:
    while (found := reader.read()) is not LARGE:
        assert found is None
    reader.is_storing = True


def test_a_large_frame_is_read_from_a_file(pair: tuple[FrameReader, socket.socket]) -> None:
    reader, peer = pair
    body = b"0123456789abcdef" * (LARGEST_IN_MEMORY // 16) + b"!"
    thread = sending(peer, framed(body, b"next"))
    until_large(reader)
    reader.store()
    assert not reader.is_storing
    frame = reader.read()
    assert isinstance(frame, mmap)
    assert frame[:] == body
    assert reader.read() == b"next"
    thread.join()
    assert reader.read() is None, "the connection does not block again"
    frame.close()


def test_the_largest_frame_in_memory_needs_no_file(pair: tuple[FrameReader, socket.socket]) -> None:
    reader, peer = pair
    thread = sending(peer, framed(b"x" * LARGEST_IN_MEMORY))
    while (frame := reader.read()) is None:
        pass
    thread.join()
    assert isinstance(frame, bytearray)


def test_an_end_inside_a_large_frame_is_an_error(pair: tuple[FrameReader, socket.socket]) -> None:
    reader, peer = pair
    thread = sending(peer, pack("!i", LARGEST_IN_MEMORY + 1), b"x" * 9)
    until_large(reader)
    thread.join()
    peer.close()
    with pytest.raises(EOFError, match="inside a batch of rows"):
        reader.store()


def test_closing_ends_the_storing_of_a_frame(pair: tuple[FrameReader, socket.socket]) -> None:
    """Nothing more is sent: the thread would wait for ever."""
    reader, peer = pair
    peer.sendall(pack("!i", LARGEST_IN_MEMORY + 1) + b"x")
    until_large(reader)
    raised = list[BaseException]()

    def store() -> None:
        with pytest.raises((EOFError, OSError)) as found:
            reader.store()
        raised.append(found.value)

    thread = threading.Thread(target=store)
    thread.start()
    reader.close()
    thread.join(30)
    assert raised
    assert reader.connection.fileno() == -1, "it is closed, by that thread"


def test_a_directory_without_room_is_named(
    pair: tuple[FrameReader, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    reader, peer = pair
    peer.sendall(pack("!i", LARGEST_IN_MEMORY + 1))
    until_large(reader)
    monkeypatch.setattr(jvm_socket, "TemporaryFile", full)
    with pytest.raises(FrameNotStored, match=r"more than 16 MiB.*No space left.*batch= .*TMPDIR"):
        reader.store()


LAST_CHUNK = """
import socket
import threading
from struct import pack

from reactive_aio.spark.arrow.jvm_socket import LARGE, LARGEST_IN_MEMORY, FrameReader

local, peer = socket.socketpair()
reader, length = FrameReader(local), LARGEST_IN_MEMORY + 1
sending = threading.Thread(target=peer.sendall, args=(pack("!i", length) + bytes(length),))
sending.start()
while reader.read() is not LARGE:
    pass
try:
    reader.store()
finally:
    reader.close()
"""


def test_a_disk_that_becomes_full_in_the_last_piece_of_a_frame_is_named() -> None:
    """Such a write says that it has written less; only the next one would fail."""
    lacking = Lacking(file_size=LARGEST_IN_MEMORY)
    command = [sys.executable, "-c", LAST_CHUNK]
    ran = subprocess.run(command, preexec_fn=lacking, capture_output=True, text=True, check=False)
    assert "FrameNotStored: Rows of Spark that come together have more than 16 MiB" in ran.stderr
    assert "File too large" in ran.stderr
