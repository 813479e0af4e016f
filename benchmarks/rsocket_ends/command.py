"""The command line of an end that is written in Python."""

import argparse
import asyncio
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

PAYLOAD = b"twenty-six bytes of payload"[:26]
CREDIT, REFILL = 256, 192
AT_ONCE = 64

Work = Callable[[int], Awaitable[int]]


class End(Protocol):
    """One way to serve and to call. Each kind of work returns how many elements came."""

    async def serve(self) -> int:
        """Listen; the port."""
        ...

    async def connect(self, port: int) -> dict[str, Work]:
        """What may be asked for, by name."""
        ...


def main(end: End) -> None:
    """Parse the arguments, run on the loop asked for."""
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
        runner.run(_obey(end, options.role, options.port))


async def _obey(end: End, role: str, port: int) -> None:
    works: dict[str, Work] = {}
    if role == "serve":
        _say(await end.serve())
    else:
        works = await end.connect(port)
        _say("ready")
    orders: asyncio.Queue[str] = asyncio.Queue()
    asyncio.get_running_loop().add_reader(0, _read, orders)
    while order := await orders.get():
        match order.split():
            case ["cpu"]:
                _say(time.process_time())
            case ["peak"]:
                _say(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
            case [name, count]:
                began = time.perf_counter()
                came = await works[name](int(count))
                _say(f"{came} {time.perf_counter() - began}")
            case _:
                raise ValueError(f"what is {order!r}?")


def _read(orders: "asyncio.Queue[str]") -> None:
    orders.put_nowait(sys.stdin.readline())


def _say(what: object) -> None:
    print(what, flush=True)


async def at_once(count: int, ask: Callable[[], Awaitable[object]], most: int) -> int:
    """Ask *count* times, *most* at a time."""
    answers = 0

    async def worker(share: int) -> None:
        nonlocal answers
        for _ in range(share):
            await ask()
            answers += 1

    await asyncio.gather(*(worker(count // most) for _ in range(most)))
    return answers
