# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "redis>=5.2"]
# ///
"""Redis Streams: read as one consumer of a group, and acknowledge what is done.

    python examples/recipes/redis_streams.py --redis redis://127.0.0.1:6379 --stream events

Entries are read by demand (XREADGROUP), bounded in bytes, and acknowledged in lists (XACK). What a
consumer has left is delivered again after *idle* seconds (XCLAIM). How often an entry was delivered
proves nothing. But one that was delivered twice is tried alone: a mark in Redis says so meanwhile,
and those that remain say how many processes have died of it.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisError, ResponseError

import reactive_aio as rx
from reactive_aio.delivery import DeliveryFlow, Outage, deliveries

READ_BYTES: Final = 1_000_000  # about that much is read with one call; more, if one entry is larger
HELD_BYTES: Final = 32_000_000  # nothing is read while that much is in work
PAGE: Final = 1000
REFUSES: Final = (OutOfMemoryError, ReadOnlyError)


def is_outage(error: BaseException) -> bool:
    """Whether the same call may succeed later: Redis is not reached, full, or a replica for now."""
    if isinstance(error, ResponseError):
        return isinstance(error, REFUSES) or str(error).startswith(("MISCONF", "MASTERDOWN"))
    return isinstance(error, (RedisError, OSError))


AGAIN: Final = rx.RetryPolicy(attempts=None, within=30, delay=0.1, maximum=2, only=is_outage)


class Entry(NamedTuple):
    """An entry of a stream."""

    id: str
    fields: dict[bytes, bytes]
    deliveries: int = 1  # this one included
    crashes: int = 0  # as many processes have ended while they worked on it alone


@dataclass(slots=True)
class Consumer:
    """One consumer of a group; stream and group are created if they do not exist.

    The client must not repeat commands by itself: XREADGROUP would take more entries each time.
    """

    redis: Redis
    stream: str
    group: str
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    idle: float = 30.0  # seconds until an entry is delivered again: more than its work takes
    count: int = 100  # how many entries are read with one call, at most
    outage: Outage = field(default_factory=lambda: Outage("Redis", AGAIN))
    working: dict[str, int] = field(default_factory=dict[str, int], init=False)  # their bytes
    _alone: set[str] = field(default_factory=set[str], init=False)
    _mean: float = field(default=READ_BYTES, init=False)  # bytes of an entry, as of the last reads

    def entries(self, *, limit: int = 256) -> DeliveryFlow[Entry]:
        """The entries that no other consumer works on; at most *limit* are held."""
        entries = rx.from_aiter(self._lists).flat_map(lambda entries: entries, concurrency=1)
        day = 86_400.0  # an outage may last longer than usual calls
        return deliveries(
            entries, ack_many=self._ack, nack=self._release, limit=limit, ack_timeout=day
        )

    @property
    def marks(self) -> str:
        """The key of a hash: the entries that are, or were, tried alone, and how often."""
        return f"{self.stream}:{self.group}:alone"

    async def worked(self, ids: Iterable[str]) -> None:
        """The work on these entries has not ended this process, whatever else its outcome is."""
        if self._alone and (marked := self._alone.intersection(ids)):
            await self._call("hdel", self.marks, *marked)
            self._alone -= marked

    async def _call(self, command: str, *arguments: Any) -> Any:
        """A command that may be repeated, with the same effect."""
        call: Any = getattr(self.redis, command)
        return await self.outage.call(call, *arguments)

    async def _release(self, entry: Entry, error: Exception) -> None:
        self.working.pop(entry.id, None)  # it follows after *idle* seconds: nothing is taken back
        await self.worked([entry.id])

    async def _ack(self, entries: list[Entry]) -> None:
        ids = [entry.id for entry in entries]
        await self._call("xack", self.stream, self.group, *ids)
        await self.worked(ids)
        for id in ids:
            self.working.pop(id, None)

    async def _lists(self) -> AsyncGenerator[list[Entry]]:
        self.working.clear()
        await self._create()  # Redis has to be there at the start, and to have room for a group
        now, due = asyncio.get_running_loop().time, 0.0
        try:
            while True:
                entries = await self.outage.call(self._left) if now() >= due else []
                due = due if entries or now() < due else now() + self.idle / 2
                yield entries or await self.outage.call(self._new, min(due - now(), 2.0))
                if self._alone:
                    await self._all_done()
        finally:  # what was not handed over is not given back either
            await self.worked([*self._alone])

    async def _create(self) -> None:
        try:
            await self.redis.xgroup_create(self.stream, self.group, "0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):  # it exists
                raise

    async def _new(self, seconds: float) -> list[Entry]:
        """Entries that no consumer has received; wait *seconds*, fewer than the socket_timeout."""
        if sum(self.working.values()) > HELD_BYTES:
            await asyncio.sleep(min(seconds, 0.05))
            return []
        me, wait = (self.group, self.name), max(1, round(1000 * seconds))
        answer: Any = await self.redis.xreadgroup(*me, {self.stream: ">"}, self._fitting(), wait)
        return self._begun((*each, 1, 0) for each in entries_in(answer))

    async def _left(self) -> list[Entry]:
        """Entries that a consumer has left; one at a time if they were delivered twice."""
        where, idle, first = (self.stream, self.group), round(1000 * self.idle), "-"
        while True:
            found: Any = await self.redis.xpending_range(*where, first, "+", PAGE, idle=idle)
            times = {text(each["message_id"]): each["times_delivered"] for each in found}
            free = {id: times[id] for id in times if id not in self.working}
            if entries := await self._taken_over(free):
                return entries
            if len(found) < PAGE:
                return []
            first = f"({text(found[-1]['message_id'])}"

    async def _taken_over(self, times: dict[str, int]) -> list[Entry]:
        fresh = [id for id in times if times[id] < 2]
        for start in range(0, len(fresh), count := self._fitting()):
            if entries := await self._claimed(fresh[start : start + count], 2, 0):
                return entries
        suspects = [id for id in times if times[id] >= 2]
        if not suspects:
            return []
        await self._all_done()
        marks: Any = await cast("Awaitable[Any]", self.redis.hmget(self.marks, suspects))
        crashes = {id: int(mark or 0) for id, mark in zip(suspects, marks, strict=True)}
        for id in sorted(suspects, key=lambda id: crashes[id]):  # others pass before it comes again
            is_alone = not self.working
            if found := await self._claimed([id], times[id] + 1, crashes[id]):
                if is_alone:  # with an outage, what waits for its end is never done
                    self._alone.add(id)
                    await self._call("hset", self.marks, id, crashes[id] + 1)
                return found
        return []

    async def _claimed(self, ids: list[str], times: int, crashes: int) -> list[Entry]:
        """Take entries over. It has the same effect twice, which XCLAIM without JUSTID has not."""
        me, idle = (self.stream, self.group, self.name), round(1000 * self.idle)
        claim: Any = self.redis.xclaim
        claimed = [text(id) for id in await claim(*me, idle, ids, retrycount=times, justid=True)]
        found = [
            (*each, times, crashes)
            for id in claimed
            for each in cast("list[Any]", await self.redis.xrange(self.stream, id, id))
        ]
        if gone := set(claimed).difference(text(each[0]) for each in found):
            await self.redis.xack(self.stream, self.group, *gone)  # they were trimmed or deleted
        return self._begun(found)

    def _fitting(self) -> int:
        """How many entries to read with one call."""
        return max(1, min(self.count, int(READ_BYTES / self._mean)))

    def _begun(self, found: Iterable[Any]) -> list[Entry]:
        begun = [
            Entry(text(id), in_bytes(fields), times, crashes)
            for id, fields, times, crashes in found
            if fields  # another one was deleted
        ]
        sizes = [sum(map(len, each.fields.values())) + 200 for each in begun]
        self.working.update(zip((each.id for each in begun), sizes, strict=True))
        if begun:  # a larger read than four times the last one might not fit
            self._mean = max(sum(sizes) / len(sizes), self._mean / 4)
        return begun

    async def _all_done(self) -> None:
        for _ in range(100):  # not for ever: a buffer may wait for more entries
            if self.working:
                await asyncio.sleep(self.idle / 100)


def entries_in(answer: Any) -> list[Any]:
    """The entries of an answer of XREADGROUP about one stream, of RESP2 or RESP3."""
    lists: list[Any] = [*answer.values()] if isinstance(answer, dict) else [e[1] for e in answer]
    found = [entry for each in lists for entry in each]
    # One list more in RESP3, unless the client was made with legacy_responses=False.
    return [*found[0]] if found and isinstance(found[0], list) else found


def text(id: Any) -> str:
    """An id, of a client that decodes answers or does not."""
    return id.decode() if isinstance(id, bytes) else id


def in_bytes(fields: dict[Any, Any]) -> dict[bytes, bytes]:
    """The fields of an entry, likewise."""
    if isinstance(next(iter(fields)), bytes):
        return fields
    return {name.encode(): fields[name].encode() for name in fields}


async def main(options: argparse.Namespace) -> int:
    """Print entries until SIGTERM or Ctrl-C."""
    client: Any = Redis  # the options of from_url have no types
    async with client.from_url(options.redis, retry=Retry(NoBackoff(), 0)) as redis:
        await redis.ping()
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
