"""Addresses, routes and payload codecs."""

from typing import Any

import pytest

from reactive_aio.rsocket import BYTES, JSON, TEXT, Address, Codec, Router


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("tcp://here:7", Address(transport="tcp", host="here", port=7)),
        ("rsocket+tls://[::1]:7/", Address(transport="tls", host="::1", port=7)),
        ("unix:///a%20b", Address(transport="unix", path="/a b")),
        (
            "rsocket+tcp://here:7?route=prices.A%2FB&n=100",
            Address(transport="tcp", host="here", port=7, route="prices.A/B", n=100),
        ),
    ],
)
def test_an_address_is_parsed(uri: str, address: Address) -> None:
    assert Address.parse(uri) == address
    assert Address.parse(str(address)).transport == address.transport


@pytest.mark.parametrize(
    "uri",
    [
        "here:7", "tcp://here", "tcp://:7", "tcp://here:7/path", "tcp://a:b@here:7",
        "tcp://here:7?n=0", "tcp://here:7?n=x", "tcp://here:7?n=1&n=2", "tcp://here:7?m=1",
        "unix://here/path", "unix:", "tcp://here:99999", "tcp://here:7#x", "tcp://here:7?n=",
    ],
)  # fmt: skip
def test_an_invalid_address_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Address.parse(uri)


def test_routes_without_braces_take_precedence() -> None:
    router = Router()
    found: list[str] = []

    @router.route("a.{x}")
    def one(x: str) -> None:
        found.append(f"braces {x}")

    @router.route("a.b")
    def none() -> None:
        found.append("written out")

    @router.route("{x}/{y}")
    def two(x: str, y: str) -> None:
        found.append(f"{y} {x}")

    for route in ("a.b", "a.c", "1/2"):
        served = router.find(route)
        assert served is not None
        served[0](None, served[1])  # type: ignore[arg-type]
    assert found == ["written out", "braces c", "2 1"]
    assert router.find("a.b.c") is None
    assert router.find("") is None


def pair(x: str, y: str) -> str:
    return x + y


def test_an_invalid_route_is_refused_at_registration() -> None:
    router = Router()
    router.route("a")(lambda: 1)
    with pytest.raises(ValueError, match="is there already"):
        router.route("a")
    with pytest.raises(ValueError, match="has no x"):
        router.route("b.{x}")(lambda: 1)
    with pytest.raises(ValueError, match="unknown y"):
        router.route("c.{x}")(pair)


@pytest.mark.parametrize(("codec", "value"), [(BYTES, b"\0"), (TEXT, "ä"), (JSON, {"a": [1]})])
def test_codecs_round_trip(codec: Codec[Any], value: object) -> None:
    assert codec.decode(codec.encode(value)) == value


def test_the_bytes_codec_accepts_only_bytes() -> None:
    with pytest.raises(TypeError, match="TEXT or JSON"):
        BYTES.encode("text")  # type: ignore[arg-type]
