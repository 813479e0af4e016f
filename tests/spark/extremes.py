"""Programs of test_large_rows.py, each in a process of its own; they print JSON."""

import asyncio
import json
import resource
import sys
import threading
import time
from tempfile import mkdtemp
from typing import Any

import reactive_aio as rx
from reactive_aio.spark import SparkSessionLost, from_dataframe, local_session, write_parquet
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import FAST, connected, flow_threads, wait_for_elements, wait_until

MIB = 1 << 20
FLOWS = 200
SERVER = {**FAST, "spark.connect.grpc.arrow.maxBatchSize": "4m"}  # as docs/spark.md advises


def session(memory: str = "1g", mode: str = "arrow") -> Any:
    config = {"spark.driver.memory": memory, **(SERVER if mode == "connect" else {})}
    spark = local_session(cores=2, quick=True, niceness=0, config=config)
    return connected(spark) if mode == "connect" else spark


def strings(spark: Any, rows: int, megabytes: int) -> Any:
    text = f"repeat('x', {megabytes * MIB}) as text"
    return spark.range(0, rows, 1, 1).selectExpr("id", text)


def peak() -> int:
    """Return the largest size of this process, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def memory(mode: Any) -> Any:
    """Read 500 MB of large strings, of one partition, by ``async for``."""
    spark = session("6g", mode)
    asyncio.run(from_dataframe(spark.range(9), mode=mode).run())  # what is imported counts not
    before = peak()

    async def read() -> int:
        count = 0
        async for row in from_dataframe(strings(spark, 50, 10), mode=mode, rows="tuple"):
            count += len(row[1]) == 10 * MIB
        return count

    return {"rows": asyncio.run(read()), "megabytes": peak() - before}


def threads(mode: Any) -> Any:
    """Let many flows wait for demand, and cancel them."""
    spark = session()
    df = spark.range(0, 1000, 1, 4)
    flows = [from_dataframe(df, mode=mode, rows="tuple") for _ in range(FLOWS)]

    async def wait() -> Any:
        before = threading.active_count()
        probes = [SubscriberProbe[Any](1).subscribed_to(flow) for flow in flows]
        for probe in probes:
            await wait_for_elements(probe, 1)
        # Threads without a call end after a second.
        await wait_until(lambda: threading.active_count() < before + 20)
        count, rows = threading.active_count(), sum(len(probe.elements) for probe in probes)
        began = time.monotonic()
        for probe in probes:
            probe.cancel()
        await wait_until(lambda: threading.active_count() <= before + 1)
        return {
            "threads": count, "rows": rows, "seconds until quiet": time.monotonic() - began
        }  # fmt: skip

    return asyncio.run(wait())


def cancels(mode: Any) -> Any:
    """Cancel many running queries at once."""
    spark = session()
    sleep = "reflect('java.lang.Thread', 'sleep', 600000L)"
    df = spark.range(0, 2, 1, 2).selectExpr(sleep)
    flows = [from_dataframe(df, mode=mode) for _ in range(FLOWS)]
    tracker = spark.sparkContext.statusTracker()

    async def wait() -> Any:
        probes = [SubscriberProbe[Any](1).subscribed_to(flow) for flow in flows]
        await wait_until(lambda: len(tracker.getActiveJobsIds()) >= FLOWS)
        began = time.monotonic()
        for probe in probes:
            probe.cancel()
        await wait_until(lambda: not flow_threads() and not tracker.getActiveJobsIds())
        return {"seconds until quiet": time.monotonic() - began}

    return asyncio.run(wait())


def out_of_memory(mode: Any) -> Any:
    spark = session("600m")

    async def use() -> None:
        if mode != "write":
            await from_dataframe(strings(spark, 100, 20), mode=mode).run()
            return
        row = (b"x" * (300 * MIB),)  # the thread that starts tasks has no memory for it
        await write_parquet(rx.just(row), spark, f"{mkdtemp()}/out", "content binary")

    try:
        asyncio.run(use())
    except SparkSessionLost as error:
        return type(error).__name__, str(error)
    return "None", "it had enough"


if __name__ == "__main__":
    programs = {
        "memory": memory, "threads": threads, "cancels": cancels, "out of memory": out_of_memory
    }  # fmt: skip
    print(json.dumps(programs[sys.argv[1]](sys.argv[2])), flush=True)  # noqa: T201
