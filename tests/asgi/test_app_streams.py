"""All streams of an app: how they end when the server stops, and how many there may be."""

# pyright: reportUnknownLambdaType=false

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Response
from websockets.asyncio.client import connect

from reactive_aio import from_aiter, interval, just, never, range as numbers, run_until_signal
from reactive_aio.asgi import AppStreams, Counters, HttpRequest, ndjson, sse, stream, websocket
from reactive_aio.testing.probes import PublisherProbe
from tests.asgi.calls import Call, SocketCall
from tests.asgi.serving import Service, service

KINDS = pytest.mark.parametrize("kind", [sse, ndjson, stream])
STOPS = '{"status":503,"detail":"the server stops"}'


async def turns(count: int = 5) -> None:
    """Let the loop run what is due."""
    for _ in range(count):
        await asyncio.sleep(0)


async def opened(app: Any, **options: Any) -> Call:
    """A response of which one element has been sent."""
    call = Call(app, **options)
    await call.until(lambda: len(call.sent) >= 2)
    return call


# -- the end ---------------------------------------------------------------------------------------
async def test_an_event_stream_ends_without_complete_so_that_a_browser_reconnects() -> None:
    streams, counters, probe = AppStreams(), Counters(), PublisherProbe[int]()
    call = Call(streams.wrap(sse(probe, counters=counters, max_start_delay=0)))
    await probe.expect_request(1)
    probe.emit(1)
    await call.until(lambda: "data: 1" in call.body)
    streams.stop()
    await call.end()
    assert call.body == ":\n\ndata: 1\n\n"
    assert call.is_complete
    await probe.expect_cancel()
    assert (counters.open, counters.cancelled, counters.outstanding) == (0, 1, 0)
    assert repr(streams) == "<AppStreams: 0 open, stopping>"


async def test_lines_end_with_a_failure_since_their_end_would_be_completion() -> None:
    streams = AppStreams()
    app = streams.wrap(ndjson(just(1).concat_with(never()), max_start_delay=0))
    call = await opened(app)
    streams.stop()
    assert (await call.end()).body == f'1\n{{"$failure":{STOPS}}}\n'
    assert call.is_complete


@KINDS
async def test_what_has_not_begun_is_refused(kind: Any) -> None:
    """Such as a function that waits for a database, and the streams that follow."""
    streams = AppStreams()

    async def make(request: HttpRequest) -> Any:
        await asyncio.Event().wait()

    call = Call(streams.wrap(kind(make)))
    await turns()
    assert streams.open == 1
    streams.stop()
    later = Call(streams.wrap(kind(just(1))))
    for each in (call, later):
        assert (await each.end()).status == 503
        assert (each.body, each.headers["retry-after"]) == (STOPS, "5")


@pytest.mark.virtual_time
async def test_a_client_that_has_left_keeps_no_other_stream_from_its_end() -> None:
    streams, begun = AppStreams(), asyncio.Event()

    async def slow(_: HttpRequest) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            begun.set()
            await asyncio.sleep(2)

    left = Call(streams.wrap(ndjson(slow, max_start_delay=None)))
    await turns()
    left.disconnect()
    await begun.wait()
    other = await opened(streams.wrap(ndjson(just(1).concat_with(never()), max_start_delay=0)))
    streams.stop()
    assert (await other.end()).body == f'1\n{{"$failure":{STOPS}}}\n'
    await left.end()


async def test_a_response_that_has_not_started_ends_as_one_that_has() -> None:
    streams = AppStreams()
    events, lines = (Call(streams.wrap(kind(never()))) for kind in (sse, ndjson))
    await turns()
    streams.stop()
    assert ((await events.end()).status, events.body) == (200, ":\n\n")
    assert ((await lines.end()).status, lines.body) == (503, STOPS)


async def test_what_has_completed_is_still_sent() -> None:
    streams = AppStreams()
    app = streams.wrap(sse(just("x" * 5000, "y", "z"), encode=str))
    call = Call(app)
    call.pause()
    await turns()
    streams.stop()
    call.resume()
    assert (await call.end()).body.endswith("data: z\n\nevent: complete\ndata: {}\n\n")


