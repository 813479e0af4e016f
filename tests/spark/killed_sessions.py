"""Kill Spark's JVM under each way of using it, and make the next session in the same process.

It prints, as JSON, what each way ended with, and what the session after it has read.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import reactive_aio as rx
from reactive_aio.spark import (
    SparkSessionLost,
    for_each_partition,
    from_dataframe,
    from_stream,
    local_session,
    write_parquet,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow

SETTINGS = {"spark.ui.enabled": "false", "spark.sql.streaming.noDataProgressEventInterval": "1000"}


def kill() -> None:
    from pyspark import SparkContext

    untyped: Any = SparkContext
    os.kill(untyped._gateway.proc.pid, signal.SIGKILL)


async def read(flow: "Flow[Any]") -> None:
    """Kill the JVM when the first row is here."""
    count = 0
    async for _ in flow:
        count += 1
        if count == 1:
            await asyncio.to_thread(kill)


def wide(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, 300_000, 1, 30).selectExpr("id", "repeat('x', 100) as text")


async def arrow(spark: "SparkSession") -> None:
    await read(from_dataframe(wide(spark)))


async def rows(spark: "SparkSession") -> None:
    await read(from_dataframe(wide(spark), mode="rows"))


async def stream(spark: "SparkSession") -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    await read(from_stream(rate, checkpoint=tempfile.mkdtemp()))


async def partitions(spark: "SparkSession") -> None:
    pid = os.getpid()

    def kill_driver(flow: "Flow[Any]") -> "Flow[Any]":
        """In a worker: its parent's parent is the JVM, a child of this program."""
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/cmdline", "rb") as command:
                    if b"java" in command.read().split(b"\0")[0]:
                        os.kill(int(child), signal.SIGKILL)
        return flow

    await for_each_partition(spark.range(0, 100, 1, 2), kill_driver)


async def files(spark: "SparkSession") -> None:
    async def numbers() -> AsyncIterator[tuple[int]]:
        for number in range(100):
            if number == 50:
                await asyncio.to_thread(kill)
            yield (number,)

    await write_parquet(
        rx.from_aiter(numbers), spark, tempfile.mkdtemp() + "/out", "id long", batch=10
    )


WAYS: dict[str, Callable[[Any], Coroutine[Any, Any, None]]] = {
    "arrow": arrow,
    "rows": rows,
    "stream": stream,
    "partitions": partitions,
    "files": files,
    "connect": arrow,
}


def by_local_session() -> "SparkSession":
    return local_session(cores=2, quick=True, niceness=0, config=SETTINGS)


def by_builder() -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def by_remote() -> "SparkSession":
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote("local[2]").getOrCreate()


async def count(spark: "SparkSession") -> int:
    return await from_dataframe(spark.range(3)).count()


def main(ways: list[str]) -> dict[str, Any]:
    ends: dict[str, Any] = {}
    spark = by_remote() if ways == ["connect"] else by_local_session()
    for number, way in enumerate(ways):
        try:
            asyncio.run(WAYS[way](spark))
            text = "it completed"
        except SparkSessionLost as error:
            text = f"SparkSessionLost: {error}"
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        if number % 2:  # which is not needed, and does no harm
            spark.stop()
        is_before_connect = ways[number + 1 :] == ["connect"]
        make = by_remote if is_before_connect else (by_builder, by_local_session)[number % 2]
        spark = make()
        ends[way] = [text, asyncio.run(count(spark))]
    return ends


if __name__ == "__main__":
    json.dump(main(sys.argv[1:]), sys.stdout)
