"""Complete responses and the lifespan protocol: ASGI messages that need no stream."""

from collections.abc import Mapping

from .problem import Problem
from .request import Receive, Send

__all__ = ("Headers", "complete_lifespan", "encode_headers", "send_problem", "send_response")

Headers = list[tuple[bytes, bytes]]


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


async def complete_lifespan(receive: Receive, send: Send) -> None:
    """Answer the lifespan messages of an endpoint that is served without a framework."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
