"""RSocket over WebSocket, either side: one frame in each binary message. Needs `websockets`.

That library knows the protocol and does no I/O; what it says goes between the loop's transport and
the driver here. Compression is not offered: a small message could become a large one.
"""

from typing import Any, Final

from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, State

from ..._core.loop import BaseTransport, SocketProtocol, TimerHandle
from ..driver import CLOSE_TIMEOUT, Driver
from ..protocol.frames import ErrorCode
from ..protocol.useless_frame_limit import UselessFrameLimit
from .message_framing import Message, join_messages, split_messages

__all__ = ("WebSocketTransport",)

NORMAL: Final = 1000
UNSUPPORTED: Final = 1003
POLICY: Final = 1008
TOO_BIG: Final = 1009


class WebSocketTransport(SocketProtocol):
    """A socket's protocol for the loop, and a transport for its driver."""

    def __init__(self, driver: Driver, protocol: Any) -> None:
        self.driver: Driver = driver
        self._protocol: Protocol = protocol
        self._limits = driver.connection.limits
        self._socket: Any = None
        self._parts = bytearray()  # of a message that comes in several frames
        self._partial = False
        self._unread = 0  # bytes since the handshake, while no message is whole
        self._stranger = not driver.connection.is_client
        self._flood = UselessFrameLimit(self._limits.max_useless)
        self._paused = False  # writing
        self._half: TimerHandle | None = None
        self._end_timer: TimerHandle | None = None
        self._error: Exception | None = None

    # -- for the loop ------------------------------------------------------------------------------
    def connection_made(self, transport: BaseTransport) -> None:
        self._socket = transport

    def data_received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        messages: list[Message] = []
        events = self._protocol.events_received()
        for event in events:
            if self._error is not None:
                break
            if isinstance(event, Frame):
                self._frame(event, messages)
            else:
                self.shake_hands(event)
        if messages:
            self._stranger = False
            self.driver.data_received(join_messages(messages))
        elif self._stranger:
            self._unread += len(data)
            if self._unread > 2 * self._limits.max_setup:
                self.fail(TOO_BIG, "the first message is too long")
        self._watch(bool(events))
        self.flush()
        self._tell()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self.flush()

    def pause_writing(self) -> None:
        self._paused = True
        self.driver.pause_writing()

    def resume_writing(self) -> None:
        self._paused = False
        self.driver.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._half, self._end_timer):
            if timer is not None:
                timer.cancel()
        self._half = self._end_timer = None
        self.lost(self._error or exc)

    # -- for the driver ----------------------------------------------------------------------------
    def rebind(self, driver: Driver) -> None:
        """Pass it on to *driver* from now on: a session goes on here."""
        self.driver = driver

    def get_extra_info(self, name: str) -> Any:
        return self._socket.get_extra_info(name)

    def write(self, data: bytes, /) -> None:
        protocol = self._protocol
        if protocol.state is State.OPEN:
            for message in split_messages(data):
                protocol.send_binary(message)
            self._socket.write(b"".join(protocol.data_to_send()))

    def pause_reading(self) -> None:
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._socket.resume_reading()

    def close(self) -> None:
        """Take leave by the closing handshake, which the peer has to finish in time."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(NORMAL)
            self.flush()
        elif self._protocol.state is State.CONNECTING:
            self.give_up()

    def abort(self) -> None:
        self._socket.abort()

    # -- for the side ------------------------------------------------------------------------------
    def shake_hands(self, event: object) -> None:
        """The other side's part of the opening handshake has come."""
        raise NotImplementedError

    def give_up(self) -> None:
        """The driver wants no more, and hands have not been shaken."""
        self._socket.close()

    def lost(self, error: Exception | None) -> None:
        """The socket has ended."""
        self.driver.connection_lost(error)

    def flush(self) -> None:
        """Send what the protocol has to say, and end the connection if that is what it says."""
        protocol = self._protocol
        data = protocol.data_to_send()
        if data:
            self._socket.write(b"".join(data))
        if protocol.close_expected() or protocol.eof_sent:
            self._finish(half_close=bool(data) and not data[-1])

    def fail(self, code: int, reason: str) -> None:
        """The peer has broken a rule: say which, and hear no more of it."""
        self._protocol.fail(code, reason)
        self._error = ConnectionError(f"{reason} ({code})")

    # -- what comes in -----------------------------------------------------------------------------
    def _frame(self, frame: Frame, messages: list[Message]) -> None:
        code = frame.opcode
        if code is Opcode.BINARY or (code is Opcode.CONT and self._partial):
            if frame.fin and not self._partial:
                messages.append(frame.data)
                return
            self._parts += frame.data
            self._partial = not frame.fin
            if frame.fin:
                messages.append(bytes(self._parts))
                self._parts = bytearray()
            elif not frame.data:
                self._useless()
        elif code is Opcode.TEXT:
            self.fail(UNSUPPORTED, "RSocket is spoken in binary messages")
        else:
            self._useless()

    def _useless(self) -> None:
        """A ping was answered; a few are ordinary."""
        now = self.driver.loop_handle.time()
        self.driver.connection.note_activity(now)
        if self._flood.useless(now):
            self.fail(POLICY, "a flood of frames that lead to nothing")
        elif self._paused and self._socket.get_write_buffer_size() > self._limits.max_backlog:
            self._error = ConnectionError("the peer does not read")
            self.abort()

    def _watch(self, whole: bool) -> None:
        """See to it that what has been begun is finished in time."""
        if self._partial or not whole:
            self.driver.connection.note_activity(self.driver.loop_handle.time())
            if self._half is None and self._protocol.state is State.OPEN:
                limit = self._limits.frame_timeout
                self._half = self.driver.loop_handle.call_later(limit, self._too_slow)
        elif self._half is not None:
            self._half.cancel()
            self._half = None

    def _too_slow(self) -> None:
        self._half = None
        message = "the rest of a message did not come in time"
        self.driver.connection.fail(ErrorCode.CONNECTION_ERROR, message)
        self.driver.schedule_turn()

    # -- the end -----------------------------------------------------------------------------------
    def _finish(self, *, half_close: bool) -> None:
        """The closing handshake is under way, or done; the peer must not take for ever."""
        protocol, socket = self._protocol, self._socket
        if protocol.parser_exc is not None and self._error is None:
            said = protocol.close_sent or protocol.parser_exc
            self._error = ConnectionError(f"the WebSocket was ended: {said}")
        if self._end_timer is None:
            self._end_timer = self.driver.loop_handle.call_later(CLOSE_TIMEOUT, socket.abort)
        if protocol.state is State.CLOSED or (protocol.close_sent and protocol.close_rcvd):
            socket.close()
        elif half_close and socket.can_write_eof():
            socket.write_eof()  # closed now, it could take the reason from a peer that still sends
        elif half_close:
            socket.close()

    def _tell(self) -> None:
        """The driver's streams need not wait for the end of the socket."""
        if self._error is not None and self.driver.close_reason is None:
            self._socket.resume_reading()
            self.driver.connection.fail(ErrorCode.CONNECTION_ERROR, str(self._error))
            self.driver.schedule_turn()
