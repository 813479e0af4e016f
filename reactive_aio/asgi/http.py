"""HTTP as ASGI presents it: requests, complete responses, and apps that are one endpoint."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl

from .problem import Problem, Refused

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_MAX_DIGITS: Final = 15


class HttpRequest:
    """One request: its path, its query, its headers, and the last event the client received.

    It is made from the ASGI `scope`, which also holds what frameworks add (``scope["user"]``).
    """

    def __init__(self, scope: Scope) -> None:
        self.scope: Scope = scope

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.path}>"

    @property
    def method(self) -> str:
        """GET or HEAD; GET for a WebSocket."""
        return str(self.scope.get("method", "GET"))

    @property
    def path(self) -> str:
        return str(self.scope.get("path", ""))

    @property
    def path_params(self) -> Mapping[str, Any]:
        """The parameters that the framework's router found in the path: ``/prices/{symbol}``."""
        found: Mapping[str, Any] = self.scope.get("path_params", {})
        return found

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters after the question mark; of repeated ones, the last."""
        text = bytes(self.scope.get("query_string", b"")).decode("latin-1")
        return dict(parse_qsl(text, keep_blank_values=True))

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """Headers by their names in lower case; repeated ones are joined by a comma."""
        found: dict[str, str] = {}
        for raw_name, raw in self.scope.get("headers", ()):
            name, value = raw_name.decode("latin-1").lower(), raw.decode("latin-1")
            found[name] = f"{found[name]}, {value}" if name in found else value
        return found

    @property
    def last_event_id(self) -> str | None:
        """The id of the last element that the client received; None on its first request."""
        found = self.headers.get("last-event-id")
        # Headers are read as latin-1, but browsers send the id in UTF-8.
        return found.encode("latin-1").decode("utf-8", "replace") if found else None


def parse_count(text: str, name: str) -> int:
    """Read *text* as a demand; refuse anything else with 400 (rule 3.9)."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS or int(text) < 1:
        raise Refused(400, f"rule 3.9: {name} must be a whole number of at least 1, not {text!r}")
    return int(text)


def encode_headers(headers: Mapping[str, str]) -> Headers:
    """Convert *headers* to the form that ASGI uses."""
    return [(name.lower().encode("latin-1"), each.encode("latin-1"))
            for name, each in headers.items()]  # fmt: skip


async def send_response(
    send: Send,
    status: int,
    headers: Headers,
    body: bytes = b"",
    *,
    kind: str = "http.response",
) -> None:
    """Send a complete response; do nothing if the client has disconnected."""
    try:
        await send({"type": f"{kind}.start", "status": status, "headers": headers})
        await send({"type": f"{kind}.body", "body": body})
    except OSError:  # what servers raise after a disconnect
        pass


async def send_problem(
    send: Send, problem: Problem, *, head: bool = False, kind: str = "http.response"
) -> None:
    """Send the status of *problem*, with its detail as the body unless *head* (RFC 9457)."""
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    headers += encode_headers(problem.headers)
    body = b"" if head else problem.json().encode()
    await send_response(send, problem.status, headers, body, kind=kind)


class Endpoint(ABC):
    """An ASGI app that answers requests, handshakes of WebSockets, or both."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(HttpRequest(scope), receive, send)
        elif scope["type"] == "websocket":
            await self._answer_handshake(HttpRequest(scope), receive, send)
        else:
            await _complete_lifespan(receive, send)

    @abstractmethod
    async def _answer(self, request: HttpRequest, receive: Receive, send: Send) -> None: ...

    async def _answer_handshake(self, http: HttpRequest, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 1000})


async def _complete_lifespan(receive: Receive, send: Send) -> None:
    """Answer the lifespan messages of an endpoint that is served without a framework."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
