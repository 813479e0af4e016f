"""The formats of a response body, events and lines of JSON, and which of them a client prefers."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from .._core.arguments import Duration, require_callable, require_sync_callable, to_seconds
from .problem import Problem

T = TypeVar("T")
Encode = Callable[[T], str | bytes]
"""Encodes an element as text, or as the UTF-8 bytes of a text."""

# One encoder for all elements: json.dumps would create one per call.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_LINES: Final = re.compile(r"\r\n|\r|\n")


def to_json(element: Any) -> str:
    """Encode as compact, strict JSON: NaN and infinities are errors."""
    return _ENCODER.encode(element)


class BodyFormat(Protocol):
    """How `BodyWriter` encodes elements, the end of the stream and heartbeats."""

    media_type: str
    heartbeat: bytes
    """Keeps the connection alive; clients ignore it."""
    reconnects: bool
    """Whether clients continue with another request if a response ends without `completed`."""

    def opening(self) -> bytes:
        """Return what precedes the first element."""
        return b""

    def element(self, element: Any, /) -> bytes: ...

    def completed(self) -> bytes:
        """Return what follows the last element."""
        return b""

    def failed(self, problem: Problem, /) -> bytes: ...


class Ndjson(BodyFormat, Generic[T]):
    """NDJSON: one element per line, a blank line as heartbeat."""

    media_type = "application/x-ndjson"
    heartbeat = b"\n"
    reconnects = False

    def __init__(self, name: str, encode: Encode[T]) -> None:
        require_callable(name, "encode", encode)
        self._encode = encode
        self._is_json = encode is to_json  # which never returns a line break

    def element(self, element: T, /) -> bytes:
        encoded = self._encode(element)
        line = encoded.encode() if isinstance(encoded, str) else bytes(encoded)
        if not self._is_json and (b"\n" in line or b"\r" in line):
            raise ValueError("ndjson: encode returned several lines, and an element has one")
        return line + b"\n"

    def failed(self, problem: Problem, /) -> bytes:
        return f'{{"$failure":{problem.json()}}}\n'.encode()


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """An element with the fields of its event, for where `id=` and `event=` do not suffice."""

    data: T
    id: str | int | None = None
    """The browser sends the last one as ``Last-Event-ID`` when it reconnects."""
    event: str | None = None
    """The type of the event that the browser dispatches; None is ``message``."""
    retry: int | None = None
    """The delay in milliseconds after which the browser reconnects when the connection is lost."""


class EventStream(BodyFormat, Generic[T]):
    """``text/event-stream``, as the HTML standard defines it."""

    media_type = "text/event-stream"
    heartbeat = b":\n\n"
    reconnects = True

    def __init__(
        self,
        name: str,
        encode: Encode[T],
        id: Callable[[T], str | int] | None,
        event: Callable[[T], str | None] | str | None,
        retry: Duration | None,
    ) -> None:
        require_callable(name, "encode", encode)
        if id is not None:
            remedy = "compute the id before, with map_async."
            require_sync_callable(name, "id", id, remedy, takes=1)
        if callable(event):
            remedy = "compute the type before, with map_async."
            require_sync_callable(name, "event", event, remedy, takes=1)
        elif event is not None and not isinstance(cast("object", event), str):
            kind = type(event).__name__
            raise TypeError(f"{name}: event must be a str or a function, not {event!r} ({kind})")
        self._encode = encode
        self._id_of = id
        self._event_of = event if callable(event) else None
        self._event_field = "" if event is None or callable(event) else _field("event", event)
        seconds = None if retry is None else to_seconds(retry, f"{name}: retry", zero=True)
        self._retry = None if seconds is None else round(seconds * 1000)

    def opening(self) -> bytes:
        # Some proxies forward the headers only when the first byte of the body arrives.
        return b":\n\n" if self._retry is None else f"retry: {self._retry}\n\n".encode()

    def element(self, element: T | Event[T], /) -> bytes:
        if isinstance(element, Event):
            explicit = cast("Event[T]", element)
            head = "" if explicit.retry is None else f"retry: {explicit.retry}\n"
            return head.encode() + self._format(explicit.data, explicit.id, explicit.event)
        id = None if self._id_of is None else self._id_of(element)
        name = None if self._event_of is None else self._event_of(element)
        return self._format(element, id, name)

    def _format(self, data: T, id: str | int | None, name: str | None) -> bytes:
        encoded = self._encode(data)
        text = encoded if isinstance(encoded, str) else str(encoded, "utf-8")
        if "\n" in text or "\r" in text:
            text = "\ndata: ".join(_LINES.split(text))
        head = self._event_field if name is None else _field("event", name)
        if id is not None:
            head = _field("id", str(id)) + head
        return f"{head}data: {text}\n\n".encode()

    def completed(self) -> bytes:
        return b"event: complete\ndata: {}\n\n"

    def failed(self, problem: Problem, /) -> bytes:
        return f"event: failure\ndata: {problem.json()}\n\n".encode()


def _field(name: str, value: str) -> str:
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"sse: {name} must be one line without NUL, not {value!r}")
    return f"{name}: {value}\n"


# -- content negotiation ---------------------------------------------------------------------------
def negotiate(offered: Mapping[str, T], accept: str) -> T | None:
    """Return the value of the media type that *accept* ranks highest; the first one of equals.

    RFC 9110, 12.5.1.
    """
    qualities = _qualities(accept)
    best: T | None = None
    highest = 0.0
    for media_type, offer in offered.items():
        family = media_type.partition("/")[0]
        # The most specific range that matches is the one that counts.
        quality = next(
            (qualities[each] for each in (media_type, f"{family}/*", "*/*") if each in qualities),
            0.0,
        )
        if quality > highest:
            best, highest = offer, quality
    return best


def _qualities(accept: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in accept.split(","):
        media_range, *parameters = (each.strip().lower() for each in part.split(";"))
        found[media_range] = next(
            (_number(each[2:]) for each in parameters if each.startswith("q=")), 1.0
        )
    return found


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
