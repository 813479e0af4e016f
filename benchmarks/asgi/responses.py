"""What does an element cost on its way into a response, or into a message of a socket?

The server accepts everything at once, so only the endpoint is measured. The limit is a hand-written
ASGI app with 64 elements per send and nothing else: no demand, no detection of a disconnect, and no
time for other tasks.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from reactive_aio import range as numbers
from reactive_aio.asgi import Counters, ndjson, sse, websocket

from ..runner.peers import peer
from ..runner.question import Question

question = Question("Elements into responses", 200_000)
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
ELEMENT = {"number": 1234567, "carrier": "UA", "origin": "EWR", "dest": "IAH", "delay": 11.5}


class Server:
    """Receives a response, and counts the elements by a marker in their text."""

    def __init__(self, marker: bytes, *incoming: Any) -> None:
        self.elements = 0
        self._marker = marker
        self._incoming = [*incoming]

    async def receive(self) -> Any:
        if not self._incoming:
            await asyncio.Event().wait()
        return self._incoming.pop(0)

    async def send(self, message: Any) -> None:
        body: bytes = message.get("body", b"")
        self.elements += body.count(self._marker)


async def respond(app: Any, marker: bytes = b'"number"') -> int:
    server = Server(marker, {"type": "http.request"})
    scope: dict[str, Any] = {"type": "http", "method": "GET", "headers": [], "path": "/"}
    await app(scope, server.receive, server.send)
    return server.elements


def lines(count: int) -> Iterator[str]:
    for _ in range(count):
        yield ENCODER.encode(ELEMENT) + "\n"


@question.handwritten("an ASGI app with 64 lines per send")
async def handwritten(count: int) -> int:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        chunk: list[str] = []
        for line in lines(count):
            chunk.append(line)
            if len(chunk) == 64:
                body = "".join(chunk).encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                chunk.clear()
        await send({"type": "http.response.body", "body": "".join(chunk).encode()})

    return await respond(app)


@question.peer("Starlette `StreamingResponse`", "starlette")
async def starlette(count: int) -> int:
    async def generate() -> AsyncIterator[str]:
        for line in lines(count):
            yield line

    return await respond(peer("starlette.responses").StreamingResponse(generate()))


@question.ours("`ndjson(flow)`", goal=1.5)
async def by_ndjson(count: int) -> int:
    return await respond(ndjson(numbers(count).map(lambda _: ELEMENT)))


@question.ours("`sse(flow)`", goal=1.5)
async def by_sse(count: int) -> int:
    return await respond(sse(numbers(count).map(lambda _: ELEMENT)))


@question.ours("`websocket`, one message per element")
async def by_websocket(count: int) -> int:
    counters, done = Counters(), asyncio.Event()
    app = websocket({"all": numbers(count).map(lambda _: ELEMENT)}, counters=counters)
    subscribe = json.dumps({"type": "subscribe", "id": 1, "route": "all", "n": 2**53 - 1})
    incoming: list[Any] = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": subscribe},
    ]

    async def receive() -> Any:
        if incoming:
            return incoming.pop(0)
        await done.wait()
        return {"type": "websocket.disconnect"}

    async def send(message: Any) -> None:
        if '"complete"' in message.get("text", ""):
            done.set()

    await app({"type": "websocket", "headers": [], "path": "/"}, receive, send)
    return counters.elements
