"""The messages of the text protocol: how they are read and written. Pure."""

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from ..._core.demand import UNBOUNDED
from ...errors import IllegalDemand
from ..problem import Problem

__all__ = ("MOST", "Closing", "Id", "Malformed", "Message", "demand", "ending", "read", "write")

Id = int | str

MOST: Final = 2**53 - 1
"""The largest whole number that JavaScript has; as a demand it is unbounded."""

_LONGEST_ID: Final = 64
_TYPES: Final = frozenset({"subscribe", "request", "cancel", "next", "complete", "error"})


class Malformed(Exception):
    """A message that cannot be understood; the socket lives on."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.problem: Problem = Problem(status, detail)


class Closing(Malformed):
    """One after which the socket is closed, with the *code* of a WebSocket."""

    def __init__(self, status: int, detail: str, code: int) -> None:
        super().__init__(status, detail)
        self.code: int = code


@dataclass(slots=True)
class Message:
    """One message. What its type does not have is left as it is here."""

    type: str
    id: Id
    route: str = ""
    n: object = 0
    """As it was sent: a wrong one is the end of its stream, and not of more."""
    params: Any = None
    value: Any = None
    status: int = 500
    detail: str = ""


def read(text: str) -> Message:
    """Read a message, or raise `Malformed`."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Closing(400, "this is no JSON", 1007) from None
    if not isinstance(found, dict):
        raise Closing(400, "a message is a JSON object", 1007)
    members = cast("dict[str, Any]", found)
    type_ = members.get("type")
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise Malformed(400, f"type must be one of {', '.join(sorted(_TYPES))}")
    message = Message(type_, _id(members.get("id")))
    if type_ == "subscribe":
        route = members.get("route")
        if not isinstance(route, str):
            raise Malformed(400, "route must be a text")
        message.route, message.params = route, members.get("params")
        message.n = members.get("n", 0)
    elif type_ == "request":
        message.n = members.get("n")
    elif type_ == "next":
        message.value = members.get("value")
    elif type_ == "error":
        message.status, message.detail = _said(members)
    return message


def _no_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are Python's, and not JSON


def _id(given: object) -> Id:
    if type(given) is int and 0 <= given <= MOST:
        return given
    if isinstance(given, str) and 0 < len(given) <= _LONGEST_ID:
        return given
    raise Malformed(400, "id must be a whole number from 0 to 2**53 - 1, or up to 64 characters")


def _said(members: dict[str, Any]) -> tuple[int, str]:
    status, detail = members.get("status"), members.get("detail")
    return (
        status if type(status) is int and 400 <= status <= 599 else 500,
        detail if isinstance(detail, str) else "",
    )


def demand(n: object, *, least: int = 1) -> int | Problem:
    """*n* as a demand, or what is wrong with it (rule 3.9)."""
    if type(n) is not int or n < least:
        return Problem(400, str(IllegalDemand(n))[:200], rule="3.9")
    return n if n < MOST else UNBOUNDED


def write(type: str, id: Id, **members: object) -> str:
    """Write a message."""
    return json.dumps({"type": type, "id": id, **members}, ensure_ascii=False,
                      separators=(",", ":"))  # fmt: skip


def ending(id: Id | None, problem: Problem) -> str:
    """The error of a stream; without an *id* that of the socket."""
    of = "" if id is None else f'"id":{json.dumps(id)},'
    return f'{{"type":"error",{of}{problem.json()[1:]}'
