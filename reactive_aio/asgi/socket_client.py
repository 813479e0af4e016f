"""Opening a socket to a server, by the package websockets: options, handshake, why it failed."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, TypedDict

from anyio import CancelScope, move_on_after

from .._core.arguments import Duration, require_int, require_known_options, to_seconds
from .._core.foreign_text import excerpt, without_secrets
from ..errors import MissingExtra
from .problem import PeerFailed, SocketLost, SocketRefused, detail_of, redirect_of
from .urls import require_url

if TYPE_CHECKING:
    from websockets.exceptions import ConnectionClosed, InvalidHandshake
    from websockets.http11 import Response

CLOSE_TIMEOUT: Final = 2.0
"""How many seconds a server may take to read what it is sent before a close, and to answer it."""
_MAX_MESSAGE: Final = 2**20
_BREACHES: Final = (1002, 1007)  # a frame that is none, and a text that is none
_ABNORMAL: Final = 1006  # the connection has ended without a close
_TOO_BIG: Final = 1009
_REFUSALS: Final = (1002, 1003, 1007, 1008, 1009, 1010)
"""The codes of a server that objects to what it was sent: to the next connection, it would too."""
_PROXIES: Final = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")


class SocketOptions(TypedDict, total=False):
    """Keyword arguments of `websocket_messages`, `connect` and `from_websocket`, with defaults.

    - headers: additional headers of the handshake, such as ``{"authorization": "Bearer …"}``. They
      are sent to the server of the URL alone: no redirect is followed.
    - ssl: the TLS context for ``wss://``; by default, the system's certificates are trusted.
    - timeout: the number of seconds within which the socket must be open (10).
    - keepalive: the number of seconds between two pings, and within which a ping must be answered
      (20), or the server is lost. With None, a server that has gone without a word is waited for
      until you cancel the flow or leave the block.
    - proxy: the URL of an HTTP proxy; none by default.
    - max_message: the number of bytes that a message of the server may have (1 MiB).
    """

    headers: Mapping[str, str] | None
    ssl: SSLContext | None
    timeout: Duration
    keepalive: Duration | None
    proxy: str | None
    max_message: int


class SocketAddress:
    """Where a socket is opened, and how: the validated `SocketOptions` of the function *what*."""

    def __init__(
        self,
        what: str,
        url: str,
        options: Mapping[str, Any],
        known: Collection[str],
        subprotocols: Sequence[str] | None,
    ) -> None:
        require_known_options(what, options, known)
        scheme, ssl = require_url(what, url, ("ws", "wss")), options.get("ssl")
        self.what: str = what
        self.url: str = url
        self.shown_url: str = without_secrets(url)
        """What errors and names show of it."""
        if ssl is not None and scheme != "wss":
            raise ValueError(f"{what}: write wss:// if there is to be TLS, not {self.shown_url!r}")
        if (proxy := options.get("proxy")) is not None:
            require_url(f"{what}: proxy", proxy, _PROXIES)
        keepalive = options.get("keepalive", 20.0)
        self.timeout: float = to_seconds(options.get("timeout", 10.0), f"{what}: timeout")
        self.keepalive: float | None = (
            None if keepalive is None else to_seconds(keepalive, f"{what}: keepalive")
        )
        self.max_message: int = require_int(
            what, "max_message", options.get("max_message", _MAX_MESSAGE), least=1
        )
        self._handshake: dict[str, Any] = {
            "additional_headers": options.get("headers"),
            "close_timeout": CLOSE_TIMEOUT,
            "compression": None,  # a small message could expand to a large one
            "max_size": self.max_message,
            "open_timeout": None,  # `timeout` is that of the whole attempt
            "proxy": proxy,
            "subprotocols": subprotocols,
        } | ({} if ssl is None else {"ssl": ssl})

    async def open(self, **arguments: Any) -> Any:
        """Open a socket, with further *arguments* for the `connect` of websockets.

        Raises `SocketLost`, or `PeerFailed` if the server refuses it or speaks something else.
        """
        try:
            from websockets.asyncio.client import connect as dial
            from websockets.exceptions import (
                InvalidHandshake,
                InvalidProxy,
                InvalidStatus,
                InvalidURI,
            )

            from .socket_connection import Connection
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "websockets":
                raise
            raise MissingExtra(f"{self.what}()", "websockets") from error
        with move_on_after(self.timeout):
            try:
                arguments |= {"create_connection": Connection}
                dialing = dial(self.url, **self._handshake, **arguments)
                # As browsers do: the headers, credentials among them, are for that server alone.
                vars(dialing)["process_redirect"] = _not_followed
                return await dialing
            except InvalidStatus as error:
                status, detail = error.response.status_code, _detail_of(error.response)
                raise PeerFailed(status, detail, what=f"{self.shown_url}: the handshake") from error
            except (InvalidURI, InvalidProxy) as error:
                # Without its cause, which quotes the URL.
                raise ValueError(f"{self.what}: {without_secrets(str(error))}") from None
            except InvalidHandshake as error:
                raise self._failure_of(error) from error
            except (OSError, EOFError) as error:
                raise self._lost(error) from error
        raise SocketLost(f"{self.shown_url}: no socket within {self.timeout:g} s")

    @asynccontextmanager
    async def opened(self, **arguments: Any) -> AsyncGenerator[Any]:
        """Hold an open socket, as `open` returns it, and close it at the end."""
        socket = await self.open(**arguments)
        try:
            yield socket
        finally:
            try:
                # In a cancelled scope of anyio, each wait would be cancelled again.
                with CancelScope(shield=True):
                    await socket.close()
            finally:
                socket.transport.abort()  # it is open if this task was cancelled again

    def _failure_of(self, error: "InvalidHandshake") -> Exception:
        """What a handshake without a status means: a server that is gone, or another protocol."""
        from websockets.exceptions import ProxyError

        cause = error.__cause__
        if isinstance(error, ProxyError) or isinstance(cause, EOFError):
            return self._lost(error)
        seen = str(error) if cause is None else f"{error}: {cause}"
        detail = f"the server does not speak WebSocket: {without_secrets(seen)}"
        return PeerFailed(502, detail, what=f"{self.shown_url}: the handshake")

    def _lost(self, error: Exception) -> SocketLost:
        # It may quote URLs, such as that of the proxy.
        reason = excerpt(without_secrets(str(error)))
        return SocketLost(f"{self.shown_url}: no socket: {reason}")


def error_of_close(closed: "ConnectionClosed", address: SocketAddress, said: str = "") -> Exception:
    """What it means that a connection is *closed*, otherwise than this end has wished.

    The reason is that of the close, or what the server has *said* before it.
    """
    by_us = None if closed.rcvd_then_sent else closed.sent
    if by_us is not None and by_us.code == _TOO_BIG:
        detail = f"it sent a message of more than {address.max_message} bytes (max_message=)"
        return PeerFailed(413, detail, what=address.shown_url)
    if by_us is not None and by_us.code in _BREACHES:
        detail = f"the server does not speak WebSocket: {by_us.reason or closed.__cause__}"
        return PeerFailed(502, detail, what=address.shown_url)
    code = _ABNORMAL if closed.rcvd is None else closed.rcvd.code
    reason = excerpt("" if closed.rcvd is None else closed.rcvd.reason) or excerpt(said)
    what = f"{address.shown_url}: the connection is closed with {code}"
    message = f"{what}: {shown}" if (shown := reason or _reason_of_ours(closed)) else what
    if code in _REFUSALS:
        return SocketRefused(message, code, reason)
    return SocketLost(f"{message}; subscribe again to reconnect", code=code, reason=reason)


def _reason_of_ours(closed: "ConnectionClosed") -> str:
    """Why this end has given up a server that did not say so, such as one that answers no ping."""
    if closed.sent is not None:
        return closed.sent.reason
    return f"{closed.__cause__}" if isinstance(closed.__cause__, TimeoutError) else ""


def _not_followed(error: Exception) -> Exception:
    """What `websockets` asks after each failed handshake: an error, or the URL of a redirect."""
    return error


def _detail_of(answer: "Response") -> str:
    """What a server says that refuses the handshake."""
    redirect = redirect_of(answer.status_code, answer.headers.get("Location"))
    return redirect or detail_of(bytes(answer.body or b"")) or answer.reason_phrase
