# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "redis>=5.2"]
# ///
"""Redis Streams: read as one consumer of a group, and acknowledge what is done.

    python examples/recipes/redis_streams.py --redis redis://127.0.0.1:6379 --stream events

Entries are read by demand (XREADGROUP) and acknowledged in lists (XACK). What a consumer has left
is delivered again after *idle* seconds (XCLAIM); the third time alone, as it may kill its process.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

import reactive_aio as rx
from reactive_aio.delivery import DeliveryFlow, deliveries


class Entry(NamedTuple):
    """An entry of a stream."""

    id: str
    fields: dict[bytes, bytes]
    deliveries: int = 1  # this one included


@dataclass(slots=True)
class Consumer:
    """One consumer of a group; stream and group are created if they do not exist."""

    redis: Redis
    stream: str
    group: str
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    idle: float = 30.0  # seconds until an entry is delivered again: more than its work takes
    count: int = 100  # how many entries are read with one call
    working: set[str] = field(default_factory=set[str], init=False)

    def entries(self, *, limit: int = 256) -> DeliveryFlow[Entry]:
        """The entries that no other consumer works on; at most *limit* are held."""
        entries = rx.from_aiter(self._lists).flat_map(lambda entries: entries)
        return deliveries(entries, ack_many=self._ack, nack=self._release, limit=limit)

    def _release(self, entry: Entry, error: Exception) -> None:
        self.working.discard(entry.id)  # Redis takes nothing back: it follows after *idle* seconds

    async def _ack(self, entries: list[Entry]) -> None:
        await self.redis.xack(self.stream, self.group, *(entry.id for entry in entries))
        self.working.difference_update(entry.id for entry in entries)

    async def _lists(self) -> AsyncGenerator[list[Entry]]:
        self.working.clear()
        with suppress(ResponseError):  # it exists; any other error is that of the next call as well
            await self.redis.xgroup_create(self.stream, self.group, "0", mkstream=True)
        now, due = asyncio.get_running_loop().time, 0.0
        while True:
            entries = await self._left() if now() >= due else []
            due = due if entries or now() < due else now() + self.idle / 2
            yield entries or await self._new(min(due - now(), 2.0))
            if entries and entries[0].deliveries > 2:
                await self._all_done()

    async def _new(self, seconds: float) -> list[Entry]:
        """Entries that no consumer has received; wait *seconds*, fewer than the socket_timeout."""
        me, wait = (self.group, self.name), max(1, round(1000 * seconds))
        answer: Any = await self.redis.xreadgroup(*me, {self.stream: ">"}, self.count, wait)
        return self._begun([(*each, 1) for _, found in answer for each in found])

    async def _left(self) -> list[Entry]:
        """Entries that a consumer has left; one at a time if they were delivered twice."""
        where, idle = (self.stream, self.group), round(1000 * self.idle)
        found: Any = await self.redis.xpending_range(*where, "-", "+", self.count, idle=idle)
        times = {each["message_id"]: each["times_delivered"] for each in found}
        times = {id: times[id] for id in times if id.decode() not in self.working}
        if suspects := [id for id in times if times[id] > 1][:1]:
            await self._all_done()
        ids = suspects or [*times]
        answer: Any = await self.redis.xclaim(*where, self.name, idle, ids) if ids else []
        return self._begun([(*each, times[each[0]] + 1) for each in answer if each[0]])

    def _begun(self, found: list[Any]) -> list[Entry]:
        entries = [Entry(id.decode(), of, n) for id, of, n in found if of]  # others were deleted
        self.working.update(entry.id for entry in entries)
        return entries

    async def _all_done(self) -> None:
        for _ in range(100):  # not for ever: a buffer may wait for more entries
            if self.working:
                await asyncio.sleep(self.idle / 100)


async def main(options: argparse.Namespace) -> int:
    """Print entries until SIGTERM or Ctrl-C."""
    async with Redis.from_url(options.redis) as redis:  # pyright: ignore[reportUnknownMemberType]
        consumer = Consumer(redis, options.stream, options.group)
        printed = consumer.entries().ack_after(lambda entry: print(entry.id, entry.fields))
        return await rx.run_until_signal(printed, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--redis", default="redis://127.0.0.1:6379", metavar="URL")
    parser.add_argument("--stream", default="events", help="name of the stream")
    parser.add_argument("--group", default="recipe", help="name of the consumer group")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (RedisError, OSError) as error:
        sys.exit(f"{options.redis}: {error} (Redis 6.2 or newer has to run there)")
