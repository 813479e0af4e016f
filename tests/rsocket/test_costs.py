"""What the bytes of a peer may cost: small forms of attacks, each of which meets its bound."""

import pytest

from reactive_aio.rsocket import MetadataItem, RequestInvalid, Router, loopback
from reactive_aio.rsocket.protocol.errors import ProtocolError
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.metadata import (
    ACCEPT_MIME_TYPES,
    ROUTING,
    read_composite,
    read_mime_types,
    read_routing,
    write_composite,
    write_routing,
)

EMPTY = (MetadataItem("a/b", b""),)
ROUTE = MetadataItem(ROUTING, write_routing("echo"))
FLOODS = [
    (read_composite, write_composite(EMPTY), "items"),
    (read_routing, b"\0", "tags"),
    (read_mime_types, b"\xff", "types of data"),
]
"""What reads a kind of metadata, the shortest item of that kind, and what the items are called."""


# -- items in metadata -----------------------------------------------------------------------------
@pytest.mark.parametrize(("read", "item", "what"), FLOODS)
def test_metadata_has_a_bounded_number_of_items(read: object, item: bytes, what: str) -> None:
    assert callable(read)
    assert len(read(item * 64)) == 64
    with pytest.raises(ProtocolError, match=f"more than 64 {what}"):
        read(item * 65)
    with pytest.raises(ProtocolError, match=f"more than 2 {what}"):
        read(item * 3, 2)


@pytest.mark.parametrize("guarded", [False, True])
async def test_a_request_with_too_many_items_is_refused_alone(guarded: bool) -> None:
    router = Router()
    router.route("echo")(lambda payload: payload)
    authorize = (lambda _: True) if guarded else None
    async with loopback(router, authorize=authorize) as peer:
        for metadata in (
            [ROUTE, *EMPTY * 64],
            [MetadataItem(ROUTING, b"\0" * 65)],
            [ROUTE, MetadataItem(ACCEPT_MIME_TYPES, b"\xff" * 65)],
        ):
            with pytest.raises(RequestInvalid, match="metadata with more than 64"):
                await peer.request_response(b"", metadata=metadata)
        assert await peer.request_response(b"x", route="echo") == b"x"


async def test_the_number_of_items_is_a_limit_of_the_server() -> None:
    router = Router()
    router.route("echo")(lambda payload: payload)
    async with loopback(router, limits=Limits(max_items=2)) as peer:
        assert await peer.request_response(b"x", metadata=[ROUTE, *EMPTY]) == b"x"
        with pytest.raises(RequestInvalid, match="metadata with more than 2 items"):
            await peer.request_response(b"x", metadata=[ROUTE, *EMPTY * 2])
