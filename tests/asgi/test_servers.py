"""Endpoints under uvicorn and hypercorn: in Starlette, in FastAPI and alone, on both loops.

uvicorn is served with each of its implementations of WebSockets, hypercorn with HTTP/2 as well.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.asgi.serving import Service, service

pytestmark = pytest.mark.slow

on_one_loop = pytest.mark.asyncio(loop_factories=["asyncio"])


SERVED = [
    pytest.param("starlette asyncio websockets", marks=pytest.mark.thorough),
    "middleware asyncio wsproto",
    "fastapi uvloop websockets-sansio",
    pytest.param("starlette asyncio hypercorn", marks=pytest.mark.thorough),
]


@pytest.fixture(scope="module", params=SERVED)
def serving(request: pytest.FixtureRequest) -> Iterator[Service]:
    app, loop, server = request.param.split()
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    with service(app, loop, server) as running:
        running.get("/stat")
        yield running


def client(serving: Service) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=serving.url, timeout=40, trust_env=False)


@on_one_loop
async def test_a_response_is_complete(serving: Service) -> None:
    async with client(serving) as http:
        lines = await http.get("/count/1000")
        assert [json.loads(line) for line in lines.text.splitlines()] == [*range(1000)]
        events = await http.get("/count/2", headers={"accept": "text/event-stream"})
        assert events.text == ":\n\ndata: 0\n\ndata: 1\n\nevent: complete\ndata: {}\n\n"
        head = await http.head("/count/1000")
        assert (head.status_code, head.content) == (200, b"")
        assert (await http.post("/count/1000")).status_code == 405


@on_one_loop
async def test_functions_and_mounts_serve_endpoints(serving: Service) -> None:
    async with client(serving) as http:
        assert (await http.get("/own/3")).text == "0\n1\n2\n"
        assert (await http.get("/mounted/")).text == "0\n1\n2\n"
        assert (await http.get("/reactive.js")).headers["etag"]


@on_one_loop
async def test_errors_are_sent_to_the_client(serving: Service) -> None:
    async with client(serving) as http:
        failing = await http.get("/fails")
        assert failing.text == '1\n{"$failure":{"status":500,"detail":"the stream failed"}}\n'
        wrong = await http.get("/after", params={"n": "none"})
        assert wrong.status_code == 400
        assert wrong.headers["content-type"] == "application/problem+json"


@on_one_loop
async def test_events_resume_after_the_last_one_received(serving: Service) -> None:
    async with client(serving) as http:
        first = await http.get("/after", params={"n": 4})
        assert "id: 3\ndata: 3\n\n" in first.text
        second = await http.get("/after", headers={"last-event-id": "3"})
        assert second.text == (
            "retry: 10\n\nid: 4\ndata: 4\n\nid: 5\ndata: 5\n\nevent: complete\ndata: {}\n\n"
        )
        third = await http.get("/after", headers={"last-event-id": "5"})
        assert third.status_code == 204


@pytest.mark.parametrize("path", ["/sse", "/ndjson"])
@on_one_loop
async def test_a_disconnect_from_an_endless_stream_cancels_it(serving: Service, path: str) -> None:
    """The source never waits; the server must keep answering all the same."""
    async with client(serving) as http, http.stream("GET", path) as response:
        async for _ in response.aiter_bytes():
            assert (await serving.stat())["open"] == 1
            break
    assert (await serving.settles(0))["outstanding"] == 0


async def send(socket: ClientConnection, type: str, **members: Any) -> None:
    await socket.send(json.dumps({"type": type, "id": 1, **members}))


def live(serving: Service, query: str = "", **options: Any) -> Any:
    return connect(
        f"ws://127.0.0.1:{serving.port}/live{query}", proxy=None, close_timeout=0.2, **options
    )


@on_one_loop
async def test_a_socket_carries_streams(serving: Service) -> None:
    async with live(serving, subprotocols=["reactive-streams.v1"]) as socket:
        assert socket.subprotocol == "reactive-streams.v1"
        await send(socket, "subscribe", route="count.3", n=2)
        got = [json.loads(await socket.recv()) for _ in range(2)]
        assert [each["value"] for each in got] == [0, 1]
        await send(socket, "request", n=1)
        assert json.loads(await socket.recv())["value"] == 2
        assert json.loads(await socket.recv())["type"] == "complete"


@on_one_loop
async def test_a_url_with_a_route_is_a_stream(serving: Service) -> None:
    async with live(serving, "?route=count.9&n=2") as socket:
        assert json.loads(await socket.recv()) == {"type": "next", "id": 0, "value": 0}


@on_one_loop
async def test_a_handshake_is_refused_with_a_status(serving: Service) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await live(serving, "?route=count.9&n=0")
    assert refused.value.response.status_code == 400
    with pytest.raises(InvalidStatus) as refused:
        await live(serving, origin="http://elsewhere")
    assert refused.value.response.status_code == 403


@on_one_loop
async def test_closing_a_socket_cancels_its_streams(serving: Service) -> None:
    async with live(serving) as socket:
        await send(socket, "subscribe", route="endless", n=2**53 - 1)
        await socket.recv()
        assert (await serving.stat())["open"] == 1
    assert (await serving.settles(0))["outstanding"] == 0


@pytest.mark.parametrize("serving", ["starlette asyncio hypercorn"], indirect=True)
@on_one_loop
async def test_streams_over_http2_are_complete_or_cancelled(serving: Service) -> None:
    options: dict[str, Any] = {"http1": False, "http2": True, "timeout": 40, "trust_env": False}
    async with httpx.AsyncClient(base_url=serving.url, **options) as http:
        counted, listed = await asyncio.gather(http.get("/count/2000"), http.get("/own/3"))
        assert counted.http_version == "HTTP/2"
        assert [json.loads(line) for line in counted.text.splitlines()] == [*range(2000)]
        assert listed.text == "0\n1\n2\n"
        async with http.stream("GET", "/ndjson") as response:
            async for _ in response.aiter_bytes():
                assert (await serving.stat())["open"] == 1
                break
    # httpx resets no stream: what cancels it is the end of the connection.
    assert (await serving.settles(0))["outstanding"] == 0


@on_one_loop
async def test_a_message_that_is_not_json_closes_the_socket(serving: Service) -> None:
    async with live(serving) as socket:
        await socket.send("{")
        assert json.loads(await socket.recv())["status"] == 400
        await asyncio.wait_for(socket.wait_closed(), 20)
        assert socket.close_code == 1007


def test_an_endpoint_is_served_without_a_framework() -> None:
    with service("bare") as running:
        assert running.get("/") == b"0\n1\n2\n"


def test_a_function_of_fastapi_may_return_an_endpoint() -> None:
    with service("fastapi") as running:
        assert running.get("/fast/3") == b"0\n1\n2\n"