@pytest.mark.virtual_time
async def test_a_client_that_does_not_read_is_not_waited_for() -> None:
    streams = AppStreams()
    call = await opened(streams.wrap(sse(interval(0.1), send_timeout=None)))
    socket = SocketCall(streams.wrap(websocket({"ticks": interval(0.1)}, send_timeout=None)))
    socket.send("subscribe", route="ticks", n=9)
    await socket.received(1)
    for each in (call, socket):
        each.pause()
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    streams.stop()
    for each in (call, socket):
        await each.end()
    assert asyncio.get_running_loop().time() - began < 3


@pytest.mark.virtual_time
async def test_streams_may_complete_within_the_time_of_grace() -> None:
    streams = AppStreams(grace=5)
    app = streams.wrap(sse(lambda request: interval(1).take(int(request.query["n"]))))
    short, long = [await opened(app, query=f"n={n}") for n in (4, 40)]
    streams.stop()
    assert (await Call(app, query="n=1").end()).status == 503
    assert (await short.end()).body.endswith("data: 3\n\nevent: complete\ndata: {}\n\n")
    assert "complete" not in (await long.end(within=6)).body
    streams.stop()


@pytest.mark.virtual_time
async def test_the_cleanup_of_a_coroutine_is_not_cut() -> None:
    streams, stages = AppStreams(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stages.append("begun")
            await asyncio.sleep(1)
            stages.append("ended")

    call = SocketCall(streams.wrap(websocket({"work": work})))
    call.send("subscribe", route="work", n=1)
    await turns(20)
    streams.stop()
    await call.end()
    assert stages == ["begun", "ended"]


async def test_a_socket_is_closed_after_the_reason() -> None:
    streams, cleaned = AppStreams(), list[str]()

    async def ticks() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("ticks")

    call = SocketCall(streams.wrap(websocket({"ticks": lambda: from_aiter(ticks)})))
    call.send("subscribe", route="ticks", n=9)
    await call.received(1)
    streams.stop()
    assert await call.closed() == 1012
    assert call.messages[-1] == {"type": "error", "status": 503, "detail": "the server stops"}
    assert cleaned == ["ticks"]
    late = SocketCall(streams.wrap(websocket({})))
    assert (await late.end()).problem["detail"] == "the server stops"


async def test_a_handshake_that_waits_is_closed_when_it_is_done() -> None:
    streams, may_enter = AppStreams(), asyncio.Event()

    async def authenticate(request: HttpRequest) -> bool:
        return await may_enter.wait()

    call = SocketCall(streams.wrap(websocket({}, authenticate=authenticate)))
    await turns()
    streams.stop()
    may_enter.set()
    assert await call.closed() == 1012


async def test_a_program_may_stop_the_streams_from_any_thread() -> None:
    streams = AppStreams()
    call = await opened(streams.wrap(sse(never(), max_start_delay=0)))
    await asyncio.to_thread(streams.stop)
    await call.end()
    assert streams.open == 0


async def test_an_app_may_start_again() -> None:
    """As the test clients of frameworks do."""
    streams = AppStreams()
    app = streams.wrap(sse(just(1)))
    for _ in range(2):
        lifespan = Call(app, kind="lifespan")
        lifespan.incoming.get_nowait()
        lifespan.incoming.put_nowait({"type": "lifespan.startup"})
        await lifespan.until(lambda lifespan=lifespan: lifespan.sent)
        assert (await Call(app).end()).status == 200
        streams.stop()
        lifespan.incoming.put_nowait({"type": "lifespan.shutdown"})
        await lifespan.end()


# -- signals ---------------------------------------------------------------------------------------
async def test_the_signal_that_stops_a_server_stops_its_streams() -> None:
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        streams = AppStreams()
        app = streams.wrap(sse(never(), max_start_delay=0))
        lifespan = Call(app, kind="lifespan")
        call = await opened(app)
        signal.raise_signal(signal.SIGTERM)
        await call.end()
        assert received == [signal.SIGTERM], "the server's own handler runs as well"
        lifespan.task.cancel()
        await asyncio.wait([lifespan.task])
        signal.raise_signal(signal.SIGTERM)
        assert received == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("process_goes_on")
@pytest.mark.parametrize("place", ["before", "after", "without a server"])
async def test_a_signal_that_drains_a_flow_stops_the_streams_as_well(place: str) -> None:
    """The flow begins before or after the app, or no server handles the signal."""
    received: list[int] = []
    if place != "without a server":
        signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    app = AppStreams().wrap(sse(never(), max_start_delay=0))
    drains: list[asyncio.Task[int]] = []
    if place == "before":
        drains.append(asyncio.create_task(run_until_signal(never())))
        await asyncio.sleep(0)
    lifespan = Call(app, kind="lifespan")
    call = await opened(app)
    if place != "before":
        drains.append(asyncio.create_task(run_until_signal(never())))
        await asyncio.sleep(0)
    signal.raise_signal(signal.SIGTERM)
    assert await drains[0] == 0
    await call.end()
    assert received == [signal.SIGTERM] * (place == "after")
    lifespan.task.cancel()
    await asyncio.wait([lifespan.task])


async def test_without_a_handler_a_signal_still_ends_the_program() -> None:
    app = AppStreams().wrap(sse(just(1)))
    await Call(app).end()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


# -- limits ----------------------------------------------------------------------------------------
async def test_all_endpoints_share_the_places_of_the_app() -> None:
    streams = AppStreams(max_streams=2)

    def app() -> Any:  # as a function of FastAPI returns a new one for each request
        return streams.wrap(sse(never(), max_start_delay=0))

    calls = [await opened(app()), SocketCall(streams.wrap(websocket({})))]
    await calls[1].until(lambda: calls[1].sent)
    refused = await Call(app()).end()
    assert refused.status == 503
    assert refused.headers["retry-after"] == "5"
    assert refused.problem["detail"] == "all 2 streams are in use"
    await calls[0].close()
    last = await opened(app())
    for each in (last, calls[1]):
        await each.close()
    assert streams.open == 0


QUIET = sse(never(), max_start_delay=0)
LIMITED: dict[str, Any] = {
    "sse": lambda: sse(never(), max_start_delay=0, max_per_client=1),
    "websocket": lambda: websocket({}, max_per_client=1),
    "an app": lambda: AppStreams(max_per_client=1).wrap(QUIET),
}


@pytest.mark.parametrize("make", LIMITED.values(), ids=LIMITED)
async def test_one_client_has_so_many_streams(make: Any) -> None:
    kind = "websocket" if make is LIMITED["websocket"] else "http"
    what = "sockets" if kind == "websocket" else "streams"
    app = make()
    ours, next_to_us, other = ("2001:db8::1", 5), ("2001:db8::2", 6), ("10.0.0.1", 5)
    async with AsyncExitStack() as closing:
        for client in (ours, other):
            call = Call(app, kind=kind, client=client)
            closing.push_async_callback(call.close)
            await call.until(lambda call=call: call.sent)
            assert call.sent[0].get("status", 200) == 200
        refused = await Call(app, kind=kind, client=next_to_us).end()
        assert (refused.status, refused.headers["retry-after"]) == (429, "5")
        assert (
            refused.problem["detail"]
            == f"this client has 1 {what}, its most (max_per_client): close one"
        )
        unknown = [Call(app, kind=kind, client=None) for _ in range(2)]
        for each in unknown:
            closing.push_async_callback(each.close)
            await each.until(lambda each=each: each.sent)
    again = Call(app, kind=kind, client=ours)
    await again.until(lambda: again.sent)
    await again.close()


async def test_a_key_tells_clients_apart() -> None:
    app = sse(
        never(),
        max_start_delay=0,
        max_per_client=1,
        client_key=lambda request: request.headers["x-user"],
    )
    first = await opened(app, headers={"x-user": "a"})
    assert (await Call(app, headers={"x-user": "a"}).end()).status == 429
    second = await opened(app, headers={"x-user": "b"})
    for each in (first, second):
        await each.close()


async def test_a_key_function_that_fails_is_an_error_of_the_server() -> None:
    errors: list[BaseException] = []
    options = dict[str, Any](max_per_client=1, client_key=lambda _: 1 / 0, on_error=errors.append)
    assert (await Call(sse(never(), **options)).end()).status == 500
    assert (await SocketCall(websocket({}, **options)).end()).status == 500
    assert [type(each) for each in errors] == [ZeroDivisionError] * 2


async def test_a_refused_socket_is_told_to_try_later_without_denial_responses() -> None:
    app = websocket({}, max_sockets=1)
    first = SocketCall(app)
    await first.until(lambda: first.sent)
    assert await SocketCall(app, denial=False).closed() == 1013
    await first.close()


@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_clients_that_do_not_read_do_not_keep_all_places(kind: str) -> None:
    """Three such clients were a 503 for all others, for as long as they liked."""
    ticks = interval(0.1)
    app = AppStreams(max_streams=3).wrap(sse(ticks) if kind == "http" else websocket({"x": ticks}))
    slow = [Call(app, kind=kind, query="route=x&n=999") for _ in range(3)]
    for each in slow:
        await each.until(lambda each=each: len(each.sent) > 1)
        each.pause()
    assert (await Call(app, kind=kind).end()).status == 503
    await asyncio.wait([each.task for each in slow], timeout=30)
    served = Call(app, kind=kind)
    await served.until(lambda: served.sent)
    assert served.sent[0].get("status", 200) == 200
    await served.close()
    assert all(each.task.done() for each in slow)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"grace": -1}, "AppStreams: grace"),
        ({"max_streams": 0}, "AppStreams: max_streams"),
        ({"max_per_client": 0}, "AppStreams: max_per_client"),
        ({"client_key": 5}, "AppStreams: client_key"),
    ],
)
def test_a_mistake_raises_at_once(options: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        AppStreams(**options)


NO_APPS = list[Any]([5, sse, lambda scope: None])


@pytest.mark.parametrize("wrong", NO_APPS)
def test_what_is_no_app_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match="AppStreams: app"):
        AppStreams().wrap(wrong)


