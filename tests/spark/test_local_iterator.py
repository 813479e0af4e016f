"""Closing a local iterator early, on a socket without a JVM."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from struct import pack

import pytest

from reactive_aio.spark.local_iterator import DRAIN_TIMEOUT, close_local_iterator


class Reader:
    """Like PySpark's reader, inside a partition of two frames of which one has been read."""

    def __init__(self, local: socket.socket) -> None:
        self._sock = local
        self._sockfile = local.makefile("rwb", 65536)
        self._read_status = 1
        self.drained = False

    def __iter__(self) -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            self.drained = self._read_status == 1


Peer = Callable[[socket.socket], object]


def close_early(peer: Peer) -> tuple[Reader, bytes, float]:
    """Read one element and close; return what the peer received and how long it took."""
    local, remote = socket.socketpair()
    reader = Reader(local)
    rows = iter(reader)
    next(rows)
    with remote:
        thread = threading.Thread(target=peer, args=(remote,))
        thread.start()
        began = time.perf_counter()
        close_local_iterator(rows)
        took = time.perf_counter() - began
        thread.join()
        remote.settimeout(1)
        try:
            got = remote.recv(16)
        except ConnectionError:
            got = b""
    reader._sockfile.close()
    local.close()
    return reader, got, took


def test_the_rest_of_the_partition_is_skipped() -> None:
    rest = pack("!i", 70_000) + b"x" * 70_000 + pack("!i", 3) + b"abc" + pack("!i", -1)
    reader, got, _ = close_early(lambda peer: peer.sendall(rest))
    assert got == pack("!i", 0)
    assert not reader.drained


def cut_off(peer: socket.socket) -> None:
    peer.sendall(pack("!i", 4) + b"ab")
    peer.shutdown(socket.SHUT_WR)


UNWILLING: dict[str, Peer] = {
    "silent": lambda _: None,
    "slow": lambda peer: peer.sendall(pack("!i", 1000)),
    "gone": lambda peer: peer.shutdown(socket.SHUT_RDWR),
    "cut off": cut_off,
}


@pytest.mark.parametrize("peer", UNWILLING.values(), ids=UNWILLING)
def test_the_connection_is_cut_when_the_rest_cannot_be_read(peer: Peer) -> None:
    reader, got, took = close_early(peer)
    assert got == b""
    assert not reader.drained
    assert took < 8 * DRAIN_TIMEOUT


def test_reading_an_endless_partition_times_out() -> None:
    def send(peer: socket.socket) -> None:
        frame = pack("!i", 1 << 16) + b"x" * (1 << 16)
        with suppress(OSError):
            while True:
                peer.sendall(frame)

    reader, _, took = close_early(send)
    assert not reader.drained
    assert DRAIN_TIMEOUT <= took < 8 * DRAIN_TIMEOUT


def test_an_unknown_iterator_is_closed_as_a_generator() -> None:
    closed = list[bool]()

    def rows() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append(True)

    generator = rows()
    next(generator)
    close_local_iterator(generator)
    assert closed == [True]
    close_local_iterator(iter([1]))


def test_closing_never_raises() -> None:
    def rows() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise RuntimeError("no")

    generator = rows()
    next(generator)
    close_local_iterator(generator)
