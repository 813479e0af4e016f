"""Services for the tests, in processes of their own: `python -m tests.asgi.service fd app loop`."""

import asyncio
import gc
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
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
from reactive_aio.asgi import HttpRequest, Tally, javascript, ndjson, sse, stream, websocket
from reactive_aio.rsocket import Router

PAGE = Path(__file__).with_name("page.html")
ENDLESS = numbers(2**60).map(lambda each: {"number": each, "padding": "x" * 4000})

tally = Tally()
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
    """Errors are provoked here."""


def after(request: HttpRequest) -> Flow[int]:
    """Goes on behind the last event that the client has had."""
    return numbers(int(request.last_event_id or -1) + 1, 6)


def counted(request: HttpRequest) -> Flow[int]:
    return numbers(int(request.path_params["n"]))


def used() -> int:
    """KiB in use."""
    text = Path("/proc/self/status").read_text("ascii")
    return int(text.partition("VmRSS:")[2].split()[0])


async def status(request: Request) -> JSONResponse:
    """Counters, and what is left in memory."""
    gc.collect()
    memory = used()
    kinds = {"Basket", "Delivery", "Session", "Outgoing", "SyncIsland", "TaskIsland"}
    left = sum(type(each).__name__ in kinds for each in gc.get_objects())
    tasks = len(asyncio.all_tasks())
    return JSONResponse(asdict(tally) | {"memory": memory, "tasks": tasks, "left": left})


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(PAGE.read_text("utf-8"))


async def each_its_own(request: Request) -> Any:
    """A function of Starlette may return what it likes, made for this request."""
    return ndjson(numbers(int(request.path_params["n"])))


ROUTES: list[BaseRoute] = [
    Route("/stat", status),
    Route("/page", page),
    Route("/reactive.js", endpoint=javascript()),
    Route("/sse", endpoint=sse(ENDLESS, tally=tally)),
    Route("/ndjson", endpoint=ndjson(ENDLESS, tally=tally)),
    Route("/count/{n:int}", endpoint=stream(counted)),
    Route("/own/{n:int}", each_its_own),
    Route("/after", endpoint=sse(after, id=lambda each: each, retry=0.01, count="n")),
    Route("/fails", endpoint=ndjson(lambda _: fails(), on_error=forget)),
    Mount("/mounted", app=ndjson(numbers(3))),
    WebSocketRoute("/live", endpoint=websocket(router, tally=tally, on_error=forget)),
]


class Streaming(Response):
    """Lets a function of FastAPI return an endpoint."""

    def __init__(self, app: Any) -> None:
        super().__init__()
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


fast = FastAPI(routes=[*ROUTES])


@fast.get("/fast/{n}", response_class=Response)
async def typed(n: int) -> Response:
    return Streaming(ndjson(numbers(n)))


async def passed_on(request: Request, call_next: Any) -> Any:
    return await call_next(request)


# Both stand between the server and the endpoint, and pass on messages in ways of their own.
BETWEEN = [Middleware(GZipMiddleware), Middleware(BaseHTTPMiddleware, dispatch=passed_on)]

APPS: dict[str, Any] = {
    "starlette": Starlette(routes=ROUTES),
    "middleware": Starlette(routes=ROUTES, middleware=BETWEEN),
    "fastapi": fast,
    "bare": ndjson(numbers(3)),
}


def main(fd: str, app: str, loop: Any) -> None:
    listening = socket.socket(fileno=int(fd))
    # Pings would need answers, and clients that speak in bytes give none.
    config = uvicorn.Config(
        APPS[app], loop=loop, log_level="error", timeout_graceful_shutdown=2, ws_ping_interval=None
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
