"""Addresses: parsing, writing, and the errors of invalid ones."""

import re

import pytest
from hypothesis import given, strategies as st

from reactive_aio._core.foreign_text import without_secrets
from reactive_aio.rsocket import Address


@pytest.mark.parametrize("prefix", ["", "rsocket+"])
@pytest.mark.parametrize(
    ("uri", "address", "text"),
    [
        ("tcp://here:7", Address(transport="tcp", host="here", port=7), None),
        ("tcp://here:0/", Address(transport="tcp", host="here", port=0), "tcp://here:0"),
        ("tcp://[::1]:7", Address(transport="tcp", host="::1", port=7), None),
        (
            "tls://here:7?n=1",
            Address(transport="tls", host="here", port=7, prefetch=1),
            "tls://here:7",
        ),
        (
            "tls://here:7?route=prices.ACME",
            Address(transport="tls", host="here", port=7, route="prices.ACME"),
            "tls://here:7",
        ),
        ("unix:///run/a.sock", Address(transport="unix", path="/run/a.sock"), None),
        (
            "unix:///run/a%20b?route=x&n=999999999",
            Address(transport="unix", path="/run/a b", route="x", prefetch=999_999_999),
            "unix:///run/a%20b",
        ),
        ("ws://here", Address(transport="ws", host="here", port=80, path="/"), "ws://here:80/"),
        (
            "wss://here",
            Address(transport="wss", host="here", port=443, path="/"),
            "wss://here:443/",
        ),
        (
            "ws://here/path?route=prices.ACME&n=100",
            Address(
                transport="ws",
                host="here",
                port=80,
                path="/path",
                route="prices.ACME",
                prefetch=100,
            ),
            "ws://here:80/path",
        ),
        (
            "wss://[::1]:0/a/b%20c?route=",
            Address(transport="wss", host="::1", port=0, path="/a/b%20c", route=""),
            "wss://[::1]:0/a/b%20c",
        ),
        (
            "ws://here:1?route=a%26b%3D%C3%A9",
            Address(transport="ws", host="here", port=1, path="/", route="a&b=é"),
            "ws://here:1/",
        ),
    ],
)
def test_addresses_are_parsed_and_written(
    prefix: str, uri: str, address: Address, text: str | None
) -> None:
    parsed = Address.parse(prefix + uri)
    assert parsed == address
    assert str(parsed) == (uri if text is None else text)
    assert parsed.is_secure is (address.transport in ("tls", "wss"))
    assert parsed.is_websocket is (address.transport in ("ws", "wss"))


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("", "tcp://, tls://, unix://, ws://, wss://"),
        ("here:7", "write one of"),
        ("http://here:7", "write one of"),
        ("rsocket://here:7", "write one of"),
        ("tcp://here", "tcp://host:port"),
        ("tcp://:7", "tcp://host:port"),
        ("tcp://here:7/path", "without a path"),
        ("tls://here:port", "from 0 to 65535"),
        ("tcp://here:65536", "from 0 to 65535"),
        ("ws://", "ws://host:port/path"),
        ("ws:///path", "ws://host:port/path"),
        ("ws://here/a b", "percent-encoded"),
        ("wss://here/é", "percent-encoded"),
        ("ws://here:x/", "from 0 to 65535"),
        ("unix://run/socket", "unix:///path"),
        ("unix:", "unix:///path"),
        ("tcp://[::1:7", "IPv6"),
        ("tcp://me:secret@here:7", "credentials"),
        ("ws://here/#top", "fragment"),
        ("ws://here/?rout=x", "unknown rout; route and n are known"),
        ("ws://here/?n=1&n=2", "n is given twice"),
        ("ws://here/?n=0", "from 1 to 999999999, not '0'"),
        ("ws://here/?n=-1", "from 1 to"),
        ("ws://here/?n=1e3", "from 1 to"),
        ("ws://here/?n=1000000000", "from 1 to"),
        ("ws://here/?n=٣", "from 1 to"),
        ("ws://here/?n=", "from 1 to"),
    ],
)
def test_an_invalid_address_is_explained(uri: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        Address.parse(uri)
    assert repr(without_secrets(uri)) in str(caught.value)


@given(st.text(max_size=30) | st.from_regex(r"(rsocket\+)?(ws|tcp|unix)://\S{0,20}"))
def test_anything_is_an_address_or_a_clear_error(uri: str) -> None:
    try:
        address = Address.parse(uri)
    except ValueError as caught:
        error = caught
    else:
        assert Address.parse(str(address)).transport == address.transport
        return
    assert str(error).startswith(repr(without_secrets(uri)))


@pytest.mark.parametrize(
    "path", ["/run/a?b.sock", "/run/50%.sock", "/run/#1", "/run/ä b", "/\udcff"]
)
def test_the_uri_of_a_unix_socket_names_its_path(path: str) -> None:
    address = Address(transport="unix", path=path)
    assert Address.parse(str(address)) == address
