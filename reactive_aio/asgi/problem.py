"""Errors as clients see them: one form for HTTP, events, lines and sockets."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from .._core.arguments import require_sync_callable
from .._core.foreign_text import excerpt, without_secrets
from ..errors import ReactiveError

if TYPE_CHECKING:
    from .._core.loop import LoopHandle

_HIDDEN: Final = "the stream failed"
_MAX_DETAIL: Final = 200
_PHRASES: Final[dict[int, str]] = {each: each.phrase for each in HTTPStatus}


class Refused(ReactiveError):
    """An error that is meant for the client, which receives its *status* and its *detail*.

    The function that makes a flow may raise it, or the flow may fail with it. Before the first
    element it sets the status of the response; after that it is the error inside the stream.
    """

    def __init__(
        self, status: int, detail: str = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        if not 400 <= status <= 599:
            raise ValueError(f"Refused: status must be from 400 to 599, not {status!r}")
        if not isinstance(cast("object", detail), str):
            kind = type(detail).__name__
            raise TypeError(f"Refused: detail must be a str, not {detail!r} ({kind})")
        self.status: int = status
        self.detail: str = detail or _PHRASES.get(status, f"error {status}")
        self.headers: dict[str, str] = dict(headers or {})
        super().__init__(f"{status}: {self.detail}")


def refused_later(status: int, detail: str) -> Refused:
    """A refusal of a client that may try again, soon or elsewhere."""
    return Refused(status, detail, headers={"retry-after": "5"})


def server_stops() -> Refused:
    """Why a stream ends that could go on, and why no other one begins."""
    return refused_later(503, "the server stops")


class ClientDisconnected(ReactiveError, ConnectionError):
    """The client that published the stream has closed its socket."""

    def __init__(self) -> None:
        super().__init__("the client has closed its socket; subscribe again when it reconnects")


class SocketLost(ReactiveError, ConnectionError):
    """The connection to a server is closed, or could not be opened.

    `code` and `reason` are those with which the server of `websocket_messages` has closed it; the
    code is 1006 if it did not say so, and None if there was no connection.
    """

    def __init__(self, message: str, *, code: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.code: int | None = code
        self.reason: str = reason


class PeerFailed(ReactiveError):
    """A stream of the other end failed, or a server refused a request or a socket.

    `status` and `detail` are from the other end; the message has the beginning of the detail, with
    escapes for control characters.
    """

    def __init__(self, status: int, detail: str, *, what: str = "the client's stream") -> None:
        super().__init__(f"{what} failed: {excerpt(detail) or status}")
        self.status: int = status
        self.detail: str = detail


class SocketRefused(ReactiveError):
    """The server has closed the connection because of what it was sent, with a *code* that says so.

    Another connection would fare the same, so it is not a `ConnectionError`.
    """

    def __init__(self, message: str, code: int, reason: str) -> None:
        super().__init__(message)
        self.code: int = code
        self.reason: str = reason


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a client receives it (RFC 9457)."""

    status: int
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    rule: str | None = None
    """The rule of the specification that the client broke."""

    def json(self) -> str:
        members: dict[str, Any] = {"status": self.status, "detail": self.detail}
        if self.rule is not None:
            members["rule"] = self.rule
        text = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace").decode()  # without lone surrogates


def problem_of(refused: Refused) -> Problem:
    """Return what a client receives that is refused."""
    return Problem(refused.status, refused.detail, refused.headers)


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Decides which errors a client sees, and reports the others to the application."""

    expose_errors: bool
    """Whether clients receive the text of errors that are not meant for them."""
    on_error: Callable[[BaseException], object] | None
    """Called with each error that is not meant for the client; default: the loop's handler."""

    def problem(
        self, error: BaseException, loop_handle: "LoopHandle", context: str, *, report: bool = True
    ) -> Problem:
        """Return what the client receives; *report* an error that is not meant for the client."""
        if isinstance(error, Refused):
            return problem_of(error)
        if foreign := _of_starlette(error):
            return foreign
        if report and not self._is_taken(error, loop_handle):
            loop_handle.report(context, error)
        return Problem(500, _text_of(error) if self.expose_errors else _HIDDEN)

    def _is_taken(self, error: BaseException, loop_handle: "LoopHandle") -> bool:
        """Call *on_error*; report what it raises, which must not prevent the answer."""
        if self.on_error is None:
            return False
        try:
            self.on_error(error)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as raised:
            loop_handle.report("on_error of reactive_aio.asgi failed", raised)
            return False
        return True


def error_policy(
    name: str, expose_errors: bool, on_error: Callable[[BaseException], object] | None
) -> ErrorPolicy:
    """Validate the options of the function *name* that decide on errors."""
    if on_error is not None:
        remedy = "start a task of your own."
        require_sync_callable(name, "on_error", on_error, remedy, takes=1)
    return ErrorPolicy(expose_errors, on_error)


def _text_of(error: BaseException) -> str:
    """The text of *error*; its type if it has none, or if ``str()`` raises."""
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def _of_starlette(error: BaseException) -> Problem | None:
    """Read an HTTPException of Starlette or FastAPI, without importing either of them."""
    module = sys.modules.get("starlette.exceptions")
    kind: Any = getattr(module, "HTTPException", None)
    if kind is None or not isinstance(error, kind):
        return None
    raised = cast("Any", error)
    detail = raised.detail if isinstance(raised.detail, str) else _json_of(raised.detail)
    return Problem(int(raised.status_code), detail, dict(raised.headers or {}))


def _json_of(value: object) -> str:
    """*value* as JSON; with the ``repr`` of parts that JSON does not have."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except Exception:  # a key that is not a text, a cycle, or a repr that raises
        return f"<{type(value).__name__}>"


def redirect_of(status: int, location: str | None) -> str:
    """Return what an error says of an answer that redirects; nothing of another one."""
    if location is None or not 300 <= status < 400:
        return ""
    place = excerpt(without_secrets(location))
    return f"it redirects to {place}, which is not followed: give the URL of that server"


def detail_of(body: bytes) -> str:
    """Return the detail of a problem (RFC 9457), or the beginning of another text."""
    text = body.decode("utf-8", "replace").strip()
    try:
        return str(json.loads(text)["detail"])[:_MAX_DETAIL]
    except (ValueError, LookupError, TypeError, RecursionError):
        return text[:_MAX_DETAIL]
