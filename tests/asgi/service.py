"""Services for the tests, each in its own process.

The command is `python -m tests.asgi.service fd app loop server`.
"""

import asyncio
import gc
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from reactive_aio import Flow, interval, range as numbers
from reactive_aio.asgi import (
    AppStreams,
    Counters,
    HttpRequest,
    javascript,
    ndjson,
    sse,
    stream,
    websocket,
)
from reactive_aio.rsocket import Router

PAGE = Path(__file__).with_name("page.html")
ENDLESS = numbers(2**60).map(lambda each: {"number": each, "padding": "x" * 4000})

counters = Counters()
router = Router()
published: list[Any] = []


@router.route("endless")
def endless() -> Flow[dict[str, Any]]:
    """A source that never waits."""
    return ENDLESS


@router.route("count.{n}")
def count(n: int) -> Flow[int]:
    return numbers(n)


@router.route("ticks")
def ticks() -> Flow[int]:
    return interval(0.02)


@router.route("shout")
def shout(incoming: Flow[str]) -> Flow[str]:
    return incoming.map(str.upper)


@router.route("collect")
async def collect(incoming: Flow[Any]) -> list[Any]:
    return await incoming.take(3).to_list(limit=3)


@router.route("fails")
async def fails() -> AsyncIterator[int]:
    yield 1
    raise ValueError("secret")


def forget(error: BaseException) -> None:
    """Ignore an error that a test provokes."""


def after(request: HttpRequest) -> Flow[int]:
    """Resume after the last event that the client received."""
    return numbers(int(request.last_event_id or -1) + 1, 6)


def counted(request: HttpRequest) -> Flow[int]:
    return numbers(int(request.path_params["n"]))


def used() -> int:
    """KiB in use."""
    text = Path("/proc/self/status").read_text("ascii")
    return int(text.partition("VmRSS:")[2].split()[0])


async def status(request: Request) -> JSONResponse:
    """Return the counters, and the number of objects and tasks that are alive."""
    gc.collect()
    memory = used()
    kinds = {
        "BodyWriter",
        "SocketSubscriber",
        "StreamMultiplexer",
        "SyncIsland",
        "TaskIsland",
    }
    alive = sum(type(each).__name__ in kinds for each in gc.get_objects())
    tasks = len(asyncio.all_tasks())
    return JSONResponse(asdict(counters) | {"memory": memory, "tasks": tasks, "alive": alive})


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(PAGE.read_text("utf-8"))


async def endpoint_per_request(request: Request) -> Any:
    """Return an endpoint that is made for this request, as a function of Starlette may."""
    return ndjson(numbers(int(request.path_params["n"])))


ROUTES: list[BaseRoute] = [
    Route("/stat", status),
    Route("/page", page),
    Route("/reactive.js", endpoint=javascript()),
    Route("/sse", endpoint=sse(ENDLESS, counters=counters)),
    Route("/ndjson", endpoint=ndjson(ENDLESS, counters=counters)),
    Route("/count/{n:int}", endpoint=stream(counted)),
    Route("/own/{n:int}", endpoint_per_request),
    Route("/after", endpoint=sse(after, id=lambda each: each, retry=0.01, count_parameter="n")),
    Route("/fails", endpoint=ndjson(lambda _: fails(), on_error=forget)),
    Mount("/mounted", app=ndjson(numbers(3))),
    WebSocketRoute("/live", endpoint=websocket(router, counters=counters, on_error=forget)),
]


fast = FastAPI(routes=[*ROUTES])


@fast.get("/fast/{n}")
async def typed(n: int) -> Response:
    return ndjson(numbers(n))


async def passed_on(request: Request, call_next: Any) -> Any:
    return await call_next(request)


# Both wrap the messages between the server and the endpoint.
MIDDLEWARE = [Middleware(GZipMiddleware), Middleware(BaseHTTPMiddleware, dispatch=passed_on)]

TICKS: list[BaseRoute] = [
    Route("/stat", status),
    Route("/sse", endpoint=sse(interval(1))),
    Route("/lines", endpoint=ndjson(interval(1))),
    WebSocketRoute("/live", endpoint=websocket({"ticks": interval(1)})),
]
ENDING = [Middleware(AppStreams().wrap)]

APPS: dict[str, Any] = {
    "starlette": Starlette(routes=ROUTES),
    "middleware": Starlette(routes=ROUTES, middleware=MIDDLEWARE),
    "fastapi": fast,
    "bare": ndjson(numbers(3)),
    "stopping": Starlette(routes=TICKS, middleware=ENDING),
}


def serve_by_uvicorn(fd: int, app: Any, loop: Any, websockets: Any) -> None:
    # No pings: the raw clients of the tests do not answer them.
    config = uvicorn.Config(
        app,
        loop=loop,
        ws=websockets,
        log_level="error",
        timeout_graceful_shutdown=2,
        ws_ping_interval=None,
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=fd)])


def serve_by_hypercorn(fd: int, app: Any, loop: str) -> None:
    import hypercorn

    serve: Any = import_module("hypercorn.asyncio").serve
    config = hypercorn.Config()
    config.bind = [f"fd://{fd}"]
    config.loglevel = "ERROR"
    config.graceful_timeout = 2
    factory: Any = asyncio.new_event_loop
    if loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(app, config))


def main(fd: str, app: str, loop: str, server: str) -> None:
    """Serve *app* by ``hypercorn``, or by uvicorn with the WebSockets of *server*."""
    if server == "hypercorn":
        serve_by_hypercorn(int(fd), APPS[app], loop)
    else:
        serve_by_uvicorn(int(fd), APPS[app], loop, server)


if __name__ == "__main__":
    main(*sys.argv[1:])