# -- with real servers -----------------------------------------------------------------------------
async def stop_with_clients(running: Service, count: int) -> list[str]:
    """Stop the server while *count* clients read; return how each kind of stream has ended."""
    ends: list[Any] = []
    ready = asyncio.Semaphore(0)

    limits = httpx.Limits(max_connections=None)
    http = httpx.AsyncClient(timeout=60, trust_env=False, limits=limits, verify=False)

    async def lines(path: str) -> str:
        body = ""
        async with http.stream("GET", f"{running.url}{path}") as response:
            async for text in response.aiter_text():
                if body == "":
                    ready.release()
                body += text
        return body

    async def socket() -> str:
        url = f"ws://127.0.0.1:{running.port}/live?route=ticks&n=9999"
        async with connect(url, proxy=None, open_timeout=60) as messages:
            await messages.recv()
            ready.release()
            await messages.wait_closed()
            return str(messages.close_code)

    kinds: list[Any] = [lambda: lines("/sse"), lambda: lines("/lines"), socket]
    async with http:
        ends = [asyncio.ensure_future(kinds[each % 3]()) for each in range(count)]
        for _ in range(count):
            await ready.acquire()
        await asyncio.sleep(0)
        running.process.terminate()
        async with asyncio.timeout(20 + count / 20):
            return [str(each) for each in await asyncio.gather(*ends)]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Service]:
    with service("stopping", "asyncio", request.param, logs=True) as running:
        running.get("/stat")
        yield running


