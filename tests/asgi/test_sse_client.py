"""from_sse: reading, resuming and failing, with our server and with scripted ones."""

# pyright: reportUnknownLambdaType=false

import asyncio
import gzip
import itertools
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from reactive_aio import RetryPolicy
from reactive_aio.asgi import Event, PeerFailed, SocketLost, from_sse
from reactive_aio.errors import FrameTooLong
from reactive_aio.testing.probes import SubscriberProbe
from tests.asgi.serving import Service, service
from tests.harness.outages import proxy_of
from tests.recipes.waiting import until

QUICKLY = RetryPolicy(attempts=3, only=ConnectionError, reset=True)
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n"


@pytest.fixture(scope="module")
def serving() -> Iterator[Service]:
    with service("starlette") as running:
        running.get("/stat")
        yield running


class Script:
    """A server that answers each request with the next of some bytes, and closes the connection."""

    def __init__(self, *answers: bytes) -> None:
        self.requests: list[str] = []
        self.url = ""
        self.before_answer: Callable[[], object] = lambda: None
        self._answers = [*answers]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        self.requests.append(head)
        _, _, length = head.partition("content-length: ")
        await reader.readexactly(int(length.split("\r\n")[0] or 0))
        self.before_answer()
        writer.write(self._answers.pop(0))
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def scripted(*answers: bytes) -> AsyncGenerator[Script]:
    script = Script(*answers)
    async with await asyncio.start_server(script.answer, "127.0.0.1", 0) as server:
        script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/events"
        yield script


async def data_of(url: str, **options: Any) -> list[str]:
    return await from_sse(url, **options).map(lambda event: event.data).to_list(limit=99)


# -- reading ---------------------------------------------------------------------------------------
async def test_events_of_a_server_are_a_flow(serving: Service) -> None:
    events = await from_sse(f"{serving.url}/after").to_list(limit=9)
    assert events == [Event(str(each), id=str(each)) for each in range(6)]


async def test_a_flow_that_ends_early_closes_the_connection(serving: Service) -> None:
    async with from_sse(f"{serving.url}/sse").stream() as stream:
        async for _ in stream:
            assert (await serving.stat())["open"] == 1
            break
    assert (await serving.settles(0))["outstanding"] == 0


async def test_a_subscriber_that_requests_no_more_stops_the_server(serving: Service) -> None:
    probe = SubscriberProbe[Event[str]](request=1)
    from_sse(f"{serving.url}/sse").subscribe(probe)
    await probe.next_element(within=20)
    before, now = -1, (await serving.stat())["elements"]
    while before < now:  # what the kernel buffers
        before, now = now, (await serving.stat())["elements"]
    assert (await serving.stat())["open"] == 1
    assert len(probe.elements) == 1
    probe.cancel()
    await serving.settles(0)


async def test_the_request_has_the_method_body_and_headers_that_are_given() -> None:
    async with scripted(STREAM + b"data: 1\n\n") as script:
        options: dict[str, Any] = {"method": "POST", "json": {"a": 1}, "headers": {"X-Key": "k"}}
        assert await data_of(script.url, last_event_id="é7", **options) == ["1"]
    [head] = script.requests
    assert head.startswith("post /events http/1.1\r\n")
    for header in ("x-key: k", "accept: text/event-stream", "accept-encoding: identity",
                   "last-event-id: é7", "content-type: application/json"):  # fmt: skip
        assert f"\r\n{header}\r\n" in head


async def test_the_last_event_id_may_be_a_number_as_in_an_event() -> None:
    async with scripted(STREAM) as script:
        assert await data_of(script.url, last_event_id=5) == []
    assert "\r\nlast-event-id: 5\r\n" in script.requests[0]


# -- the end ---------------------------------------------------------------------------------------
async def test_without_retry_the_end_of_the_response_completes() -> None:
    async with scripted(STREAM + b"data: 1\n\ndata: cut") as script:
        assert await data_of(script.url) == ["1"]


