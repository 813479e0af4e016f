"""Checks of options of RSocket: a wrong one raises where it is given, with a remedy."""

from collections.abc import Callable
from ssl import PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER, SSLContext
from typing import Any, Final

from .._core.arguments import require_callable, require_sync_callable
from .._core.compiler.inline import describe

_CODEC: Final = ("mime", "encode", "decode")
_URI: Final = "a URI such as 'tcp://localhost:7000'"


def _refused(name: str, wanted: str, value: object, remedy: str = "") -> TypeError:
    return TypeError(f"{name} must be {wanted}, not {describe(value)} ({_kind(value)}){remedy}")


def _kind(value: object) -> str:
    return type(value).__name__


def require_instance(name: str, value: object, kind: type) -> None:
    """*value*, the option *name*, must be of the class *kind*, or None."""
    if value is not None and not isinstance(value, kind):
        raise _refused(name, f"of the class {kind.__name__}", value)


def require_function(
    name: str, function: Callable[..., Any] | None, takes: int | None = None
) -> None:
    """*function*, the option *name*, may be a coroutine function, or None."""
    if function is not None:
        require_callable("RSocket", name, function, takes=takes)


def require_callback(name: str, callback: Callable[..., object] | None, takes: int) -> None:
    """*callback*, the option *name*, must be a plain function: no coroutine would be awaited."""
    if callback is not None:
        remedy = "start a task of your own."
        require_sync_callable("RSocket", name, callback, remedy, takes=takes)


def require_uri(name: str, value: object) -> None:
    """*value*, the argument *name*, must be a text."""
    if not isinstance(value, str):
        raise _refused(name, _URI, value)


def require_uri_or_stream(name: str, value: object) -> None:
    """*value*, the argument *name*, must be a text or a byte stream of anyio."""
    if isinstance(value, str) or (hasattr(value, "receive") and hasattr(value, "send")):
        return
    remedy = "; connect_balanced takes several URIs" if _kind(value) in ("list", "tuple") else ""
    raise _refused(name, f"{_URI}, or a byte stream of anyio", value, remedy)


def require_codec(name: str, value: object) -> None:
    """*value*, the option *name*, must be a codec."""
    if isinstance(value, type) or not all(hasattr(value, each) for each in _CODEC):
        raise _refused(name, "a Codec such as JSON", value)


def checked_codecs(codecs: dict[str, Any] | None) -> dict[str, Any]:
    """*codecs*, by MIME type; none for None."""
    require_instance("codecs", codecs, dict)
    for mime, codec in (codecs or {}).items():
        require_codec(f"codecs[{mime!r}]", codec)
    return codecs or {}


def require_route(value: object) -> None:
    """*value* must be a route, or None."""
    if value is not None and not isinstance(value, str):
        remedy = ": write route.decode()" if isinstance(value, bytes) else ""
        raise _refused("route", "a str", value, remedy)


def require_bytes(name: str, value: object) -> None:
    """*value*, which is sent as it is, must be bytes; it may be a secret."""
    if not isinstance(value, bytes | bytearray | memoryview):
        remedy = ": write value.encode()" if isinstance(value, str) else ""
        raise TypeError(f"{name} must be bytes, not {_kind(value)}{remedy}")


def require_tls_side(address: object, ssl: SSLContext | None, *, server: bool) -> None:
    """*ssl* must not be a context of the other side, whose handshakes would all fail."""
    protocol = getattr(ssl, "protocol", None)
    if server and protocol == PROTOCOL_TLS_CLIENT:
        raise ValueError(
            f"{address}: ssl is a context for clients; a server needs "
            "ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), and its certificate"
        )
    if not server and protocol == PROTOCOL_TLS_SERVER:
        raise ValueError(
            f"{address}: ssl is a context for servers; a client needs ssl.create_default_context()"
        )
