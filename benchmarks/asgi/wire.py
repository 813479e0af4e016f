"""The bytes of WebSockets, for a crowd of raw clients: the text protocol, and an echo."""

import json
from typing import Final

from ..crowds.clients import Wire

PAYLOAD: Final = "twenty-six bytes of payload"[:26]
SHORT, EXTENDED = 126, 0x7F


class EchoWire(Wire):
    """Each message that a client sends is answered by one; a hot flow needs no demand."""

    path = "/echo"
    marker = b""
    """What the messages contain that are counted."""

    def opening(self, port: int) -> bytes:
        return (
            f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ).encode()

    def opened(self, data: bytes) -> bytes | None:
        head, end, rest = data.partition(b"\r\n\r\n")
        if end and not head.startswith(b"HTTP/1.1 101"):
            raise ConnectionError(f"the server refused the handshake: {head!r}")
        return rest if end else None

    def request(self, number: int) -> bytes:
        return _masked(PAYLOAD)

    def subscribe(self, credit: int) -> bytes:
        return b""

    def more(self, n: int) -> bytes:
        return b""

    def count(self, data: bytes) -> tuple[int, int]:
        count = at = 0
        while at + 2 <= len(data):
            begin, length = at + 2, data[at + 1] & EXTENDED
            if length >= SHORT:
                begin += 2 if length == SHORT else 8
                length = int.from_bytes(data[at + 2 : begin], "big")
            if begin > len(data) or begin + length > len(data):
                break
            at = begin + length
            count += self.marker in data[begin:at]
        return count, at


class TextWire(EchoWire):
    """The text protocol: a request is a subscription to a flow of one element."""

    path = "/flows"
    marker = b'"next"'

    def __init__(self, hot: str = "hot") -> None:
        self._hot = hot

    def request(self, number: int) -> bytes:
        return _message("subscribe", 2 + number % 1000, route="one", n=1)

    def subscribe(self, credit: int) -> bytes:
        return _message("subscribe", 1, route=self._hot, n=credit)

    def more(self, n: int) -> bytes:
        return _message("request", 1, n=n)


def _message(type: str, id: int, **members: object) -> bytes:
    return _masked(json.dumps({"type": type, "id": id, **members}, separators=(",", ":")))


def _masked(text: str) -> bytes:
    """Frame a text message as a client does, with a mask of zeros, which changes nothing."""
    data = text.encode()
    assert len(data) < SHORT
    return bytes([0x81, 0x80 | len(data)]) + bytes(4) + data
