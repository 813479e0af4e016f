"""A scripted WebSocket client, which may break the rules."""

import asyncio
from typing import Any, Self

from websockets.client import ClientProtocol
from websockets.frames import Close, Frame, Opcode
from websockets.uri import parse_uri

from reactive_aio.rsocket import BYTES, JSON, Payload, Setup
from reactive_aio.rsocket.protocol.codec import decode, encode
from reactive_aio.rsocket.protocol.frames import Frame as RSocketFrame, RequestStream
from reactive_aio.rsocket.protocol.metadata import ROUTING, write_composite, write_routing

SETUP = encode(Setup(data_mime=BYTES.mime))
JSON_SETUP = encode(Setup(data_mime=JSON.mime))


def stream(route: str, n: int, stream_id: int = 1) -> bytes:
    """An encoded REQUEST_STREAM."""
    metadata = write_composite([(ROUTING, write_routing(route))])
    return encode(RequestStream(stream_id, n, Payload(b"", metadata)))


class Peer:
    """One connection; the test sends each frame."""

    def __init__(self, uri: str) -> None:
        self.uri = parse_uri(uri)
        self.protocol = ClientProtocol(self.uri, max_size=None)
        self.reader: Any = None
        self.writer: Any = None
        self.came: list[Frame] = []
        self.answer: Any = None

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection(self.uri.host, self.uri.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def shake_hands(self, **headers: str) -> Self:
        """Send the opening handshake; `answer` is the response."""
        request = self.protocol.connect()
        for name, value in headers.items():
            request.headers[name] = value
        self.protocol.send_request(request)
        self.flush()
        while self.answer is None and await self.read():
            pass
        return self

    def send(self, *messages: bytes) -> None:
        for message in messages:
            self.protocol.send_binary(message)
        self.flush()

    def frame(self, opcode: Opcode, data: bytes, *, fin: bool = True, mask: bool = True) -> None:
        """Send a WebSocket frame without checks."""
        self.writer.write(Frame(opcode, data, fin).serialize(mask=mask))

    def flush(self) -> None:
        self.writer.write(b"".join(self.protocol.data_to_send()))

    async def read(self) -> bool:
        """Read more data; return False at the end of the stream."""
        data = await self.reader.read(65536)
        if data:
            self.protocol.receive_data(data)
        else:
            self.protocol.receive_eof()
        for event in self.protocol.events_received():
            if isinstance(event, Frame):
                self.came.append(event)
            else:
                self.answer = event
        if not self.writer.is_closing():
            self.flush()
        return bool(data)

    async def next(self, opcode: Opcode = Opcode.BINARY) -> bytes:
        """The next frame with this opcode."""
        while not any(each.opcode is opcode for each in self.came):
            assert await self.read(), "the connection has ended"
        place = next(i for i, each in enumerate(self.came) if each.opcode is opcode)
        return bytes(self.came.pop(place).data)

    async def receive(self) -> RSocketFrame:
        """The next RSocket frame."""
        frame = decode(await self.next())
        assert frame is not None
        return frame

    async def closed(self) -> Close:
        """Wait for the end of the connection; return the close frame of the peer."""
        close = Close.parse(await self.next(Opcode.CLOSE))
        while await self.read():
            pass
        return close
