"""Payload codecs: they encode the elements of an application as bytes, and decode them.

`BYTES`, `TEXT` and `JSON` have no requirements. `MSGPACK` requires msgspec, and `typed`, which
decodes into classes, requires msgspec or pydantic, depending on the class.
"""

import gc
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache, partial
from importlib import import_module
from types import NoneType
from typing import Any, Final, Generic, TypeVar, cast, get_args, is_typeddict

from ..errors import ReactiveError
from .protocol.metadata import OCTET_STREAM

T = TypeVar("T")
Decode = Callable[[bytes], Any]
_Decoder = tuple[Decode, tuple[type[Exception], ...], Callable[[Any], str]]
"""A function that decodes, the errors it raises, and how they are described to the peer."""
_MAX_DESCRIBED: Final = 100
_SMALL: Final = 16 * 1024
"""Bytes of data that take 2 ms at most, whatever they contain. Above it, garbage collection would
be most of decoding them."""
_DENSITY: Final = 4
"""MessagePack may have an object in each byte, JSON in every third, and a list takes more time."""


class PayloadError(ReactiveError, ValueError):
    """Data that cannot be decoded. The text is sent to the peer, so it contains no secrets."""


def error_text(error: BaseException) -> str:
    """The message of *error*, which can be encoded as UTF-8 whatever its ``__str__`` does."""
    try:
        return str(error).encode(errors="backslashreplace").decode()  # it may have half of a pair
    except Exception as raised:
        return f"{type(error).__name__}, whose message raises {type(raised).__name__}"


class UnwritableType(PayloadError, TypeError):
    """A value of a type that the codec never encodes: another codec is needed."""

    def __init__(self, value: object, mime: str, remedy: str = "codec=TEXT or JSON") -> None:
        super().__init__(
            f"{type(value).__name__!r} cannot be sent as {mime}: connect with {remedy}"
        )


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """A pair of functions, and the MIME type that a connection announces for them."""

    mime: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


_BYTES_LIKE: Final = (bytes, bytearray, memoryview)


# -- bytes, texts, JSON ----------------------------------------------------------------------------
def _bytes(value: bytes) -> bytes:
    if type(value) is bytes:
        return value
    if not isinstance(value, _BYTES_LIKE):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnwritableType(value, OCTET_STREAM)
    return bytes(value)


def _text(value: str) -> bytes:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnwritableType(value, "text/plain")
    return value.encode()


