"""Composite metadata, routes, credentials and MIME types: encoded, decoded, malformed."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reactive_aio.rsocket.protocol.errors import ProtocolError
from reactive_aio.rsocket.protocol.metadata import (
    AUTHENTICATION,
    COMPOSITE_METADATA,
    ROUTING,
    TRACING_ZIPKIN,
    WELL_KNOWN,
    BearerToken,
    Credentials,
    MetadataItem,
    OtherCredentials,
    SimpleAuth,
    read_auth,
    read_composite,
    read_mime_types,
    read_routing,
    write_auth,
    write_composite,
    write_mime_types,
    write_routing,
)
from reactive_aio.rsocket.protocol.request_metadata import write_items

ASCII = st.text(st.characters(codec="ascii"), min_size=1, max_size=128)
MIME = st.sampled_from(sorted(WELL_KNOWN)) | ASCII
TEXT = st.text(max_size=40)


def test_composite_metadata_is_encoded_as_in_the_specification() -> None:
    items = [MetadataItem(ROUTING, b"\x01a"), MetadataItem("x/y", b"zz")]
    written = write_composite(items)
    assert written.hex() == "fe0000020161" + "02782f79000002" + "7a7a"  # the length 3, minus one
    assert read_composite(written) == items


@given(st.lists(st.builds(MetadataItem, MIME, st.binary(max_size=30)), max_size=5))
def test_items_keep_their_order_and_content(items: list[MetadataItem]) -> None:
    assert read_composite(write_composite(items)) == items


def test_unknown_mime_types_are_kept() -> None:
    assert read_composite(b"\xd5\x00\x00\x01x") == [MetadataItem("unknown/0x55", b"x")]
    tracing = MetadataItem(TRACING_ZIPKIN, b"\x80" + bytes(16))
    assert read_composite(write_composite([tracing])) == [tracing]


def test_routes_are_encoded_as_in_the_specification() -> None:
    assert write_routing("ab", "ü") == b"\x02ab\x02\xc3\xbc"


@given(st.lists(st.text(max_size=60), max_size=4))
def test_routes_round_trip(tags: list[str]) -> None:
    assert read_routing(write_routing(*tags)) == tags


def test_credentials_are_encoded_as_in_the_specification() -> None:
    assert write_auth(SimpleAuth("me", "pw")) == b"\x80\x00\x02mepw"
    assert write_auth(BearerToken("tok")) == b"\x81tok"
    assert write_auth(OtherCredentials("x", b"y")) == b"\x00xy"


@given(st.one_of(st.builds(SimpleAuth, TEXT, TEXT), st.builds(BearerToken, TEXT)))
def test_credentials_round_trip(credentials: Credentials) -> None:
    assert read_auth(write_auth(credentials)) == credentials


def test_known_types_may_be_spelled_out() -> None:
    assert read_auth(b"\x05bearertok") == BearerToken("tok")
    assert read_auth(b"\x04other!") == OtherCredentials("other", b"!")


@pytest.mark.parametrize(
    "credentials",
    [SimpleAuth("me", "secret"), BearerToken("secret"), OtherCredentials("x", b"secret")],
)
def test_secrets_are_not_shown(credentials: Credentials) -> None:
    assert "secret" not in repr(credentials)


@given(st.lists(MIME, max_size=5))
def test_mime_types_round_trip(names: list[str]) -> None:
    assert read_mime_types(write_mime_types(*names)) == names


def test_the_ids_of_mime_types_are_those_of_the_specification() -> None:
    assert WELL_KNOWN["application/avro"] == 0x00
    assert WELL_KNOWN["application/json"] == 0x05
    assert WELL_KNOWN["image/png"] == 0x1B
    assert WELL_KNOWN["text/plain"] == 0x21
    assert WELL_KNOWN["application/x-flatbuffers"] == 0x2A
    assert WELL_KNOWN[AUTHENTICATION] == 0x7C
    assert WELL_KNOWN[COMPOSITE_METADATA] == 0x7F
    assert len(WELL_KNOWN) == 0x2B + 6


@pytest.mark.parametrize("read", [read_composite, read_routing, read_auth, read_mime_types])
def test_any_bytes_are_decoded_or_raise_a_protocol_error(read: Callable[[bytes], Any]) -> None:
    @given(st.binary(max_size=40))
    def check(data: bytes) -> None:
        try:
            read(data)
        except ProtocolError:
            pass

    check()


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_composite, write_composite([MetadataItem("x/y", b"z")])),
        (read_routing, write_routing("route")),
        (read_auth, write_auth(SimpleAuth("me", ""))),
        (read_mime_types, write_mime_types("x/y")),
    ],
)
def test_metadata_that_is_cut_short_is_refused(read: Callable[[bytes], Any], data: bytes) -> None:
    read(data)
    with pytest.raises(ProtocolError, match="ends within"):
        read(data[:-1])


@pytest.mark.parametrize(
    "write",
    [
        lambda: write_items("x/y", [("x/y", b"first"), ("x/y", b"second")]),
        lambda: write_routing("x" * 256),
        lambda: write_composite([MetadataItem("x" * 129, b"")]),
        lambda: write_composite([MetadataItem("", b"")]),
        lambda: write_composite([MetadataItem("x", bytes(1 << 24))]),
        lambda: write_auth(SimpleAuth("x" * 65536, "")),
    ],
)
def test_what_does_not_fit_is_refused(write: Callable[[], bytes]) -> None:
    with pytest.raises(ValueError, match=r"takes up to|characters long|too many|composite"):
        write()
