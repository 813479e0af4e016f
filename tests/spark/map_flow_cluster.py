"""The program of test_map_flow_thorough.py, in a process of its own: a JVM has one context.

Run with the address of the master, the process group of a worker and a folder; prints JSON.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reactive_aio.spark import for_each_partition, map_flow, spark_task

from .cluster_driver import start
from .conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, Row, SparkSession

    from reactive_aio import Flow

ROOT = Path(__file__).parents[2]
ROWS, PARTITIONS = 4000, 8


async def look_up(row: "Row") -> tuple[int, int]:
    await asyncio.sleep(0.01)
    return (row.id, row.id * 2)


def looked_up(rows: "Flow[Row]") -> "Flow[tuple[int, int]]":
    return rows.map_async(look_up, concurrency=4)


def saving(folder: Path) -> "Callable[[Flow[Row]], Flow[Any]]":
    """Return a sink that says in files which attempts have begun."""
    name = str(folder)
    look = look_up  # by value: the workers have no tests

    def save(rows: "Flow[Row]") -> "Flow[Any]":
        task = spark_task()
        Path(name, f"{task.partition}-{task.attempt}").touch()
        return rows.map_async(look, concurrency=4)

    return save


async def lose_a_worker(df: "DataFrame", worker: int, folder: Path) -> dict[str, Any]:
    task = asyncio.create_task(for_each_partition(df, saving(folder)))
    await wait_until(lambda: len(os.listdir(folder)) >= 3)
    os.killpg(worker, signal.SIGKILL)
    results = await asyncio.wait_for(task, 120)
    return {
        "partitions": [each.partition for each in results],
        "elements": sum(each.elements for each in results),
        "begun": sorted(os.listdir(folder)),
    }


def send_package(spark: "SparkSession", folder: Path) -> None:
    """Send this package with the job, as the error of a worker without it says."""
    archive = shutil.make_archive(str(folder / "it"), "zip", ROOT, "reactive_aio")
    spark.sparkContext.addPyFile(archive)


def main(master: str, worker: str, folder: str) -> None:
    from pyspark import cloudpickle

    untyped: Any = cloudpickle
    untyped.register_pickle_by_value(sys.modules[__name__])
    spark = start(master)
    send_package(spark, Path(folder))
    df = spark.range(0, ROWS, 1, PARTITIONS)
    marks = Path(folder, "marks")
    marks.mkdir()
    mapped: Any = map_flow(df, looked_up, "id long, twice long")
    total = mapped.selectExpr("count(*)", "sum(twice)").first()
    results = asyncio.run(lose_a_worker(df, int(worker), marks))
    json.dump({"mapped": list(total), "sink": results}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
