"""The command line of the ends written in Python."""

import argparse
import asyncio
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

PAYLOAD = b"twenty-six bytes of payload"[:26]
CREDIT, REFILL = 256, 192
IN_FLIGHT = 64

Work = Callable[[int], Awaitable[int]]


class End(Protocol):
    """A server and a client. Each kind of work returns the number of elements received."""

    async def serve(self) -> int:
        """Listen; return the port."""
        ...

    async def connect(self, port: int) -> dict[str, Work]:
        """Connect; return the kinds of work by name."""
        ...

    def commands(self) -> dict[str, Work]:
        """Return the kinds of work that a server does by itself."""
        ...


def main(end: End) -> None:
    """Parse the arguments, run on the selected loop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("serve", "call"))
    parser.add_argument("port", type=int, nargs="?", default=0)
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    factory: Any = None
    if options.uvloop:
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_run_commands(end, options.role, options.port))


async def _run_commands(end: End, role: str, port: int) -> None:
    works: dict[str, Work] = {}
    if role == "serve":
        _print(await end.serve())
        works = end.commands()
    else:
        works = await end.connect(port)
        _print("ready")
    commands: asyncio.Queue[str] = asyncio.Queue()
    asyncio.get_running_loop().add_reader(0, _read, commands)
    while command := await commands.get():
        match command.split():
            case ["cpu"]:
                _print(time.process_time())
            case ["peak"]:
                _print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
            case [name, count]:
                began = time.perf_counter()
                received = await works[name](int(count))
                _print(f"{received} {time.perf_counter() - began}")
            case _:
                raise ValueError(f"unknown command: {command!r}")


def _read(commands: "asyncio.Queue[str]") -> None:
    commands.put_nowait(sys.stdin.readline())


def _print(value: object) -> None:
    print(value, flush=True)


async def concurrently(count: int, request: Callable[[], Awaitable[object]], limit: int) -> int:
    """Send *count* requests, *limit* at a time."""
    responses = 0

    async def worker(share: int) -> None:
        nonlocal responses
        for _ in range(share):
            await request()
            responses += 1

    await asyncio.gather(*(worker(count // limit) for _ in range(limit)))
    return responses
