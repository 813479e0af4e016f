"""The client of the text protocol: `from_websocket`, a flow, and `connect`, a socket for several.

Both ends of a socket are one `StreamMultiplexer`. Here it receives the messages of the package
`websockets`, in the form in which a server receives them from ASGI.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from anyio import CancelScope

from ..._core.arguments import require_callable, require_int
from ..._core.foreign_text import excerpt
from ..._core.loop import LoopHandle, TimerHandle
from ..._sources.resource import using
from ...rsocket.serving.routing import Router, to_router
from ..formats import to_json
from ..http import HttpRequest
from ..options import Counters
from ..problem import error_policy
from ..socket_client import SocketAddress, SocketOptions, error_of_close
from .messages import SUBPROTOCOL, InvalidMessage
from .multiplexer import SocketConfig, StreamMultiplexer
from .streams import Peer

if TYPE_CHECKING:
    from ...flow import Flow

_UNLIMITED: Final = 2**63  # useless messages: a server may still send what was cancelled


class ClientOptions(SocketOptions, total=False):
    """Keyword arguments of `connect` and `from_websocket`: those of `SocketOptions`, and

    - max_streams: the number of streams that the server may open at a time (100).
    - encode: encodes the elements that are published; JSON by default.
    - expose_errors: send the server the text of all errors of published flows, not only of
      `Refused` (False).
    - on_error: receives errors that are not meant for the server; default: the loop's exception
      handler.
    - counters: counts the published streams, their elements, bytes and demand.
    """

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
        with `SocketRefused` when the server closes it because of what it was sent, such as a
        message that is too long (1002, 1003, 1007 to 1010); with `PeerFailed`, which has a
        `status`, when the server refuses the socket or the stream, when the stream fails there, and
        when the server speaks something else than this protocol or sends a message that is too
        long.
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
    ).name(f"from_websocket({config.address.shown_url!r}, route={route!r})")


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
    socket is closed, and open streams fail with `SocketLost`; so they do when it is lost, and with
    `SocketRefused` when the server closes it because of what it was sent. A lost socket is not
    replaced: open another one, or use `from_websocket`, whose flow does that with `retry`. Raises
    `SocketLost` if the socket cannot be opened, and `PeerFailed` if the server refuses it. The
    options are `ClientOptions`; the extra ``websockets`` is needed.
    """
    return _opened(_ClientConfig("connect", url, {} if routes is None else routes, options))


class _ClientConfig:
    """The validated options of a client."""

    def __init__(
        self, what: str, url: str, routes: Router | Mapping[str, Any], options: ClientOptions
    ) -> None:
        known = ClientOptions.__annotations__
        self.address: SocketAddress = SocketAddress(what, url, options, known, [SUBPROTOCOL])
        encode = options.get("encode", to_json)
        require_callable(what, "encode", encode)
        max_streams = options.get("max_streams", 100)
        self.socket: SocketConfig = SocketConfig(
            router=to_router(routes, what),
            encode=encode,
            max_message=self.address.max_message,
            max_streams=require_int(what, "max_streams", max_streams, least=1),
            max_useless=_UNLIMITED,
            errors=error_policy(what, options.get("expose_errors", False), options.get("on_error")),
            on_connect=None,
            counters=options.get("counters") or Counters(),
            server=self.address.shown_url,
        )


@asynccontextmanager
async def _opened(config: _ClientConfig) -> AsyncGenerator[Peer]:
    """Hold an open socket."""
    address = config.address
    loop_handle = LoopHandle(f"{address.what}()")
    interval = address.keepalive
    async with address.opened(ping_interval=interval, ping_timeout=interval) as socket:
        messages = SocketMessages(loop_handle, socket, address)
        streams = StreamMultiplexer(loop_handle, messages.send, config.socket, HttpRequest({}))
        running = loop_handle.create_task(
            streams.run(messages.receive, None), f"asgi: a socket to {address.shown_url}"
        )
        try:
            yield streams.peer
        finally:
            await socket.end_sending(running)


class SocketMessages:
    """The messages of a socket in the form of ASGI."""

    def __init__(self, loop_handle: LoopHandle, socket: Any, address: SocketAddress) -> None:
        from websockets.exceptions import ConnectionClosed

        self._address = address
        self._socket = socket
        self._closed = ConnectionClosed
        self._first = CancelScope()  # of a server that may speak something else
        self._is_known = socket.subprotocol == SUBPROTOCOL
        self._loop_handle = loop_handle
        self._timer: TimerHandle | None = None

    async def receive(self) -> MutableMapping[str, Any]:
        try:
            message = await (self._socket.recv() if self._is_known else self._receive_first())
        except self._closed as closed:
            error_of = partial(error_of_close, closed, self._address)
            return {"type": "websocket.disconnect", "error_of": error_of}
        kind = "text" if isinstance(message, str) else "bytes"
        return {"type": "websocket.receive", kind: message}

    async def _receive_first(self) -> Any:
        """Receive the first message of a server that has not accepted the subprotocol.

        If it speaks this protocol nevertheless, it answers a subscription; if not, it may wait for
        something else, for ever.
        """
        try:
            with self._first:
                return await self._socket.recv()
        finally:
            self._is_known = True
            if self._timer is not None:
                self._timer.cancel()
        detail = f"it accepted no subprotocol, and sent nothing within {self._address.timeout:g} s"
        raise InvalidMessage(504, detail)

    async def send(self, event: MutableMapping[str, Any]) -> None:
        if not self._is_known and self._timer is None:
            self._timer = self._loop_handle.call_later(self._address.timeout, self._first.cancel)
        try:
            if event["type"] == "websocket.send":
                await self._socket.send(event["text"])
            else:
                await self._socket.close(event["code"])
        except self._closed as error:
            raise ConnectionError(f"the socket is closed: {excerpt(str(error))}") from error
