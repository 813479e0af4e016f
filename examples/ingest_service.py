# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[redis]", "asyncpg>=0.30", "redis>=5.2"]
# ///
"""A service: entries of a Redis Stream, enriched, in PostgreSQL; each id is decided once.

    python examples/ingest_service.py --redis redis://127.0.0.1:6379 --postgres postgresql:///shop

It reads the stream `events` (fields `id` and `payload`) as a consumer of the group `--name`, and
enriches payloads concurrently, within a rate. What was enriched is written to the table `events` in
batches; what is at fault by itself, to `dead_letters`, with a reason and its error:

    invalid   the entry is not what it should be
    failed    the enrichment failed each time, while that of others succeeded
    refused   the database does not take the row, and takes others
    crashed   --crashes processes have ended while they worked on this entry alone

How often an entry was delivered proves nothing: while Redis, PostgreSQL or the enrichment is out of
order, entries wait. That is one line in the log, and one when it is over. `--requeue` puts dead
letters back into the stream. Entries are acknowledged after the commit. An id is an event or a dead
letter, whichever was committed first: the process may be killed at any moment, and the stream may
repeat an id.

Serve until Ctrl-C. Like SIGTERM, that drains: what was read is written, and a report is printed.
The exit status is 0, or 75 if that took too long; the rest is delivered again after a restart. A
second signal ends the process at once.

To try it, in another terminal: redis-cli XADD events '*' id 1 payload 'a first event'
"""

import argparse
import asyncio
import hashlib
import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final, cast

from ingest_store import LOST, REFUSED, Event, Letter, Store, key_of
from redis.exceptions import RedisError

import reactive_aio as rx
from reactive_aio.connectors.redis_streams import Consumer, Entry, connect

Enrich = Callable[[str], Awaitable[str]]

CONCURRENCY: Final = 64
CRASHES: Final = 3
BATCH_BYTES: Final = 4_000_000
DRAIN: Final = 25.0  # seconds: Kubernetes waits for 30
OWN: Final = (ValueError, TypeError, LookupError, ArithmeticError, *REFUSED)
"""Errors of an entry itself. Any other may be one of what all entries need."""
ATTEMPTS: Final = rx.RetryPolicy(
    attempts=4, delay=0.05, maximum=5, only=lambda error: not isinstance(error, (NotValid, Died))
)
AGAIN: Final = rx.RetryPolicy(attempts=None, delay=0.1, maximum=2)


async def enrich(payload: str) -> str:
    """Stand in for a call of another service; `--enrich` names another function."""
    digest = hashlib.sha256(payload.encode()).hexdigest()
    return json.dumps({"words": len(payload.split()), "sha256": digest})


class NotValid(ValueError):
    """An entry that no attempt could enrich."""


class Died(ValueError):
    """An entry that ends its process."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """From the stream into the store."""

    consumer: Consumer
    store: Store
    enrich: Enrich
    rate: rx.RateLimit
    batch: int
    crashes: int = CRASHES

    def flow(self) -> rx.Flow[list[Event]]:
        """The batches that were written."""
        return (
            self.consumer.entries(limit=2 * self.batch + CONCURRENCY)
            .nack_on_error(
                ATTEMPTS, dead_letter=self._bury, outage=lambda error: not isinstance(error, OWN)
            )
            .map_async(
                self._enriched,
                concurrency=CONCURRENCY,
                ordered=False,
                timeout=10,
                limiter=self.rate,
            )
            .buffer_timeout(self.batch, 0.1, weight=size_of, max_weight=BATCH_BYTES)
            .ack_after(self.store.write)
            .name("ingest")
        )

    async def _enriched(self, entry: Entry) -> Event:
        if entry.crashes >= self.crashes:
            died = f"{entry.crashes} processes have ended while they worked on this entry alone"
            raise Died(died)
        id, payload = text_of(entry, b"id"), text_of(entry, b"payload")
        if not id:
            raise NotValid(f"the field 'id' of the entry {entry.id} is empty")
        if key_of(id) != id:
            raise NotValid(f"the field 'id' of the entry {entry.id} is too long for a key")
        try:
            return Event(id, payload, await self.enrich(payload))
        finally:
            await self.consumer.worked([entry.id])

    async def _bury(self, entry: Entry, error: Exception) -> None:
        """Keep what is at fault under its own id, or that of the entry if it has none."""
        id, payload = (shown(entry.fields.get(name, b"")) for name in (b"id", b"payload"))
        text = f"{type(error).__name__}: {error}"
        await self.store.bury(Letter(id or entry.id, payload, text, reason(error), entry.fields))


def reason(error: Exception) -> str:
    """Why an entry is a dead letter, in one word."""
    kinds = {NotValid: "invalid", Died: "crashed"} | dict.fromkeys(REFUSED, "refused")
    return next((kinds[kind] for kind in kinds if isinstance(error, kind)), "failed")


def size_of(event: Event) -> int:
    """The bytes of an event, as far as they matter."""
    return len(event.payload) + len(event.enriched)


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


async def serve(options: argparse.Namespace) -> int:
    """Ingest until a signal arrives; return the exit status."""
    async with connect(options.redis) as redis, Store.opened(options.postgres) as store:
        consumer = Consumer(
            redis, "events", options.name, idle=options.idle, count=options.batch, retry=AGAIN
        )
        keeping = rx.interval(options.idle / 3).running(consumer.keep)  # also while it drains
        rate = rx.RateLimit(options.rate, per=1)
        ingest = Ingest(consumer, store, options.enrich, rate, options.batch, options.crashes)
        flow = ingest.flow()
        print(f"reads the stream events as {consumer.name} of {options.name}", flush=True)
        async with keeping, figures(store, flow, options.every):
            status = await rx.run_until_signal(flow, timeout=DRAIN, on_drained=print)
        print(store, flush=True)
        if status == 0:
            await consumer.leave()
        return status


async def requeue(options: argparse.Namespace) -> int:
    """Put dead letters back into the stream; return the exit status."""
    async with connect(options.redis) as redis, Store.opened(options.postgres) as store:
        count = await store.put_back(options.requeue, partial(redis.xadd, "events"))
    print(f"{count:,} dead letters were put back into the stream events", flush=True)
    return 0


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
    times = "processes that have to end while each works on an entry alone, to bury it (3)"
    number = at_least(1, int)
    add("--crashes", "--deliveries", type=number, default=CRASHES, metavar="N", help=times)
    put = "put dead letters back into the stream: all, those of a reason, or that of an id"
    add("--requeue", nargs="?", const="all", metavar="REASON|ID", help=put)
    every = "seconds from one line of figures to the next (5)"
    add("--every", type=at_least(0.1, float), default=5.0, metavar="SECONDS", help=every)
    what = "a coroutine function from payload to text, as module:function"
    add("--enrich", type=function, default=enrich, metavar="FUNCTION", help=what)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve, and report in one line what ends it."""
    options = arguments(argv)
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stdout)
    try:
        return asyncio.run(requeue(options) if options.requeue else serve(options))
    except (RedisError, *LOST) as error:
        name = "Redis (--redis)" if isinstance(error, RedisError) else "PostgreSQL (--postgres)"
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until it serves, Ctrl-C just ends it
    sys.exit(main())
