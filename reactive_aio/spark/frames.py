"""Reading what the JVM serves on a local socket: ``[int32 length][bytes]``, again and again.

Nothing is read that was not asked for: what waits, waits in the JVM and in the system's buffers.
"""

import os
import socket
from struct import Struct
from typing import Final

__all__ = ("END", "Frames", "connect")

END: Final = b""
"""What `Frames.read` returns when the other side has closed behind a whole frame."""
_INT: Final = Struct("!i")
_SECONDS: Final = 15.0  # to connect and to be let in: as long as the JVM waits for us


class Frames:
    """The frames of one connection, read without blocking."""

    __slots__ = ("_at", "_body", "_head", "connection")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection: socket.socket = connection
        self._head = bytearray(_INT.size)
        self._body: bytearray | None = None
        self._at = 0

    @property
    def at_head(self) -> bool:
        """Whether it is not known yet if another frame comes."""
        return self._body is None

    def read(self, *, body: bool = True) -> bytearray | bytes | None:
        """Return a frame, `END`, or None when no more can be read now.

        Without *body*, read no further than the head of a frame: enough to see the end.
        """
        if self._body is None:
            if not self._fill(self._head):
                return None if self._at >= 0 else END
            self._body = bytearray(_INT.unpack(self._head)[0])
        if not body or not self._fill(self._body):
            return None
        frame, self._body = self._body, None
        return frame

    def _fill(self, buffer: bytearray) -> bool:
        """Read on into *buffer*; return whether it is full. At the end, `_at` becomes -1."""
        with memoryview(buffer) as view:
            while self._at < len(buffer):
                try:
                    got = self.connection.recv_into(view[self._at :])
                except (BlockingIOError, InterruptedError):
                    return False
                if not got:
                    if self._at or buffer is not self._head:
                        raise EOFError("the connection ended inside a batch of rows")
                    self._at = -1
                    return False
                self._at += got
        self._at = 0
        return True

    def close(self) -> None:
        self.connection.close()

    # A loop that closes takes along what a thread has just handed to it, and tells nobody.
    __del__ = close


def connect(address: int | str, secret: str | None) -> Frames:
    """Connect to what PySpark was told: a port and a secret, or the path of a socket. Blocks."""
    family, target = _target(address)
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(_SECONDS)
        connection.connect(target)
        if secret is not None:
            _authenticate(connection, secret)
    except BaseException:
        connection.close()
        raise
    return Frames(connection)


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
    while len(answer) < len(_WELCOME):
        got = connection.recv(len(_WELCOME) - len(answer))
        if not got:
            raise ConnectionError("Spark's JVM has closed a connection before it was of use")
        answer += got
    if bytes(answer) != _WELCOME:
        raise ConnectionError("Spark's JVM did not accept the secret that it had given out")


_WELCOME: Final = _INT.pack(2) + b"ok"
