"""RSocket over WebSocket, client and server: one frame in each binary message.

The package `websockets` implements the protocol without I/O; the transports here move its bytes
between the event loop and the driver. Compression is not offered: a small message could expand to
a large one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from http import HTTPStatus
from logging import getLogger
from ssl import SSLContext
from typing import Any, Final, Generic, TypeVar

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import Protocol, State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from ...._core.loop import AbstractEventLoop, BaseTransport, Future, SocketProtocol, TimerHandle
from ...protocol.codec import join_messages, split_messages
from ...protocol.flood import Bucket
from ...protocol.frames import ErrorCode
from ...uri import Address
from ..driver import Driver
from ..ending import CLOSE_TIMEOUT
from .origins import is_origin_allowed, refusal_of
from .sockets import SharedBuffer, fills_buffer_at_once, limit_unsent

_RSOCKET: Final = Subprotocol("rsocket")
_PLAIN_HINT: Final = "write wss:// if TLS is spoken there, or tcp:// for RSocket without WebSocket"
_SECURE_HINT: Final = (
    "the server may require a client certificate (SSLContext.load_cert_chain), not trust the one "
    "it was shown, or serve RSocket without WebSocket: write tls://"
)
_logger: Final = getLogger("reactive_aio.rsocket")


P = TypeVar("P", bound=Protocol)


class WebSocketTransport(SocketProtocol, ABC, Generic[P]):
    """The asyncio protocol of a socket, and the transport of its driver."""

    def __init__(self, driver: Driver, protocol: P) -> None:
        self.driver: Driver = driver
        self._protocol: P = protocol
        self._limits = driver.connection.limits
        self._socket: Any = None
        self._fragments = bytearray()  # of an unfinished message
        self._is_fragmented = False
        self._unfinished = 0  # the bytes of a WebSocket frame that is not whole
        self._has_message = driver.connection.is_client
        """Whether a whole message has come; until then, a server limits what a client sends."""
        self._received_before_message = 0
        self._useless_frames = Bucket(self._limits.max_useless)
        self._is_writing_paused = False
        self._is_reading = True
        self._message_timer: TimerHandle | None = None
        self._close_timer: TimerHandle | None = None
        self._error: Exception | None = None

    # -- for the event loop ------------------------------------------------------------------------
    def connection_made(self, transport: BaseTransport) -> None:
        self._socket = transport
        limit_unsent(transport)

    def data_received(self, data: bytes) -> None:
        self._unfinished += len(data)
        self._protocol.receive_data(data)
        messages: list[bytes | bytearray | memoryview] = []
        events = self._protocol.events_received()
        for event in events:
            if self._error is not None:
                break
            if isinstance(event, Frame):
                self._unfinished -= self._size_of(event)
                self._frame_received(event, messages)
            else:
                self._unfinished = 0
                self.handshake_received(event)
        if messages:
            self._has_message = True
            self.driver.data_received(join_messages(messages))
        elif not self._has_message:
            self._received_before_message += len(data)
            if self._received_before_message > 2 * self._limits.max_setup:
                self.fail(CloseCode.MESSAGE_TOO_BIG, "the first message is too long")
        self._unfinished = max(0, self._unfinished)
        self._watch_message(is_whole=bool(events))
        self.flush()
        self._report_error()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self.flush()

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        self.driver.pause_writing()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self.driver.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_message_timer()
        if self._close_timer is not None:
            self._close_timer.cancel()
            self._close_timer = None
        self.socket_lost(self._error or exc)
        self._socket = None  # with TLS, it holds a buffer of 256 KiB

    # -- for the driver ----------------------------------------------------------------------------
    def rebind(self, driver: Driver) -> None:
        """Serve *driver* from now on: its session continues on this WebSocket."""
        self.driver = driver

    def get_extra_info(self, name: str) -> Any:
        return self._socket.get_extra_info(name)

    def get_write_buffer_size(self) -> int:
        size: int = self._socket.get_write_buffer_size()
        return size

    def write(self, data: bytes, /) -> None:
        protocol = self._protocol
        if protocol.state is State.OPEN:
            for message in split_messages(data):
                protocol.send_binary(message)
            self._socket.write(b"".join(protocol.data_to_send()))

    def pause_reading(self) -> None:
        self._is_reading = False
        self._stop_message_timer()
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._is_reading = True
        self._socket.resume_reading()
        if self._is_fragmented:
            self._watch_message(is_whole=False)

    def close(self) -> None:
        """Start the closing handshake, which the peer has to finish within a timeout."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
            self.flush()
        elif self._protocol.state is State.CONNECTING:
            self.close_before_handshake()

    def abort(self) -> None:
        self._socket.abort()

    # -- for the subclasses ------------------------------------------------------------------------
    @abstractmethod
    def handshake_received(self, event: object) -> None:
        """The request or the response of the opening handshake was received."""

    def close_before_handshake(self) -> None:
        """The driver closes the connection before the end of the opening handshake."""
        self._socket.close()

    def socket_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        self.driver.connection_lost(error)

    def flush(self) -> None:
        """Send the output of the protocol; close the connection if the protocol requires it."""
        protocol = self._protocol
        data = protocol.data_to_send()
        if data:
            self._socket.write(b"".join(data))
        if protocol.close_expected() or protocol.eof_sent:
            self._finish(half_close=bool(data) and not data[-1])

    def fail(self, code: int, reason: str) -> None:
        """Close with *code*, since the peer has broken a rule; ignore what it sends from now on."""
        self._protocol.fail(code, reason)
        self._error = ConnectionError(f"{reason} ({code})")

    # -- messages ----------------------------------------------------------------------------------
    def _frame_received(self, frame: Frame, messages: list[bytes | bytearray | memoryview]) -> None:
        code = frame.opcode
        if code is Opcode.BINARY or (code is Opcode.CONT and self._is_fragmented):
            if frame.fin and not self._is_fragmented:
                messages.append(frame.data)
                return
            self._fragments += frame.data
            self._is_fragmented = not frame.fin
            if frame.fin:
                messages.append(bytes(self._fragments))
                self._fragments = bytearray()
            elif not frame.data:
                self._count_useless()
        elif code is Opcode.TEXT:
            self.fail(CloseCode.UNSUPPORTED_DATA, "RSocket is spoken in binary messages")
        else:
            self._count_useless()

    def _size_of(self, frame: Frame) -> int:
        """How many bytes *frame* has taken."""
        size = len(frame.data)
        header = 2 if size < 126 else 4 if size < 0x10000 else 10
        return header + size + (0 if self.driver.connection.is_client else 4)

    def _count_useless(self) -> None:
        """Count an empty fragment or a ping, which has its response; only a flood is refused."""
        now = self.driver.loop_handle.time()
        self.driver.connection.note_activity(now)
        if self._useless_frames.exceeded_by_one(now):
            self.fail(CloseCode.POLICY_VIOLATION, "a flood of frames that lead to nothing")
        elif self._is_writing_paused and (
            self._socket.get_write_buffer_size() > self._limits.max_backlog
        ):
            self._error = ConnectionError("the peer does not read")
            self.abort()

    def _watch_message(self, *, is_whole: bool) -> None:
        """Start the timer of an unfinished message; stop it when the message is whole."""
        held = self._unfinished + len(self._fragments)
        if held != self.driver.line.held:
            self.driver.line.held = held
            self.driver.count_held()
        if self._is_fragmented or not is_whole:
            self.driver.connection.note_activity(self.driver.loop_handle.time())
            is_open = self._is_reading and self._protocol.state is State.OPEN
            if self._message_timer is None and is_open:
                timeout = self._limits.frame_timeout
                self._message_timer = self.driver.loop_handle.call_later(
                    timeout, self._message_timed_out
                )
        else:
            self._stop_message_timer()

    def _stop_message_timer(self) -> None:
        if self._message_timer is not None:
            self._message_timer.cancel()
            self._message_timer = None

    def _message_timed_out(self) -> None:
        self._message_timer = None
        message = "the rest of a message did not come in time"
        self.driver.connection.fail(ErrorCode.CONNECTION_ERROR, message)
        self.driver.schedule_turn()

    # -- closing -----------------------------------------------------------------------------------
    def _finish(self, *, half_close: bool) -> None:
        """Continue the closing handshake, which the peer has to finish within a timeout."""
        protocol, socket = self._protocol, self._socket
        if protocol.parser_exc is not None and self._error is None:
            reason = protocol.close_sent or protocol.parser_exc
            self._error = ConnectionError(f"the WebSocket was ended: {reason}")
        if self._close_timer is None:
            self._close_timer = self.driver.loop_handle.call_later(CLOSE_TIMEOUT, socket.abort)
        if protocol.state is State.CLOSED or (protocol.close_sent and protocol.close_rcvd):
            socket.close()
        elif half_close and socket.can_write_eof():
            try:
                socket.write_eof()  # closing now could drop the reason if the peer still sends
            except OSError:  # the peer has closed the socket meanwhile
                socket.abort()
        elif half_close:
            socket.close()

    def _report_error(self) -> None:
        """Fail the streams of the driver at once, before the socket is closed."""
        if self._error is not None and self.driver.ending.reason is None:
            self._socket.resume_reading()
            self.driver.connection.fail(ErrorCode.CONNECTION_ERROR, str(self._error))
            self.driver.schedule_turn()