async def stopped(running: Service, count: int) -> None:
    ends = await stop_with_clients(running, count)
    _, log = await asyncio.to_thread(running.process.communicate, timeout=60)
    for events, text, code in zip(ends[::3], ends[1::3], ends[2::3], strict=False):
        assert events.endswith("\n\n")
        assert "complete" not in events
        assert text.endswith(f'{{"$failure":{STOPS}}}\n')
        assert code == "1012"
    assert b"Traceback" not in log
    assert b"ERROR" not in log


SERVERS = ["websockets-sansio", "hypercorn"]


@pytest.mark.slow
@pytest.mark.asyncio(loop_factories=["asyncio"])
@pytest.mark.parametrize("server", SERVERS, indirect=True)
async def test_a_server_that_is_stopped_ends_its_streams_and_logs_nothing(server: Service) -> None:
    await stopped(server, 12)


@pytest.mark.thorough
@pytest.mark.asyncio(loop_factories=["asyncio"])
@pytest.mark.parametrize("server", ["websockets-sansio"], indirect=True)
async def test_a_server_with_a_thousand_streams_stops_at_once(server: Service) -> None:
    await stopped(server, 999)


async def test_functions_of_fastapi_are_covered_by_the_middleware() -> None:
    streams = AppStreams()
    app = FastAPI()
    app.add_middleware(streams.wrap)

    @app.get("/numbers")
    async def serve() -> Response:  # pyright: ignore[reportUnusedFunction]
        return sse(numbers(3).concat_with(never()), max_start_delay=0)

    call = Call(app, path="/numbers")
    await call.until(lambda: "data: 2" in call.body)
    streams.stop()
    assert "complete" not in (await call.end()).body
