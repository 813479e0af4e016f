"""The server that is attacked: it prints its port, and its figures for each line that it reads."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import uvloop

import reactive_aio as rx
from reactive_aio.rsocket import Resumption, Router, serve

MAX_CONNECTIONS = 6000
PEAK = "VmHWM"
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def routes() -> Router:
    """What is requested of it."""
    router = Router()

    @router.route("echo")
    def echo(payload: Any) -> Any:
        return payload

    router.route("large")(lambda: bytes(100_000))
    router.route("endless")(lambda: rx.range(10**12).map(lambda _: bytes(1000)))

    @router.route("slow")
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(3)  # such as a rollback

    return router


def megabytes(name: str) -> float:
    """A figure of the memory of this process."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    [line] = [each for each in lines if each.startswith(f"{name}:")]
    return int(line.split()[1]) / 1024


async def main() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    options = {"max_connections": MAX_CONNECTIONS, "resume": Resumption()}
    async with await serve("tcp://127.0.0.1:0", routes(), **options) as server:  # type: ignore[arg-type]
        assert server.address is not None
        print(server.address.port, flush=True)
        before = megabytes("VmRSS")
        while await loop.run_in_executor(None, sys.stdin.readline):
            stats = server.stats()
            figures = {
                "connections": stats.connections,
                "held": stats.held_bytes / 2**20,
                "memory": megabytes(PEAK) - before,
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=LOOPS[sys.argv[1]]) as runner:
        runner.run(main())