async def test_the_event_complete_of_our_server_is_the_end_and_not_an_element() -> None:
    completed = STREAM + b"data: 1\n\nevent: complete\ndata: {}\n\ndata: 2\n\n"
    async with scripted(completed) as script:
        assert await data_of(script.url, retry=5) == ["1"]
    async with scripted(STREAM + b"event: complete\ndata: 3 files\n\n") as script:
        assert await data_of(script.url) == ["3 files"], "other events of that type are elements"


async def test_204_completes() -> None:
    async with scripted(b"HTTP/1.1 204 No Content\r\n\r\n") as script:
        assert await data_of(script.url, retry=5) == []


# -- reconnecting ----------------------------------------------------------------------------------
async def test_a_client_resumes_after_the_last_event_when_the_response_ends(
    serving: Service,
) -> None:
    assert await data_of(f"{serving.url}/after?n=2", retry=QUICKLY) == [*"012345"]
    with pytest.raises(SocketLost, match="without an event `complete`"):
        await data_of(f"{serving.url}/after?n=2", retry=RetryPolicy(attempts=2))


def answering(*answers: bytes) -> tuple[httpx.AsyncClient, list[float]]:
    """A client whose requests receive the next of *answers*, and the times of its requests."""
    left, times = [*answers], list[float]()

    def answer(request: httpx.Request) -> httpx.Response:
        times.append(asyncio.get_running_loop().time())
        head, _, body = left.pop(0).partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ") for line in lines)
        return httpx.Response(int(status.split()[1]), headers=headers, content=body)

    return httpx.AsyncClient(transport=httpx.MockTransport(answer)), times


@pytest.mark.virtual_time
async def test_a_number_of_attempts_counts_failures_in_a_row() -> None:
    """A proxy may end each response after an event; a browser goes on, and so does this."""
    nothing, event = STREAM, STREAM + b"data: 1\n\n"
    answers = [event, nothing, event, event, nothing, nothing]
    client, times = answering(*answers)
    received: list[str] = []
    async with client:
        events = from_sse("http://x/", retry=3, client=client)
        with pytest.raises(SocketLost, match="without an event `complete`"):
            await events.for_each(lambda event: received.append(event.data))
    assert len(received) == 3
    # As in a browser, a server that ends each response at once is not asked in a busy loop.
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert waits == pytest.approx([3] * 5, abs=0.1)


async def test_a_client_resumes_after_the_last_event_when_the_connection_is_lost() -> None:
    cut = STREAM[:-2] + b"content-length: 1000\r\n\r\nid: 5\ndata: 1\n\nid: 6\ndata: cut"
    async with scripted(cut, STREAM + b"event: complete\ndata: {}\n\n") as script:
        assert await data_of(script.url, retry=QUICKLY) == ["1"]
    first, second = script.requests
    assert "last-event-id" not in first
    assert "\r\nlast-event-id: 5\r\n" in second


async def test_a_client_waits_as_long_as_the_server_has_set() -> None:
    policy = RetryPolicy(attempts=5, within=50, only=SocketLost)
    async with scripted(STREAM + b"retry: 90000\ndata: 1\n\n") as script:
        with pytest.raises(SocketLost, match="without an event"):
            await data_of(script.url, retry=policy)
    assert len(script.requests) == 1, "the delay exceeds the time budget of the policy"


@pytest.mark.virtual_time
async def test_the_delay_that_a_server_has_set_holds_for_all_further_requests() -> None:
    """As the reconnection time of an `EventSource`."""
    retry_after = b"HTTP/1.1 503 Busy\r\nretry-after: 300\r\ncontent-length: 0\r\n\r\n"
    answers = [
        *[STREAM + b"retry: 90000\ndata: 1\n\n", STREAM + b"data: 2\n\n", retry_after],
        *[STREAM + b"data: 3\n\n", STREAM + b"event: complete\ndata: {}\n\n"],
    ]
    client, times = answering(*answers)
    async with client:
        policy = RetryPolicy(attempts=9, jitter=0)
        assert await data_of("http://x/", retry=policy, client=client) == ["1", "2", "3"]
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert waits == pytest.approx([90, 90, 300, 90], abs=0.1)


