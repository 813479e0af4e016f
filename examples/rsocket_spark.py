# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[spark]"]
# ///
"""A Spark DataFrame as a route of RSocket, read by three clients in processes of their own.

    python examples/rsocket_spark.py [--rows N] [--partitions N]

The fast client requests all rows at once, the slow one requests them one at a time. A third one
leaves before half of the rows: its job is cancelled, and the others continue.

    python examples/rsocket_spark.py --serve                   only the server, until Ctrl-C
    python examples/rsocket_spark.py --client tcp://… --name me [--pause S] [--leave-after N]
"""

import argparse
import asyncio
import sys
from collections import Counter
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame

from reactive_aio.rsocket import JSON, Router, Server, connect, serve
from reactive_aio.spark import Progress, SparkFlow, ensure_java, from_dataframe, local_session

# The rows of the second half are slow on every machine, so that a job can be cancelled in it.
SLOW_ROW: Final = "java_method('java.lang.Thread', 'sleep', 40L)"
AHEAD: Final = 10_000  # rows that a fast client requests at once
LINGER: Final = 0.5  # seconds until a client that has enough leaves


# -- the server ------------------------------------------------------------------------------------
class Service:
    """Serves a DataFrame, and prints the outcome of each client's job."""

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self._context = df.sparkSession.sparkContext
        self.outcomes: dict[str, Progress] = {}
        self.all_done: asyncio.Event = asyncio.Event()

    def router(self) -> Router:
        router = Router()
        router.route("rows.{client}")(self.rows)
        return router

    async def rows(self, client: str) -> SparkFlow[dict[str, Any]]:
        # Planning calls the JVM, which blocks: not on the loop's thread.
        return await asyncio.to_thread(self._plan, client)

    def _plan(self, client: str) -> SparkFlow[dict[str, Any]]:
        # The jobs of a flow are in the group of the thread that made it.
        self._context.setJobGroup(client, f"rows for {client}", interruptOnCancel=True)
        on_progress = partial(self._on_progress, client)
        # A window of 1: partitions are computed when one of their rows is requested.
        return from_dataframe(self._df, rows="dict", window=1, progress=on_progress)

    def _on_progress(self, client: str, progress: Progress) -> None:
        if not progress.is_done:
            return
        self.outcomes[client] = progress
        print(
            f"server: {client} {progress.state} after {progress.rows} rows; "
            f"{progress.computed} of {progress.partitions} partitions were computed "
            f"({progress.seconds:.1f} s)",
            flush=True,
        )
        if len(self.outcomes) == len(CLIENTS):
            self.all_done.set()

    def jobs(self, client: str) -> Counter[str]:
        """Return how many jobs of a client have each status."""
        tracker = self._context.statusTracker()
        found = (tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(client))
        return Counter(str(job.status) for job in found if job is not None)

    async def finished_jobs(self, client: str) -> Counter[str]:
        """Return the same when no job runs any more: Spark cancels asynchronously."""
        while True:
            found = await asyncio.to_thread(self.jobs, client)
            if not found["RUNNING"]:
                return found
            await asyncio.sleep(0.05)


# -- a client --------------------------------------------------------------------------------------
async def read(uri: str, name: str, pause: float, leave_after: int | None) -> None:
    """Read rows, with *pause* seconds after each."""
    count = 0
    async with await connect(uri, codec=JSON) as client:
        rows = client.request_stream(route=f"rows.{name}")
        async with rows.stream(prefetch=1 if pause else AHEAD) as found:
            async for _ in found:
                count += 1
                if count == leave_after:
                    await asyncio.sleep(LINGER)  # the requested rows are being computed
                    break
                if pause:
                    await asyncio.sleep(pause)
    print(f"{name}: {count} rows{', and left' if count == leave_after else ''}", flush=True)


# -- the demonstration -----------------------------------------------------------------------------
CLIENTS: Final = ("fast", "slow", "leaver")


async def start(uri: str, name: str, *options: str) -> int:
    """Run a client in a process of its own; return its exit status."""
    command = (sys.executable, __file__, "--client", uri, "--name", name, *options)
    return await (await asyncio.create_subprocess_exec(*command)).wait()


async def demonstrate(service: Service, server: Server, rows: int) -> int:
    """Run the clients concurrently; return 0 if each outcome is the expected one."""
    statuses = await asyncio.gather(
        start(server.uri, "fast"),
        start(server.uri, "slow", "--pause", "0.01"),
        start(server.uri, "leaver", "--leave-after", str(rows * 3 // 8)),
    )
    await service.all_done.wait()
    jobs = await service.finished_jobs("leaver")
    cancelled = service.outcomes["leaver"]
    print(f"jobs of the leaver: {jobs['SUCCEEDED']} succeeded, {jobs['FAILED']} were cancelled")
    is_whole = [service.outcomes[name].rows == rows for name in ("fast", "slow")]
    is_cut = cancelled.state == "cancelled" and cancelled.computed < (cancelled.partitions or 0)
    return 0 if all(is_whole) and is_cut and not any(statuses) else 1


async def run(df: DataFrame, options: argparse.Namespace) -> int:
    service = Service(df)
    async with await serve(f"tcp://127.0.0.1:{options.port}", service.router()) as server:
        print(f"serving {options.rows} rows at {server.uri}", flush=True)
        if options.serve:
            await asyncio.Event().wait()
        return await demonstrate(service, server, options.rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A Spark DataFrame as a route of RSocket.")
    number = partial(parser.add_argument, type=int, metavar="N")
    number("--rows", default=256, help="rows to serve")
    number("--partitions", default=16, help="partitions of the job")
    number("--port", default=0, help="port on this machine; 0 chooses a free one")
    number("--leave-after", help="rows after which a client leaves")
    parser.add_argument("--serve", action="store_true", help="serve, and start no clients")
    parser.add_argument("--client", metavar="URI", help="be a client of that server")
    parser.add_argument("--name", default="client", help="the name of the client")
    parser.add_argument("--pause", type=float, default=0.0, metavar="S", help="seconds for a row")
    options = parser.parse_args(argv)
    if options.client:
        asyncio.run(read(options.client, options.name, options.pause, options.leave_after))
        return 0
    print(ensure_java())
    spark = local_session("rsocket_spark")
    try:
        numbers = spark.range(0, options.rows, 1, options.partitions)
        wait = f"if(id < {options.rows // 2}, '', {SLOW_ROW})"
        df = numbers.selectExpr("id", "id * id as square", f"{wait} as waited")
        return asyncio.run(run(df, options))
    except KeyboardInterrupt:
        return 130
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
