"""The local socket on which the JVM serves rows, as frames: ``[int32 length][bytes]``.

A frame is read only when it is requested: until then it waits in the JVM and in the buffers of the
operating system. A large one goes into a temporary file, which is mapped into memory: its columns
follow one another, so no part of it has whole rows.
"""

import os
import socket
from contextlib import suppress
from io import FileIO
from mmap import ACCESS_READ, mmap
from struct import Struct
from tempfile import TemporaryFile, gettempdir
from typing import Final

from ...errors import ReactiveError
from ..whole_writes import write_all

END: Final = b""
"""Returned by `FrameReader.read` when the JVM has closed the connection after a whole frame."""
LARGE: Final = b"large"
"""Returned by `FrameReader.read` for a frame that needs `FrameReader.store`."""
PARTITION_END: Final = b"end of a partition"
"""Returned by `FrameReader.read` for a null, which follows the frames of a partition where a job
marks their end."""
LARGEST_IN_MEMORY: Final = 16 << 20
"""Bytes of a frame that is not stored in a file."""
_CHUNK: Final = 1 << 20  # bytes that go into the file at a time
_INT: Final = Struct("!i")
_NULL: Final = -5  # the length of a null
_TIMEOUT: Final = 15.0  # seconds to connect and to authenticate: the JVM waits as long
_CUT_SHORT: Final = "the connection ended inside a batch of rows"
_ACCEPTED: Final = _INT.pack(2) + b"ok"


class FrameNotStored(ReactiveError, RuntimeError):
    """There is no room for a large frame; the message gives the directory and the remedy."""


class FrameReader:
    """Reads the frames of one connection without blocking, except in `store`."""

    __slots__ = ("_body", "_filled", "_head", "_is_at_end", "_is_closed", "_length", "connection",
                 "is_storing")  # fmt: skip

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection: socket.socket = connection
        self._head = bytearray(_INT.size)
        self._length: int | None = None
        self._body: bytearray | mmap | None = None
        self._filled = 0  # bytes of the head, or of the body
        self._is_at_end = False
        self._is_closed = False
        self.is_storing: bool = False
        """Whether a thread is in `store`; nothing else may be called except `close`."""

    @property
    def is_between_frames(self) -> bool:
        """Whether it is unknown yet if another frame follows."""
        return self._length is None

    def read(self, *, body: bool = True) -> bytearray | mmap | bytes | None:
        """Return a frame, `END`, `LARGE`, `PARTITION_END`, or None when no more can be read now.

        Without *body*, read only the head of a frame, which is enough to see an end.
        """
        if self._length is None:
            if not self._fill(self._head):
                return END if self._is_at_end else None
            (self._length,) = _INT.unpack(self._head)
            if self._length == _NULL:
                self._length = None
                return PARTITION_END
        if not body:
            return None
        length: int = self._length or 0
        if self._body is None:
            if length > LARGEST_IN_MEMORY:
                return LARGE
            self._body = bytearray(length)
        if isinstance(self._body, bytearray) and not self._fill(self._body):
            return None
        frame, self._body, self._length = self._body, None, None
        return frame

    def _fill(self, buffer: bytearray) -> bool:
        """Continue to read into *buffer*; return whether it is full."""
        with memoryview(buffer) as view:
            while self._filled < len(buffer):
                try:
                    received = self.connection.recv_into(view[self._filled :])
                except (BlockingIOError, InterruptedError):
                    return False
                if not received:
                    if self._filled or buffer is not self._head:
                        raise EOFError(_CUT_SHORT)
                    self._is_at_end = True
                    return False
                self._filled += received
        self._filled = 0
        return True

    def store(self) -> None:
        """Read a large frame into a file; the next `read` returns it. Blocks: for threads.

        Set `is_storing` before. Raises `FrameNotStored`.
        """
        assert self._length is not None, "read() has returned LARGE"
        try:
            self.connection.setblocking(True)
            with _temporary_file(self._length) as file:
                self._copy(file, self._length)
                self._body = mmap(file.fileno(), self._length, access=ACCESS_READ)
        finally:
            self.is_storing = False
            if self._is_closed:
                self.connection.close()
            else:
                self.connection.setblocking(False)

    def _copy(self, file: FileIO, length: int) -> None:
        chunk = memoryview(bytearray(_CHUNK))
        while length:
            received = self.connection.recv_into(chunk[: min(length, _CHUNK)])
            if not received:
                raise EOFError(_CUT_SHORT)
            length -= received
            try:
                write_all(file, chunk[:received])
            except OSError as error:
                raise _not_stored(length, error) from error

    def close(self) -> None:
        """Close the connection; `store` on another thread raises."""
        self._is_closed = True
        if self.is_storing:  # that thread closes it: its number could belong to another file by now
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.connection.close()

    # A loop that closes discards the callbacks of threads, and the readers in their arguments.
    __del__ = close


def _temporary_file(length: int) -> FileIO:
    try:
        return TemporaryFile(buffering=0)  # without a name where the system allows it
    except OSError as error:
        raise _not_stored(length, error) from error


def _not_stored(length: int, error: OSError) -> FrameNotStored:
    return FrameNotStored(
        f"Rows of Spark that come together have more than {LARGEST_IN_MEMORY >> 20} MiB, and "
        f"{length:,} bytes of them cannot be stored in {gettempdir()} ({error}). Make batch= of "
        "from_dataframe smaller, or choose another directory with TMPDIR."
    )


def connect(address: int | str, secret: str | None) -> FrameReader:
    """Connect to a port, with its secret, or to the path of a socket. Blocks."""
    family, target = _target(address)
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(_TIMEOUT)
        connection.connect(target)
        if secret is not None:
            _authenticate(connection, secret)
    except BaseException:
        connection.close()
        raise
    return FrameReader(connection)


def _target(address: int | str) -> tuple[int, str | tuple[str, int]]:
    if isinstance(address, str):
        return socket.AF_UNIX, address
    if os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true":
        return socket.AF_INET6, ("::1", address)
    return socket.AF_INET, ("127.0.0.1", address)


def _authenticate(connection: socket.socket, secret: str) -> None:
    text = secret.encode()
    connection.sendall(_INT.pack(len(text)) + text)
    answer = bytearray()
    while len(answer) < len(_ACCEPTED):
        received = connection.recv(len(_ACCEPTED) - len(answer))
        if not received:
            raise ConnectionError("Spark's JVM has closed a connection before it was accepted")
        answer += received
    if bytes(answer) != _ACCEPTED:
        raise ConnectionError("Spark's JVM did not accept the secret that it had issued")
