"""The JavaScript module for browsers, served from the package."""

from hashlib import sha256
from importlib.resources import files

from .http import Endpoint, HttpRequest, Receive, Send, encode_headers, send_problem, send_response
from .problem import Problem

__all__ = ("JavaScriptEndpoint", "javascript")


def javascript() -> "JavaScriptEndpoint":
    """Serve ``reactive.js``: the text protocol for browsers and Node, without dependencies.

    ::

        Route("/reactive.js", endpoint=javascript())

    A page imports it: ``import {connect} from "/reactive.js"``. This call reads the file;
    responses are sent from memory, with an ETag.
    """
    return JavaScriptEndpoint((files(__package__ or "") / "browser" / "reactive.js").read_bytes())


class JavaScriptEndpoint(Endpoint):
    """What `javascript` returns: an ASGI app."""

    def __init__(self, text: bytes) -> None:
        self.text: bytes = text
        self._tag = f'"{sha256(text).hexdigest()[:24]}"'
        headers = {"content-type": "text/javascript; charset=utf-8", "etag": self._tag,
                   "cache-control": "no-cache"}  # fmt: skip
        self._headers = encode_headers(headers)

    async def _answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        if request.method not in ("GET", "HEAD"):
            await send_problem(send, Problem(405, "this is a file: GET it", {"allow": "GET, HEAD"}))
        elif request.headers.get("if-none-match") == self._tag:
            await send_response(send, 304, self._headers)
        else:
            length = (b"content-length", str(len(self.text)).encode())
            body = b"" if request.method == "HEAD" else self.text
            await send_response(send, 200, [*self._headers, length], body)
