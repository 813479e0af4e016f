"""The client of the text protocol: `from_websocket`, a flow, and `connect`, a socket for several.

Both ends of a socket are one `StreamMultiplexer`. Here it receives the messages of the package
`websockets`, in the form in which a server receives them from ASGI.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from anyio import CancelScope, move_on_after

from ..._core.arguments import (
    Duration,
    require_callable,
    require_int,
    require_known_options,
    to_seconds,
)
from ..._core.foreign_text import excerpt, without_secrets
from ..._core.loop import LoopHandle, wait_settled
from ..._sources.resource import using
from ...errors import MissingExtra
from ...rsocket.serving.routing import Router, to_router
from ..formats import to_json
from ..http import HttpRequest
from ..options import Counters
from ..problem import PeerFailed, SocketLost, detail_of, error_policy
from ..urls import require_url
from .messages import SUBPROTOCOL
from .multiplexer import SocketConfig, StreamMultiplexer
from .streams import Peer

if TYPE_CHECKING:
    from websockets.http11 import Response

    from ...flow import Flow

_CLOSE_TIMEOUT: Final = 2.0  # how long a server may take to answer a close
_MAX_MESSAGE: Final = 2**20
_PROXIES: Final = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_UNLIMITED: Final = 2**63  # useless messages: a server may still send what was cancelled


class ClientOptions(TypedDict, total=False):
    """Keyword arguments of `connect` and `from_websocket`; each has a default.

    - headers: additional headers of the handshake, such as ``{"authorization": "Bearer …"}``. They
      are sent to the server of the URL alone: no redirect is followed.
    - ssl: the TLS context for ``wss://``; by default, the system's certificates are trusted.
    - timeout: the number of seconds within which the socket must be open (10).
    - keepalive: the number of seconds between two pings, and within which a ping must be answered
      (20).
    - proxy: the URL of an HTTP proxy; none by default.
    - max_message: the number of bytes that a message of the server may have (1 MiB).
    - max_streams: the number of streams that the server may open at a time (100).
    - encode: encodes the elements that are published; JSON by default.
    - expose_errors: send the server the text of all errors of published flows, not only of
      `Refused` (False).
    - on_error: receives errors that are not meant for the server; default: the loop's exception
      handler.
    - counters: counts the published streams, their elements, bytes and demand.
    """

    headers: Mapping[str, str] | None
    ssl: SSLContext | None
    timeout: Duration
    keepalive: Duration | None
    proxy: str | None
    max_message: int
    max_streams: int
    encode: Callable[[Any], str | bytes]
    expose_errors: bool
    on_error: Callable[[BaseException], object] | None
    counters: Counters | None


def from_websocket(
    url: str, payload: Any = None, *, route: str, **options: Unpack[ClientOptions]
) -> "Flow[Any]":
    """Emit the elements of a stream that a server publishes in the text protocol as *route*.

    ::

        from_websocket("ws://localhost:8000/live", route="prices.ACME").retry(policy)

    Each subscription has a socket of its own, opened with its first request. *payload* is the
    params of the subscription, any JSON value; the elements are JSON values. The options are
    `ClientOptions`; the extra ``websockets`` is needed. For several streams on one socket, and to
    publish, there is `connect`.

    Demand: passed through to the server, at most 256 at a time.
    Completes: when the stream completes, and the socket is closed.
    Fails: with `SocketLost`, a `ConnectionError`, when the socket cannot be opened or is closed;
        with `PeerFailed`, which has a `status`, when the server refuses the socket or the stream,
        when the stream fails there, and when the server speaks something else than this protocol.
    Cancels: the socket is closed, and the server cancels the stream.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 1.7, 2.13, 3.9

    A policy for reconnecting is that of `retry`, such as ``RetryPolicy(attempts=None, within=3600,
    delay=0.5, only=ConnectionError, reset=True)``. A stream starts again from the beginning, unless
    its route resumes: `defer` computes another *payload* for each attempt.
    """
    config = _ClientConfig("from_websocket", url, {}, options)
    return using(
        lambda: _opened(config),
        lambda server: server.request_stream(payload, route=route),
    ).name(f"from_websocket({config.shown_url!r}, route={route!r})")


def connect(
    url: str,
    routes: Router | Mapping[str, Any] | None = None,
    **options: Unpack[ClientOptions],
) -> AbstractAsyncContextManager[Peer]:
    """Open a socket to a server of the text protocol, for any number of streams.

    ::

        async with connect("ws://localhost:8000/live") as server:
            async for price in server.request_stream(route="prices.ACME"):
                ...

    The server may subscribe to *routes*, which are as for `websocket`. At the end of the block the
    socket is closed, and open streams fail with `SocketLost`; so they do when it is lost. A lost
    socket is not replaced: open another one, or use `from_websocket`, whose flow does that with
    `retry`. Raises `SocketLost` if the socket cannot be opened, and `PeerFailed` if the server
    refuses it. The options are `ClientOptions`; the extra ``websockets`` is needed.
    """
    return _opened(_ClientConfig("connect", url, {} if routes is None else routes, options))


class _ClientConfig:
    """The validated options of a client."""

    def __init__(
        self, what: str, url: str, routes: Router | Mapping[str, Any], options: ClientOptions
    ) -> None:
        require_known_options(what, options, ClientOptions.__annotations__)
        encode = options.get("encode", to_json)
        require_callable(what, "encode", encode)
        max_message = options.get("max_message", _MAX_MESSAGE)
        max_streams = options.get("max_streams", 100)
        self.what: str = what
        self.url: str = url
        self.timeout: float = to_seconds(options.get("timeout", 10.0), f"{what}: timeout")
        self.handshake: dict[str, Any] = _handshake(what, url, options)
        self.shown_url: str = without_secrets(url)
        """What errors and names show of it."""
        self.socket: SocketConfig = SocketConfig(
            router=to_router(routes, what),
            encode=encode,
            max_message=require_int(what, "max_message", max_message, least=1),
            max_streams=require_int(what, "max_streams", max_streams, least=1),
            max_useless=_UNLIMITED,
            errors=error_policy(what, options.get("expose_errors", False), options.get("on_error")),
            on_connect=None,
            counters=options.get("counters") or Counters(),
            server=self.shown_url,
        )


def _handshake(what: str, url: str, options: ClientOptions) -> dict[str, Any]:
    """Return the arguments of the `connect` of websockets."""
    scheme, ssl = require_url(what, url, ("ws", "wss")), options.get("ssl")
    if ssl is not None and scheme != "wss":
        shown = without_secrets(url)
        raise ValueError(f"{what}: write wss:// if there is to be TLS, not {shown!r}")
    if (proxy := options.get("proxy")) is not None:
        require_url(f"{what}: proxy", proxy, _PROXIES)
    keepalive = options.get("keepalive", 20.0)
    interval = None if keepalive is None else to_seconds(keepalive, f"{what}: keepalive")
    arguments: dict[str, Any] = {
        "additional_headers": options.get("headers"),
        "close_timeout": _CLOSE_TIMEOUT,
        "compression": None,  # a small message could expand to a large one
        "max_size": options.get("max_message", _MAX_MESSAGE),
        "open_timeout": None,  # `timeout` is that of the whole attempt
        "ping_interval": interval,
        "ping_timeout": interval,
        "proxy": proxy,
        "subprotocols": [SUBPROTOCOL],
    }
    return arguments | ({} if ssl is None else {"ssl": ssl})


@asynccontextmanager
async def _opened(config: _ClientConfig) -> AsyncGenerator[Peer]:
    """Hold an open socket."""
    loop_handle = LoopHandle(f"{config.what}()")
    socket = await _open(config)
    messages = _Messages(socket)
    streams = StreamMultiplexer(loop_handle, messages.send, config.socket, HttpRequest({}), None)
    running = loop_handle.create_task(
        streams.run(messages.receive, None), f"asgi: a socket to {config.shown_url}"
    )
    try:
        yield streams.peer
    finally:
        running.cancel()
        try:
            # In a cancelled scope of anyio, each wait would be cancelled again.
            with CancelScope(shield=True):
                await wait_settled(running)
                await socket.close()
        finally:
            socket.transport.abort()  # it is open if this task was cancelled again


async def _open(config: _ClientConfig) -> Any:
    """Open a socket; raise `SocketLost`, or `PeerFailed` if the server refuses it."""
    try:
        from websockets.asyncio.client import connect as dial
        from websockets.exceptions import (
            InvalidHandshake,
            InvalidProxy,
            InvalidStatus,
            InvalidURI,
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "websockets":
            raise
        raise MissingExtra(f"{config.what}()", "websockets") from error
    message = f"{config.shown_url}: no socket within {config.timeout:g} s"
    with move_on_after(config.timeout):
        try:
            dialing = dial(config.url, **config.handshake)
            # As browsers do: the headers, credentials among them, are meant for that server alone.
            vars(dialing)["process_redirect"] = _not_followed
            return await dialing
        except InvalidStatus as error:
            status, detail = error.response.status_code, _detail_of(error.response)
            raise PeerFailed(status, detail, what=f"{config.shown_url}: the handshake") from error
        except (InvalidURI, InvalidProxy) as error:
            # Without its cause, which quotes the URL.
            raise ValueError(f"{config.what}: {without_secrets(str(error))}") from None
        except (OSError, EOFError, InvalidHandshake) as error:
            # Such as the URL of the proxy.
            message = f"{config.shown_url}: no socket: {excerpt(without_secrets(str(error)))}"
            raise SocketLost(message) from error
    raise SocketLost(message)


def _not_followed(error: Exception) -> Exception:
    """What `websockets` asks after each failed handshake: an error, or the URL of a redirect."""
    return error


def _detail_of(answer: "Response") -> str:
    """What a server says that refuses the handshake."""
    location = answer.headers.get("Location") if 300 <= answer.status_code < 400 else None
    if location is not None:
        place = excerpt(without_secrets(location))
        return f"it redirects to {place}, which is not followed: give the URL of that server"
    return detail_of(bytes(answer.body or b"")) or answer.reason_phrase


class _Messages:
    """The messages of a socket in the form of ASGI."""

    def __init__(self, socket: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        self._socket = socket
        self._closed: type[Exception] = ConnectionClosed

    async def receive(self) -> MutableMapping[str, Any]:
        try:
            message = await self._socket.recv()
        except self._closed as error:
            return {"type": "websocket.disconnect", "reason": excerpt(str(error))}
        kind = "text" if isinstance(message, str) else "bytes"
        return {"type": "websocket.receive", kind: message}

    async def send(self, event: MutableMapping[str, Any]) -> None:
        try:
            if event["type"] == "websocket.send":
                await self._socket.send(event["text"])
            else:
                await self._socket.close(event["code"])
        except self._closed as error:
            raise ConnectionError(f"the socket is closed: {excerpt(str(error))}") from error
