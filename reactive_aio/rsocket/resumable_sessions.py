"""Sessions that a server keeps for clients that lost their transport, and gives back to them.

Who knows the token, 128 random bits, gets the session. If its first connection showed a TLS
certificate, the one that comes back must show the same.
"""

from typing import Any

from .driver import Driver
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
        if not found[0].take_over(stranger, frame):
            stranger.reject("the session cannot go on")


def _certificate(driver: Driver) -> bytes | None:
    tls = driver.get_extra_info("ssl_object")
    return None if tls is None else tls.getpeercert(binary_form=True)
