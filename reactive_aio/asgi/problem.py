"""What a client is told of an error: one form for HTTP, for events, lines and sockets."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, cast

from ..errors import ReactiveError

__all__ = ("ClientLeft", "PeerFailed", "Problem", "Refused", "problem_of")

_UNSAID: Final = "the stream failed"


class Refused(ReactiveError):
    """An error that is meant for the client: its *status* and its *detail* are told as they are.

    Raised by the function that makes a flow, or by the flow itself: before the first element it is
    the status of the response, behind it the error inside the stream.
    """

    def __init__(
        self, status: int, detail: str = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        if not 400 <= status <= 599:
            raise ValueError(f"Refused: status must be from 400 to 599, not {status!r}")
        self.status: int = status
        self.detail: str = detail or phrase(status)
        self.headers: dict[str, str] = dict(headers or {})
        super().__init__(f"{status}: {self.detail}")


class ClientLeft(ReactiveError, ConnectionError):
    """The client whose stream was subscribed to has closed its socket."""

    def __init__(self) -> None:
        super().__init__("the client has closed its socket; subscribe anew when it is back")


class PeerFailed(ReactiveError):
    """The client said that its stream failed; `status` and `detail` are its own words."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"the client's stream failed: {detail or status}")
        self.status: int = status
        self.detail: str = detail


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as clients see it."""

    status: int
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    rule: str | None = None
    """The rule of the specification that the client broke."""

    def json(self) -> str:
        told: dict[str, Any] = {"status": self.status, "detail": self.detail}
        if self.rule is not None:
            told["rule"] = self.rule
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def problem_of(error: BaseException, tell: bool) -> tuple[Problem, bool]:
    """What to tell of *error*, and whether it was meant for the client.

    The text of an error that was not is kept back, unless *tell*.
    """
    if isinstance(error, Refused):
        return Problem(error.status, error.detail, error.headers), True
    if foreign := _of_starlette(error):
        return foreign, True
    return Problem(500, str(error) or type(error).__name__ if tell else _UNSAID), False


def phrase(status: int) -> str:
    """The words that HTTP has for *status*."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"error {status}"


def _of_starlette(error: BaseException) -> Problem | None:
    """An HTTPException of Starlette or FastAPI, which nobody can raise who has not imported it."""
    module = sys.modules.get("starlette.exceptions")
    kind: Any = getattr(module, "HTTPException", None)
    if kind is None or not isinstance(error, kind):
        return None
    raised = cast("Any", error)
    return Problem(int(raised.status_code), str(raised.detail), dict(raised.headers or {}))
