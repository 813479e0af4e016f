"""A client's request: a view of an ASGI scope, for functions that make flows."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl

from .problem import Refused

__all__ = ("HttpRequest", "Receive", "Scope", "Send", "parse_count")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_MAX_DIGITS: Final = 15


class HttpRequest:
    """One request: its path, its query, its headers, and the last event the client received.

    It is made from the ASGI `scope`, which also holds what frameworks add (``scope["user"]``).
    """

    def __init__(self, scope: Scope) -> None:
        self.scope: Scope = scope

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.path}>"

    @property
    def method(self) -> str:
        """GET or HEAD; GET for a WebSocket."""
        return str(self.scope.get("method", "GET"))

    @property
    def path(self) -> str:
        return str(self.scope.get("path", ""))

    @property
    def path_params(self) -> Mapping[str, Any]:
        """The parameters that the framework's router found in the path: ``/prices/{symbol}``."""
        found: Mapping[str, Any] = self.scope.get("path_params", {})
        return found

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters after the question mark; of repeated ones, the last."""
        text = bytes(self.scope.get("query_string", b"")).decode("latin-1")
        return dict(parse_qsl(text, keep_blank_values=True))

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """Headers by their names in lower case; repeated ones are joined by a comma."""
        found: dict[str, str] = {}
        for raw_name, raw in self.scope.get("headers", ()):
            name, value = raw_name.decode("latin-1").lower(), raw.decode("latin-1")
            found[name] = f"{found[name]}, {value}" if name in found else value
        return found

    @property
    def last_event_id(self) -> str | None:
        """The id of the last element that the client received; None on its first request."""
        found = self.headers.get("last-event-id")
        # Headers are read as latin-1, but browsers send the id in UTF-8.
        return found.encode("latin-1").decode("utf-8", "replace") if found else None


def parse_count(text: str, name: str) -> int:
    """Read *text* as a demand; refuse anything else with 400 (rule 3.9)."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS or int(text) < 1:
        raise Refused(400, f"rule 3.9: {name} must be a whole number of at least 1, not {text!r}")
    return int(text)
