# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "redis>=5.2"]
# ///
"""Redis Streams: read as one consumer of a group, and acknowledge what is done.

    python examples/recipes/redis_streams.py --redis redis://127.0.0.1:6379 --stream events

Entries are read by demand (XREADGROUP) and acknowledged when their work is done, many of them with
one call (XACK). What was not acknowledged, as a consumer was killed or its work has failed, is
delivered again after *idle* seconds (XAUTOCLAIM): work may be done twice. Serve until Ctrl-C.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

import reactive_aio as rx
from reactive_aio.delivery import DeliveryFlow, deliveries

WAIT: Final = 2.0  # seconds; less than the socket_timeout of the client


class Entry(NamedTuple):
    """An entry of a stream."""

    id: str
    fields: dict[bytes, bytes]


@dataclass(slots=True)
class Consumer:
    """One consumer of a group; stream and group are created if they do not exist."""

    redis: Redis
    stream: str
    group: str
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    idle: float = 30.0  # seconds until an entry is delivered again: more than its work takes
    count: int = 100  # how many entries are read with one call
    _working: set[str] = field(default_factory=set[str])  # entries that it does not take over

    def entries(self, *, limit: int = 256) -> DeliveryFlow[Entry]:
        """The entries that no other consumer works on; at most *limit* are held."""
        entries = rx.from_aiter(self._lists).flat_map(lambda entries: entries)
        return deliveries(entries, ack_many=self._ack, nack=self._release, limit=limit)

    def _release(self, entry: Entry, error: Exception) -> None:
        self._working.discard(entry.id)  # Redis takes nothing back: it follows after *idle* seconds

    async def leave(self) -> None:
        """Remove this consumer from its group at the end; not while entries of it are pending."""
        where = self.stream, self.group
        if not await self.redis.xpending_range(*where, "-", "+", 1, self.name):
            await self.redis.xgroup_delconsumer(*where, self.name)

    async def _lists(self) -> AsyncGenerator[list[Entry]]:
        self._working.clear()
        with suppress(ResponseError):  # it exists; any other error is that of the next call as well
            await self.redis.xgroup_create(self.stream, self.group, "0", mkstream=True)
        now, due, cursor = asyncio.get_running_loop().time, 0.0, "0-0"
        while True:
            if now() >= due:
                cursor, found = await self._abandoned(cursor)
                due = now() + self.idle / 2 if cursor == "0-0" else 0.0
            else:
                found = await self._new(min(due - now(), WAIT))
            # Without fields, they were deleted meanwhile; Redis 7 leaves them out.
            entries = [Entry(id.decode(), fields) for id, fields in found if fields]
            entries = [entry for entry in entries if entry.id not in self._working]
            self._working.update(entry.id for entry in entries)
            yield entries

    async def _new(self, seconds: float) -> list[Any]:
        """Entries that no consumer has received; wait *seconds* for the first one."""
        me, wait = (self.group, self.name), max(1, round(1000 * seconds))
        answer: Any = await self.redis.xreadgroup(*me, {self.stream: ">"}, self.count, wait)
        return [entry for _, entries in answer for entry in entries]

    async def _abandoned(self, cursor: str) -> tuple[str, list[Any]]:
        """Entries that are not acknowledged for *idle* seconds, from *cursor* on; and the next."""
        me, idle = (self.stream, self.group, self.name), round(1000 * self.idle)
        answer: Any = await self.redis.xautoclaim(*me, idle, cursor, self.count)
        return answer[0].decode(), answer[1]

    async def _ack(self, entries: list[Entry]) -> None:
        await self.redis.xack(self.stream, self.group, *(entry.id for entry in entries))
        self._working.difference_update(entry.id for entry in entries)


async def main(options: argparse.Namespace) -> int:
    """Print entries until SIGTERM or Ctrl-C."""
    async with Redis.from_url(options.redis) as redis:  # pyright: ignore[reportUnknownMemberType]
        consumer = Consumer(redis, options.stream, options.group)
        printed = consumer.entries().ack_after(lambda entry: print(entry.id, entry.fields))
        status = await rx.run_until_signal(printed, on_drained=print)
        await consumer.leave()
        return status


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
