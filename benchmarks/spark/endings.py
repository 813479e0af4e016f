"""``python -m benchmarks.spark.endings``: how long does a cancellation take?

A task that reads a flow is cancelled while Spark computes for it. The results are the milliseconds
until that task has ended, until all threads of the subscription have ended, and until no task of
Spark's occupies a slot.
"""

import argparse
import asyncio
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from reactive_aio.spark import from_dataframe, local_session

from .tables import CONNECT, connected

if TYPE_CHECKING:
    from reactive_aio.spark.read_mode import ReadMode

Times = tuple[float, float, float]
Make = Callable[[Any], Any]


def sleeping(session: Any) -> Any:
    return session.range(0, 2, 1, 2).selectExpr("reflect('java.lang.Thread', 'sleep', 600000L)")


def computing(session: Any) -> Any:
    return session.range(0, 10**13, 1, 2).selectExpr("sum(id % 7)")


def python(session: Any) -> Any:
    """Return a job that sleeps in a Python function."""
    from pyspark.sql.types import LongType

    def sleep(number: int) -> int:
        import time

        time.sleep(600)
        return number

    session.udf.register("sleep_in_python", sleep, LongType())
    return session.range(0, 2, 1, 2).selectExpr("sleep_in_python(id)")


TASKS: dict[str, tuple[Make, int]] = {
    "sleeping in the JVM": (sleeping, 20),
    "computing in the JVM": (computing, 20),
    "a Python function": (python, 6),
}


class Spark:
    """Both sessions on one JVM, and the number of its running tasks."""

    def __init__(self) -> None:
        self.classic: Any = local_session("endings", cores=2, config=CONNECT)
        self.remote: Any = connected(self.classic)
        self._store = self.classic._jsparkSession.sparkContext().statusStore()

    def session(self, mode: str) -> Any:
        return self.remote if mode == "connect" else self.classic

    async def busy(self) -> int:
        """Return the number of running tasks."""
        return await asyncio.to_thread(
            lambda: cast("int", self._store.executorList(True).apply(0).activeTasks())
        )

    def stop(self) -> None:
        self.remote.stop()
        self.classic.stop()


def threads() -> bool:
    return any("from_dataframe" in each.name for each in threading.enumerate())


async def once(spark: Spark, mode: "ReadMode", make: Make) -> Times:
    flow = await asyncio.to_thread(lambda: from_dataframe(make(spark.session(mode)), mode=mode))
    task = asyncio.create_task(flow.run())
    while not await spark.busy():  # noqa: ASYNC110 - Spark has no event to wait for
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    began = time.perf_counter()
    task.cancel()
    await asyncio.wait([task])
    returned = time.perf_counter() - began
    threads_ended = 0.0
    while True:
        if not threads_ended and not threads():
            threads_ended = time.perf_counter() - began
        if threads_ended and not await spark.busy():
            return returned, threads_ended, time.perf_counter() - began
        await asyncio.sleep(0.002)


def summary(times: list[float]) -> str:
    return f"{1000 * median(times):.1f} / {1000 * max(times):.0f}"


async def measure(spark: Spark, share: float) -> None:
    print("| tasks | mode | of | cancelled | threads ended | slots free |")
    print("|---|---|--:|--:|--:|--:|")
    for name, (make, rounds) in TASKS.items():
        modes: tuple[ReadMode, ...] = ("arrow", "rows", "connect")
        for mode in modes:
            count = max(1, round(rounds * share))
            found = [await once(spark, mode, make) for _ in range(count)]
            cells = " | ".join(summary(list(column)) for column in zip(*found, strict=True))
            print(f"| {name} | {mode} | {count} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the rounds")
    share = parser.parse_args().share
    spark = Spark()
    try:
        print("Milliseconds, median / longest\n")
        asyncio.run(measure(spark, share))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
