"""How elements are written into the body of a response: server-sent events, or lines of JSON."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from .problem import Problem

__all__ = ("Encode", "Event", "EventForm", "Form", "LineForm", "to_json")

T = TypeVar("T")
Encode = Callable[[T], str | bytes]
"""Writes an element as text; with bytes, they are UTF-8."""

# Made once: json.dumps would make one for each element.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_LINES: Final = re.compile(r"\r\n|\r|\n")


def to_json(element: Any) -> str:
    """The default of *encode*: compact, and strict about what JSON does not have."""
    return _ENCODER.encode(element)


class Form(Protocol):
    """What the delivery of a response needs to know of its format."""

    media_type: str
    heartbeat: bytes
    """Says that the connection lives, and is no element."""

    def opening(self) -> bytes:
        """What comes before the first element."""
        ...

    def element(self, element: Any, /) -> bytes: ...

    def completed(self) -> bytes: ...

    def failed(self, problem: Problem, /) -> bytes: ...


def _text(written: str | bytes) -> str:
    return written if isinstance(written, str) else str(written, "utf-8")


class LineForm(Generic[T]):
    """NDJSON: one element to a line, a blank line as heartbeat."""

    media_type = "application/x-ndjson"
    heartbeat = b"\n"

    def __init__(self, encode: Encode[T]) -> None:
        self._encode = encode
        self._known = encode is to_json  # to write one line

    def opening(self) -> bytes:
        return b""

    def element(self, element: T, /) -> bytes:
        written = self._encode(element)
        line = written.encode() if isinstance(written, str) else bytes(written)
        if not self._known and (b"\n" in line or b"\r" in line):
            raise ValueError("ndjson: encode returned several lines, and an element has one")
        return line + b"\n"

    def completed(self) -> bytes:
        return b""

    def failed(self, problem: Problem, /) -> bytes:
        return f'{{"$failure":{problem.json()}}}\n'.encode()


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """An element with what only an event has: give these where `id=` and `event=` do not do."""

    data: T
    id: str | int | None = None
    """The browser sends the last one back as ``Last-Event-ID`` when it comes again."""
    event: str | None = None
    """The name under which the browser dispatches it; None is ``message``."""
    retry: int | None = None
    """After how many milliseconds the browser is to come again once the connection is lost."""


class EventForm(Generic[T]):
    """``text/event-stream``, as the HTML standard has it."""

    media_type = "text/event-stream"
    heartbeat = b":\n\n"

    def __init__(
        self,
        encode: Encode[T],
        id: Callable[[T], str | int] | None,
        event: Callable[[T], str | None] | str | None,
        retry: int | None,
    ) -> None:
        self._encode = encode
        self._id = id
        self._name = event if callable(event) else None
        self._named = "" if event is None or callable(event) else _field("event", event)
        self._retry = retry

    def opening(self) -> bytes:
        # A browser's `open` comes with the headers; a proxy may want to see a byte of the body.
        return b":\n\n" if self._retry is None else f"retry: {self._retry}\n\n".encode()

    def element(self, element: T | Event[T], /) -> bytes:
        if isinstance(element, Event):
            said = cast("Event[T]", element)
            head = "" if said.retry is None else f"retry: {said.retry}\n"
            return head.encode() + self._event(said.data, said.id, said.event)
        id = None if self._id is None else self._id(element)
        name = None if self._name is None else self._name(element)
        return self._event(element, id, name)

    def _event(self, data: T, id: str | int | None, name: str | None) -> bytes:
        written = _text(self._encode(data))
        if "\n" in written or "\r" in written:
            written = "\ndata: ".join(_LINES.split(written))
        head = self._named if name is None else _field("event", name)
        if id is not None:
            head = _field("id", str(id)) + head
        return f"{head}data: {written}\n\n".encode()

    def completed(self) -> bytes:
        return b"event: complete\ndata: {}\n\n"

    def failed(self, problem: Problem, /) -> bytes:
        return f"event: failure\ndata: {problem.json()}\n\n".encode()


def _field(name: str, value: str) -> str:
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"sse: {name} must be one line without NUL, not {value!r}")
    return f"{name}: {value}\n"
