"""The program of test_cluster.py, in a process of its own: a JVM has one context.

Run with the address of the master, the process group of a worker and a folder; prints JSON.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import from_dataframe, from_stream, local_session, serve_writes
from reactive_aio.testing.probes import SubscriberProbe

from .cluster_both_ways import BothWays
from .conftest import flow_threads, service_of, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, PARTITIONS = 24_000, 24
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
Results = dict[str, Any]


def start(master: str) -> "SparkSession":
    """Start a session on a cluster of this machine, with a Spark Connect server."""
    return local_session(
        config={
            "spark.master": master,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": QUICK,
            "spark.driver.extraJavaOptions": QUICK,
            "spark.sql.shuffle.partitions": "4",
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            # Instead of two minutes: the server ends a connection, and reading uses another one.
            "spark.connect.execute.reattachable.senderMaxStreamDuration": "300ms",
        }
    )


def connect(spark: "SparkSession") -> Any:
    """Return a session of Spark Connect on the driver of the cluster."""
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    port = service_of(spark).localPort()
    session: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=3, max_backoff=200)])
    return session


def shuffled(session: Any) -> "DataFrame":
    """Return a DataFrame whose partitions need blocks of both workers, and take 40 ms."""
    slow = "if(id % 1000 = 0, reflect('java.lang.Thread', 'sleep', 40L), '') as slept"
    df = session.range(0, ROWS, 1, 4).repartition(PARTITIONS)
    return cast("DataFrame", df.selectExpr("id", "repeat('x', 100) as text", slow))


def sleeping(session: Any) -> "DataFrame":
    df = session.range(0, 20, 1, 2)
    return cast(
        "DataFrame",
        df.selectExpr("id", "if(id = 15, reflect('java.lang.Thread', 'sleep', 600000L), '')"),
    )


def sessions(spark: "SparkSession", remote: Any) -> "dict[str, Any]":
    return {"arrow": spark, "rows": spark, "connect": remote}


async def lose_a_worker(spark: "SparkSession", remote: Any, worker: int) -> Results:
    """Read in all modes at once, and kill a worker meanwhile."""

    def build(session: Any, mode: Any) -> Any:
        return from_dataframe(shuffled(session), mode=mode, rows="tuple")

    probes = dict[str, SubscriberProbe[Any]]()
    for mode, session in sessions(spark, remote).items():
        flow = await asyncio.to_thread(build, session, mode)
        demand = UNBOUNDED if mode == "connect" else ROWS // 8
        probes[mode] = SubscriberProbe[Any](demand).subscribed_to(flow)
        await wait_for_rows(probes[mode], ROWS // 24)
    for mode in ("arrow", "rows"):
        probes[mode].request(UNBOUNDED)
    seen = {mode: len(probe.elements) for mode, probe in probes.items()}
    os.killpg(worker, signal.SIGKILL)
    results: Results = {"seen": seen}
    for mode, probe in probes.items():
        await asyncio.wait_for(probe.end(), 90)
        ids = [row[0] for row in probe.elements]
        results[mode] = [str(probe.error), len(ids), len(set(ids))]
    return results


async def cancel(spark: "SparkSession", remote: Any) -> Results:
    """Return the seconds until no job runs and no thread is left, for each mode."""
    results = dict[str, Any]()
    context = spark.sparkContext

    async def free() -> bool:
        running = await asyncio.to_thread(lambda: context.statusTracker().getActiveJobsIds())
        return not running and not flow_threads()

    for mode, session in sessions(spark, remote).items():

        def build(session: Any = session, mode: Any = mode) -> Any:
            return from_dataframe(sleeping(session), mode=mode)

        flow = await asyncio.to_thread(build)
        probe = SubscriberProbe[Any](18).subscribed_to(flow)
        await wait_for_rows(probe, 10)
        began = time.perf_counter()
        probe.cancel()
        at_once = time.perf_counter() - began
        results[mode] = [at_once, at_once + await wait_until(free)]
    return results


def ticking(spark: "SparkSession", folder: Path) -> Any:
    """Return the flow of an endless streaming query."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).load()
    return from_stream(source.select("value"), checkpoint=folder / "lost", rows="tuple")


async def lose_the_driver(spark: "SparkSession", remote: Any, folder: Path) -> Results:
    """Kill the driver's JVM, and its Spark Connect server, while rows are read."""

    def build(session: Any, mode: Any) -> Any:
        df = session.range(0, 400_000, 1, 2).selectExpr("id", "repeat('x', 100) as text")
        return from_dataframe(df, mode=mode, rows="tuple")

    probes = dict[str, SubscriberProbe[Any]]()
    for mode, session in sessions(spark, remote).items():
        flow = await asyncio.to_thread(build, session, mode)
        probes[mode] = SubscriberProbe[Any](1).subscribed_to(flow)
        await wait_for_rows(probes[mode], 1)
    flow = await asyncio.to_thread(ticking, spark, folder)
    probes["stream"] = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_for_rows(probes["stream"], 1)
    async with serve_writes(rows="tuple") as served:
        slow = await asyncio.to_thread(sleeping, spark)
        writing = asyncio.create_task(served.write(slow))
        probes["written"] = SubscriberProbe[Any](1).subscribed_to(served.rows)
        await wait_for_rows(probes["written"], 1)
        cast("Any", spark.sparkContext)._gateway.proc.kill()
        results = Results()
        for name, probe in probes.items():
            probe.request(UNBOUNDED)
            await asyncio.wait_for(probe.end(), 60)
            rows = [each[1] if name == "stream" else each for each in probe.elements]
            ids = [row[0] for row in rows]
            if name in ("stream", "written"):  # of several partitions at a time
                ids.sort()
                in_order = ids == sorted(set(ids))
            else:
                in_order = ids == [*range(len(ids))]
            results[name] = [type(probe.error).__name__, str(probe.error), in_order]
        [error] = await asyncio.gather(writing, return_exceptions=True)
        results["writing"] = [type(error).__name__, str(error), True]
    return results


async def cancel_without_server(remote: Any, flow: Any) -> float:
    """Cancel while PySpark retries the server; return the seconds until no thread is left."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    remote.client.set_retry_policies([DefaultPolicy()])  # for ten minutes
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await asyncio.sleep(1)
    probe.cancel()
    return await wait_until(lambda: not flow_threads())


async def wait_for_rows(probe: SubscriberProbe[Any], count: int) -> None:
    """Wait for rows, on a machine with six busy JVMs."""
    await wait_until(lambda: len(probe.elements) >= count, seconds=60)


def main(master: str, worker: str, folder: str) -> None:
    spark = start(master)
    remote = connect(spark)
    results: Results = {"master": spark.sparkContext.master}
    results["executors"] = spark.sparkContext.defaultParallelism
    flow = from_dataframe(remote.range(0, 9))
    results["cancelled"] = asyncio.run(cancel(spark, remote))
    results["both ways"] = asyncio.run(BothWays(spark, Path(folder)).run())
    results["worker"] = asyncio.run(lose_a_worker(spark, remote, int(worker)))
    results["driver"] = asyncio.run(lose_the_driver(spark, remote, Path(folder)))
    results["without server"] = asyncio.run(cancel_without_server(remote, flow))
    json.dump(results, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # PySpark would try to reach the server that was killed


if __name__ == "__main__":
    main(*sys.argv[1:])
