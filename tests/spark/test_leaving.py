"""Leaving a local iterator half-way: the three ways out, on a socket that is no JVM."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from struct import pack

import pytest

from reactive_aio.spark.leaving import PATIENCE, leave


class Reader:
    """Shaped like PySpark's: a partition of two frames, of which the first has been read."""

    def __init__(self, ours: socket.socket) -> None:
        self._sock = ours
        self._sockfile = ours.makefile("rwb", 65536)
        self._read_status = 1
        self.drained = False

    def __iter__(self) -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            self.drained = self._read_status == 1


Peer = Callable[[socket.socket], object]


def left(peer: Peer) -> tuple[Reader, bytes, float]:
    """Read one element, leave, and return what the peer got and how long it took."""
    ours, theirs = socket.socketpair()
    reader = Reader(ours)
    rows = iter(reader)
    next(rows)
    with theirs:
        thread = threading.Thread(target=peer, args=(theirs,))
        thread.start()
        began = time.perf_counter()
        leave(rows)
        took = time.perf_counter() - began
        thread.join()
        theirs.settimeout(1)
        try:
            got = theirs.recv(16)
        except ConnectionError:
            got = b""
    reader._sockfile.close()
    ours.close()
    return reader, got, took


def test_the_rest_of_the_partition_is_skipped_and_the_peer_told() -> None:
    rest = pack("!i", 70_000) + b"x" * 70_000 + pack("!i", 3) + b"abc" + pack("!i", -1)
    reader, got, _ = left(lambda peer: peer.sendall(rest))
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
def test_otherwise_the_connection_is_cut(peer: Peer) -> None:
    reader, got, took = left(peer)
    assert got == b""
    assert not reader.drained
    assert took < 8 * PATIENCE


def test_an_endless_partition_is_given_up() -> None:
    def send(peer: socket.socket) -> None:
        frame = pack("!i", 1 << 16) + b"x" * (1 << 16)
        with suppress(OSError):
            while True:
                peer.sendall(frame)

    reader, _, took = left(send)
    assert not reader.drained
    assert PATIENCE <= took < 8 * PATIENCE


def test_an_iterator_of_another_shape_is_closed_its_own_way() -> None:
    closed = list[bool]()

    def rows() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append(True)

    generator = rows()
    next(generator)
    leave(generator)
    assert closed == [True]
    leave(iter([1]))


def test_it_never_raises() -> None:
    def rows() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise RuntimeError("no")

    generator = rows()
    next(generator)
    leave(generator)
