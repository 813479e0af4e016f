"""``python -m benchmarks.spark.cancels [COUNT]``: how long until all is quiet after 200 cancels?

As many queries run, on two slots, and all are cancelled at once. The figures are the seconds until
no job runs and no thread is left that waited for one, and the seconds of the processor that Python
and the JVM have used until then, which do not depend on what else the machine does.

With PySpark alone, each query has a thread of its own in ``collect()``, and one thread cancels them
by their tags, one after another: there is no other way in PySpark.
"""

import argparse
import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from reactive_aio.spark import from_dataframe

from .tables import processor, session

if TYPE_CHECKING:
    from reactive_aio.spark.read_mode import ReadMode

ROUNDS = 3
THREADS = "a query without a flow"


class Figures(NamedTuple):
    """Of one round, in seconds."""

    until_quiet: float
    processor: float


def query() -> Any:
    return session().range(0, 2, 1, 2).selectExpr("reflect('java.lang.Thread', 'sleep', 600000L)")


async def wait_until(condition: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - Spark has no event for it
        await asyncio.sleep(0.02)


def jobs() -> int:
    return len(session().sparkContext.statusTracker().getActiveJobsIds())


def is_quiet() -> bool:
    names = ("from_dataframe", THREADS)
    held = any(name in each.name for each in threading.enumerate() for name in names)
    return not held and not jobs()


async def measured(count: int, cancel: Callable[[], Awaitable[None]]) -> Figures:
    await wait_until(lambda: jobs() >= count)
    await asyncio.sleep(1)
    began, used = time.perf_counter(), processor()
    await cancel()
    await wait_until(is_quiet)
    return Figures(time.perf_counter() - began, processor() - used)


async def by_flows(count: int, mode: "ReadMode") -> Figures:
    flows = [from_dataframe(query(), mode=mode, rows="tuple") for _ in range(count)]
    tasks = [asyncio.create_task(flow.first()) for flow in flows]

    async def cancel() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    return await measured(count, cancel)


async def manually(count: int, _: "ReadMode") -> Figures:
    context, errors = session().sparkContext, list[str]()

    def run(number: int) -> None:
        context.addJobTag(f"manual-{number}")
        context.setInterruptOnCancel(True)
        try:
            query().collect()
        except Exception as error:
            errors.append(str(error))

    threads = [
        threading.Thread(target=run, args=(number,), name=THREADS) for number in range(count)
    ]
    for thread in threads:
        thread.start()

    def cancel_all() -> None:
        for number in range(count):
            context.cancelJobsWithTag(f"manual-{number}")

    figures = await measured(count, lambda: asyncio.to_thread(cancel_all))
    if not all("cancelled" in each for each in errors):
        raise AssertionError(f"not cancelled: {errors}")
    return figures


WAYS: dict[str, tuple[Callable[[int, "ReadMode"], Awaitable[Figures]], "ReadMode"]] = {
    "PySpark alone": (manually, "auto"),
    "flows, mode `arrow`": (by_flows, "arrow"),
    "flows, mode `rows`": (by_flows, "rows"),
}


async def measure(count: int) -> None:
    found: dict[str, list[Figures]] = {name: [] for name in WAYS}
    for number in range(ROUNDS + 1):
        for name, (way, mode) in WAYS.items():
            figures = await way(count, mode)
            if number:  # the first round is a warm-up
                found[name].append(figures)
    print(f"{count} cancels, of {ROUNDS} rounds the least and the most, in seconds\n")
    print("| | until quiet | processor |\n|---|--:|--:|")
    for name, rounds in found.items():
        cells = [f"{min(each):.1f} to {max(each):.1f}" for each in zip(*rounds, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.cancels", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=200)
    count = parser.parse_args().count
    try:
        asyncio.run(measure(count))
    finally:
        session().stop()


if __name__ == "__main__":
    main()
