"""``python -m benchmarks.spark.service``: the service of flights with 20 clients, some slow.

The clients run in a process of their own. The loop measures its lateness every 5 ms. An idle loop
in a third process does so at the same time: that is the minimum for any program on a busy machine.
The CPU time that the service's thread used meanwhile is the part that the service itself causes.
"""

import argparse
import asyncio
import os
import platform
import socket
import statistics
import sys
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
EVERY: Final = 0.005
SLOW: Final = 8
FAST: Final = 12


class Lateness:
    """Measures repeatedly by how many milliseconds the loop runs a timer too late."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.worked: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._next = self._plan()

    def _plan(self) -> asyncio.TimerHandle:
        now, worked = time.perf_counter(), time.thread_time()
        return self._loop.call_later(EVERY, self._measure, now, worked)

    def _measure(self, began: float, worked: float) -> None:
        self.lags.append((time.perf_counter() - began - EVERY) * 1000)
        self.worked.append(max(0.0, time.thread_time() - worked - EVERY) * 1000)
        self._next = self._plan()

    def stop(self) -> "Lateness":
        self._next.cancel()
        return self


def summary(found: list[float]) -> str:
    cuts = statistics.quantiles(found, n=1000)
    return f"p50 {cuts[499]:.1f} ms, p99 {cuts[989]:.1f} ms, maximum {max(found):.1f} ms"


# -- the other processes ---------------------------------------------------------------------------
async def idle() -> None:
    """Run an idle loop until the input ends."""
    lateness = Lateness()
    await asyncio.to_thread(sys.stdin.read)
    print(summary(lateness.stop().lags))


async def clients(port: int, query: str) -> None:
    os.nice(10)
    """Read everything, at full speed or slowly; print the lines that were read."""
    slow = [asyncio.ensure_future(client(port, query, pause=0.2)) for _ in range(SLOW)]
    counts = await asyncio.gather(*(client(port, query) for _ in range(FAST)))
    for each in slow:
        each.cancel()
    await asyncio.wait(slow)
    print(sum(counts))


async def client(port: int, query: str, pause: float = 0.0) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
    writer.write(f"GET /flights?{query} HTTP/1.0\r\n\r\n".encode())
    lines = 0
    try:
        while data := await reader.read(2**14):
            lines += data.count(b"\n")
            await asyncio.sleep(pause)
    finally:
        writer.close()
    return lines


# -- the service -----------------------------------------------------------------------------------
async def measure(app: Any, query: str) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0), backlog=100)
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
    serving = asyncio.ensure_future(server.serve([listening]))
    for round_ in ("warm up", "measured"):
        before = memory()
        other, callers = await start("idle"), await start("clients", str(port), query)
        lateness = Lateness()
        began = time.perf_counter()
        rows = int((await callers.communicate())[0])
        took = time.perf_counter() - began
        lateness.stop()
        bare = (await other.communicate(b""))[0].decode().strip()
        print(f"{round_}: {rows:,} rows in {took:.1f} s to {FAST} clients, {SLOW} slow ones wait")
        print(f"  the service's loop is late by: {summary(lateness.lags)}")
        print(f"  of that its own CPU time:      {summary(lateness.worked)}")
        print(f"  an idle loop beside it:        {bare}")
        print(f"  Python's memory: {memory() - before:+} MB; load {os.getloadavg()[0]:.1f}")
    server.should_exit = True
    await serving


async def start(*options: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "benchmarks.spark.service", *options]
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe)


def memory() -> int:
    """Return the memory in MB; 0 where it is unknown."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return int(status.read_text("ascii").partition("VmRSS:")[2].split()[0]) // 1024


def serve(rows: int, query: str) -> None:
    sys.path.insert(0, str(ROOT / "examples"))
    example: Any = import_module("spark_service")
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    with TemporaryDirectory(prefix="flights-") as folder:
        options = argparse.Namespace(rows=rows, partitions=0)
        spark, flights = example.start(options, Path(folder))
        try:
            asyncio.run(measure(example.application(flights), query))
        finally:
            spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.service", description=__doc__)
    parser.add_argument("part", nargs="*", help="for the benchmark's own processes")
    parser.add_argument("--rows", type=int, default=60_000, help="flights to serve")
    parser.add_argument("--query", default="min_delay=15", help="the query of every client")
    options = parser.parse_args()
    match options.part:
        case ["idle"]:
            asyncio.run(idle())
        case ["clients", port, query]:
            asyncio.run(clients(int(port), query))
        case _:
            serve(options.rows, options.query)


if __name__ == "__main__":
    main()
