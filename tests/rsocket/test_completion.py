"""A stream completes without further demand (N.15), whatever its handler returns."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from reactive_aio import Flow, from_aiter, from_iterable, range as numbers
from reactive_aio.rsocket import JSON, ApplicationError, Limits, Request, Router, loopback
from reactive_aio.rsocket.protocol.frames import Cancel, Payload, RequestResponse, RequestStream
from reactive_aio.testing.probes import SubscriberProbe

from .loop_turns import turns
from .wire import wire

router = Router()
produced: list[int] = []
closed: list[str] = []


@router.route("generator.{n}")
def generator(n: int) -> Iterator[int]:
    try:
        for number in range(n):
            produced.append(number)
            yield number
    finally:
        closed.append("generator")


@router.route("async_generator.{n}")
async def async_generator(n: int) -> AsyncIterator[int]:
    try:
        for number in range(n):
            produced.append(number)
            yield number
    finally:
        closed.append("async_generator")


class Iterable:
    def __init__(self, n: int) -> None:
        self.n = n

    async def __aiter__(self) -> AsyncIterator[int]:
        for number in range(self.n):
            yield number


@router.route("iterator.{n}")
def iterator(n: int) -> Iterator[int]:
    return iter(range(n))


@router.route("async_iterable.{n}")
def async_iterable(n: int) -> Iterable:
    return Iterable(n)


@router.route("flow.{n}")
def flow(n: int) -> Flow[int]:
    return numbers(n)


@router.route("failing")
def failing() -> Iterator[int]:
    yield 0
    yield 1
    raise ApplicationError(0x301, "no more")


@pytest.fixture(autouse=True)
def forget() -> None:
    produced.clear()
    closed.clear()


@pytest.mark.virtual_time  # waiting in vain fails at once
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize(
    "kind", ["generator", "async_generator", "iterator", "async_iterable", "flow"]
)
async def test_the_end_needs_no_request(kind: str, n: int) -> None:
    async with loopback(router, codec=JSON) as requester:
        probe: SubscriberProbe[int] = SubscriberProbe(request=max(n, 1))
        requester.request_stream(route=f"{kind}.{n}").subscribe(probe)
        async with asyncio.timeout(60):
            await probe.end()
        assert probe.elements == [*range(n)]
        assert probe.is_completed


FLOWS: dict[str, Callable[[], Flow[int]]] = {
    "from_aiter": lambda: from_aiter(async_generator(2)),
    "from_iterable": lambda: from_iterable(generator(2)),
    "filter": lambda: numbers(9).filter(lambda n: n < 2),
}


@pytest.mark.parametrize("make", FLOWS.values(), ids=FLOWS)
async def test_a_flow_is_asked_for_no_more_than_requested(make: Callable[[], Flow[int]]) -> None:
    """It may not know of its end by then; with a boundary, it does."""
    routes = Router()
    routes.route("flow")(make)
    routes.route("ahead")(lambda: make().boundary(1))
    async with loopback(routes, codec=JSON) as requester:
        probe: SubscriberProbe[int] = SubscriberProbe(request=2)
        requester.request_stream(route="flow").subscribe(probe)
        await turns()
        assert (probe.elements, probe.is_completed) == ([0, 1], False)
        probe.request(1)
        await probe.end()
        assert probe.elements == [0, 1]
        ahead: SubscriberProbe[int] = SubscriberProbe(request=2)
        requester.request_stream(route="ahead").subscribe(ahead)
        await ahead.end()
        assert ahead.elements == [0, 1]


@pytest.mark.parametrize("kind", ["generator", "async_generator"])
async def test_one_element_is_read_ahead_and_sent_on_demand(kind: str) -> None:
    async with loopback(router, codec=JSON) as requester:
        probe: SubscriberProbe[int] = SubscriberProbe(request=2)
        requester.request_stream(route=f"{kind}.9").subscribe(probe)
        await turns()
        assert (probe.elements, produced) == ([0, 1], [0, 1, 2])
        probe.request(1)
        probe.request(1)
        await turns()
        assert (probe.elements, produced) == ([0, 1, 2, 3], [0, 1, 2, 3, 4])
        probe.cancel()
        await turns()
        assert closed == [kind]
        assert probe.elements == [0, 1, 2, 3]


async def test_an_error_follows_the_elements_before_it() -> None:
    async with loopback(router, codec=JSON) as requester:
        probe: SubscriberProbe[int] = SubscriberProbe(request=1)
        requester.request_stream(route="failing").subscribe(probe)
        await turns()
        assert (probe.elements, probe.error) == ([0], None)
        probe.request(1)
        await probe.end()
        assert probe.elements == [0, 1]
        assert isinstance(probe.error, ApplicationError)


async def test_long_streams_are_unchanged() -> None:
    async with loopback(router, codec=JSON, limits=Limits(chunk=7)) as requester:
        for kind in ("generator", "async_generator"):
            flow = requester.request_stream(route=f"{kind}.3000")
            assert await flow.to_list(limit=3000) == [*range(3000)]


# -- handlers that never begin ---------------------------------------------------------------------
@pytest.mark.parametrize("frame", [RequestResponse, RequestStream])
@pytest.mark.parametrize("has_authorize", [False, True])
async def test_a_coroutine_that_never_begins_is_closed(frame: Any, has_authorize: bool) -> None:
    """A request and its cancellation arrive together."""
    begun: list[int] = []
    routes = Router()

    @routes.route("wait")
    async def wait() -> int:
        begun.append(1)
        await asyncio.Event().wait()
        return 1

    def allow(_: Request) -> bool:
        return True

    authorize = allow if has_authorize else None
    async with loopback(routes, authorize=authorize) as requester:
        transport: Any = requester._driver.line.transport
        driver = transport.other.driver
        await turns()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            metadata = b"\xfe\x00\x00\x05\x04wait"
            for number in range(1, 101, 2):
                request = RequestResponse(number, Payload(b"", metadata))
                if frame is RequestStream:
                    request = RequestStream(number, 1, Payload(b"", metadata))  # type: ignore[assignment]
                driver.data_received(wire(request, Cancel(number)))
            await turns()
            gc.collect()
        assert not driver.connection.streams.by_id
        assert not begun
