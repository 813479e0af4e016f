"""Payload codecs: built-in and typed ones."""

from typing import Any

import msgspec
import pydantic
import pytest

from reactive_aio.rsocket import (
    BYTES,
    JSON,
    MSGPACK,
    TEXT,
    Codec,
    PayloadError,
    typed,
)


class Order(msgspec.Struct):
    symbol: str
    count: int


class Bill(pydantic.BaseModel):
    symbol: str
    total: float


@pytest.mark.parametrize(("codec", "value"), [(BYTES, b"\0"), (TEXT, "ä"), (JSON, {"a": [1]})])
def test_codecs_round_trip(codec: Codec[Any], value: object) -> None:
    assert codec.decode(codec.encode(value)) == value


def test_the_bytes_codec_accepts_only_bytes() -> None:
    with pytest.raises(TypeError, match="TEXT or JSON"):
        BYTES.encode("text")  # type: ignore[arg-type]


def test_a_typed_codec_refuses_data_that_does_not_fit() -> None:
    assert typed(Order).decode(b'{"symbol":"A","count":1}') == Order("A", 1)
    assert typed(dict[str, int]).decode(b'{"a":1}') == {"a": 1}
    assert typed(Order | None).decode(b"") is None  # type: ignore[arg-type]  # not a type
    with pytest.raises(PayloadError, match="not a valid Bill"):
        typed(Bill).decode(b'{"symbol":1}')
    with pytest.raises(ValueError, match="JSON or MSGPACK"):
        typed(Order, TEXT)
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        JSON.encode(object())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "msgspec", None)
    with pytest.raises(ImportError, match="MSGPACK needs msgspec: pip install msgspec"):
        MSGPACK.encode(1)
