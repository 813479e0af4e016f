"""The ASGI app of the inspector: a page, the events that it reads, and who may have them."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from hmac import compare_digest
from importlib.resources import files
from re import DOTALL, search
from typing import Final

from .._core.hosts import is_loopback
from .._sources.asynchronous import from_aiter
from ..asgi import Refused, sse
from ..asgi.http import (
    Endpoint,
    Headers,
    HttpRequest,
    Receive,
    Send,
    encode_headers,
    send_problem,
    send_response,
)
from ..asgi.problem import Problem, problem_of
from .inspector_feed import Feed

__all__ = ("InspectorApp", "page")

_OF_PROXIES: Final = frozenset(("forwarded", "x-forwarded-for", "x-real-ip"))
_HEADERS: Final = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",  # it would contain the token
    "x-content-type-options": "nosniff",
}


class InspectorApp(Endpoint):
    """What `inspector_app` returns: an ASGI app with a page, and the events that it reads."""

    def __init__(self, feed: Feed, token: str | None) -> None:
        super().__init__([])
        self.feed: Feed = feed
        self._token = token
        self._events = sse(
            lambda request: from_aiter(lambda: feed.states(request.query.get("flow"))),
            prefetch=1,
            max_streams=32,
            headers=_HEADERS,
        )

    async def _answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        try:
            self._check(request)
        except Refused as refused:
            await send_problem(send, problem_of(refused))
            return
        path = request.path.removeprefix(str(request.scope.get("root_path", "")))
        if path == "/events":
            await self._events(request.scope, receive, send)
        elif path in ("", "/"):
            await _send_page(request, send)
        else:
            await send_problem(send, Problem(404, "the inspector is at /"))

    def _check(self, request: HttpRequest) -> None:
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "this is a page: GET it", headers={"allow": "GET, HEAD"})
        if self._token is not None:
            given = request.query.get("token", "")
            if not compare_digest(given.encode(), self._token.encode()):
                raise Refused(403, "add ?token=… to the address: the program was given a token")
        elif not _is_local(request):
            raise Refused(403, "without a token, the inspector answers requests of this machine")


async def _send_page(request: HttpRequest, send: Send) -> None:
    body, headers = page()
    length = (b"content-length", str(len(body)).encode())
    await send_response(send, 200, [*headers, length], b"" if request.method == "HEAD" else body)


@cache
def page() -> tuple[bytes, Headers]:
    """The page, and headers that allow its own script alone."""
    body = (files(__package__ or "") / "inspector.html").read_bytes()
    script = search(rb"<script>(.*)</script>", body, DOTALL)
    digest = b64encode(sha256(script[1]).digest()).decode() if script is not None else ""
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": policy}
    return body, encode_headers(headers | _HEADERS)


def _is_local(request: HttpRequest) -> bool:
    """Whether a program of this machine has sent *request*, and knew that it asks this machine."""
    client = request.scope.get("client")  # None if a Unix socket hides who connects
    if client is None or not is_loopback(client[0]) or _OF_PROXIES & request.headers.keys():
        return False
    return is_loopback(_host_of(request))


def _host_of(request: HttpRequest) -> str:
    """The host that the client has requested, without the port."""
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] or host
