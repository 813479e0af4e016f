"""The sessions that clients of a server may resume.

The token of a session, 128 random bits, grants access to it. A session that began with a TLS client
certificate requires the same certificate again.
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
        """Make the session of *driver* resumable by *token*; False if there are too many."""
        if not self._sessions.add(token, (driver, _certificate(driver))):
            return False
        driver.add_close_callback(lambda _: self._sessions.remove(token))
        return True

    def resume(self, newcomer: Driver, frame: Resume) -> None:
        """Continue a session on the transport of *newcomer*, or reject the connection."""
        found = self._sessions.find(frame.token)
        if found is None or found[1] != _certificate(newcomer):
            newcomer.reject("there is no such session")
            return
        if not found[0].take_over(newcomer, frame):
            newcomer.reject("the session cannot go on")


def _certificate(driver: Driver) -> bytes | None:
    tls = driver.get_extra_info("ssl_object")
    return None if tls is None else tls.getpeercert(binary_form=True)
