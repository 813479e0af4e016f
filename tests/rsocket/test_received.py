"""Requesters can read the metadata of responses and elements."""

import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    JSON,
    TEXT,
    MetadataItem,
    Payload,
    PayloadError,
    Received,
    Router,
    loopback,
)
from reactive_aio.rsocket.protocol.metadata import write_composite

router = Router()
ITEM = MetadataItem("application/x.tag", b"7")


@router.route("one")
def one() -> Payload:
    return Payload(b'"d"', write_composite([ITEM]))


@router.route("plain")
def plain() -> str:
    return "d"


@router.route("broken")
def broken() -> Payload:
    return Payload(b'"d"', b"\xff")


@router.route("many")
def many() -> Flow[object]:
    return from_iterable(["a", Payload(b'"b"', write_composite([ITEM])), "c"])


async def test_the_metadata_of_a_response_can_be_read() -> None:
    async with loopback(router, codec=JSON) as requester:
        received = await requester.request_response(route="one", with_metadata=True)
        assert received.data == "d"
        assert received.metadata == (ITEM,)
        assert received.item("application/x.tag") == b"7"
        assert received.item("application/x.other") is None
        assert await requester.request_response(route="one") == "d"
        assert not requester._driver.streams.responses


async def test_a_response_without_metadata_has_none() -> None:
    async with loopback(router, codec=JSON) as requester:
        received = await requester.request_response(route="plain", with_metadata=True)
        assert received == Received("d")
        assert received.metadata == ()
        text: Received[str] = await requester.request_response(
            route="plain", codec=TEXT, with_metadata=True
        )
        assert text.data == "d"


async def test_malformed_metadata_is_an_error_only_when_it_is_read() -> None:
    async with loopback(router, codec=JSON) as requester:
        received = await requester.request_response(route="broken", with_metadata=True)
        assert (received.data, received.raw_metadata) == ("d", b"\xff")
        with pytest.raises(PayloadError, match="metadata of the element cannot be read"):
            _ = received.metadata


async def test_the_metadata_of_each_element_can_be_read() -> None:
    async with loopback(router, codec=JSON) as requester:
        flow = requester.request_stream(route="many", with_metadata=True)
        found = await flow.to_list(limit=9)
        assert [(each.data, each.metadata) for each in found] == [
            ("a", ()),
            ("b", (ITEM,)),
            ("c", ()),
        ]
        assert await requester.request_stream(route="many").to_list(limit=9) == ["a", "b", "c"]


async def test_the_metadata_of_each_element_of_a_channel_can_be_read() -> None:
    async with loopback(router, codec=JSON) as requester:
        flow = requester.request_channel([1], route="many", with_metadata=True)
        assert [each.item(ITEM.mime) for each in await flow.to_list(limit=9)] == [None, b"7", None]
