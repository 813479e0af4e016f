"""Addresses: one URI says by which transport, where, which route, and how much is wanted at first.

::

    tcp://prices.example:7000                      rsocket+tcp://… is the same
    tls://prices.example:7000?route=prices.ACME    TCP with TLS
    unix:///run/prices.sock?route=prices.ACME&n=100
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ("Address",)

_TRANSPORTS: Final = ("tcp", "tls", "unix")
_OPTIONS: Final = frozenset({"route", "n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What a URI says. `host` and `port` for TCP and TLS, `path` for Unix sockets."""

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
        parts = urlsplit(uri)
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
        if not parts.hostname or parts.port is None or parts.path not in ("", "/"):
            raise ValueError(f"{uri!r}: write {transport}://host:port, without a path")
        return cls(transport=transport, host=parts.hostname, port=parts.port, route=route, n=n)

    def __str__(self) -> str:
        if self.transport == "unix":
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}://{host}:{self.port}"


def _known() -> str:
    return ", ".join(f"{each}://" for each in _TRANSPORTS)


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
