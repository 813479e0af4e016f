"""The bytes of RSocket, for a crowd of raw clients."""

from typing import Final

from reactive_aio.rsocket.protocol.codec import add_length, encode
from reactive_aio.rsocket.protocol.frames import (
    Frame,
    KeepAlive,
    Payload,
    RequestN,
    RequestResponse,
    RequestStream,
    Setup,
)
from reactive_aio.rsocket.protocol.metadata import (
    COMPOSITE_METADATA,
    OCTET_STREAM,
    ROUTING,
    write_composite,
    write_routing,
)

from ..crowds.clients import Wire
from .ends.command import PAYLOAD

HOUR: Final = 3_600_000
HEAD: Final = 9
"""The bytes of a frame before its payload, with its length."""
PAYLOAD_TYPE, NEXT = 0x0A, 0x20


class RSocketWire(Wire):
    """Requests with or without a route: other servers of the benchmarks have one handler."""

    def __init__(self, *, is_routed: bool, hot: str = "hot") -> None:
        self._is_routed = is_routed
        self._hot = hot
        self._request = _bytes(RequestResponse(1, self._payload("echo", PAYLOAD)))

    def _payload(self, route: str, data: bytes) -> Payload:
        metadata = write_composite([(ROUTING, write_routing(route))])
        return Payload(data, metadata if self._is_routed else None)

    def opening(self, port: int) -> bytes:
        setup = Setup(keepalive=HOUR, lifetime=HOUR, metadata_mime=COMPOSITE_METADATA,
                      data_mime=OCTET_STREAM)  # fmt: skip
        return _bytes(setup) + _bytes(KeepAlive(respond=True))

    def opened(self, data: bytes) -> bytes | None:
        end = 3 + int.from_bytes(data[:3], "big")
        return data[end:] if len(data) > 3 and len(data) >= end else None

    def request(self, number: int) -> bytes:
        frame = self._request
        return frame[:3] + (2 * number + 1).to_bytes(4, "big") + frame[7:]

    def subscribe(self, credit: int) -> bytes:
        return _bytes(RequestStream(1, credit, self._payload(self._hot, b"")))

    def more(self, n: int) -> bytes:
        return _bytes(RequestN(1, n))

    def count(self, data: bytes) -> tuple[int, int]:
        count = at = 0
        while at + HEAD <= len(data):
            end = at + 3 + int.from_bytes(data[at : at + 3], "big")
            if end > len(data):
                break
            count += data[at + 7] >> 2 == PAYLOAD_TYPE and bool(data[at + 8] & NEXT)
            at = end
        return count, at


class RawWire(RSocketWire):
    """Frames of 32 bytes, as the hand-written end writes them."""

    def __init__(self) -> None:
        super().__init__(is_routed=False)
        self._frame = add_length(PAYLOAD + b"...")

    def opening(self, port: int) -> bytes:
        return self._frame

    def request(self, number: int) -> bytes:
        return self._frame

    def count(self, data: bytes) -> tuple[int, int]:
        count = len(data) // len(self._frame)
        return count, count * len(self._frame)


def _bytes(frame: Frame) -> bytes:
    return add_length(encode(frame))
