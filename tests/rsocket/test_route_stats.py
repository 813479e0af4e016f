"""The counts of a server, by route."""

import asyncio
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from reactive_aio import Flow, UnicastProcessor, from_iterable, just, never
from reactive_aio.rsocket import (
    ConnectionLost,
    Limits,
    Request,
    RequestInvalid,
    RequestRejected,
    Resumption,
    Router,
    RouteStats,
    Server,
    StreamFailed,
)
from reactive_aio.testing.probes import SubscriberProbe

from .cut_transport import Bench
from .loop_turns import turns

pytestmark = pytest.mark.virtual_time


def routes() -> Router:
    router = Router()
    router.route("many")(lambda: just(1, 2).concat_with(never()))
    router.route("late")(late)

    @router.route("twice")
    def twice(payload: int) -> int:
        return payload * 2

    @router.route("range.{n}")
    def count(n: int) -> Flow[int]:
        return from_iterable(range(n))

    @router.route("fails")
    def fails(payload: str) -> Any:
        raise RuntimeError("no disk")

    @router.route("breaks")
    def breaks() -> Flow[int]:
        return from_iterable([4, 2, 0]).map(lambda n: 4 // n)

    @router.route("typed")
    def typed(payload: int) -> int:
        return payload

    return router


async def late() -> int:
    await asyncio.sleep(3)
    return 1


def stats(bench: Bench, route: str) -> RouteStats:
    return bench.server.stats().routes[route]


async def test_responses_are_requests_with_one_element() -> None:
    bench = Bench(routes())
    async with bench.server, await bench.client() as client:
        assert bench.server.stats().routes == {}
        for n in range(3):
            assert await client.request_response(n, route="twice") == 2 * n
        assert await client.request_response(route="late") == 1
        assert stats(bench, "twice") == RouteStats(requests=3, elements=3)
        assert stats(bench, "late") == RouteStats(requests=1, elements=1)
        with pytest.raises(FrozenInstanceError):
            stats(bench, "late").requests = 3  # type: ignore[misc]


async def test_requests_for_all_texts_of_a_pattern_count_together() -> None:
    bench = Bench(routes())
    async with bench.server, await bench.client() as client:
        for n in (2, 5):
            await client.request_stream(route=f"range.{n}").to_list(limit=9)
        assert stats(bench, "range.{n}") == RouteStats(requests=2, elements=7)


async def test_an_open_stream_has_demand() -> None:
    bench = Bench(routes())
    async with bench.server, await bench.client() as client:
        probe: SubscriberProbe[int] = SubscriberProbe(request=10)
        client.request_stream(route="many").subscribe(probe)
        await probe.wait_for_signals(2)
        assert stats(bench, "many") == RouteStats(requests=1, streams=1, elements=2, demand=8)
        probe.request(100)
        await turns()
        assert stats(bench, "many").demand == 108
        probe.cancel()
        await turns()
        assert stats(bench, "many") == RouteStats(requests=1, elements=2)


async def test_a_response_that_is_awaited_is_open() -> None:
    bench = Bench(routes())
    async with bench.server, await bench.client() as client:
        response = asyncio.create_task(client.request_response(route="late"))
        await turns()
        assert stats(bench, "late") == RouteStats(requests=1, streams=1, demand=1)
        assert await response == 1
        assert stats(bench, "late") == RouteStats(requests=1, elements=1)


async def test_elements_that_the_peer_does_not_read_are_held() -> None:
    source: UnicastProcessor[str] = UnicastProcessor(capacity=100)
    router = routes()
    router.route("texts")(lambda: source)
    bench = Bench(router)
    async with bench.server, await bench.client() as client:
        probe: SubscriberProbe[str] = SubscriberProbe(request=50)
        client.request_stream(route="texts").subscribe(probe)
        await turns()
        near, far = bench.ends[-1]
        near.pause_reading()
        for _ in range(9):
            await source.emit("x" * 20_000)
            await turns()
        held = stats(bench, "texts")
        assert held.elements == 9
        assert 1 <= held.held <= 9
        near.resume_reading()
        await probe.wait_for_signals(9)
        assert stats(bench, "texts").held == 0
        assert not far.is_closed
        probe.cancel()


async def test_refused_requests_count_apart_from_failed_ones() -> None:
    bench = Bench(routes())
    bench.server._responder.authorize = lambda request: request.route != "twice"
    async with bench.server, await bench.client() as client:
        with pytest.raises(RequestRejected):
            await client.request_response(1, route="twice")
        with pytest.raises(RequestInvalid):
            await client.request_response("x", route="typed")
        with pytest.raises(StreamFailed):
            await client.request_response("x", route="fails")
        with pytest.raises(StreamFailed):
            await client.request_stream(route="breaks").to_list(limit=9)
        assert stats(bench, "twice") == RouteStats(requests=1, refused=1)
        assert stats(bench, "typed") == RouteStats(requests=1, refused=1)
        assert stats(bench, "fails") == RouteStats(requests=1, failed=1)
        assert stats(bench, "breaks") == RouteStats(requests=1, elements=2, failed=1)


async def test_a_channel_that_is_left_has_not_failed() -> None:
    router = Router()

    @router.route("echo")
    def echo(incoming: Flow[int]) -> Flow[int]:
        return incoming

    bench = Bench(router)
    async with bench.server, await bench.client() as client:
        channel = client.request_channel([1, 2, 3], route="echo")
        assert await channel.take(1).to_list() == [1]
        await turns()
        assert stats(bench, "echo") == RouteStats(requests=1, elements=1)


async def test_plain_functions_that_fail_are_counted() -> None:
    bench = Bench(routes())
    async with bench.server, await bench.client() as client:
        for _ in range(2):
            with pytest.raises(RequestInvalid):
                await client.request_response("x", route="typed")
            with pytest.raises(StreamFailed):
                await client.request_response("x", route="fails")
        assert stats(bench, "typed") == RouteStats(requests=2, refused=2)
        assert stats(bench, "fails") == RouteStats(requests=2, failed=2)


async def test_a_deadline_that_passes_is_a_failure() -> None:
    bench = Bench(routes())
    async with bench.server, await bench.client() as client:
        with pytest.raises(TimeoutError):
            await client.request_response(route="late", timeout=1)
        await turns()
        assert stats(bench, "late").requests == 1
        assert stats(bench, "late").streams == 0


async def test_requests_without_a_route_count_under_an_empty_name() -> None:
    bench = Bench(routes())
    async with bench.server, await bench.client() as client:
        for route in ("nowhere", None):
            with pytest.raises(RequestInvalid):
                await client.request_response(route=route)
        assert stats(bench, "") == RouteStats(requests=2, refused=2)

        @bench.server._responder.router.default
        def serve(request: Request) -> str:
            return request.route

        assert await client.request_response(route="nowhere") == "nowhere"
        assert stats(bench, "") == RouteStats(requests=3, refused=2, elements=1)


async def test_dropped_requests_are_lost() -> None:
    router = routes()
    router.route("log")(late)
    server = Server(
        router, max_fire_and_forget=2, fire_and_forget_overflow="drop_newest", on_error=str
    )
    bench = Bench(router)
    bench.server = server
    async with bench.server, await bench.client() as client:
        for _ in range(5):
            await client.fire_and_forget(route="log")
        await turns()
        assert stats(bench, "log") == RouteStats(requests=5, lost=3)


async def test_a_server_counts_its_connections() -> None:
    bench = Bench(routes(), resume=Resumption(), limits=Limits())
    async with bench.server, await bench.client() as client, await bench.client() as other:
        assert await client.request_response(1, route="twice") == 2
        assert await other.request_response(1, route="twice") == 2
        found = bench.server.stats()
        assert (found.connections, found.suspended, found.refused_connections) == (2, 0, 0)
        bench.down = True
        bench.lose()
        await turns()
        assert bench.server.stats().suspended == 1
        await other.aclose()
        with pytest.raises(ConnectionLost):
            await other.request_response(1, route="twice")
