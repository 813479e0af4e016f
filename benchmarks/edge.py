"""What does an element cost on its way into a response, or into a socket's message?

The server takes everything at once, so what is measured is the adapter. The limit is an ASGI app
written by hand: 64 elements to a send, and nothing else: it asks for no demand, notices no
disconnect, and never gives the loop a turn.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.responses import StreamingResponse

from reactive_aio import range as numbers
from reactive_aio.asgi import Counters, ndjson, sse, websocket

from .runner import Question

question = Question("Elements into responses", 200_000)
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
ELEMENT = {"number": 1234567, "carrier": "UA", "origin": "EWR", "dest": "IAH", "delay": 11.5}


class Server:
    """Takes what it is sent, and counts the elements by their mark."""

    def __init__(self, mark: bytes, *incoming: Any) -> None:
        self.elements = 0
        self._mark = mark
        self._incoming = [*incoming]

    async def receive(self) -> Any:
        if not self._incoming:
            await asyncio.Event().wait()
        return self._incoming.pop(0)

    async def send(self, message: Any) -> None:
        body: bytes = message.get("body", b"")
        self.elements += body.count(self._mark)


async def ask(app: Any, mark: bytes = b'"number"') -> int:
    server = Server(mark, {"type": "http.request"})
    scope: dict[str, Any] = {"type": "http", "method": "GET", "headers": [], "path": "/"}
    await app(scope, server.receive, server.send)
    return server.elements


def lines(count: int) -> Iterator[str]:
    for _ in range(count):
        yield ENCODER.encode(ELEMENT) + "\n"


@question.case("limit: 64 lines to a send, by hand")
async def by_hand(count: int) -> int:
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

    return await ask(app)


@question.case("StreamingResponse of an async generator")
async def starlette(count: int) -> int:
    async def generate() -> AsyncIterator[str]:
        for line in lines(count):
            yield line

    return await ask(StreamingResponse(generate()))


@question.case("ndjson(flow)", goal=1.5)
async def by_ndjson(count: int) -> int:
    return await ask(ndjson(numbers(count).map(lambda _: ELEMENT)))


@question.case("sse(flow)", goal=1.5)
async def by_sse(count: int) -> int:
    return await ask(sse(numbers(count).map(lambda _: ELEMENT)))


@question.case("websocket, one message to an element")
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
