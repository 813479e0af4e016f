"""TLS handshakes of a server, each in a task that knows how it ends.

The loop would shake hands by itself, but tell nobody of those that go on or that have failed. So
the socket of each connection is taken from the loop, and given back with TLS.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from ssl import SSLContext, SSLError
from traceback import clear_frames
from typing import Any, Final, cast

from ...._core.loop import BaseTransport, LoopHandle, SocketProtocol, Task, wait_settled
from ..arrivals import Arrivals

TLS_TIMEOUT: Final = 5.0
"""The number of seconds for the TLS handshake of a client; the default of asyncio is a minute."""


class Handshakes:
    """The TLS handshakes of one server by *context*; *failed* is called with each error."""

    def __init__(
        self,
        context: SSLContext,
        arrivals: Arrivals,
        key_at: Callable[[Any], Any],
        failed: Callable[[SSLError], object],
    ) -> None:
        self.context: SSLContext = context
        self._arrivals = arrivals
        self._key_at = key_at
        self._failed = failed
        self._running: dict[Task[Any], Handshake] = {}

    def begin(self, transport: BaseTransport, make_protocol: Callable[[], SocketProtocol]) -> None:
        """Shake hands on the socket of *transport*, and call *make_protocol* after that."""
        loop_handle = LoopHandle("serve()")
        key = self._key_at(transport.get_extra_info("peername"))
        try:
            connection = transport.get_extra_info("socket").dup()
        except OSError:  # too many files are open
            return
        finally:
            cast("Any", transport).abort()  # closes its descriptor, and not the connection
        handshake = Handshake(connection, make_protocol)
        handshake.task = loop_handle.create_task(
            self._shake_hands(loop_handle, handshake), "rsocket: TLS handshake", self._end
        )
        self._running[handshake.task] = handshake
        self._arrivals.arrive(handshake, key, loop_handle.time())

    def _end(self, task: Task[Any]) -> None:
        handshake = self._running.pop(task)
        self._arrivals.leave(handshake)
        if not handshake.has_begun:
            handshake.socket.close()

    async def _shake_hands(self, loop_handle: LoopHandle, handshake: "Handshake") -> None:
        handshake.has_begun = True
        try:
            await loop_handle.event_loop.connect_accepted_socket(
                lambda: HandshakeProtocol(handshake.make_protocol),
                handshake.socket,
                ssl=self.context,
                ssl_handshake_timeout=TLS_TIMEOUT,
            )
        except OSError as error:
            _forget_frames(error)
            if isinstance(error, SSLError):
                self._failed(error)  # the others took too long, or their client has gone
        except BaseException as error:  # it is aborted
            _forget_frames(error)
            raise

    async def aclose(self) -> None:
        """Abort those that go on."""
        for task in list(self._running):
            task.cancel()
        await wait_settled(*self._running)


def _forget_frames(error: BaseException) -> None:
    """Free what the frames of a handshake hold that has failed with *error*.

    asyncio leaves them in a circle with the error. Among them is a buffer of 256 KiB for each
    connection: thousands of these would wait for the garbage collector, which counts objects.
    """
    clear_frames(error.__traceback__)


@dataclass(slots=True, eq=False)
class Handshake:
    """One of them, as an arrival."""

    socket: socket.socket
    make_protocol: Callable[[], SocketProtocol]
    task: "Task[Any] | None" = None
    has_begun: bool = False
    """Whether the socket is the loop's again, which closes it."""

    def abort(self) -> None:
        """End the connection now."""
        if self.task is not None:
            self.task.cancel()


class AcceptingProtocol(SocketProtocol):
    """The protocol of a connection until its TLS handshake begins."""

    def __init__(self, handshakes: Handshakes, make_protocol: Callable[[], SocketProtocol]) -> None:
        self._handshakes = handshakes
        self._make_protocol = make_protocol

    def connection_made(self, transport: BaseTransport) -> None:
        self._handshakes.begin(transport, self._make_protocol)


class HandshakeProtocol(SocketProtocol):
    """Makes the protocol of a connection after its TLS handshake.

    Until then, a connection has no driver. asyncio does not notify a protocol of the end of a
    handshake that has failed, so that a driver made before it would never end.
    """

    def __init__(self, make_protocol: Callable[[], SocketProtocol]) -> None:
        self._make_protocol = make_protocol

    def connection_made(self, transport: BaseTransport) -> None:
        protocol = self._make_protocol()
        cast("Any", transport).set_protocol(protocol)
        protocol.connection_made(transport)
