"""Connecting to one address: the transport, the answer to SETUP, and what went wrong.

RSocket has no answer to a SETUP that is accepted. The client therefore sends a KEEPALIVE after it,
which only a server that has accepted the SETUP answers. A RESUME has an answer of its own.
"""

from ssl import SSLCertVerificationError, SSLContext, SSLError
from typing import Final

from anyio import CancelScope, current_time

from ..protocol.errors import CertificateRejected, ConnectionLost, SetupRejected
from ..protocol.frames import ErrorCode
from ..uri import Address
from .driver import Driver
from .transports.endpoints import dial

_CERTIFICATE_ALERTS: Final = (
    "CERTIFICATE",
    "UNKNOWN_CA",
    "ACCESS_DENIED",
    "DECRYPT_ERROR",
    "HANDSHAKE_FAILURE",  # what servers answer until TLS 1.2 if the client shows no certificate
)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER")
_CLIENT_CERTIFICATE: Final = (
    "the server may require a client certificate, or not trust the one it was shown: "
    "SSLContext.load_cert_chain() presents one"
)
_HINTS: Final = {
    "tcp": "is RSocket served there, by TCP and without TLS? write tls://, ws:// or wss:// if not",
    "tls": _CLIENT_CERTIFICATE,
    "unix": "is RSocket served there?",
    "ws": "is RSocket served at that path?",
    "wss": _CLIENT_CERTIFICATE,
}
"""What to look at when a server closes the connection and says nothing, by the transport."""


class TimeLimit:
    """How long each attempt to connect may take, from its function for credentials on."""

    def __init__(self, seconds: float) -> None:
        self.seconds: float = seconds
        self._deadline = 0.0

    def restart(self) -> None:
        """Another attempt begins."""
        self._deadline = current_time() + self.seconds

    def scope(self) -> CancelScope:
        """Ends what is left of the attempt when its time is over."""
        return CancelScope(deadline=self._deadline)

    def __str__(self) -> str:
        return f"{self.seconds:g} s"


class Dialer:
    """Connects drivers to one address, each within *limit*."""

    def __init__(self, address: Address, ssl: SSLContext | None, limit: TimeLimit) -> None:
        self._address = address
        self._ssl = ssl
        self._limit = limit

    async def __call__(self, driver: Driver) -> None:
        """Give *driver* a transport, and wait until the server has answered SETUP or RESUME.

        Fails with `ConnectionLost`, or a subclass that says what the server refused. A transport
        that is lost before RESUME was answered is no failure: the session is suspended again.
        """
        is_resuming, is_connected = driver.connection.is_suspended, False
        if is_resuming:
            self._limit.restart()  # a resumed session needs no credentials
        try:
            with self._limit.scope():
                await dial(driver.loop_handle.event_loop, self._address, driver, self._ssl)
                is_connected = True
                await (driver.wait_resumed() if is_resuming else self._accepted(driver))
                return
        except ConnectionLost:
            raise
        except OSError as error:
            raise explained(self._address, error) from error
        message = f"no connection within {self._limit}"
        if is_connected:
            message = (
                f"connected, but no answer to {'RESUME' if is_resuming else 'SETUP'} "
                f"within {self._limit}; " + (_HINTS[self._address.transport])
            )
        raise _lost(self._address, message)

    async def _accepted(self, driver: Driver) -> None:
        """Wait until the server has accepted the SETUP; raise its refusal."""
        await driver.confirm()
        error = driver.ending.reason
        if error is None or driver.connection.is_confirmed:
            return
        if isinstance(error, SetupRejected):
            raise error
        text = error.data.decode("utf-8", "replace")
        if _is_certificate_alert(text):
            raise _refused_by_server(self._address, text)
        message = f"the server ended the connection before it accepted the client: {text}"
        if "transport" in text:  # it has not said why
            message += f"; {_HINTS[self._address.transport]}"
        raise _lost(self._address, message)


def explained(address: Address, error: OSError) -> ConnectionLost:
    """The error for a connection to *address* that failed with *error*, with a remedy."""
    text = str(error)
    if isinstance(error, SSLCertVerificationError):
        message = (
            f"the certificate of the server is refused: {error.verify_message or text}; use a name "
            "for which it was issued, and trust its authority: create_default_context(cafile=…)"
        )
        return CertificateRejected(ErrorCode.CONNECTION_ERROR, f"{address}: {message}".encode())
    if _is_certificate_alert(text):
        return _refused_by_server(address, text)
    is_reset = isinstance(error, ConnectionResetError) and address.is_secure
    if (isinstance(error, SSLError) and any(each in text for each in _NO_TLS)) or is_reset:
        plain = {"tls": "tcp://", "wss": "ws://"}.get(address.transport, "tcp://")
        certificate = f"; or {_CLIENT_CERTIFICATE}" if is_reset else ""
        text = text or "the connection was reset during the TLS handshake"
        return _lost(address, f"{text}; perhaps no TLS is spoken there: write {plain}{certificate}")
    return _lost(address, text or f"{type(error).__name__}, without a reason")


def _is_certificate_alert(text: str) -> bool:
    """Whether *text* is about a TLS alert by which the other side refuses a certificate."""
    upper = text.upper()
    return "ALERT" in upper and any(each in upper for each in _CERTIFICATE_ALERTS)


def _refused_by_server(address: Address, text: str) -> CertificateRejected:
    message = f"{address}: {text}: {_CLIENT_CERTIFICATE}"
    return CertificateRejected(ErrorCode.CONNECTION_ERROR, message.encode())


def _lost(address: Address, message: str) -> ConnectionLost:
    return ConnectionLost(ErrorCode.CONNECTION_ERROR, f"{address}: {message}".encode())
