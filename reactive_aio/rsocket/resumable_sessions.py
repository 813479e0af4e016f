"""Sessions that a server keeps for clients that lost their transport, and gives back to them.

Who knows the token, 128 random bits, gets the session. If its first connection showed a TLS
certificate, the one that comes back must show the same.
"""

from typing import Any

from .driver import Driver
from .protocol.connection import Connection
from .protocol.frames import Resume
from .protocol.resume import Sessions

__all__ = ("ResumableSessions",)


class ResumableSessions:
    """The sessions of one server, at most 1024 of them."""

    def __init__(self) -> None:
        self._sessions: Sessions[tuple[Driver, Any]] = Sessions()

    def __len__(self) -> int:
        return len(self._sessions)

    def keep(self, token: bytes, driver: Driver) -> bool:
        """Whether the session of *driver* can be given back by *token*."""
        if not self._sessions.add(token, (driver, _certificate(driver))):
            return False
        driver.add_close_callback(lambda _: self._sessions.remove(token))
        return True

    def resume(self, stranger: Driver, frame: Resume) -> None:
        """Give the session to the client that came back with *stranger*'s transport."""
        found = self._sessions.find(frame.token)
        if found is None or found[1] != _certificate(stranger):
            stranger.reject("there is no such session")
            return
        if not take_over(found[0], stranger, frame):
            stranger.reject("the session cannot go on")


def take_over(session: Driver, stranger: Driver, frame: Resume) -> bool:
    """Let *session* go on with the transport of *stranger*, on which *frame* came, if it can."""
    transport, rebind = stranger._transport, stranger._rebind
    same = session.connection.prefixed is stranger.connection.prefixed
    if transport is None or rebind is None or not same:
        return False
    if not session.connection.resume(frame, session.loop_handle.time()):
        session.schedule_turn()
        return False
    rest = stranger.connection.detach()
    stranger._transport = stranger._rebind = None
    stranger._end()
    old, forget = session._transport, session._rebind
    if old is not None and forget is not None:  # nobody knew that it was lost
        forget(_Nobody(lambda now: Connection(None, now)))
        old.abort()
    session._transport, session._rebind = transport, rebind
    session._writable, session._held = True, stranger._held
    rebind(session)
    session.schedule_turn()
    for data in rest:
        session.data_received(data)
    return True


class _Nobody(Driver):
    """Who hears what is still said on a transport that was given up."""

    def received(self, data: bytes) -> None:
        del data

    def resume_writing(self) -> None:
        """Nothing is written."""

    def lost(self, error: BaseException | None = None) -> None:
        del error


def _certificate(driver: Driver) -> bytes | None:
    tls = driver.get_extra_info("ssl_object")
    return None if tls is None else tls.getpeercert(binary_form=True)
