"""Redis Streams: entries as one consumer of a group, acknowledged in lists; and a sink.

::

    async with redis_streams.connect("redis://127.0.0.1:6379") as redis:
        orders = redis_streams.source(redis, "orders", group="billing")
        await orders.ack_after(store).run()

The extra ``redis`` is needed, and Redis 7 or newer.
"""

import os
import socket
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from sys import modules
from typing import Any, Final, NamedTuple, TypeAlias

import anyio

from .._shared.foreign_options import explain_foreign_options
from .._sources.timers import interval
from ..delivery import DeliveryFlow, Outage, deliveries
from ..delivery.crash_marks import CRASHES, SUSPECT, CrashMarks
from ..errors import MissingExtra
from ..retry import RetryPolicy
from ..stage import Duration, from_async, require_int, to_seconds
from .common import (
    ANSWER,
    ATTEMPTS,
    RECONNECT,
    Send,
    ack_timeout,
    awaits_messages,
    list_length,
    outage_of,
    raise_failed,
    require_client,
    require_list,
    require_name,
    require_open,
    with_dead_letters,
)

try:
    from redis import Redis as Synchronous
    from redis.asyncio import ConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import (
        ConnectionError as RedisConnectionError,
        OutOfMemoryError,
        ReadOnlyError,
        RedisError,
        ResponseError,
        TimeoutError,
    )
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] != "redis":
        raise
    raise MissingExtra("connectors.redis_streams", "redis") from _error

__all__ = ("Consumer", "Entry", "connect", "sink", "source")

LOST: Final = (RedisConnectionError, TimeoutError, ReadOnlyError, OSError)
"""A server that cannot be reached, starts, or has become a replica."""
REFUSES: Final = (ReadOnlyError, OutOfMemoryError)
"""A server that has become a replica, or is full."""
WAIT: Final = 2.0  # seconds for which one call waits for entries: less than the socket_timeout
PAGE: Final = 1000  # entries whose state is asked for with one call
READ_BYTES: Final = 1_000_000  # about that much is read with one call; more, if one entry is larger
HELD_BYTES: Final = 32_000_000  # nothing is read while that much is in work
LEAVE: Final = 2.0  # seconds that a consumer has for leaving its group
GONE: Final = (
    "the stream or its group was deleted, or never created; entries since then are not read: "
    "restart the service, which creates the group from the first entry on"
)

_CLIENT: Final = "a redis.asyncio.Redis"

Fields: TypeAlias = Mapping[Any, Any]


class _Connections(ConnectionPool):
    """The connections of a client that `connect` has made.

    A client of Redis that was closed connects again when it is used, and nobody would close that
    connection: so an acknowledgement that is repeated after the block of its client would leave one
    open. These refuse it.
    """

    is_closed: Any = False  # a bool, which may change while a call waits

    async def aclose(self) -> None:
        self.is_closed = True
        await super().aclose()

    async def get_connection(self, *arguments: Any, **options: Any) -> Any:
        if not self.is_closed:
            connections: Any = super()
            connection = await connections.get_connection(*arguments, **options)
            if not self.is_closed:
                return connection
            await connection.disconnect()  # it was closed while this one connected
        raise RedisConnectionError("the client is closed")


def _require_redis(call: str, redis: object, *methods: str) -> None:
    """A client that `connect` has not made connects when it is used, also after it was closed."""
    if isinstance(redis, Synchronous):
        raise TypeError(f"{call}: give {_CLIENT}, not a redis.Redis, which blocks the event loop")
    require_client(call, _CLIENT, redis, *methods)
    require_open(call, is_closed=_is_closed(redis))


def _is_closed(redis: Any) -> bool:
    """Whether the program has closed it: known of a client that `connect` has made."""
    connections = getattr(redis, "connection_pool", None)
    return isinstance(connections, _Connections) and connections.is_closed


