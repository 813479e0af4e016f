"""websocket_messages: the messages of any WebSocket server as a flow, by the package websockets."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Unpack, cast

from anyio import move_on_after

from .._core.arguments import require_callable
from .._core.loop import LoopHandle
from .._shared.coerce import Source, is_source, to_flow
from .._sources.values import defer
from ..retry import RetryPolicy
from ..stage import from_async
from .problem import SocketLost
from .socket_client import SocketAddress, SocketOptions, error_of_close

if TYPE_CHECKING:
    from ..flow import Flow

Message = str | bytes
Send = Source[Message] | Callable[[Message | None], Source[Message]]

_NAME: Final = "websocket_messages"
_WINDOW: Final = 16  # messages that wait in a connection
_DELAY: Final = 1.0  # seconds before the second connection, if *retry* is a number
_LONGEST_DELAY: Final = 30.0
_NORMAL: Final = 1000  # the server has sent everything


class MessageOptions(SocketOptions, total=False):
    """Keyword arguments of `websocket_messages`: those of `SocketOptions`, and

    - subprotocols: the subprotocols that are offered to the server; none by default.
    """

    subprotocols: Sequence[str] | None


def websocket_messages(
    url: str,
    send: Send | None = None,
    *,
    retry: RetryPolicy | int | None = None,
    **options: Unpack[MessageOptions],
) -> "Flow[str | bytes]":
    """Emit the messages of a WebSocket server, whatever it speaks: each a text, or bytes.

    ::

        subscribe = ['{"op": "subscribe", "channel": "trades"}']
        websocket_messages("wss://example.org/feed", subscribe, retry=5).map(json.loads)

    *send* is what is sent on each connection, one message after the other: a list, a flow, or
    another source; or a function that makes one of the last message that was received, so that a
    subscription continues there. Its end does not close the connection.

    With *retry*, a lost connection is followed by another one. A number is that of attempts in a
    row, as for `retry`: one second apart, then two, and up to 30; a message makes the count begin
    again. A `RetryPolicy` counts as it says; with ``only=ConnectionError``, it does not repeat what
    the server refuses. What the server has sent meanwhile is lost, unless *send* asks for it. The
    options are `MessageOptions`; the extra ``websockets`` is needed.

    Demand: one message for one requested; the connection is read while fewer than 16 wait, so that
        a slow subscriber slows the server.
    Completes: when the server closes the connection with 1000.
    Fails: with `SocketLost`, a `ConnectionError`, when no connection can be opened, or when it
        ends: *code* is what the server closed it with; with `SocketRefused` when that says what it
        was sent is wrong (1002, 1003, 1007 to 1010); with `PeerFailed` when the server refuses the
        handshake, speaks something else, or sends a message that is too long; and when *send*
        fails.
    Cancels: *send* is cancelled, and the connection closed.
    Holds: 16 messages; with *retry*, 256 more, which were requested and wait for a slow subscriber.
    Rules: 1.1, 3.13

    While a message is waited for, a connection without one is asked by a ping after *keepalive*
    seconds (20), and lost when that is not answered within as many.
    """
    subprotocols, known = options.get("subprotocols"), MessageOptions.__annotations__
    if isinstance(subprotocols, str):
        raise TypeError(f"{_NAME}: subprotocols must be a list of texts, not one str")
    address = SocketAddress(_NAME, url, options, known, subprotocols)
    make, policy = _maker(send), _policy_of(retry)
    name = f"{_NAME}({address.shown_url!r})"

    def connections(progress: _Progress | None = None) -> "Flow[Message]":
        def open() -> AsyncGenerator[Message]:
            return _read(address, make, _Progress() if progress is None else progress)

        return from_async(open, name=name, holds=_WINDOW)

    if policy is None:
        return connections()
    if callable(send) and not is_source(send):  # each subscription has a last message of its own
        return defer(lambda: connections(_Progress()).retry(policy))
    return connections().retry(policy)


def _policy_of(retry: RetryPolicy | int | None) -> RetryPolicy | None:
    if retry is None or isinstance(retry, RetryPolicy):
        return retry
    return replace(
        RetryPolicy.of(retry),
        delay=_DELAY,
        maximum=_LONGEST_DELAY,
        only=ConnectionError,
        reset=True,
    )


def _maker(send: Send | None) -> Callable[[Message | None], "Flow[Message] | None"]:
    """Return what makes the messages that are sent on a connection."""
    if send is None:
        return lambda _: None
    if isinstance(send, Mapping):
        raise TypeError(
            f"{_NAME}: send must be messages, such as [json.dumps({send!r})], not a dict"
        )
    if callable(send) and not is_source(send):
        require_callable(_NAME, "send", send, takes=1, may_generate=True)
        return lambda last: to_flow(send(last), name=f"{_NAME}: send")
    source = to_flow(cast("Source[Message]", send), name=f"{_NAME}: send")
    return lambda _: source


@dataclass(slots=True)
class _Progress:
    """What the connections of one subscription have brought."""

    last: Message | None = None


async def _read(
    address: SocketAddress,
    make: Callable[[Message | None], "Flow[Message] | None"],
    progress: _Progress,
) -> AsyncGenerator[Message]:
    """Open one connection, and generate its messages."""
    source = make(progress.last)  # if it raises, there is no socket that had to be closed
    # A ping in the background would take a slow subscriber, which does not read, for a lost one. So
    # would a limit of how long the server may not read: it may be waiting until this end does.
    async with address.opened(max_queue=_WINDOW, ping_interval=None, ping_timeout=None) as socket:
        sending = _Sending(socket, source)
        try:
            while (message := await _next(socket, address)) is not None:
                progress.last = message
                yield message
            sending.check()
        except SocketLost:
            sending.check()  # its failure has closed the socket
            raise
        finally:
            await sending.aclose()


async def _next(socket: Any, address: SocketAddress) -> Message | None:
    """The next message; None when the server has closed the connection, and that was all."""
    from websockets.exceptions import ConnectionClosed

    seconds = address.keepalive
    try:
        if seconds is None:
            return cast("Message", await socket.recv())
        while True:
            with move_on_after(seconds):
                return cast("Message", await socket.recv())
            pong = None
            with move_on_after(seconds):
                pong = await socket.ping()
                return cast("Message", await socket.recv())
            if pong is None or not pong.done():
                socket.transport.abort()  # it would not answer a close either
                what = f"{address.shown_url}: the server has not answered a ping within"
                raise SocketLost(f"{what} {seconds:g} s (keepalive=)")
    except ConnectionClosed as closed:
        if closed.rcvd is not None and closed.rcvd.code == _NORMAL:
            return None
        raise error_of_close(closed, address) from closed


class _Sending:
    """What is sent on a connection; its failure closes that."""

    def __init__(self, socket: Any, source: "Flow[Message] | None") -> None:
        self._socket = socket
        self._error: BaseException | None = None
        self._task = (
            None
            if source is None
            else LoopHandle(f"{_NAME}()").create_task(self._send(source), f"{_NAME}: sends")
        )

    async def _send(self, source: "Flow[Message]") -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await source.for_each(self._send_one)
        except ConnectionClosed:
            pass  # the reader is told the same
        except Exception as error:
            self._error = error
            await self._socket.close()

    async def _send_one(self, message: object) -> None:
        if not isinstance(message, str | bytes):
            kind = type(message).__name__
            raise TypeError(
                f"{_NAME}: send has a message {message!r} ({kind}), and a message is a str or "
                "bytes; encode it, such as by json.dumps"
            )
        await self._socket.send(message)

    def check(self) -> None:
        """Raise why no more can be sent, if the source has failed."""
        if self._error is not None:
            raise self._error

    async def aclose(self) -> None:
        """Stop sending."""
        if self._task is not None:
            await self._socket.end_sending(self._task)
