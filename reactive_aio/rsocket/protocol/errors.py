"""Errors of a connection, sorted by their cause.

`ProtocolError`: malformed bytes of the peer. `StreamFailed` and its subclasses: the peer's answer
to one request. `ConnectionLost`, `SetupRejected`: the connection has ended, or never began.
`MustWait`, `NoStreamLeft`: a request could not be sent, and may be retried later or elsewhere.
"""

from typing import Final

from ..._core.foreign_text import excerpt
from ...errors import ReactiveError
from .frames import ErrorCode

_MOST: Final = 2000
"""Characters of a peer's text in the message of an exception."""
_NO_TEXT: Final = "no reason was given"
_HANDLER_FAILED: Final = (
    "the handler of the other side failed, and the text of its error was not sent; the log there "
    "should have it (a server of reactive_aio logs it, and sends it with expose_errors=True)"
)


class ProtocolError(ReactiveError):
    """Bytes that RSocket 1.0 does not allow; `code` is sent in answer."""

    def __init__(self, message: str, code: int = ErrorCode.CONNECTION_ERROR) -> None:
        super().__init__(message)
        self.code: int = code


class StreamFailed(ReactiveError):
    """The peer ended a stream with an error; `code` and `data` are those of its frame.

    Its message has the beginning of the data, with escapes for control characters. A handler that
    raises one of its own sends it to its peer. One that was received from another peer is not
    meant for that: it may name hosts and tables which are nobody's business.
    """

    origin: object = None
    """What stands for the connection by which it was received, or whose end it tells of, if any."""

    def __init__(self, code: int, data: bytes = b"") -> None:
        text = excerpt(data[: 4 * _MOST].decode("utf-8", "replace"), _MOST)
        if not text:
            text = _HANDLER_FAILED if code == ErrorCode.APPLICATION_ERROR else _NO_TEXT
        super().__init__(f"{name_of(code)}: {text}")
        self.code: int = code
        self.data: bytes = data


class ApplicationError(StreamFailed):
    """An error of the application; raise it in a handler to send it.

    Codes from 0x301 to 0xFFFFFFFE are the application's own; 0x201 is any error.
    """

    def __init__(self, code: int = ErrorCode.APPLICATION_ERROR, data: bytes | str = b"") -> None:
        if code != ErrorCode.APPLICATION_ERROR and not 0x301 <= code <= 0xFFFFFFFE:
            raise ValueError(f"code must be 0x201, or from 0x301 to 0xFFFFFFFE, not 0x{code:X}")
        super().__init__(code, data.encode() if isinstance(data, str) else data)


class RequestRejected(StreamFailed):
    """The request was not processed at all: it may be retried."""


class RequestCanceled(StreamFailed):
    """The responder stopped processing the request, perhaps after a part of it."""


class RequestInvalid(StreamFailed):
    """The request, or a frame after it, was invalid."""


class ConnectionLost(StreamFailed, ConnectionError):
    """The connection ended while the stream was open, or before it could be opened."""


class SetupRejected(ConnectionLost):
    """The server refused the connection's SETUP."""


class CertificateRejected(ConnectionLost):
    """One side has said that it does not trust the TLS certificate of the other, or requires one.

    Servers of Python say nothing, so that a client whose certificate they refuse gets
    `ConnectionLost`.
    """


class ResumeRejected(ConnectionLost):
    """The server refused to resume the session."""


class MustWait(ReactiveError):
    """A request cannot be sent yet. A `Requester` holds it back until it can be."""


class NoLease(MustWait):
    """The peer has granted no lease for another request, or the lease has expired."""


class TooManyRequests(MustWait):
    """The limit of open requests is reached, or that of payloads being sent in fragments."""


class NoStreamLeft(ReactiveError):
    """Every stream id is in use."""


_CLASSES: dict[int, type[StreamFailed]] = {
    ErrorCode.INVALID_SETUP: SetupRejected,
    ErrorCode.UNSUPPORTED_SETUP: SetupRejected,
    ErrorCode.REJECTED_SETUP: SetupRejected,
    ErrorCode.REJECTED_RESUME: ResumeRejected,
    ErrorCode.CONNECTION_ERROR: ConnectionLost,
    ErrorCode.CONNECTION_CLOSE: ConnectionLost,
    ErrorCode.REJECTED: RequestRejected,
    ErrorCode.CANCELED: RequestCanceled,
    ErrorCode.INVALID: RequestInvalid,
}


def name_of(code: int) -> str:
    """``REJECTED (0x202)``; the number alone for a code of the application."""
    try:
        return f"{ErrorCode(code).name} (0x{code:03X})"
    except ValueError:
        return f"0x{code:03X}"


def error_of(code: int, data: bytes = b"", origin: object = None) -> StreamFailed:
    """The exception for an ERROR frame: a subclass where the code has a meaning of its own."""
    is_of_application = code == ErrorCode.APPLICATION_ERROR or 0x301 <= code <= 0xFFFFFFFE
    kind = ApplicationError if is_of_application else _CLASSES.get(code, StreamFailed)
    error = kind(code, data)
    error.origin = origin
    return error


def renewed(error: StreamFailed) -> StreamFailed:
    """Another *error* like it, without the traceback and the notes of where it was raised."""
    copy = type(error)(error.code, error.data)
    copy.origin = error.origin
    return copy


def is_for_peer(error: BaseException, peer: object = None) -> bool:
    """Whether *error*, which a handler has raised, is meant for its *peer* as it is.

    *peer* is the `origin` of what that peer has sent, which it may have back.
    """
    if not isinstance(error, StreamFailed) or isinstance(error, ConnectionLost):
        return False
    return error.origin is None or error.origin is peer


def is_loss_of(error: BaseException, peer: object) -> bool:
    """Whether *error* says that the connection to *peer*, and no other one, has ended or ends."""
    return isinstance(error, ConnectionLost) and error.origin is peer


def is_refusal(error: BaseException) -> bool:
    """Whether *error* says that a request cannot be served here."""
    return isinstance(error, RequestRejected | RequestInvalid) and error.origin is None


def with_remedy(error: StreamFailed, remedy: str) -> StreamFailed:
    """*error*, or with a *remedy* the same one if it is a client's loss of its connection."""
    if type(error) is not ConnectionLost or not remedy:
        return error
    text = error.data.decode("utf-8", "replace") or _NO_TEXT
    if error.code == ErrorCode.CONNECTION_CLOSE:
        text = f"closed by the server: {text}"
    return ConnectionLost(error.code, f"{text}; {remedy}".encode())