def is_outage(error: BaseException) -> bool:
    """Whether the same call may succeed later: Redis is not reached, full, or a replica for now."""
    if isinstance(error, ResponseError):
        return isinstance(error, REFUSES) or str(error).startswith(("MISCONF", "MASTERDOWN"))
    return isinstance(error, (RedisError, OSError))


class Entry(NamedTuple):
    """An entry of a stream, and what is known of its deliveries."""

    id: str
    fields: dict[bytes, bytes]
    deliveries: int = 1
    """How often it came, this time included. It proves nothing: each outage adds to it."""
    crashes: int = 0
    """How many processes have ended while they worked on it alone."""


OnDeadLetter: TypeAlias = Callable[[Entry, Exception], object]


@asynccontextmanager
async def connect(url: str, **options: Any) -> AsyncGenerator["Redis"]:
    """A client, whose commands are not repeated: `source` and `sink` do that, each as it may be.

    The server has to be there. One that does not answer for half a minute is lost, unless *options*
    have another ``socket_timeout``. After the block, the client refuses each command.
    """
    made: Any = Redis
    settings: dict[str, Any] = {"retry": Retry(NoBackoff(), 0), "socket_timeout": 30.0}
    connections: Any = _Connections
    async with made.from_pool(connections.from_url(url, **(settings | options))) as redis:
        with anyio.move_on_after(ANSWER) as limit:
            await redis.ping()
        if limit.cancelled_caught:
            raise RedisConnectionError(f"no answer within {ANSWER:g} s")
        yield redis


def source(
    redis: "Redis",
    stream: str,
    *,
    group: str,
    name: str | None = None,
    limit: int = 256,
    count: int = 100,
    idle: Duration = 30.0,
    retry: RetryPolicy | int = RECONNECT,
    attempts: RetryPolicy | int = ATTEMPTS,
    on_dead_letter: OnDeadLetter | None = None,
) -> DeliveryFlow[Entry]:
    """The entries of *stream* that no other consumer of *group* works on.

    Stream and group are created if they do not exist. Entries are read (XREADGROUP), at most
    *count* with one call, and acknowledged in lists (XACK). Those that another consumer has left
    are taken over after *idle* seconds (XCLAIM); those in work here are shown to be, however long
    that takes. An entry that was delivered twice is taken over alone; what three processes died of
    while they worked on it alone is a dead letter. A read has about a megabyte, and no more is read
    while 32 are in work.

    Demand: passed through, while fewer than *limit* entries are held.
    Completes: never; a drain ends it.
    Fails: when Redis cannot be reached for longer than *retry* allows; when it refuses a command,
        as after the group was deleted (NOGROUP).
    Cancels: the call that waits for entries.
    Holds: *limit* entries, and a list of *count*, which is no longer than *limit*.
    Rules: 1.1
    """
    more: dict[str, Any] = {} if name is None else {"name": name}
    seconds = to_seconds(idle, "redis_streams.source: idle")
    consumer = Consumer(redis, stream, group, idle=seconds, count=count, retry=retry, **more)
    return consumer.entries(limit=limit, attempts=attempts, on_dead_letter=on_dead_letter)


def sink(
    redis: "Redis",
    stream: str,
    *,
    maxlen: int | None = None,
    retry: RetryPolicy | int = RECONNECT,
) -> Send[Fields]:
    """A function that appends a list of fields to *stream* with one call (XADD, in a pipeline).

    With *maxlen*, older entries are removed, whether they were read or not: about that many remain.
    A list whose answer was lost is sent again, and may then be there twice.
    """
    _require_redis("redis_streams.sink", redis, "pipeline")
    require_name("redis_streams.sink", "stream", stream)
    outage = outage_of(f"Redis (sink {stream!r})", retry, LOST, partial(_is_closed, redis))

    async def send(batch: Sequence[Fields]) -> None:
        require_list("redis_streams.sink", Mapping, "mapping", batch)
        raise_failed(await outage.call(add, batch))

    async def add(batch: Sequence[Fields]) -> list[object]:
        pipeline: Any = redis.pipeline(transaction=False)
        for fields in batch:
            pipeline.xadd(stream, fields, maxlen=maxlen)
        results: list[object] = await pipeline.execute(raise_on_error=False)
        for each in results:
            if isinstance(each, LOST):
                raise each
        return results

    return send


