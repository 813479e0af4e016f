"""Any SETUP, metadata and routes: each is answered, nothing breaks, and none takes long."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as some

from reactive_aio import range as numbers
from reactive_aio.rsocket import BearerToken, ProtocolError, Router
from reactive_aio.rsocket.protocol.codec import decode, encode
from reactive_aio.rsocket.protocol.frames import (
    Error,
    ErrorCode,
    Frame,
    KeepAlive,
    Payload,
    PayloadFrame,
    RequestResponse,
    RequestStream,
    Setup,
)
from reactive_aio.rsocket.protocol.metadata import COMPOSITE_METADATA
from reactive_aio.rsocket.server import Server
from reactive_aio.testing.virtual_time import VirtualTimeLoop

from .test_costs import Slow, slow_peer_of
from .wire import MIMES, read, wire

LONGEST = 0.25
"""Seconds of the processor for one input, whatever it says: a hundred times what one takes."""
REPEATED = some.tuples(some.binary(min_size=1, max_size=6), some.integers(1, 20_000)).map(
    lambda both: both[0] * both[1]
)
BYTES = some.binary(max_size=60) | REPEATED
KINDS = [b"\xfe", b"\xff", b"\xfa", b"\xfb", b"\xfc", b"\xfd", b"\x05a/b-cd"]
"""The first bytes of an item: of a route, of accept types, tracing, credentials, and a name."""
ITEMS = some.builds(
    lambda kind, content, off: kind + max(0, len(content) + off).to_bytes(3, "big") + content,
    some.sampled_from(KINDS),
    BYTES,
    some.sampled_from([0, 0, 0, 0, -1, 1, 255]),
)
ROUTES = some.text("ab:.{}-é\0 1", max_size=250).map(str.encode)
TAGS = some.lists(ROUTES, max_size=3).map(
    lambda tags: b"".join(bytes((len(tag) & 255,)) + tag for tag in tags)
)
ROUTED = TAGS.map(lambda tags: b"\xfe" + len(tags).to_bytes(3, "big") + tags)
METADATA = some.lists(ITEMS | ROUTED, max_size=5).map(b"".join) | BYTES
PAYLOADS = some.builds(Payload, BYTES, some.none() | METADATA)
FRAMES = some.lists(
    some.builds(RequestResponse, some.just(1), PAYLOADS)
    | some.builds(RequestStream, some.just(3), some.integers(1, 9), PAYLOADS),
    max_size=3,
)
SETUPS = some.builds(
    Setup,
    some.just(1000),
    some.just(100_000),
    MIMES | some.just(COMPOSITE_METADATA),
    MIMES | some.just("application/json"),
    PAYLOADS,
)


def routes() -> Router:
    router = Router()
    router.route("{a}:{b}:{c}:{d}")(lambda a, b, c, d: [a, b, c, d])
    router.route("a.{n}")(lambda n, payload: [n, payload])
    router.route("n.{n}")(lambda n: numbers(3))
    router.default(lambda request: request.payload)
    return router


def authenticate(credentials: Any) -> bool:
    return not (isinstance(credentials, BearerToken) and credentials.token == "no")


async def attack(setup: Setup, frames: list[Frame], guarded: bool) -> None:
    options: Any = {"authenticate": authenticate} if guarded else {}
    server = Server(routes(), on_error=lambda _: None, **options)
    began = time.process_time()
    driver, peer = slow_peer_of(server, setup)
    driver.data_received(wire(*frames, KeepAlive(respond=True)))
    answers = [*read(peer.written), *await answers_of(peer)]
    assert time.process_time() - began < LONGEST
    assert answers, "something is answered, whatever it was"
    for each in answers:
        assert isinstance(each, Error | PayloadFrame | KeepAlive)
        if isinstance(each, Error):
            assert each.code in list(ErrorCode)
    driver.connection_lost()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not driver.connection.streams.by_id
    assert server.connections == 0


async def answers_of(peer: Slow) -> list[Frame]:
    found: list[Frame] = []
    for _ in range(20):
        found += await peer.read_all()
        await asyncio.sleep(0)
    return found


def run(setup: Setup, frames: list[Frame], guarded: bool) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(attack(setup, frames, guarded))


@settings(deadline=None)
@given(SETUPS, FRAMES, some.booleans())
def test_whatever_is_requested_is_answered_in_time(
    setup: Setup, frames: list[Frame], guarded: bool
) -> None:
    run(setup, frames, guarded)


def test_the_fuzzer_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.LONGEST", 0.0)
    with pytest.raises(AssertionError):
        run(Setup(), [RequestResponse(1)], guarded=False)


@settings(deadline=None)
@given(BYTES | SETUPS.map(encode))
def test_whatever_is_decoded_is_decoded_in_time(data: bytes) -> None:
    began = time.process_time()
    try:
        decode(data)
    except ProtocolError:
        pass
    assert time.process_time() - began < LONGEST
