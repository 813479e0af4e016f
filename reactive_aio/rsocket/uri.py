"""Addresses: one URI says by which transport, where, which route, and how much is wanted at first.

::

    tcp://prices.example:7000                      rsocket+tcp://… is the same, as for all others
    tls://prices.example:7000?route=prices.ACME    TCP with TLS
    unix:///run/prices.sock?route=prices.ACME&n=100
    ws://prices.example/rsocket?route=prices.ACME  WebSocket; port 80 if none is named
    wss://prices.example/rsocket                   WebSocket with TLS; port 443
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

__all__ = ("Address",)

_TRANSPORTS: Final = ("tcp", "tls", "unix", "ws", "wss")
_PORTS: Final = {"ws": 80, "wss": 443}
_OPTIONS: Final = frozenset({"route", "n"})
_PATH: Final = re.compile(r"[!$%&'()*+,\-./0-9:;=@A-Z_a-z~]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What a URI says. `host` and `port`, but for Unix sockets; `path` for those and the web."""

    transport: str
    host: str = ""
    port: int = 0
    path: str = ""
    route: str | None = None
    """The route of requests that name none."""
    n: int | None = None
    """How many elements a stream asks for at first, whatever its subscriber does."""

    @classmethod
    def parse(cls, uri: str) -> "Address":
        """Read *uri*; raise ValueError, saying what is wrong with it."""
        try:
            parts = urlsplit(uri)
        except ValueError as error:
            raise ValueError(f"{uri!r}: {error}") from None
        transport = parts.scheme.removeprefix("rsocket+")
        if transport not in _TRANSPORTS:
            raise ValueError(f"{uri!r}: write one of {_known()}")
        if parts.username is not None or parts.fragment:
            raise ValueError(f"{uri!r}: neither credentials nor a fragment belong into an address")
        route, n = _options(uri, parts.query)
        if transport == "unix":
            if parts.netloc or not parts.path:
                raise ValueError(f"{uri!r}: write unix:///path/of/the/socket")
            return cls(transport=transport, path=unquote(parts.path), route=route, n=n)
        host, port, path = parts.hostname, _port(uri, parts), ""
        if transport in _PORTS:
            port, path = _PORTS[transport] if port is None else port, parts.path or "/"
            if not host or not _PATH.fullmatch(path):
                example = f"{transport}://host:port/path"
                raise ValueError(f"{uri!r}: write {example}, percent-encoded where need be")
        if not host or port is None or (not path and parts.path not in ("", "/")):
            raise ValueError(f"{uri!r}: write {transport}://host:port, without a path")
        return cls(transport=transport, host=host, port=port, path=path, route=route, n=n)

    @property
    def secure(self) -> bool:
        """Whether there is TLS."""
        return self.transport in ("tls", "wss")

    @property
    def web(self) -> bool:
        """Whether it is a WebSocket."""
        return self.transport in _PORTS

    def __str__(self) -> str:
        if self.transport == "unix":
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}://{host}:{self.port}{self.path}"


def _known() -> str:
    return ", ".join(f"{each}://" for each in _TRANSPORTS)


def _port(uri: str, parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise ValueError(f"{uri!r}: a port is a number from 0 to 65535") from None


def _options(uri: str, query: str) -> tuple[str | None, int | None]:
    options = parse_qs(query, keep_blank_values=True)
    if unknown := options.keys() - _OPTIONS:
        raise ValueError(f"{uri!r}: unknown {', '.join(sorted(unknown))}; route and n are known")
    if twice := [name for name, values in options.items() if len(values) > 1]:
        raise ValueError(f"{uri!r}: {', '.join(twice)} is given twice")
    n: int | None = None
    if "n" in options:
        text = options["n"][0]
        if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
            raise ValueError(f"{uri!r}: n must be from 1 to 999999999, not {text!r}")
        n = int(text)
    return options.get("route", [None])[0], n
