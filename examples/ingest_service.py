# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "asyncpg>=0.30", "redis>=5.2"]
# ///
"""A service: entries of a Redis Stream, enriched, in PostgreSQL; each id is decided once.

    python examples/ingest_service.py --redis redis://127.0.0.1:6379 --postgres postgresql:///shop

It reads the stream `events` (fields `id` and `payload`) as a consumer of the group `--name`, and
enriches payloads concurrently, within a rate. What was enriched is written to the table `events` in
batches; what cannot be, to `dead_letters` with its error: an entry that is not valid at once, any
other after some attempts, and one that kills its process each time after --deliveries of them.
Entries are acknowledged after the commit. An id is an event or a dead letter, whichever was
committed first: the process may be killed at any moment, and the stream may repeat an id.

Serve until Ctrl-C. Like SIGTERM, that drains: what was read is written, and a report is printed.
The exit status is 0, or 75 if that took too long; the rest is delivered again after a restart.

To try it, in another terminal: redis-cli XADD events '*' id 1 payload 'a first event'
"""

import argparse
import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, cast

import asyncpg
from ingest_store import OUTAGE, Event, Store
from recipes.redis_streams import Consumer, Entry
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError

import reactive_aio as rx

Enrich = Callable[[str], Awaitable[str]]

CONCURRENCY: Final = 64
ATTEMPTS: Final = 4
DELIVERIES: Final = 5
DRAIN: Final = 25.0  # seconds: Kubernetes waits for 30


async def enrich(payload: str) -> str:
    """Stand in for a call of another service; `--enrich` names another function."""
    digest = hashlib.sha256(payload.encode()).hexdigest()
    return json.dumps({"words": len(payload.split()), "sha256": digest})


