# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[spark]", "httpx>=0.27"]
# ///
"""A DataFrame enriched over HTTP: 64 concurrent look-ups in each of Spark's tasks.

    python examples/spark_enrich.py [--rows N] [--rate N] [--slow N]

A server on this machine answers after 20 ms. It refuses more than `--rate` requests a second (429),
and fails three requests in a hundred (503). The same DataFrame is enriched in three ways:

* by `map_flow`: 64 requests at a time in each task, at the permitted rate, and three attempts;
* by `mapPartitions` and a manual event loop: as many requests at a time, which is all that such
  code usually limits, and a loop for the attempts;
* by a Python UDF, row by row, for the first `--slow` rows.

Each prints the rows per second, and how many requests the server has refused and failed.
"""

import argparse
import asyncio
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, cast

import httpx
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import udf

from reactive_aio import Flow, RateLimit, RetryPolicy
from reactive_aio.spark import local_session, map_flow

TASKS: Final = 2
CONCURRENCY: Final = 64
LATENCY: Final = 0.02
ATTEMPTS: Final = 8
SCHEMA: Final = "id long, name string"


# -- the server ------------------------------------------------------------------------------------
@dataclass
class Names:
    """Answers ``GET /ID`` with a name; it has a thread of its own."""

    rate: int
    counts: Counter[int] = field(default_factory=Counter[int])
    """The responses by status."""
    _recent: deque[float] = field(default_factory=deque[float])
    _thread: threading.Thread = field(init=False)
    _stop: Callable[[], object] = field(init=False)

    def __enter__(self) -> str:
        """Serve inside the ``with``; return the address."""
        port = Future[int]()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(port)))
        self._thread.start()
        return f"http://127.0.0.1:{port.result()}"

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join()

    async def _serve(self, port: Future[int]) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1024)
        port.set_result(server.sockets[0].getsockname()[1])
        await stopped.wait()
        server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                name = head.split(b" ", 2)[1].decode().lstrip("/")
                status, reason = self._status()
                if status == 200:
                    await asyncio.sleep(LATENCY)
                body = f"name {name}".encode()
                writer.write(
                    f"HTTP/1.1 {status} {reason}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has closed the connection, or the server stops
        finally:
            writer.close()

    def _status(self) -> tuple[int, str]:
        now = time.monotonic()
        while self._recent and self._recent[0] < now - 1:
            self._recent.popleft()
        status, reason = 200, "OK"
        if len(self._recent) >= self.rate:
            status, reason = 429, "Too Many Requests"
        else:
            self._recent.append(now)
            if sum(self.counts.values()) % 100 in (3, 33, 66):
                status, reason = 503, "Service Unavailable"
        self.counts[status] += 1
        return status, reason


# -- the client ------------------------------------------------------------------------------------
def open_client() -> httpx.AsyncClient:
    """A client that keeps a connection for each request in flight."""
    limits = httpx.Limits(max_keepalive_connections=CONCURRENCY)
    return httpx.AsyncClient(limits=limits, verify=False, trust_env=False)


# -- three ways ------------------------------------------------------------------------------------
def by_map_flow(df: DataFrame, url: str, rate: int) -> DataFrame:
    """Look up each row by a flow; the client is opened once in each worker."""
    client = map_flow.resources(open_client)
    limit = RateLimit(rate / TASKS * 0.9)  # of each task
    retry = RetryPolicy(attempts=ATTEMPTS, delay=0.05, only=httpx.HTTPStatusError)

    async def look_up(row: Row) -> tuple[int, str]:
        response = await (await client()).get(f"{url}/{row.id}")
        response.raise_for_status()
        return (row.id, response.text)

    def named(rows: Flow[Row]) -> Flow[tuple[int, str]]:
        return rows.map_async(look_up, concurrency=CONCURRENCY, retry=retry, limiter=limit)

    return map_flow(df, named, SCHEMA)


def by_event_loop(df: DataFrame, url: str) -> DataFrame:
    """Look up the rows of a partition on an event loop, all of which are in memory meanwhile."""

    async def look_up(client: httpx.AsyncClient, slots: asyncio.Semaphore, row: Row) -> Any:
        async with slots:
            for attempt in range(ATTEMPTS):
                response = await client.get(f"{url}/{row.id}")
                if response.status_code == 200:
                    return (row.id, response.text)
                await asyncio.sleep(0.05 * 2**attempt)
            raise RuntimeError(f"no name for {row.id}")

    async def all_of(rows: Iterable[Row]) -> list[Any]:
        slots = asyncio.Semaphore(CONCURRENCY)
        async with open_client() as client:
            return await asyncio.gather(*[look_up(client, slots, row) for row in rows])

    def partition(rows: Iterable[Row]) -> Iterator[Any]:
        return iter(asyncio.run(all_of(rows)))

    session: Any = df.sparkSession
    return cast("DataFrame", session.createDataFrame(df.rdd.mapPartitions(partition), SCHEMA))


def by_udf(df: DataFrame, url: str) -> DataFrame:
    """Look up row by row: a task waits for each answer."""

    def look_up(number: int) -> str:
        for attempt in range(ATTEMPTS):
            try:
                with urllib.request.urlopen(f"{url}/{number}", timeout=10) as response:
                    return str(response.read().decode())
            except urllib.error.HTTPError as error:
                error.close()
                time.sleep(0.05 * 2**attempt)
        raise RuntimeError(f"no name for {number}")

    return df.select("id", udf(look_up, "string", useArrow=False)("id").alias("name"))


# -- the comparison --------------------------------------------------------------------------------
def measure(way: str, make: Callable[[], DataFrame], server: Names, rows: int) -> bool:
    """Run one way, print what it took, and return whether every row has its name."""
    server.counts.clear()
    began = time.perf_counter()
    found = make().collect()
    seconds = time.perf_counter() - began
    counts = server.counts
    print(
        f"{way:32} {rows / seconds:7.0f} rows/s, {counts[429]:4} refused, {counts[503]:3} failed",
        flush=True,
    )
    return sorted(found) == [Row(id=n, name=f"name {n}") for n in range(rows)]


def run(spark: SparkSession, options: argparse.Namespace) -> bool:
    server = Names(options.rate)
    df = spark.range(0, options.rows, 1, TASKS)
    few = spark.range(0, options.slow, 1, TASKS)
    with server as url:
        # Starts the workers.
        by_map_flow(spark.range(0, TASKS, 1, TASKS), url, options.rate).collect()
        results = [
            measure("map_flow", lambda: by_map_flow(df, url, options.rate), server, options.rows),
            measure(
                "mapPartitions, an event loop", lambda: by_event_loop(df, url), server, options.rows
            ),
            measure("a UDF, row by row", lambda: by_udf(few, url), server, options.slow),
        ]
    return all(results)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A DataFrame enriched over HTTP, in three ways.")
    parser.add_argument("--rows", type=int, default=1500, metavar="N", help="rows to look up")
    parser.add_argument("--rate", type=int, default=800, metavar="N", help="requests a second")
    parser.add_argument("--slow", type=int, default=200, metavar="N", help="rows for the UDF")
    options = parser.parse_args(argv)
    spark = local_session("spark_enrich", cores=TASKS)
    try:
        return 0 if run(spark, options) else 1
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
