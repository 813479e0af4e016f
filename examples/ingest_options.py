"""The command line of `ingest_service`."""

import argparse
import hashlib
import json
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import cast

from ingest_sources import broker_of

Enrich = Callable[[str], Awaitable[str]]


async def enrich(payload: str) -> str:
    """Stand in for a call of another service; `--enrich` names another function."""
    digest = hashlib.sha256(payload.encode()).hexdigest()
    return json.dumps({"words": len(payload.split()), "sha256": digest})


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


def source(url: str) -> str:
    """The URL of a broker."""
    try:
        broker_of(url)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return url


def parse(argv: list[str] | None, summary: str) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=summary)
    add, whole, number = parser.add_argument, at_least(1, int), at_least(0.1, float)
    what = "redis://127.0.0.1:6379, or kafka://, amqp://, nats://, mqtt://"
    add("--source", "--redis", type=source, required=True, metavar="URL", help=what)
    add("--postgres", required=True, metavar="DSN", help="such as postgresql://localhost/shop")
    add("--name", default="ingest", metavar="GROUP", help="the consumer group (default: ingest)")
    what = "events of a transaction (500)"
    add("--batch", type=whole, default=500, metavar="N", help=what)
    what = "entries that are enriched in a second, at most (20000)"
    add("--rate", type=number, default=20_000.0, metavar="N", help=what)
    what = "Redis: deliver again what a dead process has not acknowledged for so long (5)"
    add("--idle", type=number, default=5.0, metavar="SECONDS", help=what)
    what = "Redis: processes that have to end while each works on an entry alone, to bury it (3)"
    add("--crashes", "--deliveries", type=whole, default=3, metavar="N", help=what)
    what = "put dead letters back: all, those of a reason, or that of an id"
    add("--requeue", nargs="?", const="all", metavar="REASON|ID", help=what)
    what = "a coroutine function from payload to text, as module:function"
    add("--enrich", type=function, default=enrich, metavar="FUNCTION", help=what)
    what = "seconds from one line of figures to the next (5)"
    add("--every", type=number, default=5.0, metavar="SECONDS", help=what)
    add("--probes", type=int, metavar="PORT", help="answer /alive and /ready there")
    add("--socket", metavar="PATH", help="for python -m reactive_aio top PATH")
    return parser.parse_args(argv)
