"""An ASGI server in memory: the test is the server and the client of one call of an app."""

import asyncio
import json
import sys
from collections.abc import MutableMapping
from typing import Any

Event = MutableMapping[str, Any]


class Call:
    """One call of an app. `pause` makes its sends wait; `disconnect` is the client's disconnect."""

    def __init__(
        self,
        app: Any,
        *,
        kind: str = "http",
        method: str = "GET",
        query: str = "",
        headers: dict[str, str] | None = None,
        denial: bool = True,
        **scope: Any,
    ) -> None:
        raw = [(name.encode(), each.encode()) for name, each in (headers or {}).items()]
        self.scope: dict[str, Any] = {
            "type": kind,
            "method": method,
            "path": "/",
            "query_string": query.encode(),
            "headers": raw,
            "extensions": {"websocket.http.response": {}} if denial else {},
            **scope,
        }
        self.sent: list[Event] = []
        self.incoming: asyncio.Queue[Event] = asyncio.Queue()
        self.send_error: Exception | None = None
        self.send_error_count = sys.maxsize  # sends that fail
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._changed = asyncio.Condition()
        first = (
            {"type": "http.request", "body": b""} if kind == "http" else {"type": f"{kind}.connect"}
        )
        self.incoming.put_nowait(first)
        self.task = asyncio.ensure_future(app(self.scope, self.incoming.get, self._send))

    async def _send(self, event: Event) -> None:
        await self._may_send.wait()
        if self.send_error is not None and self.send_error_count:
            self.send_error_count -= 1
            raise self.send_error
        self.sent.append(event)
        async with self._changed:
            self._changed.notify_all()

    # -- the client --------------------------------------------------------------------------------
    def pause(self) -> None:
        self._may_send.clear()

    def resume(self) -> None:
        self._may_send.set()

    def disconnect(self) -> None:
        kind = self.scope["type"]
        self.incoming.put_nowait({"type": f"{kind}.disconnect", "code": 1001})

    async def until(self, condition: Any, within: float = 20.0) -> None:
        """Wait until *condition* holds; it is evaluated after each send, and when the app ends."""

        async def wait() -> None:
            async with self._changed:
                await self._changed.wait_for(condition)

        waiting = asyncio.ensure_future(wait())
        await asyncio.wait([waiting, self.task], timeout=within, return_when="FIRST_COMPLETED")
        waiting.cancel()
        await asyncio.wait([waiting])
        if not condition():
            raise AssertionError(f"the condition does not hold: {self.sent}, {self.task}")

    async def end(self, within: float = 20.0) -> "Call":
        """Wait until the app returns."""
        async with asyncio.timeout(within):
            await self.task
        return self

    async def close(self) -> None:
        """Disconnect, and wait until the app returns."""
        self.disconnect()
        await self.end()

    # -- the response ------------------------------------------------------------------------------
    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): each.decode() for name, each in self.sent[0]["headers"]}

    @property
    def body(self) -> str:
        return b"".join(each.get("body", b"") for each in self.sent).decode()

    @property
    def is_complete(self) -> bool:
        """Whether the response has ended."""
        return self.sent[-1].get("more_body") is False or len(self.sent) == 2

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = json.loads(self.body)
        assert found["status"] == self.status
        return found


class SocketCall(Call):
    """One call of an app with a WebSocket, and JSON messages."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, kind="websocket", **options)

    def send(self, type: str, id: Any = 1, **members: Any) -> None:
        self.send_text(json.dumps({"type": type, "id": id, **members}))

    def send_text(self, text: str) -> None:
        self.incoming.put_nowait({"type": "websocket.receive", "text": text})

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(each["text"]) for each in self.sent if each["type"] == "websocket.send"]

    async def received(self, count: int) -> list[dict[str, Any]]:
        """Wait until *count* messages have been received; return all of them."""
        sent = self.sent  # counted, not decoded: it is looked at after each send
        await self.until(lambda: sum(e["type"] == "websocket.send" for e in sent) >= count)
        return self.messages

    async def values(self, count: int) -> list[Any]:
        found = await self.received(count)
        return [each.get("value", each["type"]) for each in found]

    async def closed(self) -> int:
        """Wait for the close; return its code."""
        await self.until(lambda: self.sent and self.sent[-1]["type"] == "websocket.close")
        self.disconnect()
        await self.end()
        return int(self.sent[-1]["code"])