@dataclass(slots=True)
class Consumer:
    """One consumer of a group: what `source` reads with, where you need more of it.

    - redis, stream, group: where it reads.
    - name: its name in the group, made of host and process if it is not given.
    - idle: the seconds after which what another consumer has left is taken over.
    - count: how many entries are read with one call.
    - retry: what follows when the connection is lost, or Redis refuses what it may allow later.
    - outage: the calls of Redis, repeated as *retry* allows.
    - crash_marks: the entries that are in work, their bytes, and the marks of those tried alone.
    """

    redis: "Redis"
    stream: str
    group: str
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    idle: float = 30.0
    count: int = 100
    retry: RetryPolicy | int = RECONNECT
    outage: Outage = field(init=False)
    crash_marks: CrashMarks = field(init=False)
    _mean: float = field(default=READ_BYTES, init=False)
    """The bytes of an entry, as of the last reads."""
    _most: int = field(default=1, init=False)
    """How many entries to read with one call."""
    _client: Any = field(init=False)

    def __post_init__(self) -> None:
        _require_redis("redis_streams.source", self.redis, "xreadgroup", "xack")
        for what in ("stream", "group", "name"):
            require_name("redis_streams.source", what, getattr(self, what))
        require_int("redis_streams.source", "count", self.count, least=1)
        self._client = self.redis
        is_closed = partial(_is_closed, self.redis)
        self.outage = outage_of(self._server, self.retry, is_outage, is_closed)
        self.crash_marks = CrashMarks(_Hash(self._client, self.marks), self.outage, self.idle)

    @property
    def marks(self) -> str:
        """The key of a hash: how often the work on an entry was begun alone, and has not ended."""
        return f"{self.stream}:{self.group}:alone"

    @property
    def _server(self) -> str:
        return f"Redis (stream {self.stream!r})"

    def entries(
        self,
        *,
        limit: int = 256,
        attempts: RetryPolicy | int = ATTEMPTS,
        on_dead_letter: OnDeadLetter | None = None,
    ) -> DeliveryFlow[Entry]:
        """What `source` returns. Only one subscription may use a consumer at a time."""
        name = f"redis_streams({self.stream!r}, group={self.group!r})"
        most = list_length("redis_streams.source", self.count, limit)
        lists = from_async(partial(self._lists, most, on_dead_letter), name=name)
        flow = deliveries(
            lists.concat_map(lambda each: each),
            ack_many=self._ack,
            nack=self._release,
            limit=limit,
            ack_timeout=ack_timeout(self.retry),
        )
        return with_dead_letters(flow, attempts, on_dead_letter)

    async def leave(self) -> None:
        """Remove the consumer from its group at the end; not while entries of it are pending.

        Where Redis does not answer, the name stays in the group.
        """
        where = self.stream, self.group
        with suppress(RedisError, OSError), anyio.fail_after(LEAVE):
            if not await self._client.xpending_range(*where, "-", "+", 1, self.name):
                await self._client.xgroup_delconsumer(*where, self.name)

    async def worked(self, ids: Iterable[str]) -> None:
        """The work on these entries has not ended this process, whatever else its outcome is.

        They are acknowledged or fail later; until then, no process that ends is put to their
        account.
        """
        await self.crash_marks.worked(ids)

    async def keep(self, _: object = None) -> None:
        """Show that entries are in work: no other consumer takes them over.

        While entries are read, that is done. Where work goes on for longer than *idle* after that,
        as in a drain, call it more often than each *idle* seconds.
        """
        ids, me = [*self.crash_marks.working], (self.stream, self.group, self.name)
        try:
            with anyio.fail_after(ANSWER):
                if ids:  # with JUSTID, no delivery is counted
                    await self._client.xclaim(*me, 0, ids, justid=True)
        except (RedisError, OSError) as error:
            if is_outage(error):  # any other one is raised by the next read
                self.outage.failed(error)

    # -- reading ----------------------------------------------------------------------------------
    async def _lists(
        self, most: int, on_dead_letter: OnDeadLetter | None
    ) -> AsyncGenerator[list[Entry]]:
        self._most = most
        self.crash_marks.working.clear()
        await self._begin()
        now, due, buries = anyio.current_time, 0.0, on_dead_letter is not None
        try:
            async with interval(self.idle / 3).running(self.keep):
                while True:
                    is_due = now() >= due
                    entries = await self.outage.call(self._left, buries) if is_due else []
                    if is_due and not entries:
                        due = now() + self.idle / 2
                    if on_dead_letter is not None and self._has_died(entries):
                        await self._bury(entries[0], on_dead_letter)
                        continue
                    yield entries or await self.outage.call(self._new, min(due, now() + WAIT))
                    await self.crash_marks.done_alone()
        finally:  # what was not handed over is not given back either
            await self.crash_marks.worked()

    async def _begin(self) -> None:
        """Create the group. A server that is full at the start is an error at once."""
        is_closed = partial(_is_closed, self.redis)
        await outage_of(self._server, self.retry, LOST, is_closed).call(self._create)

    async def _create(self) -> None:
        try:
            await self._client.xgroup_create(self.stream, self.group, "0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):  # it exists
                raise

    @awaits_messages
    async def _new(self, until: float) -> list[Entry]:
        """Entries that no consumer has received; wait *until* then for the first of them."""
        seconds = max(0.001, until - anyio.current_time())
        if sum(self.crash_marks.working.values()) > HELD_BYTES:
            await anyio.sleep(min(seconds, 0.05))
            return []
        me, wait = (self.group, self.name), max(1, round(1000 * seconds))
        try:
            answer: Any = await self._client.xreadgroup(
                *me, {self.stream: ">"}, self._fitting(), wait
            )
        except ResponseError as error:
            if str(error).startswith(("NOGROUP", "UNBLOCKED")):  # the stream was deleted
                error.add_note(GONE)
            raise
        return self._begun((*each, 1, 0) for each in entries_in(answer))

    async def _left(self, buries: bool) -> list[Entry]:
        """Entries that a consumer has left; one at a time if they were delivered twice."""
        where, idle, first = (self.stream, self.group), round(1000 * self.idle), "-"
        while True:
            found: Any = await self._client.xpending_range(*where, first, "+", PAGE, idle=idle)
            times = {text(each["message_id"]): each["times_delivered"] for each in found}
            free = {id: times[id] for id in times if id not in self.crash_marks.working}
            if entries := await self._taken_over(free, buries):
                return entries
            if len(found) < PAGE:
                return []
            first = f"({text(found[-1]['message_id'])}"  # those were trimmed, or are in work here

    async def _taken_over(self, times: dict[str, int], buries: bool) -> list[Entry]:
        fresh = [id for id in times if times[id] < SUSPECT]
        for start in range(0, len(fresh), count := self._fitting()):
            if entries := await self._claimed(fresh[start : start + count], 2, 0):
                return entries
        suspects = [id for id in times if times[id] >= SUSPECT]
        if not suspects:
            return []
        is_alone = await self.crash_marks.all_done()
        for id, crashes in await self.crash_marks.crashes_of(suspects):
            if found := await self._claimed([id], times[id] + 1, crashes):
                if is_alone and not (buries and self._has_died(found)):
                    await self.crash_marks.begin(id, crashes)
                return found
        return []

    def _has_died(self, entries: list[Entry]) -> bool:
        """Whether it is one that processes have died of."""
        return bool(entries) and entries[0].crashes >= CRASHES

    async def _claimed(self, ids: list[str], times: int, crashes: int) -> list[Entry]:
        """Take entries over. It has the same effect twice, which XCLAIM without JUSTID has not."""
        me, idle = (self.stream, self.group, self.name), round(1000 * self.idle)
        claim, read = self._client.xclaim, self._client.xrange
        claimed = [text(id) for id in await claim(*me, idle, ids, retrycount=times, justid=True)]
        found: list[Any] = []
        for id in claimed:
            found += [(*each, times, crashes) for each in await read(self.stream, id, id)]
        if gone := set(claimed).difference(text(each[0]) for each in found):
            await self._client.xack(self.stream, self.group, *gone)  # they were trimmed or deleted
        return self._begun(found)

    async def _bury(self, entry: Entry, on_dead_letter: OnDeadLetter) -> None:
        """Do not try again what others have died of."""
        await self.crash_marks.bury(entry, entry.id, entry.crashes, on_dead_letter)
        await self._ack([entry])

    def _fitting(self) -> int:
        """How many entries to read with one call."""
        return max(1, min(self._most, int(READ_BYTES / self._mean)))

    def _begun(self, found: Iterable[Any]) -> list[Entry]:
        begun: list[Entry] = []
        for id, fields, times, crashes in found:
            decoded = isinstance(id, str)  # then the client decodes all that it reads
            whole = {as_bytes(n): as_bytes(fields[n]) for n in fields} if decoded else fields
            begun.append(Entry(text(id), whole, times, crashes))
        sizes = [size_of(each.fields) for each in begun]
        self.crash_marks.working.update(zip((each.id for each in begun), sizes, strict=True))
        if begun:  # a larger read than four times the last one might not fit
            self._mean = max(sum(sizes) / len(sizes), self._mean / 4)
        return begun

    # -- acknowledging ----------------------------------------------------------------------------
    async def _release(self, entry: Entry, error: Exception) -> None:
        """Redis takes nothing back: the entry follows after *idle* seconds."""
        await self.crash_marks.over([entry.id])

    async def _ack(self, entries: list[Entry]) -> None:
        ids = [entry.id for entry in entries]
        await self.outage.call(self._client.xack, self.stream, self.group, *ids)
        await self.crash_marks.over(ids)


@dataclass(slots=True, frozen=True)
class _Hash:
    """The marks, in a hash."""

    redis: Any
    key: str

    async def read(self, ids: Sequence[str]) -> list[int]:
        return [int(mark or 0) for mark in await self.redis.hmget(self.key, ids)]

    async def write(self, id: str, crashes: int) -> None:
        await self.redis.hset(self.key, id, crashes)

    async def clear(self, ids: Sequence[str]) -> None:
        await self.redis.hdel(self.key, *ids)


def entries_in(answer: Any) -> list[Any]:
    """The entries of an answer of XREADGROUP about one stream, of RESP2 or RESP3."""
    of_resp3 = isinstance(answer, dict)
    lists: list[Any] = [*answer.values()] if of_resp3 else [each[1] for each in answer]
    found = [entry for each in lists for entry in each]
    # One list more in RESP3, unless the client was made with legacy_responses=False.
    is_nested = bool(found) and isinstance(found[0], list)
    return [*found[0]] if is_nested else found


def text(id: Any) -> str:
    """An id, of a client that decodes answers or does not."""
    return id.decode() if isinstance(id, bytes) else id


def size_of(fields: dict[bytes, bytes]) -> int:
    """About how many bytes the fields of an entry take."""
    return sum(map(len, fields)) + sum(map(len, fields.values())) + 100 * len(fields)


def as_bytes(value: Any) -> bytes:
    """A part of an entry, likewise."""
    return value.encode() if isinstance(value, str) else value


explain_foreign_options(modules[__name__], __all__)
