"""The HTTP side: readings come in, a live view and figures go out."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Response
from prometheus_client import CollectorRegistry, generate_latest

import reactive_aio as rx
from reactive_aio import observe
from reactive_aio.asgi import AppStreams, sse
from reactive_aio.observe import prometheus
from station.flow import Located, Reading, stored
from station.store import Store

DRAIN = 20.0
"""Seconds in which the readings that were accepted are stored when the service stops."""
STUCK = 60.0
"""Seconds after which a reading that is still held means that something hangs."""
log = logging.getLogger("station")


def make_app(find_room: Callable[[Reading], Awaitable[str]], store: Store) -> FastAPI:
    """The app; *find_room* asks where a sensor is, and *store* keeps the readings."""
    incoming = rx.UnicastProcessor[Reading](capacity=1000, name="incoming")
    live = rx.MulticastProcessor[Located](capacity=64, overflow="drop_oldest", name="live")
    registry = CollectorRegistry()
    streams = AppStreams()
    flow = stored(
        incoming,
        find_room=find_room,
        show=live.try_emit,
        store=store.add,
        set_aside=store.set_aside,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        registry.register(prometheus.Collector())
        async with observe.watch(block=5), flow.running() as run:
            yield
            report = await run.drain(timeout=DRAIN)
            live.complete()
        log.info("%d batches stored, %d readings lost", report.delivered, report.discarded)

    app = FastAPI(lifespan=lifespan)
    app.add_middleware(streams.wrap)

    @app.post("/readings", status_code=202)
    async def take(reading: Reading) -> None:
        """Accept a reading; the client waits while 1,000 others do."""
        if not await incoming.emit(reading):
            raise HTTPException(503, "the service stops")

    @app.get("/live")
    def show() -> Response:
        """The readings from now on, as server-sent events."""
        return sse(live, encode=lambda each: f"{each.room}: {each.reading.celsius} °C")

    @app.get("/rooms")
    def rooms() -> dict[str, int]:
        """How many readings of each room are stored."""
        return store.rooms()

    @app.get("/alive")
    def alive() -> Response:
        """503 if a reading hangs, which a restart would repair."""
        ages = [each.oldest or 0.0 for each in flow.stats().subscriptions]
        is_stuck = max(ages, default=0.0) > STUCK
        return Response("a reading hangs" if is_stuck else "alive", 503 if is_stuck else 200)

    @app.get("/ready")
    def ready() -> Response:
        """200 while the flow runs."""
        is_running = bool(flow.stats().subscriptions)
        return Response("ready" if is_running else "not running", 200 if is_running else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        """The figures, for Prometheus."""
        return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")

    return app
