"""Lose Spark sessions in every way, as a program: a JVM that is killed is lost to its process.

It prints what each flow ended with, as JSON: the type of the error, its message, and its rows.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import reactive_aio as rx
from reactive_aio.spark import (
    SparkSessionLost,
    for_each_partition,
    from_dataframe,
    local_session,
    serve_writes,
    to_dataframe,
    write_parquet,
)
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import wait_for_elements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow

UNBOUNDED = 2**40
FOR_THE_JOB_TO_START = 1.0  # seconds
Ended = tuple[str, str, list[int]]


SETTINGS = {"spark.master": "local[2,3]", "spark.driver.maxResultSize": "40m"}


def session() -> "SparkSession":
    # A task is tried three times; at a lower priority it would starve on a busy machine.
    return local_session(cores=2, quick=True, niceness=0, config=SETTINGS)


async def end_of(probe: SubscriberProbe[Any]) -> Ended:
    async with asyncio.timeout(120):  # on a busy machine a task is late by half a minute
        await probe.end()
    return type(probe.error).__name__, str(probe.error), [row[0] for row in probe.elements]


async def read(flow: "Flow[Any]") -> Ended:
    return await end_of(SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow))


async def lose(
    flows: "Sequence[Flow[Any]]", how: Callable[[], object], *, rows: int = 0
) -> list[Ended]:
    """Call *how* when jobs of all flows run and the last flow has sent *rows*."""
    probes = [SubscriberProbe[Any](1).subscribed_to(flow) for flow in flows]
    await wait_for_elements(probes[-1], rows)
    if rows == 0 or len(flows) > 1:
        await asyncio.sleep(FOR_THE_JOB_TO_START)
    await asyncio.to_thread(how)
    for probe in probes:
        probe.request(UNBOUNDED)
    return [await end_of(probe) for probe in probes]


def endless(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, 10**13, 1, 1).selectExpr("sum(id % 7)")


def wide(spark: "SparkSession") -> "DataFrame":
    """More than one window can hold."""
    return spark.range(0, 300_000, 1, 1).selectExpr("id", "repeat('x', 100) as text")


def failing_once(spark: "SparkSession") -> "DataFrame":
    """Fails in the second half of a partition, so that its first rows have been made already."""

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            if context.attemptNumber() == 0 and batch.column(0)[0].as_py() % 100 >= 50:
                raise ValueError("the first attempt")
            yield batch

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    numbers: Any = spark.range(0, 400, 1, 4)
    return cast("DataFrame", numbers.mapInArrow(fail, "id long"))


def skewed(spark: "SparkSession") -> "DataFrame":
    """Empty partitions, after which a job has many, and then large ones, of which it may have 7."""
    large = spark.range(0, 32, 1, 32).where("id >= 16")
    return large.selectExpr("id", "repeat('x', 5000000) as text")


def too_large(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, 1, 1, 1).selectExpr("id", "repeat('x', 45000000) as text")


def refused(df: "DataFrame") -> str:
    try:
        from_dataframe(df)
    except SparkSessionLost as error:
        return str(error)
    return "it was accepted"


async def refused_calls(df: "DataFrame") -> list[str]:
    async with serve_writes() as served:
        calls: list[Any] = [
            to_dataframe(rx.just((1,)), df.sparkSession, "id long"),
            write_parquet(rx.just((1,)), df.sparkSession, "nowhere", "id long"),
            for_each_partition(df, lambda rows: rows),
            served.write(df),
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
    return [f"{type(each).__name__}: {each}" for each in results]


def kill_jvm(spark: "SparkSession") -> None:
    gateway: Any = spark.sparkContext._gateway
    os.kill(gateway.proc.pid, signal.SIGKILL)


def main() -> dict[str, Any]:
    ends: dict[str, Any] = {}
    spark = session()
    ends["a task is retried"] = asyncio.run(read(from_dataframe(failing_once(spark))))
    ends["skewed partitions"] = asyncio.run(read(from_dataframe(skewed(spark))))
    ends["a partition is too large"] = asyncio.run(read(from_dataframe(too_large(spark))))
    (ends["stopped while a job runs"],) = asyncio.run(
        lose([from_dataframe(endless(spark))], spark.stop)
    )
    spark = session()
    (ends["stopped between partitions"],) = asyncio.run(
        lose([from_dataframe(spark.range(0, 40, 1, 4))], spark.stop, rows=1)
    )
    spark = session()
    df = spark.range(3)
    flow = from_dataframe(df)
    spark.stop()
    ends["stopped before from_dataframe"] = refused(df)
    ends["stopped before a call"] = asyncio.run(refused_calls(df))
    (ends["stopped before the first row"],) = asyncio.run(lose([flow], str))
    spark = session()
    flows = [from_dataframe(endless(spark)), from_dataframe(wide(spark))]
    ends["killed before the first row"], ends["killed in the last window"] = asyncio.run(
        lose(flows, partial(kill_jvm, spark), rows=1)
    )
    spark.stop()
    ends["a new session after that"] = asyncio.run(read(from_dataframe(session().range(3))))
    return ends


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