class NotValid(ValueError):
    """An entry that no attempt could enrich."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """From the stream into the store."""

    consumer: Consumer
    store: Store
    enrich: Enrich
    rate: rx.RateLimit
    batch: int
    deliveries: int = DELIVERIES

    def flow(self) -> rx.Flow[list[Event]]:
        """The batches that were written."""
        return (
            self.consumer.entries(limit=2 * self.batch + CONCURRENCY)
            .map_async(
                self._enriched,
                concurrency=CONCURRENCY,
                ordered=False,
                retry=rx.RetryPolicy(attempts=ATTEMPTS, delay=0.05, only=is_worth_another_attempt),
                timeout=10,
                limiter=self.rate,
                on_error=self._bury,
            )
            .buffer_timeout(self.batch, 0.1)
            .ack_after(self.store.write)
            .name("ingest")
        )

    async def _enriched(self, entry: Entry) -> Event:
        if entry.deliveries > self.deliveries:
            raise NotValid(f"delivered {entry.deliveries} times, and its process ended each time")
        id, payload = text_of(entry, b"id"), text_of(entry, b"payload")
        if not id:
            raise NotValid(f"the field 'id' of the entry {entry.id} is empty")
        return Event(id, payload, await self.enrich(payload))

    async def _bury(self, entry: Entry, error: Exception) -> None:
        """Keep what was not enriched, under its own id, or that of the entry if it has none."""
        id, payload = (shown(entry.fields.get(name, b"")) for name in (b"id", b"payload"))
        await self.store.bury(id or entry.id, payload, f"{type(error).__name__}: {error}")


def is_worth_another_attempt(error: BaseException) -> bool:
    """Whether the same entry may succeed later."""
    return isinstance(error, Exception) and not isinstance(error, NotValid)


def text_of(entry: Entry, name: bytes) -> str:
    """A field of an entry; `NotValid` unless it is a text that PostgreSQL can store."""
    try:
        text = entry.fields[name].decode()
    except (KeyError, UnicodeDecodeError) as error:
        what = "has no field" if isinstance(error, KeyError) else "is not UTF-8 in the field"
        raise NotValid(f"the entry {entry.id} {what} {name.decode()!r}") from error
    if "\0" in text:
        raise NotValid(f"the field {name.decode()!r} of the entry {entry.id} contains NUL")
    return text


def shown(value: bytes) -> str:
    """Any bytes as a text that PostgreSQL can store."""
    return value.decode(errors="backslashreplace").replace("\0", "\\x00")


# -- the life of the service -----------------------------------------------------------------------
def figures(
    store: Store, flow: rx.Flow[list[Event]], every: float
) -> AbstractAsyncContextManager[object]:
    """Print how far it is, every few seconds in which something was decided."""
    last = 0

    def show(_: int) -> None:
        nonlocal last
        decided = store.events + store.dead_letters
        if decided != last:
            held = sum(part.held + part.calls for part in parts(flow))
            print(f"{store}, {(decided - last) / every:,.0f}/s, {held} held", flush=True)
        last = decided

    return rx.interval(every).running(show)


def parts(flow: rx.Flow[list[Event]]) -> list[Any]:
    """What the flow is made of, with its figures."""
    return [part for each in flow.stats().subscriptions for part in each.parts]


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Redis]:
    """A client that repeats its commands for half a minute when Redis cannot be reached."""
    client: Any = Redis  # the options of from_url have no types
    async with client.from_url(url) as first:
        await first.ping()  # it has to be there at the start, though
    retry = Retry(ExponentialBackoff(cap=2, base=0.05), retries=20)
    async with client.from_url(url, retry=retry) as redis:
        yield redis


def keeping(consumer: Consumer) -> AbstractAsyncContextManager[object]:
    """Show that its entries are in work, however long that takes: no process takes them over."""
    me = consumer.stream, consumer.group, consumer.name

    async def keep(_: int) -> None:
        ids: list[Any] = [*consumer.working]
        if ids:  # with JUSTID, this does not count as a delivery
            await consumer.redis.xclaim(*me, 0, ids, justid=True)

    return rx.interval(consumer.idle / 3).running(keep)


async def leave(consumer: Consumer) -> None:
    """Remove a consumer from its group at the end; not while entries of it are pending."""
    where = consumer.stream, consumer.group
    if not await consumer.redis.xpending_range(*where, "-", "+", 1, consumer.name):
        await consumer.redis.xgroup_delconsumer(*where, consumer.name)


async def serve(options: argparse.Namespace) -> int:
    """Ingest until a signal arrives; return the exit status."""
    async with connected(options.redis) as redis, Store.opened(options.postgres) as store:
        consumer = Consumer(redis, "events", options.name, idle=options.idle, count=options.batch)
        rate = rx.RateLimit(options.rate, per=1)
        ingest = Ingest(consumer, store, options.enrich, rate, options.batch, options.deliveries)
        flow = ingest.flow()
        print(f"reads the stream events as {consumer.name} of {options.name}", flush=True)
        async with figures(store, flow, options.every), keeping(consumer):
            status = await rx.run_until_signal(flow, timeout=DRAIN, on_drained=print)
        await leave(consumer)
        print(store, flush=True)
        return status


def at_least(least: float, kind: Callable[[str], float]) -> Callable[[str], float]:
    """A number of the command line."""

    def number(text: str) -> float:
        found = kind(text)
        if not found >= least:
            raise ValueError
        return found

    number.__name__ = f"{kind.__name__} of at least {least}"
    return number


def function(name: str) -> Enrich:
    """A function of the command line, as module:function."""
    module, _, attribute = name.partition(":")
    try:
        return cast("Enrich", getattr(import_module(module), attribute))
    except (ImportError, AttributeError, ValueError) as error:
        remedy = "give module:function, of a coroutine function from payload to text"
        raise argparse.ArgumentTypeError(f"{name}: {error}; {remedy}") from error


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--redis", required=True, metavar="URL", help="such as redis://127.0.0.1:6379")
    add("--postgres", required=True, metavar="DSN", help="such as postgresql://localhost/shop")
    add(
        "--batch",
        type=at_least(1, int),
        default=500,
        metavar="N",
        help="events of a transaction (500)",
    )
    add("--name", default="ingest", metavar="GROUP", help="the consumer group (default: ingest)")
    rate = "entries that are enriched in a second, at most (20000)"
    add("--rate", type=at_least(0.1, float), default=20_000.0, metavar="N", help=rate)
    idle = "deliver entries again that a dead process has not acknowledged for so long (5)"
    add("--idle", type=at_least(0.1, float), default=5.0, metavar="SECONDS", help=idle)
    times = "an entry that was delivered more often is a dead letter: it may kill its process (5)"
    add("--deliveries", type=at_least(3, int), default=DELIVERIES, metavar="N", help=times)
    every = "seconds from one line of figures to the next (5)"
    add("--every", type=at_least(0.1, float), default=5.0, metavar="SECONDS", help=every)
    what = "a coroutine function from payload to text, as module:function"
    add("--enrich", type=function, default=enrich, metavar="FUNCTION", help=what)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve, and report in one line what ends it."""
    options = arguments(argv)
    try:
        return asyncio.run(serve(options))
    except (RedisError, asyncpg.PostgresError, *OUTAGE) as error:
        name = "Redis" if isinstance(error, RedisError) else "PostgreSQL"
        where = "--redis" if name == "Redis" else "--postgres"
        print(f"{name} ({where}): {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