# -- client ----------------------------------------------------------------------------------------
class ClientTransport(WebSocketTransport[ClientProtocol]):
    """A connection to a server; its driver is attached after the opening handshake."""

    def __init__(self, driver: Driver, address: Address) -> None:
        protocol = ClientProtocol(
            parse_uri(str(address)),
            max_size=driver.connection.limits.max_frame,
            logger=_logger,
        )
        super().__init__(driver, protocol)
        self._hint = _SECURE_HINT if address.is_secure else _PLAIN_HINT
        self.opened: Future[None] = driver.loop_handle.create_future()

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._protocol.send_request(self._protocol.connect())
        self.flush()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._protocol.handshake_exc is not None:
            self.abort()

    def handshake_received(self, event: object) -> None:
        if self._protocol.handshake_exc is None and not self.opened.done():
            self.driver.attach(self)  # first, so that its turn comes before `dial` continues
            self.opened.set_result(None)

    def give_up(self) -> None:
        """Nothing awaits the opening handshake any more: abort the connection."""
        if self.opened.done() and not self.opened.cancelled():
            self.opened.exception()  # retrieved
        self.opened.cancel()
        if self._socket is not None:
            self.abort()

    def socket_lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self._handshake_error(error)))
        elif not self.opened.cancelled():
            self.driver.connection_lost(error)

    def _handshake_error(self, error: Exception | None) -> str:
        failure = self._protocol.handshake_exc
        if isinstance(failure, InvalidStatus):
            response = failure.response
            body = bytes(response.body or b"")[:200].decode(errors="replace").strip()
            status = f"{response.status_code} {response.reason_phrase}"
            return f"no WebSocket there; the answer was {status}" + (f": {body}" if body else "")
        reason = error or failure or "the connection was closed"
        return f"no WebSocket there: {reason}; {self._hint}"


