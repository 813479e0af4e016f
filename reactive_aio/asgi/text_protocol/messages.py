"""The messages of the text protocol: parsing and formatting, without I/O."""

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from ..._core.demand import UNBOUNDED
from ...errors import IllegalDemand
from ..formats import to_json
from ..problem import Problem

Id = int | str

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""``Number.MAX_SAFE_INTEGER`` of JavaScript; as a demand it is unbounded."""

SUBPROTOCOL: Final = "reactive-streams.v1"

_MAX_ID_LENGTH: Final = 64
_TYPES: Final = frozenset({"subscribe", "request", "cancel", "next", "complete", "error"})


class InvalidMessage(Exception):
    """A message that is not part of the protocol."""

    def __init__(self, status: int, detail: str, close_code: int = 0) -> None:
        super().__init__(detail)
        self.problem: Problem = Problem(status, detail)
        self.close_code: int = close_code
        """The code with which it closes the socket; with 0, the socket stays open."""


@dataclass(slots=True)
class Message:
    """One message. Members that its type does not have keep their defaults."""

    type: str
    id: Id | None
    """None for an error of the whole socket."""
    route: str = ""
    n: object = 0
    """As it was received: an invalid demand ends its stream only."""
    params: Any = None
    value: Any = None
    status: int = 500
    detail: str = ""


def parse_message(text: str) -> Message:
    """Parse a message, or raise `InvalidMessage`."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidMessage(400, "this is not JSON", 1007) from None
    if not isinstance(found, dict):
        raise InvalidMessage(400, "a message is a JSON object", 1007)
    members = cast("dict[str, Any]", found)
    type_ = members.get("type")
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise InvalidMessage(400, f"type must be one of {', '.join(sorted(_TYPES))}")
    is_of_socket = type_ == "error" and "id" not in members
    message = Message(type_, None if is_of_socket else _id(members.get("id")))
    if type_ == "subscribe":
        route = members.get("route")
        if not isinstance(route, str) or not _is_unicode(route):
            raise InvalidMessage(400, "route must be a string of Unicode")
        message.route, message.params = route, members.get("params")
        message.n = members.get("n", 0)
    elif type_ == "request":
        message.n = members.get("n")
    elif type_ == "next":
        message.value = members.get("value")
    elif type_ == "error":
        status, detail = members.get("status"), members.get("detail")
        message.status = status if type(status) is int and 400 <= status <= 599 else 500
        message.detail = detail if isinstance(detail, str) else ""
    return message


def _no_constant(name: str) -> None:
    raise ValueError(name)  # Python's parser accepts NaN and Infinity, which are not JSON


def _id(given: object) -> Id:
    if type(given) is int and 0 <= given <= MAX_SAFE_INTEGER:
        return given
    if isinstance(given, str) and 0 < len(given) <= _MAX_ID_LENGTH and _is_unicode(given):
        return given
    raise InvalidMessage(
        400, "id must be a whole number from 0 to 2**53 - 1, or up to 64 characters of Unicode"
    )


def _is_unicode(text: str) -> bool:
    """Whether *text* has no lone surrogate, which JSON can escape, but UTF-8 cannot encode."""
    try:
        require_unicode(text)
    except UnicodeEncodeError:
        return False
    return True


def require_unicode(text: str) -> str:
    """Return *text*; raise UnicodeEncodeError if it has a lone surrogate."""
    if not text.isascii():
        text.encode()
    return text


def parse_demand(n: object, *, least: int = 1) -> int | Problem:
    """Return *n* as a demand, or the problem with it (rule 3.9)."""
    if type(n) is not int or n < least:
        return Problem(400, str(IllegalDemand(n))[:200], rule="3.9")
    return n if n < MAX_SAFE_INTEGER else UNBOUNDED


def format_message(type: str, id: Id, **members: object) -> str:
    """Format a message; raise TypeError or ValueError if a member cannot be sent as JSON."""
    return require_unicode(to_json({"type": type, "id": id, **members}))


def format_error(id: Id | None, problem: Problem) -> str:
    """Format the error of a stream; without an *id* that of the socket."""
    member = "" if id is None else f'"id":{json.dumps(id)},'
    return f'{{"type":"error",{member}{problem.json()[1:]}'