def _untext(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise PayloadError(f"the text is not UTF-8: {error}") from None


def _json(value: Any) -> bytes:
    if isinstance(value, _BYTES_LIKE):
        raise UnwritableType(cast("object", value), JSON.mime, "codec=BYTES or MSGPACK")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()


def _unjson(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"the data is not JSON: {error}") from None


def _plain(value: Any) -> Any:
    """An object of a class as a value that JSON can represent."""
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
    return cast("bytes", _import("MSGPACK", "msgspec").msgpack.encode(value, enc_hook=_plain))


def _unpack(data: bytes) -> Any:
    msgspec = _import("MSGPACK", "msgspec")
    try:
        return msgspec.msgpack.decode(data) if data else None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PayloadError(f"the data is not MessagePack: {error}") from None


def _import(purpose: str, *names: str) -> Any:
    """Import the first of the packages *names* that is installed."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError(f"{purpose} needs {' or '.join(names)}: pip install {names[0]}")


BYTES: Final[Codec[bytes]] = Codec(OCTET_STREAM, _bytes, bytes)
TEXT: Final[Codec[str]] = Codec("text/plain", _text, _untext)
JSON: Final[Codec[Any]] = Codec("application/json", _json, _unjson)
MSGPACK: Final[Codec[Any]] = Codec("application/msgpack", _pack, _unpack)


# -- how much is decoded ---------------------------------------------------------------------------
_COPYING: Final = frozenset({bytes, _untext})
"""Decoders that cost no more than a copy of the data."""


def bounded(codec: Codec[Any], most: int, decode: Decode | None = None) -> Decode:
    """What decodes data of *codec* on the event loop; with *decode*, that does it.

    It raises `PayloadError` for more than *most* bytes, of MessagePack for more than a quarter of
    them: both take some 30 ms if they are empty lists. A thread would not help, since a decoder
    written in C lets no other thread run. Bytes and text may be as long as a payload.
    """
    if codec.decode in _COPYING:
        most = sys.maxsize
        if decode is None:
            return codec.decode
    elif codec.mime == MSGPACK.mime:
        most = min(most, max(most // _DENSITY, _SMALL))
    return partial(_decode_bounded, decode or codec.decode, codec.mime, most)


def _decode_bounded(decode: Decode, mime: str, most: int, data: bytes) -> Any:
    size = len(data)
    if size > most:
        raise PayloadError(
            f"{size} bytes of {mime}; at most {most} are decoded here: send them in parts, or "
            "raise Limits.max_decoded on the side that receives them"
        )
    if size < _SMALL or not gc.isenabled():
        return decode(data)
    # Without the garbage collector, which could free nothing of what is being decoded. It would
    # look at it again and again: of the time for 1 MiB of empty lists, three quarters.
    gc.disable()
    try:
        return decode(data)
    finally:
        gc.enable()


@lru_cache(maxsize=16)
def unknown_codec(mime: str, known: tuple[str, ...]) -> Codec[Any]:
    """The codec for a type that is not among *known*: its data are bytes, and nothing else is."""

    def encode(value: Any) -> bytes:
        if isinstance(value, _BYTES_LIKE):
            return bytes(cast("bytes", value))
        raise UnwritableType(value, f"{mime}, which is not known here", ", ".join(known))

    return Codec(mime, encode, bytes)


# -- classes ---------------------------------------------------------------------------------------
def typed(kind: type[T], base: Codec[Any] = JSON) -> Codec[T]:
    """A codec that decodes JSON into *kind*, or MessagePack with ``MSGPACK`` as *base*.

    ::

        class Order(msgspec.Struct): ...

        requester.request_stream(route="orders", codec=typed(Order))

    *kind* is a ``msgspec.Struct``, a pydantic model, a dataclass or TypedDict, or a type made of
    these, such as ``list[Order]``. Data that does not fit raises `PayloadError`. The codec encodes
    any value that *base* encodes.
    """
    if base.mime not in (JSON.mime, MSGPACK.mime):
        raise ValueError(f"base must be JSON or MSGPACK, not {base.mime}")
    return Codec(base.mime, base.encode, _decoder(cast("Any", kind), base.mime))


@cache
def _decoder(kind: Any, mime: str) -> Decode:
    purpose = f"reading {getattr(kind, '__name__', kind)}"
    required = _required_package(kind)
    package = _import(purpose, required) if required else _import(purpose, "msgspec", "pydantic")
    make = _pydantic_decoder if package.__name__ == "pydantic" else _msgspec_decoder
    decode, failures, describe = make(package, kind, mime)
    name = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    optional = NoneType in get_args(kind)

    def decoded(data: bytes) -> Any:
        if optional and not data:
            return None
        try:
            return decode(data)
        except failures as error:
            raise PayloadError(f"the data is not a valid {name}: {describe(error)}") from None

    return decoded


def _msgspec_decoder(msgspec: Any, kind: Any, mime: str) -> _Decoder:
    family = msgspec.json if mime == JSON.mime else msgspec.msgpack
    try:
        decode = family.Decoder(kind).decode
    except TypeError as error:
        raise TypeError(f"{kind!r} cannot be read by msgspec: {error}") from None
    return decode, (msgspec.DecodeError, UnicodeDecodeError, RecursionError), str


def _pydantic_decoder(pydantic: Any, kind: Any, mime: str) -> _Decoder:
    adapter = pydantic.TypeAdapter(kind)

    def validate_unpacked(data: bytes) -> Any:
        return adapter.validate_python(_unpack(data))

    def describe(error: Any) -> str:
        if (count := error.error_count()) > _MAX_DESCRIBED:  # each would become a dictionary
            return f"{count} errors"
        first = error.errors(include_url=False, include_context=False)[:5]
        return "; ".join(f"{'.'.join(map(str, e['loc'])) or '$'}: {e['msg']}" for e in first)

    decode = adapter.validate_json if mime == JSON.mime else validate_unpacked
    return decode, (pydantic.ValidationError,), describe


def _required_package(kind: Any) -> str:
    """The package that the classes in *kind* require; empty if none."""
    for name, base in (("msgspec", "Struct"), ("pydantic", "BaseModel")):
        parent = getattr(sys.modules.get(name), base, None)
        if parent is not None and isinstance(kind, type) and issubclass(kind, parent):
            return name
    found = [_required_package(each) for each in get_args(kind)]
    return next(filter(None, found), "")


def readable(kind: Any) -> bool:
    """Whether `typed` supports *kind*: a class with fields, or a type made of such classes."""
    if _required_package(kind):
        return True
    return any(is_typeddict(each) or is_dataclass(each) for each in (kind, *get_args(kind)))
