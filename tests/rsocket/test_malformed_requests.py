"""A request gets a response whatever its data and metadata contain."""

import asyncio
from typing import Any

from hypothesis import given, settings, strategies as st

from reactive_aio import Flow
from reactive_aio.rsocket import BYTES, JSON, Request, Router, StreamFailed, loopback
from reactive_aio.rsocket.link.driver import Driver
from reactive_aio.rsocket.protocol.frames import Payload
from reactive_aio.rsocket.protocol.metadata import (
    ACCEPT_MIME_TYPES,
    AUTHENTICATION,
    MIME_TYPE,
    ROUTING,
    write_composite,
    write_mime_types,
    write_routing,
)
from reactive_aio.rsocket.protocol.request_metadata import DEADLINE
from reactive_aio.testing.virtual_time import VirtualTimeLoop

router = Router()
pushed: list[Any] = []


@router.route("n.{n}")
def count(n: int, payload: list[int]) -> Any:
    return [n, payload]


@router.route("request")
async def request(request: Request) -> Any:
    await asyncio.sleep(0)
    return str((request.payload, request.credentials, request.tracing, request.remaining))


@router.route("plus")
def plus(incoming: Flow[int]) -> Flow[int]:
    return incoming


@router.on_metadata_push
def push(metadata: Any) -> None:
    pushed.append(metadata)


rubbish = st.binary(max_size=12)
mimes = st.sampled_from([AUTHENTICATION, MIME_TYPE, ACCEPT_MIME_TYPES, DEADLINE, "x/y", ROUTING])
routes = st.sampled_from([write_routing(each) for each in ("n.1", "n.x", "request", "plus", "no")])
items = st.lists(st.tuples(mimes, rubbish), max_size=3)
whole = st.tuples(routes, items).map(lambda both: write_composite([(ROUTING, both[0]), *both[1]]))
metadata = whole | st.tuples(whole, rubbish).map(b"".join) | rubbish | st.none()
data = rubbish | st.sampled_from([b"[1]", b"{", b"", b"[" * 100_000])


async def ask(driver: Driver, payload: Payload) -> None:
    call = driver.loop_handle.create_future()
    driver.streams.responses[driver.connection.request_response(payload)] = call
    driver.schedule_turn()
    try:
        await call
    except (StreamFailed, LookupError):
        pass


async def bother(payloads: list[Payload]) -> None:
    errors: list[BaseException] = []

    async def owner(request: Request) -> bool:
        return request.credentials is None

    for authorize in (None, owner):
        async with loopback(
            router, codec=JSON, on_error=errors.append, authorize=authorize
        ) as requester:
            driver = requester._driver
            for payload in payloads:
                await asyncio.wait_for(ask(driver, payload), 1e6)
                driver.connection.metadata_push(payload.metadata or b"")
                driver.connection.fire_and_forget(payload)
                driver.schedule_turn()
            assert await requester.request_response([1], route="n.1") == [1, [1]]
    assert errors == []  # every failure is the requester's fault


@settings(max_examples=100)
@given(st.lists(st.builds(Payload, data, metadata), max_size=4))
def test_malformed_requests_get_a_response(payloads: list[Payload]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(bother(payloads))


def test_an_acceptable_type_that_the_handler_does_not_return_gets_a_response() -> None:
    accept = (ACCEPT_MIME_TYPES, write_mime_types(BYTES.mime))
    routed = write_composite([(ROUTING, write_routing("n.1")), accept])
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(bother([Payload(b"[1]", routed)]))
