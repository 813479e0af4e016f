"""A Redis and a PostgreSQL, started for a run of the benchmarks, and what a service needs there."""

import atexit
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import asyncpg
from ingest_store import TABLES
from redis.asyncio import Redis

from tests.harness.servers import PostgresServer, RedisServer, postgres_running, redis_running

if TYPE_CHECKING:
    Pool = asyncpg.Pool[asyncpg.Record]

STREAM = "events"
GROUP = "ingest"
CHUNK = 1000


@cache
def servers() -> tuple[RedisServer, PostgresServer]:
    """Both servers, which end with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(redis_running()), stack.enter_context(postgres_running())


@dataclass
class Place:
    """A stream with entries, and empty tables."""

    redis: Redis
    pool: "Pool"
    count: int

    async def check(self) -> None:
        """All entries have to be events, and none may be pending."""
        events = await self.pool.fetchval("select count(*) from events")
        summary: Any = await self.redis.xpending(STREAM, GROUP)
        found = (events, summary["pending"])
        if found != (self.count, 0):
            raise RuntimeError(f"{self.count} entries became (events, pending): {found}")


@asynccontextmanager
async def filled(count: int) -> AsyncGenerator[Place]:
    """A place with *count* entries."""
    redis_server, postgres_server = servers()
    url = redis_server.database()
    made: Redis = Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    dsn = postgres_server.database()
    async with made as redis, asyncpg.create_pool(dsn, min_size=4, max_size=4) as pool:
        await pool.execute(TABLES)
        for first in range(0, count, CHUNK):
            pipeline: Any = redis.pipeline(transaction=False)
            for number in range(first, min(first + CHUNK, count)):
                fields = {"id": f"id-{number}", "payload": f"the payload of number {number}"}
                pipeline.xadd(STREAM, cast("Any", fields))
            await pipeline.execute()
        await redis.xgroup_create(STREAM, GROUP, "0")
        yield Place(redis, pool, count)
        await redis.delete(STREAM)
