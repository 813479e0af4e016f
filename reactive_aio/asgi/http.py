"""HTTP as ASGI presents it: requests, complete responses, and apps that are one endpoint."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cached_property, partial
from inspect import isclass, isroutine
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qsl

from .problem import Problem, Refused
from .starlette_response import response_class

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

if TYPE_CHECKING:
    from starlette.responses import Response
else:

    class Response:
        """Stands for Starlette's class, which `Endpoint.__new__` adds if it is installed."""


_MAX_DIGITS: Final = 15
_WITHOUT_CONTENT: Final = (204, 304)
"""Statuses whose response has no body (RFC 9110, 6.4.1)."""


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
        found: dict[str, list[str]] = {}
        for name, value in self.scope.get("headers", ()):
            found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        return {name: ", ".join(values) for name, values in found.items()}

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
    has_content = problem.status not in _WITHOUT_CONTENT
    headers = [(b"content-type", b"application/problem+json")] if has_content else []
    headers += [(b"cache-control", b"no-store"), *encode_headers(problem.headers)]
    body = problem.json().encode() if has_content and not head else b""
    await send_response(send, problem.status, headers, body, kind=kind)


class Endpoint(Response, ABC):
    """An ASGI app that answers requests, handshakes of WebSockets, or both.

    It is the endpoint of a route, or what a function of FastAPI or Starlette returns. If Starlette
    is installed, it is an instance of its `Response`, and the attributes of that have their effect.
    """

    if not TYPE_CHECKING:  # to type checkers, `Response` is a base already

        def __new__(cls, *_: object, **__: object) -> Self:
            return super().__new__(response_class(cls))

    def __init__(self, headers: Headers) -> None:
        self.status_code: int = 200
        """The status of a response without an error."""
        self.raw_headers: Headers = [*headers]
        """The headers of a response without an error, to which ``set_cookie`` adds."""
        self.background: Any = None
        """Called and awaited when the response has ended, if it is not None."""
        self.body: bytes = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # FastAPI sets it for each request, so an endpoint that serves several must not keep it.
        background, self.background = self.background, None
        if scope["type"] == "http":
            await self._answer(HttpRequest(scope), receive, send)
        elif scope["type"] == "websocket":
            await self._answer_handshake(HttpRequest(scope), receive, send)
        else:
            await _complete_lifespan(receive, send)
        if background is not None:
            await background()

    def _header_list(self, *, content_type: str | None = None) -> Headers:
        """Return the headers of a response, with *content_type* unless they contain another."""
        headers = [*self.raw_headers]
        if content_type is not None and all(name != b"content-type" for name, _ in headers):
            headers.insert(0, (b"content-type", content_type.encode()))
        return headers

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


def is_returned_by_route(request: HttpRequest) -> bool:
    """Whether a function or a class of a framework returned the response to *request*.

    Then its route has decided which methods are allowed. The endpoint of a route is an instance.
    """
    endpoint = request.scope.get("endpoint")
    return isroutine(endpoint) or isclass(endpoint) or isinstance(endpoint, partial)
