"""Payload codecs: how the elements of an application become bytes, and back."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from .protocol.mime import OCTET_STREAM

__all__ = ("BYTES", "JSON", "TEXT", "Codec")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """A pair of functions, and the MIME type under which a connection announces them."""

    mime: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


def _bytes(value: bytes) -> bytes:
    if type(value) is bytes:
        return value
    if not isinstance(value, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{type(value).__name__!r} is not bytes: connect with codec=TEXT or JSON")
    return bytes(value)


def _text(value: str) -> bytes:
    return value.encode()


def _untext(data: bytes) -> str:
    return data.decode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _unjson(data: bytes) -> Any:
    return json.loads(data) if data else None


BYTES: Final[Codec[bytes]] = Codec(OCTET_STREAM, _bytes, bytes)
TEXT: Final[Codec[str]] = Codec("text/plain", _text, _untext)
JSON: Final[Codec[Any]] = Codec("application/json", _json, _unjson)
