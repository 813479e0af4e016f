"""The transport of a connection, if it has one: what it must offer, and in which state it is."""

from collections.abc import Callable
from typing import Any, Protocol, Self


class Transport(Protocol):
    """An object that moves bytes.

    It calls the driver's `data_received`, `pause_writing`, `resume_writing`, and once
    `connection_lost`.
    """

    def write(self, data: bytes, /) -> object:
        """Send *data*; never blocks."""
        ...

    def pause_reading(self) -> object: ...
    def resume_reading(self) -> object: ...

    def close(self) -> object:
        """Send what was written, then end."""
        ...

    def abort(self) -> object:
        """End now."""
        ...

    def get_write_buffer_size(self) -> int:
        """How many bytes were written and have not left yet."""
        ...

    def get_extra_info(self, name: str) -> Any:
        """The information that asyncio calls *name*; None if it is not available."""
        ...


Rebind = Callable[[Any], object]
"""Connects a transport to another driver, to which it moves."""


class Line:
    """A transport or none, whether it takes output, and whether it is read."""

    __slots__ = ("held", "is_paused", "is_writable", "loss", "rebind", "transport")

    def __init__(self, transport: Transport | None = None, rebind: Rebind | None = None) -> None:
        self.transport: Transport | None = transport
        self.rebind: Rebind | None = rebind or getattr(transport, "rebind", None)
        self.is_writable: bool = True
        self.is_paused: bool = False
        """Whether nothing is read from it."""
        self.held: int = 0
        """The bytes of a message that the transport holds, since it is not whole."""
        self.loss: str = "the transport was closed"
        """Why the transport ends, if nothing says more."""

    @property
    def blocked(self) -> Transport | None:
        """The transport, if it takes no more output."""
        return None if self.is_writable else self.transport

    def pause_reading(self, is_paused: bool) -> None:
        """Read nothing, or read again."""
        if is_paused is not self.is_paused and self.transport is not None:
            self.is_paused = is_paused
            (self.transport.pause_reading if is_paused else self.transport.resume_reading)()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def close_writing(self) -> None:
        """Close the sending half only, where the transport can.

        Closing a socket with unread bytes resets it, and the peer may lose the reason. The
        transport ends when the peer has read it, or when the time limit passes.
        """
        can_write_eof = getattr(self.transport, "can_write_eof", None)
        if can_write_eof is None or not can_write_eof():
            self.close()
            return
        transport: Any = self.transport
        try:
            transport.write_eof()
        except OSError:  # the peer has closed the socket meanwhile
            self.abort()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def replace(self, new: Self, owner: object) -> Self:
        """Return *new*; this transport, whose loss is not known yet, ends as that of *owner*."""
        if self.transport is not None and self.rebind is not None:
            self.rebind(owner)
            self.transport.abort()
        new.is_writable = True
        return new