class BufferedClientTransport(ClientTransport, SharedBuffer):
    """The same, for loops that read into a buffer."""


async def dial(
    loop: AbstractEventLoop, address: Address, driver: Driver, ssl: SSLContext | None
) -> None:
    """Connect *driver* to *address*."""
    kind = BufferedClientTransport if fills_buffer_at_once(loop) else ClientTransport
    client = kind(driver, address)
    tls = (ssl or True) if address.is_secure else None
    try:
        await loop.create_connection(lambda: client, address.host, address.port, ssl=tls)
        await client.opened
    except BaseException:
        client.give_up()
        raise


# -- server ----------------------------------------------------------------------------------------
class ServerTransport(WebSocketTransport[ServerProtocol]):
    """The connection of a client, from the first byte of its opening handshake.

    The driver is attached at the first byte, so that its deadline for SETUP includes the handshake
    and the connection counts as open.
    """

    def __init__(self, driver: Driver, address: Address, origins: frozenset[str]) -> None:
        protocol = ServerProtocol(
            select_subprotocol=_select_subprotocol,
            max_size=driver.connection.limits.max_frame,
            logger=_logger,
        )
        super().__init__(driver, protocol)
        self._address = address
        self._origins = origins

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.driver.attach(self)

    def handshake_received(self, event: object) -> None:
        if isinstance(event, Request):
            self._protocol.send_response(self._handshake_response(event))

    def close_before_handshake(self) -> None:
        if not self._protocol.eof_sent:
            message = "no WebSocket was requested in time\n"
            response = self._protocol.reject(HTTPStatus.REQUEST_TIMEOUT, message)
            self._protocol.send_response(response)
            self.flush()

    def _handshake_response(self, request: Request) -> Response:
        address = self._address
        if request.path.partition("?")[0] != address.path:
            message = f"RSocket is served at {address.path}\n"
            return self._protocol.reject(HTTPStatus.NOT_FOUND, message)
        origin = ", ".join(request.headers.get_all("Origin")) or None
        host = ", ".join(request.headers.get_all("Host")) or None
        if not is_origin_allowed(
            origin, host, self._origins, own_name=address.host, is_secure=address.is_secure
        ):
            message = refusal_of(origin, "serve")
            return self._protocol.reject(HTTPStatus.FORBIDDEN, message)
        return self._protocol.accept(request)


class BufferedServerTransport(ServerTransport, SharedBuffer):
    """The same, for loops that read into a buffer."""


def server_transport(loop: AbstractEventLoop) -> type[ServerTransport]:
    """The protocol of the clients that connect to *loop*."""
    return BufferedServerTransport if fills_buffer_at_once(loop) else ServerTransport


def _select_subprotocol(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Select ``rsocket`` if the client offers it; most clients offer no subprotocol."""
    return _RSOCKET if _RSOCKET in offered else None
