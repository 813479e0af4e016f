"""The app as a client sees it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from fastapi import FastAPI
from station.app import make_app
from station.flow import Reading
from station.store import Store


async def find_room(reading: Reading) -> str:
    return f"room {reading.sensor % 2}"


@asynccontextmanager
async def running(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of *app*, between its start and its stop."""
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://station") as client,
    ):
        yield client


async def test_what_was_accepted_is_stored_when_the_service_stops(tmp_path: Path) -> None:
    store = Store(tmp_path / "readings.db")
    async with running(make_app(find_room, store)) as client:
        for sensor in range(5):
            answer = await client.post("/readings", json={"sensor": sensor, "celsius": 20.5})
            assert answer.status_code == 202
    assert store.rooms() == {"room 0": 3, "room 1": 2}


async def test_probes_and_metrics(tmp_path: Path) -> None:
    async with running(make_app(find_room, Store(tmp_path / "readings.db"))) as client:
        assert (await client.get("/ready")).status_code == 200
        assert (await client.get("/alive")).text == "alive"
        assert "reactive_aio_flow_" in (await client.get("/metrics")).text


async def test_a_reading_that_is_none_is_refused(tmp_path: Path) -> None:
    async with running(make_app(find_room, Store(tmp_path / "readings.db"))) as client:
        answer = await client.post("/readings", json={"sensor": "seven"})
        assert answer.status_code == 422
