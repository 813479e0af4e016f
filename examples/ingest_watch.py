"""What is seen of `ingest_service` from outside: figures, reports, probes, `top`."""

import argparse
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final

from aiohttp import web
from ingest_store import Event, Store

import reactive_aio as rx
from reactive_aio import observe

STUCK: Final = 120.0  # seconds: longer than any entry may take while nothing is out of order
Flow = rx.Flow[list[Event]]


@asynccontextmanager
async def watched(flow: Flow, store: Store, options: argparse.Namespace) -> AsyncGenerator[None]:
    """Watch *flow* while it runs in the block, in the ways that *options* ask for."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(observe.watch(stall=30, block=5))
        await stack.enter_async_context(figures(flow, store, options.every))
        if options.socket is not None:
            await stack.enter_async_context(observe.serve(options.socket))
        if options.probes is not None:
            await stack.enter_async_context(probes(flow, options.probes))
        yield


def figures(flow: Flow, store: Store, every: float) -> AbstractAsyncContextManager[object]:
    """Print how far it is, every few seconds in which something was decided."""
    last = 0

    def show(_: int) -> None:
        nonlocal last
        decided = store.events + store.dead_letters
        if decided != last:
            parts: list[Any] = [part for each in flow.stats().subscriptions for part in each.parts]
            held = sum(part.held + part.calls for part in parts)
            print(f"{store}, {(decided - last) / every:,.0f}/s, {held} held", flush=True)
        last = decided

    return rx.interval(every).running(show)


@asynccontextmanager
async def probes(flow: Flow, port: int) -> AsyncGenerator[None]:
    """Answer /alive and /ready, from the event loop of the flow."""
    app = web.Application()
    app.router.add_get("/alive", answering(lambda: alive(flow)))
    app.router.add_get("/ready", answering(lambda: ready(flow)))
    runner = web.AppRunner(app)  # which leaves signals to run_until_signal
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()


def alive(flow: Flow) -> tuple[int, str]:
    """Whether a restart would help nothing: a call may hang, but not wait for an outage to end."""
    hangs = any(
        each.waits_on == "function" and each.idle > STUCK for each in flow.stats().subscriptions
    )
    return (503, observe.report()) if hangs else (200, "alive")


def ready(flow: Flow) -> tuple[int, str]:
    """Whether it reads."""
    stats = flow.stats()
    return (200, "ready") if stats.subscriptions else (503, stats.last_failure or "not running")


def answering(
    ask: Callable[[], tuple[int, str]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """What serves the answer to a probe."""

    async def answer(_: web.Request) -> web.Response:
        status, text = ask()
        return web.Response(status=status, text=text)

    return answer