@pytest.mark.virtual_time
async def test_a_server_cannot_set_a_delay_of_years() -> None:
    busy = b"HTTP/1.1 503 Busy\r\nretry-after: 999999999\r\ncontent-length: 0\r\n\r\n"
    end = STREAM + b"event: complete\ndata: {}\n\n"
    client, times = answering(STREAM + b"retry: 999999999999\ndata: 1\n\n", busy, end)
    async with client:
        assert await data_of("http://x/", retry=RetryPolicy(attempts=9), client=client) == ["1"]
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert waits == pytest.approx([3600, 3600], abs=0.1)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (b"id: 5\ndata: 1\n\nid: 7\n\n", "last-event-id: 7"),
        (b"id: 7\n\n: no more\n\n", "last-event-id: 7"),
        (b"id: 7\n\ndata: 1\n\nid: 8\n", "last-event-id: 7"),
        (b"id: a\tb\n\ndata: 1\n\n", "last-event-id: a\tb"),
    ],
    ids=["after an element", "alone", "before an event that is cut off", "with a tab"],
)
async def test_an_id_without_data_is_the_last_event_id(events: bytes, expected: str) -> None:
    """HTML 9.2.6 sets it before it looks for data."""
    async with scripted(STREAM + events, STREAM + b"event: complete\ndata: {}\n\n") as script:
        await data_of(script.url, retry=QUICKLY)
    assert f"\r\n{expected}\r\n" in script.requests[1]


# -- errors ----------------------------------------------------------------------------------------
REFUSALS: dict[str, tuple[bytes, int, str]] = {
    "a status": (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, "Not Found"),
    "a problem": (
        b'HTTP/1.1 403 Forbidden\r\ncontent-length: 24\r\n\r\n{"detail":"not for you"} ',
        403,
        "not for you",
    ),
    "another content": (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n",
        502,
        "the content type is text/html, and must be text/event-stream",
    ),
    "a compressed stream": (
        STREAM[:-2] + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"data: 1\n\n"),
        502,
        "the content encoding is gzip; only identity is read",
    ),
    "a stream that is compressed twice": (
        STREAM[:-2] + b"content-encoding: identity, br\r\n\r\n",
        502,
        "the content encoding is identity, br; only identity is read",
    ),
    "a status with a compressed body": (
        b"HTTP/1.1 500 Broken\r\ncontent-encoding: deflate\r\n\r\n" + zlib.compress(b"x" * 9999),
        500,
        "Broken",
    ),
    "an event": (
        STREAM + b'event: failure\ndata: {"status":409,"detail":"too late"}\n\n',
        409,
        "too late",
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_what_the_server_refuses_is_not_repeated(refusal: tuple[bytes, int, str]) -> None:
    answer, status, detail = refusal
    async with scripted(answer) as script:
        with pytest.raises(PeerFailed, match=f"failed: {detail}\n") as raised:
            await data_of(script.url, retry=QUICKLY)
    assert (raised.value.status, raised.value.detail) == (status, detail)
    assert len(script.requests) == 1


async def test_a_port_where_nothing_listens_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError, match=r"http://127.0.0.1:1/: the connection is lost"):
        await data_of("http://127.0.0.1:1/")


async def test_a_silent_server_is_a_lost_connection(serving: Service) -> None:
    async with proxy_of(f"{serving.url}/sse") as proxy:
        events = from_sse(proxy.url, silence=0.05).do_on_next(lambda _: proxy.freeze())
        with pytest.raises(SocketLost, match=r"no byte within 0.05 s \(silence=\)"):
            await events.run()
        proxy.thaw()
        await until(lambda: not proxy.open)


async def test_a_server_that_answers_byte_by_byte_is_a_lost_connection() -> None:
    """Each byte comes within the time of silence; the answer does not."""
    endless = STREAM[:-2] + b"x-y: " + b"x" * 10_000
    async with scripted(endless) as script, proxy_of(script.url) as proxy:
        script.before_answer = lambda: proxy.delay(0.01, piece=1)
        with pytest.raises(SocketLost, match=r"no answer within 0.2 s \(timeout= and silence=\)"):
            await data_of(proxy.url, timeout=0.1, silence=0.1)
        await until(lambda: not proxy.open)


