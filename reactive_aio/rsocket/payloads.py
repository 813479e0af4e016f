"""Payload codecs: how the elements of an application become bytes, and back.

`BYTES`, `TEXT` and `JSON` need nothing. `MSGPACK` and `typed`, which reads into classes, use
msgspec or pydantic, whichever the class is of.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, Final, Generic, TypeVar, cast, get_args, is_typeddict

from ..errors import ReactiveError
from .protocol.mime import OCTET_STREAM

__all__ = ("BYTES", "JSON", "MSGPACK", "TEXT", "Codec", "PayloadError", "readable", "typed")

T = TypeVar("T")
Decode = Callable[[bytes], Any]


class PayloadError(ReactiveError, ValueError):
    """Data that is not what it should be. The text says no more: the peer may see it."""


class _OtherType(PayloadError, TypeError):
    """A value that the codec of the connection, or of the request, is not for."""

    def __init__(self, value: object, mime: str) -> None:
        kind = type(value).__name__
        super().__init__(f"{kind!r} cannot be sent as {mime}: connect with codec=TEXT or JSON")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """A pair of functions, and the MIME type under which a connection announces them."""

    mime: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


# -- bytes, texts, JSON ----------------------------------------------------------------------------
def _bytes(value: bytes) -> bytes:
    if type(value) is bytes:
        return value
    if not isinstance(value, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _OtherType(value, OCTET_STREAM)
    return bytes(value)


def _text(value: str) -> bytes:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _OtherType(value, "text/plain")
    return value.encode()


def _untext(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise PayloadError(f"the text is not UTF-8: {error}") from None


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()


def _unjson(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"the data is not JSON: {error}") from None


def _plain(value: Any) -> Any:
    """What JSON can say of an object of a class."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    raise TypeError(f"{type(value).__name__!r} cannot be written as JSON")


# -- MessagePack -----------------------------------------------------------------------------------
def _pack(value: Any) -> bytes:
    return cast("bytes", _package("MSGPACK", "msgspec").msgpack.encode(value, enc_hook=_plain))


def _unpack(data: bytes) -> Any:
    msgspec = _package("MSGPACK", "msgspec")
    try:
        return msgspec.msgpack.decode(data) if data else None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PayloadError(f"the data is not MessagePack: {error}") from None


def _package(what: str, *names: str) -> Any:
    """The first of the packages *names* that is there."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError(f"{what} needs {' or '.join(names)}: pip install {names[0]}")


BYTES: Final[Codec[bytes]] = Codec(OCTET_STREAM, _bytes, bytes)
TEXT: Final[Codec[str]] = Codec("text/plain", _text, _untext)
JSON: Final[Codec[Any]] = Codec("application/json", _json, _unjson)
MSGPACK: Final[Codec[Any]] = Codec("application/msgpack", _pack, _unpack)


# -- classes ---------------------------------------------------------------------------------------
def typed(kind: type[T], base: Codec[Any] = JSON) -> Codec[T]:
    """Read elements as *kind*, from JSON, or from MessagePack with ``MSGPACK`` as *base*.

    ::

        class Order(msgspec.Struct): ...

        requester.request_stream(route="orders", codec=typed(Order))

    *kind* is a ``msgspec.Struct``, a pydantic model, a dataclass or TypedDict, or a type made of
    these, such as ``list[Order]``. What does not fit it is a `PayloadError`. What is written may be
    of any class that *base* can write.
    """
    if base.mime not in (JSON.mime, MSGPACK.mime):
        raise ValueError(f"base must be JSON or MSGPACK, not {base.mime}")
    return Codec(base.mime, base.encode, _decoder(cast("Any", kind), base.mime))


@cache
def _decoder(kind: Any, mime: str) -> Decode:
    what = f"reading {getattr(kind, '__name__', kind)}"
    made_by = _maker(kind)
    package = _package(what, made_by) if made_by else _package(what, "msgspec", "pydantic")
    inner = _by_pydantic if package.__name__ == "pydantic" else _by_msgspec
    decode = inner(package, kind, mime)
    optional = NoneType in get_args(kind)

    def decoded(data: bytes) -> Any:
        return None if optional and not data else decode(data)

    return decoded


def _by_msgspec(msgspec: Any, kind: Any, mime: str) -> Decode:
    family = msgspec.json if mime == JSON.mime else msgspec.msgpack
    try:
        decode = family.Decoder(kind).decode
    except TypeError as error:
        raise TypeError(f"{kind!r} cannot be read by msgspec: {error}") from None

    def decoded(data: bytes) -> Any:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PayloadError(f"the data is not a valid {_name(kind)}: {error}") from None

    return decoded


def _by_pydantic(pydantic: Any, kind: Any, mime: str) -> Decode:
    adapter = pydantic.TypeAdapter(kind)
    validate = adapter.validate_json
    if mime != JSON.mime:

        def validate(data: bytes) -> Any:
            return adapter.validate_python(_unpack(data))

    def decoded(data: bytes) -> Any:
        try:
            return validate(data)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[:5]
            told = "; ".join(f"{'.'.join(map(str, e['loc'])) or '$'}: {e['msg']}" for e in first)
            raise PayloadError(f"the data is not a valid {_name(kind)}: {told}") from None

    return decoded


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def _maker(kind: Any) -> str:
    """The package that the classes in *kind* are of; empty if of none."""
    for each in (kind, *get_args(kind)):
        for name, base in (("msgspec", "Struct"), ("pydantic", "BaseModel")):
            made = getattr(sys.modules.get(name), base, None)
            if made is not None and isinstance(each, type) and issubclass(each, made):
                return name
    found = {_maker(each) for each in get_args(kind)} - {""}
    return min(found, default="")


def readable(kind: Any) -> bool:
    """Whether *kind* is one for `typed`: a class with fields, or made of such."""
    if _maker(kind):
        return True
    return any(is_typeddict(each) or is_dataclass(each) for each in (kind, *get_args(kind)))
