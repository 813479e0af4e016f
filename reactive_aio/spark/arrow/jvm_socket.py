"""The local socket on which the JVM serves rows, as frames: ``[int32 length][bytes]``.

A frame is read only when it is requested: until then it waits in the JVM and in the buffers of the
operating system.
"""

import os
import socket
from struct import Struct
from typing import Final

END: Final = b""
"""Returned by `FrameReader.read` when the JVM has closed the connection after a whole frame."""
_INT: Final = Struct("!i")
_TIMEOUT: Final = 15.0  # seconds to connect and to authenticate: the JVM waits as long
_ACCEPTED: Final = _INT.pack(2) + b"ok"


class FrameReader:
    """Reads the frames of one connection without blocking."""

    __slots__ = ("_body", "_filled", "_head", "_is_at_end", "connection")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection: socket.socket = connection
        self._head = bytearray(_INT.size)
        self._body: bytearray | None = None
        self._filled = 0  # bytes of the head, or of the body
        self._is_at_end = False

    @property
    def is_between_frames(self) -> bool:
        """Whether it is unknown yet if another frame follows."""
        return self._body is None

    def read(self, *, body: bool = True) -> bytearray | bytes | None:
        """Return a frame, `END`, or None when no more can be read now.

        Without *body*, read only the head of a frame, which is enough to see the end.
        """
        if self._body is None:
            if not self._fill(self._head):
                return END if self._is_at_end else None
            self._body = bytearray(_INT.unpack(self._head)[0])
        if not body or not self._fill(self._body):
            return None
        frame, self._body = self._body, None
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
                        raise EOFError("the connection ended inside a batch of rows")
                    self._is_at_end = True
                    return False
                self._filled += received
        self._filled = 0
        return True

    def close(self) -> None:
        self.connection.close()

    # A loop that closes discards the callbacks of threads, and the readers in their arguments.
    __del__ = close


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