@pytest.mark.parametrize("id", [b" 7 ", b"7\x0b", b"\xc2\xa07", b"\xe2\x80\xa87"])
async def test_any_id_of_a_server_can_be_sent_back(id: bytes) -> None:
    end = STREAM + b"event: complete\ndata: {}\n\n"
    async with scripted(STREAM + b"id:" + id + b"\ndata: 1\n\n", end) as script:
        assert await data_of(script.url, retry=QUICKLY) == ["1"]
    assert len(script.requests) == 2


async def test_an_event_that_is_too_long_fails_the_flow() -> None:
    async with scripted(STREAM + b"data: 1\n\ndata: " + b"x" * 2000) as script:
        with pytest.raises(FrameTooLong, match="from_sse: more than limit=100 bytes"):
            await data_of(script.url, max_event=100)


# -- redirects -------------------------------------------------------------------------------------
def redirecting(places: dict[str, str], status: int = 307) -> tuple[Any, list[httpx.Request]]:
    """A transport with redirects from URLs to others, and the requests that it has received."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        place = places.get(str(request.url))
        if place is not None:
            return httpx.Response(status, headers={"location": place})
        stream = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=stream, content=b"id: 7\ndata: 1\n\n")

    return httpx.MockTransport(answer), seen


SECRETS = {"authorization": "a", "Cookie": "c=1", "x-api-key": "k", "proxy-authorization": "p"}
SENT = {"host", "accept", "accept-encoding", "cache-control", "last-event-id"}


@pytest.mark.parametrize(
    "other", ["http://y/", "http://x:8080/", "https://x/", "http://y.x/", "//y/", "http://u:p@y/"]
)
async def test_nothing_of_the_callers_follows_a_redirect_to_another_origin(other: str) -> None:
    transport, seen = redirecting({"http://x/": other, "http://y/": "http://x/back"})
    client = httpx.AsyncClient(
        transport=transport,
        follow_redirects=True,
        headers={"x-tenant": "t"},
        cookies={"session": "s"},
        auth=("user", "password"),
    )
    async with client:
        events = from_sse("http://x/", last_event_id=5, headers=SECRETS, client=client)
        assert [each.data for each in await events.to_list(limit=2)] == ["1"]
    assert {"x-api-key", "x-tenant", "authorization", "cookie"} <= {*seen[0].headers}
    for request in seen[1:]:
        of_url = {"authorization"} if "u:p@" in str(request.url) else set[str]()
        assert {*request.headers} <= SENT | of_url, "also when it leads back"
        assert request.headers["last-event-id"] == "5"


async def test_a_redirect_within_the_origin_is_followed_with_all_headers() -> None:
    transport, seen = redirecting({"http://x/": "/next", "http://x/next": "http://x:80/last"})
    async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
        await from_sse("http://x/", headers=SECRETS, client=client).run()
    for request in seen:
        assert {name: request.headers[name] for name in SECRETS} == SECRETS
    assert len(seen) == 3


REDIRECTS: dict[str, tuple[bool, dict[str, str], dict[str, Any], int]] = {
    "by the default": (False, {"http://x/": "http://x/next?key=pw"}, {}, 1),
    "with a body": (True, {"http://x/": "http://y/"}, {"method": "POST", "json": {"key": 1}}, 1),
    "in a circle": (True, {"http://x/": "http://x/"}, {}, 21),
}


@pytest.mark.parametrize("case", REDIRECTS.values(), ids=REDIRECTS)
async def test_a_redirect_that_is_not_followed_says_where_it_leads(
    case: tuple[bool, dict[str, str], dict[str, Any], int],
) -> None:
    follows, places, options, count = case
    transport, seen = redirecting(places)
    async with httpx.AsyncClient(transport=transport, follow_redirects=follows) as client:
        with pytest.raises(PeerFailed, match=r"it redirects to http://.*not followed") as raised:
            await from_sse("http://x/", client=client, retry=QUICKLY, **options).run()
    assert raised.value.status == 307
    assert "pw" not in str(raised.value)
    assert len(seen) == count
