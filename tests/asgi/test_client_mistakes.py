"""Mistakes in the arguments of the three clients: each raises where it is made."""

# pyright: reportUnknownLambdaType=false

import sys
from collections.abc import Callable
from ssl import create_default_context
from typing import Any

import pytest

from reactive_aio.asgi import from_sse, from_websocket, websocket_messages
from reactive_aio.errors import MissingExtra

# Arguments that no type checker would let pass.
sse: Any = from_sse
messages: Any = websocket_messages


def websocket(url: Any = "ws://x/", **options: Any) -> Any:
    return from_websocket(url, route="x", **options)


Mistake = tuple[Callable[[], Any], type[Exception], str]
MISTAKES: list[Mistake] = [
    (lambda: sse("ws://x/"), ValueError, "must begin with http:// or https://"),
    (lambda: sse("http://x/", prefetch=1), TypeError, "unknown prefetch; known"),
    (lambda: sse("http://x/", retry="3"), TypeError, "RetryPolicy"),
    (lambda: sse("http://x/", silence=0), ValueError, "silence"),
    (lambda: sse("http://x/", max_event=0), ValueError, "max_event"),
    (lambda: sse("http://"), ValueError, "must have a host, not 'http://'"),
    (lambda: sse("http://x:99999/"), ValueError, "is not valid: Port out of range"),
    (lambda: sse("http://x/", last_event_id="a\nb"), ValueError, "one line"),
    (lambda: sse("http://x/", last_event_id=b"5"), TypeError, "must be a str or an int"),
    (lambda: websocket("http://x/"), ValueError, "must begin with ws:// or wss://"),
    (lambda: websocket("ws:///x"), ValueError, "must have a host"),
    (lambda: websocket("ws://x:99999/"), ValueError, "'ws://x:99999/' is not valid: Port out of"),
    (lambda: websocket("ws://[/"), ValueError, "is not valid"),
    (lambda: websocket(5), TypeError, "must be a str, not int"),
    (lambda: websocket(ssl=create_default_context()), ValueError, "write wss://"),
    (lambda: websocket(retry=3), TypeError, "unknown retry; known are headers, ssl"),
    (lambda: websocket(timeout=0), ValueError, "timeout"),
    (lambda: websocket(max_message=0), ValueError, "max_message"),
    (lambda: websocket(encode=1), TypeError, "encode"),
    (lambda: messages("http://x/"), ValueError, "must begin with ws:// or"),
    (lambda: messages("ws://x/", route="x"), TypeError, "unknown route"),
    (lambda: messages("ws://x/", 5), TypeError, "send"),
    (lambda: messages("ws://x/", {"op": 1}), TypeError, r"\[json.dumps\({'op'"),
    (lambda: messages("ws://x/", lambda: []), TypeError, "takes none"),
    (lambda: messages("ws://x/", subprotocols="x"), TypeError, "list of texts"),
    (lambda: messages("ws://x/", "hello"), TypeError, "send"),
    (lambda: messages("ws://x/", retry="3"), TypeError, "RetryPolicy"),
    (lambda: messages("ws://x/", keepalive=0), ValueError, "keepalive"),
]
CLIENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "from_sse": (lambda: sse("http://x/"), "httpx"),
    "from_websocket": (websocket, "websockets"),
    "websocket_messages": (lambda: messages("ws://x/"), "websockets"),
}


@pytest.mark.parametrize(("make", "kind", "text"), MISTAKES)
def test_a_mistake_raises_at_once(
    make: Callable[[], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=rf"^({'|'.join(CLIENTS)}|retry): .*{text}"):
        make()


@pytest.mark.parametrize("name", CLIENTS)
async def test_without_the_package_an_error_names_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, package = CLIENTS[name]
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.setitem(sys.modules, "websockets.asyncio.client", None)
    with pytest.raises(MissingExtra, match=rf"{name}\(\).*{package}"):
        await make().run()
