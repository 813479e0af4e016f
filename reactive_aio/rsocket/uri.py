"""Addresses: one URI names the transport, the endpoint, the default route and the prefetch.

::

    tcp://prices.example:7000                      or rsocket+tcp://…; so for every transport
    tls://prices.example:7000?route=prices.ACME    TCP with TLS
    unix:///run/prices.sock?route=prices.ACME&n=100
    ws://prices.example/rsocket?route=prices.ACME  WebSocket; port 80 by default
    wss://prices.example/rsocket                   WebSocket with TLS; port 443 by default
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from .._core.foreign_text import why_unreadable, without_secrets

_TRANSPORTS: Final = ("tcp", "tls", "unix", "ws", "wss")
_WEBSOCKET_PORTS: Final = {"ws": 80, "wss": 443}
_OPTIONS: Final = frozenset({"route", "n"})
_PLAIN: Final = "/!$&'()*+,:;=@"
"""Characters of a path that have no meaning in a URI, besides those that are never quoted."""
_PATH: Final = re.compile(r"[!$%&'()*+,\-./0-9:;=@A-Z_a-z~]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A parsed URI. Unix sockets have a `path`, WebSockets all three, others `host` and `port`."""

    transport: str
    host: str = ""
    port: int = 0
    path: str = ""
    route: str | None = None
    """The route of requests that name none."""
    prefetch: int | None = None
    """The number of elements that a stream prefetches, whatever its subscriber requests."""

    @classmethod
    def parse(cls, uri: str) -> "Address":
        """Parse *uri*; raise ValueError if it is not an address."""
        shown = without_secrets(uri)
        try:
            parts = urlsplit(uri)
        except ValueError as error:
            raise ValueError(f"{shown!r}: {why_unreadable(uri, error)}") from None
        transport = parts.scheme.removeprefix("rsocket+")
        if transport not in _TRANSPORTS:
            known = ", ".join(f"{each}://" for each in _TRANSPORTS)
            raise ValueError(f"{shown!r}: write one of {known}")
        if parts.username is not None or parts.fragment:
            raise ValueError(f"{shown!r}: an address has neither credentials nor a fragment")
        route, prefetch = _parse_query(shown, parts.query)
        host, port, path = parts.hostname or "", 0, ""
        if transport == "unix":
            if parts.netloc or not parts.path:
                raise ValueError(f"{shown!r}: write unix:///path/of/the/socket")
            path = unquote(parts.path, errors="surrogateescape")  # as the system names files
        elif transport in _WEBSOCKET_PORTS:
            port, path = _port(shown, parts, _WEBSOCKET_PORTS[transport]), parts.path or "/"
            if not host or not _PATH.fullmatch(path):
                example = f"{transport}://host:port/path"
                raise ValueError(f"{shown!r}: write {example}, percent-encoded where need be")
        else:
            port = _port(shown, parts, -1)
            if not host or port < 0 or parts.path not in ("", "/"):
                raise ValueError(f"{shown!r}: write {transport}://host:port, without a path")
        return cls(
            transport=transport, host=host, port=port, path=path, route=route, prefetch=prefetch
        )

    @property
    def is_secure(self) -> bool:
        """Whether the transport uses TLS."""
        return self.transport in ("tls", "wss")

    @property
    def is_websocket(self) -> bool:
        return self.transport in _WEBSOCKET_PORTS

    def __str__(self) -> str:
        if self.transport == "unix":
            return f"unix://{quote(self.path, _PLAIN, errors='surrogateescape')}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}://{host}:{self.port}{self.path}"


def _port(shown: str, parts: SplitResult, default: int) -> int:
    try:
        return default if parts.port is None else parts.port
    except ValueError:
        raise ValueError(f"{shown!r}: a port is a number from 0 to 65535") from None


def _parse_query(shown: str, query: str) -> tuple[str | None, int | None]:
    options = parse_qs(query, keep_blank_values=True)
    if unknown := options.keys() - _OPTIONS:
        raise ValueError(f"{shown!r}: unknown {', '.join(sorted(unknown))}; route and n are known")
    if twice := [name for name, values in options.items() if len(values) > 1]:
        raise ValueError(f"{shown!r}: {', '.join(twice)} is given twice")
    prefetch: int | None = None
    if "n" in options:
        text = options["n"][0]
        if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
            raise ValueError(f"{shown!r}: n must be from 1 to 999999999, not {text!r}")
        prefetch = int(text)
    return options.get("route", [None])[0], prefetch
