# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[spark]"]
# ///
"""A Spark DataFrame as a route of RSocket, read by three clients in processes of their own.

    python examples/rsocket_spark.py [--rows N] [--partitions N]

The fast one takes all rows at once, the slow one one at a time, and each is given rows as it asks
for them. One leaves before half of them: its job is cancelled, and the others go on.

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

# The rows of the second half take their time, whatever the machine: a job can be left in its midst.
SLOW_ROW: Final = "java_method('java.lang.Thread', 'sleep', 40L)"
AHEAD: Final = 10_000  # rows that the fast ones ask for at once
LINGER: Final = 0.5  # seconds until who has enough leaves


# -- the server ------------------------------------------------------------------------------------
class Service:
    """Serves a DataFrame, and tells what comes of each client's job."""

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self._context = df.sparkSession.sparkContext
        self.ended: dict[str, Progress] = {}
        self.all_over: asyncio.Event = asyncio.Event()

    def router(self) -> Router:
        router = Router()
        router.route("rows.{client}")(self.rows)
        return router

    async def rows(self, client: str) -> SparkFlow[dict[str, Any]]:
        # Planning talks to the JVM, which blocks: not on the loop's thread.
        return await asyncio.to_thread(self._plan, client)

    def _plan(self, client: str) -> SparkFlow[dict[str, Any]]:
        # A flow's jobs are in the group of the thread that has made it.
        self._context.setJobGroup(client, f"rows for {client}", interruptOnCancel=True)
        return from_dataframe(self._df, rows="dict", progress=partial(self._heard, client))

    def _heard(self, client: str, progress: Progress) -> None:
        if not progress.is_done:
            return
        self.ended[client] = progress
        print(
            f"server: {client} {progress.state} after {progress.rows} rows; "
            f"{progress.computed} of {progress.partitions} partitions were computed "
            f"({progress.seconds:.1f} s)",
            flush=True,
        )
        if len(self.ended) == len(CLIENTS):
            self.all_over.set()

    def jobs(self, client: str) -> Counter[str]:
        """How many jobs of a client's stand how."""
        tracker = self._context.statusTracker()
        found = (tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(client))
        return Counter(str(job.status) for job in found if job is not None)

    async def settled(self, client: str) -> Counter[str]:
        """The same, when none runs any more: Spark cancels in its own time."""
        while True:
            found = await asyncio.to_thread(self.jobs, client)
            if not found["RUNNING"]:
                return found
            await asyncio.sleep(0.05)


# -- a client --------------------------------------------------------------------------------------
async def read(uri: str, name: str, pause: float, leave_after: int | None) -> None:
    """Read rows as they can be taken, *pause* seconds for each."""
    count = 0
    async with await connect(uri, codec=JSON) as client:
        rows = client.request_stream(route=f"rows.{name}")
        async with rows.stream(prefetch=1 if pause else AHEAD) as found:
            async for _ in found:
                count += 1
                if count == leave_after:
                    await asyncio.sleep(LINGER)  # what it has asked for is being computed
                    break
                if pause:
                    await asyncio.sleep(pause)
    print(f"{name}: {count} rows{', and left' if count == leave_after else ''}", flush=True)


# -- all of it -------------------------------------------------------------------------------------
CLIENTS: Final = ("fast", "slow", "leaver")


async def start(uri: str, name: str, *options: str) -> int:
    """A client in a process of its own; how it ended."""
    command = (sys.executable, __file__, "--client", uri, "--name", name, *options)
    return await (await asyncio.create_subprocess_exec(*command)).wait()


async def demonstrate(service: Service, server: Server, rows: int) -> int:
    """Let the clients read side by side; whether all is as it should be."""
    ended = await asyncio.gather(
        start(server.uri, "fast"),
        start(server.uri, "slow", "--pause", "0.01"),
        start(server.uri, "leaver", "--leave-after", str(rows * 3 // 8)),
    )
    await service.all_over.wait()
    jobs = await service.settled("leaver")
    left = service.ended["leaver"]
    print(f"the jobs of who left: {jobs['SUCCEEDED']} were done, {jobs['FAILED']} cancelled")
    whole = [service.ended[name].rows == rows for name in ("fast", "slow")]
    cut = left.state == "cancelled" and left.computed < (left.partitions or 0)
    return 0 if all(whole) and cut and not any(ended) else 1


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
    number("--rows", default=256, help="rows to have")
    number("--partitions", default=16, help="partitions of the job")
    number("--port", default=0, help="port on this machine; 0 is any that is free")
    number("--leave-after", help="rows after which a client leaves")
    parser.add_argument("--serve", action="store_true", help="serve, and start no clients")
    parser.add_argument("--client", metavar="URI", help="be a client of that server")
    parser.add_argument("--name", default="client", help="what the client is called")
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
