"""What does `examples/ingest_service.py` cost for an entry, compared with the same by asyncio?

Both read the stream as a consumer group, enrich with at most 64 calls at a time, within a rate,
with attempts and a time limit, write 500 events with one transaction, and acknowledge after it.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))  # as for the program itself

import reactive_aio as rx
from reactive_aio.delivery import Outage

from ..runner.question import Question

try:
    from ingest_entries import Entry, NotValid
    from ingest_options import Enrich, enrich
    from ingest_service import CONCURRENCY, Ingest
    from ingest_sources import Reading, redis_source
    from ingest_store import AGAIN, DEAD_LETTER, EVENTS, LOCK, Store

    from .place import GROUP, STREAM, Place, filled
except ModuleNotFoundError as error:
    raise ImportError(f"{error}; the dependency group `recipes` is needed") from error

BATCH: Final = 500
RATE: Final = 1_000_000.0  # it does not slow: what the limit itself costs is measured
TIMEOUT: Final = 10.0
ATTEMPTS: Final = 5


async def waiting(payload: str) -> str:
    """A call of another service that answers after a millisecond."""
    await asyncio.sleep(0.001)
    return await enrich(payload)


# -- by asyncio ------------------------------------------------------------------------------------
class Rate:
    """At most *n* calls in a second, evenly."""

    def __init__(self, n: float) -> None:
        self._apart = 1 / n
        self._next = 0.0
        self._now = asyncio.get_running_loop().time

    async def wait(self) -> None:
        now = self._now()
        begin = max(now, self._next)
        self._next = begin + self._apart
        if begin > now:
            await asyncio.sleep(begin - now)


class Manual:
    """The service, by asyncio alone."""

    def __init__(self, place: Place, enrich: Enrich) -> None:
        self.place = place
        self._enrich = enrich
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._rate = Rate(RATE)

    async def run(self) -> None:
        """Decide all entries."""
        redis, decided = self.place.redis, 0
        while decided < self.place.count:
            read: Any = redis.xreadgroup(GROUP, "manual", {STREAM: ">"}, BATCH, 2000)
            [[_, found]] = await read
            entries = [Entry(id.decode(), fields) for id, fields in found]
            events = await asyncio.gather(*map(self._decide, entries))
            await self._write([each for each in events if each is not None])
            await redis.xack(STREAM, GROUP, *(entry.where for entry in entries))
            decided += len(entries)

    async def _decide(self, entry: Entry) -> tuple[str, str, str] | None:
        async with self._slots:
            attempt = 1
            while True:
                await self._rate.wait()
                try:
                    async with asyncio.timeout(TIMEOUT):
                        id, payload = entry.checked(3)
                        return id, payload, await self._enrich(payload)
                except Exception as error:
                    if isinstance(error, NotValid) or attempt == ATTEMPTS:
                        await self._bury(entry, error)
                        return None
                await asyncio.sleep(0.05 * 2**attempt)
                attempt += 1

    async def _write(self, events: list[tuple[str, str, str]]) -> None:
        async with self.place.pool.acquire() as connection, connection.transaction():
            await connection.execute(LOCK)
            await connection.execute(EVENTS, *map(list, zip(*events, strict=True)))

    async def _bury(self, entry: Entry, error: Exception) -> None:
        letter = entry.letter(error)
        fields = [*entry.fields], [*entry.fields.values()]
        async with self.place.pool.acquire() as connection, connection.transaction():
            await connection.execute(LOCK)
            await connection.execute(DEAD_LETTER, *letter[:4], *fields)


async def manual(place: Place, enrich: Enrich) -> None:
    await Manual(place, enrich).run()


# -- by flows --------------------------------------------------------------------------------------
async def service(place: Place, enrich: Enrich) -> None:
    store = Store(place.pool, Outage("PostgreSQL", AGAIN))
    source, _ = redis_source(place.redis, Reading("", GROUP, 2 * BATCH + CONCURRENCY, BATCH, 30))
    flow = Ingest(source, store, enrich, rx.RateLimit(RATE), BATCH).flow()
    written = 0
    async with flow.stream() as lists:
        async for each in lists:
            written += len(each)
            if written == place.count:
                break


async def measured(
    work: Callable[[Place, Enrich], Awaitable[None]], enrich: Enrich, count: int
) -> float:
    """The microseconds for an entry."""
    async with filled(count) as place:
        began = time.perf_counter()
        await work(place, enrich)
        took = time.perf_counter() - began
        await place.check()
    return took / count * 1e6


def question_of(text: str, enrich: Enrich) -> Question:
    """The question with one way to enrich."""
    question = Question(text, 20_000, unit="µs", rounds=5, counted=0)

    @question.handwritten("asyncio, redis and asyncpg")
    async def by_asyncio(count: int) -> float:
        return await measured(manual, enrich, count)

    @question.ours(f"`ingest_service` {text.partition(',')[2].strip()}", goal=1.25)
    async def by_flows(count: int) -> float:
        return await measured(service, enrich, count)

    return question


computing = question_of("A Redis Stream into PostgreSQL, enriched at once", enrich)
calling = question_of("A Redis Stream into PostgreSQL, enriched by calls of 1 ms", waiting)
