# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "reactive-aio[redis,kafka,rabbitmq,nats,mqtt]", "aiohttp>=3.11", "asyncpg>=0.30",
# ]
# ///
"""A service: entries of a broker, enriched, in PostgreSQL; each id is decided once.

    python examples/ingest_service.py --source kafka://127.0.0.1:9092 --postgres postgresql:///shop

It reads `events`, a stream of Redis, a topic of Kafka or MQTT, a queue of RabbitMQ, or a subject of
NATS, as a member of the group `--name`. Payloads are enriched concurrently, within a rate. What was
enriched is written to the table `events` in batches; what is at fault by itself, to `dead_letters`,
with its error and a reason:

    invalid   the entry is not what it should be
    failed    the enrichment failed each time, while that of others succeeded
    refused   the database does not take the row, and takes others
    crashed   --crashes processes have ended while they worked on this entry alone (Redis)

How often an entry was delivered proves nothing: while the broker, PostgreSQL or the enrichment is
out of order, entries wait. That is one line in the log, and one when it is over. `--requeue` puts
dead letters back. Entries are acknowledged after the commit. An id is an event or a dead letter,
whichever was committed first: the process may be killed at any moment, and entries may come twice.

Serve until Ctrl-C. Like SIGTERM, that drains: what was read is written, and a report is printed.
The exit status is 0, or 75 if that took too long; the rest is delivered again after a restart. A
second signal ends the process at once.
"""

import argparse
import asyncio
import logging
import signal
import sys
from dataclasses import dataclass
from typing import Any, Final

from ingest_entries import ATTEMPTS, OWN, size_of
from ingest_options import Enrich, parse
from ingest_sources import EVENTS, Reading, Source, broker_of
from ingest_store import POSTGRES, Event, Store
from ingest_watch import watched

import reactive_aio as rx

CONCURRENCY: Final = 64
BATCH_BYTES: Final = 4_000_000
DRAIN: Final = 25.0  # seconds: Kubernetes waits for 30


@dataclass(frozen=True, slots=True)
class Ingest:
    """From a broker into the store."""

    source: Source
    store: Store
    enrich: Enrich
    rate: rx.RateLimit
    batch: int
    crashes: int = 3

    def flow(self) -> rx.Flow[list[Event]]:
        """The batches that were written."""
        messages = self.source.messages.nack_on_error(
            ATTEMPTS, dead_letter=self._bury, outage=lambda error: not isinstance(error, OWN)
        )
        events = messages.map_async(
            self._enriched, concurrency=CONCURRENCY, ordered=False, timeout=10, limiter=self.rate
        )
        batches = events.buffer_timeout(self.batch, 0.1, weight=size_of, max_weight=BATCH_BYTES)
        return batches.ack_after(self.store.write).name("ingest")

    async def _enriched(self, message: Any) -> Event:
        entry = self.source.entry(message)
        id, payload = entry.checked(self.crashes)
        try:
            return Event(id, payload, await self.enrich(payload))
        finally:
            await self.source.worked([entry.where])

    async def _bury(self, message: Any, error: Exception) -> None:
        await self.store.bury(self.source.entry(message).letter(error))


async def serve(options: argparse.Namespace) -> int:
    """Ingest until a signal arrives; return the exit status."""
    limit = 2 * options.batch + CONCURRENCY
    reading = Reading(options.source, options.name, limit, options.batch, options.idle)
    async with (
        Store.opened(options.postgres) as store,
        broker_of(options.source).reading(reading) as source,
    ):
        rate = rx.RateLimit(options.rate, per=1)
        ingest = Ingest(source, store, options.enrich, rate, options.batch, options.crashes)
        flow = ingest.flow()
        print(f"reads {source.name}", flush=True)
        async with watched(flow, store, options):
            status = await rx.run_until_signal(flow, timeout=DRAIN, on_drained=print)
        print(store, flush=True)
        return status


async def requeue(options: argparse.Namespace) -> int:
    """Put dead letters back; return the exit status."""
    async with (
        Store.opened(options.postgres) as store,
        broker_of(options.source).putting_back(options.source) as put_back,
    ):
        count = await store.put_back(options.requeue, put_back)
    print(f"{count:,} dead letters were put back into {EVENTS}", flush=True)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Serve, and report in one line what ends it."""
    options = parse(argv, (__doc__ or "").partition("\n")[0])
    broker = broker_of(options.source)
    known: tuple[type[Exception], ...] = (*POSTGRES, *broker.errors)
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stdout)
    try:
        return asyncio.run(requeue(options) if options.requeue else serve(options))
    except known as error:
        is_ours = isinstance(error, POSTGRES)
        name = "PostgreSQL (--postgres)" if is_ours else f"{broker.name} (--source)"
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until it serves, Ctrl-C just ends it
    sys.exit(main())
