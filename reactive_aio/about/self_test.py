"""The self-test: small flows with real threads, tasks and sockets, on each event loop."""

import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

import anyio

from .._sources.asynchronous import from_aiter
from .._sources.thread import from_thread
from .._sources.values import range as numbers
from ..rsocket import JSON, Router, connect, serve
from ..spec import Subscription

__all__ = ("CHECKS", "Outcome", "loops", "run")

TIMEOUT: Final = 15.0
"""Seconds for all checks on one loop. They take a tenth of one; a check that hangs takes all."""


class SelfTestFailed(Exception):
    """A flow did not do what it has to do."""


@dataclass(slots=True)
class Outcome:
    """What became of the checks on one loop."""

    loop: str
    passed: list[str] = field(default_factory=list[str])
    failed: str = ""
    """The check that has failed, after which no other is started."""
    error: str | None = None
    seconds: float = 0.0


def loops() -> list[str]:
    """The event loops that are installed."""
    return ["asyncio", "uvloop"] if find_spec("uvloop") else ["asyncio"]


def run(loop: str) -> Outcome:
    """Run each check on a new event loop, up to the first one that fails."""
    outcome = Outcome(loop)
    options = {"use_uvloop": True} if loop == "uvloop" else {}
    began = time.perf_counter()
    try:
        anyio.run(_run_all, outcome, backend_options=options)
    # Whatever it raises is the result: this is a report, not a part of a program.
    except Exception:
        outcome.error = traceback.format_exc()
    outcome.seconds = time.perf_counter() - began
    return outcome


async def _run_all(outcome: Outcome) -> None:
    with anyio.fail_after(TIMEOUT):
        for name, check in CHECKS.items():
            outcome.failed = name
            await check()
            _expect("tasks left", len(anyio.get_running_tasks()), 1)
            outcome.passed.append(name)
    outcome.failed = ""


def _expect(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise SelfTestFailed(f"{what}: {expected!r} was expected, and {actual!r} came")


# -- the checks ------------------------------------------------------------------------------------
class _Receiver:
    """Requests two elements, and remembers what arrives."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.has_two = anyio.Event()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(2)

    def on_next(self, element: int) -> None:
        self.received.append(element)
        if len(self.received) >= 2:
            self.has_two.set()

    def on_error(self, error: BaseException) -> None:
        raise error

    def on_complete(self) -> None: ...


async def _demand() -> None:
    receiver = _Receiver()
    numbers(10).map(lambda n: n * n).boundary(4).subscribe(receiver)
    await receiver.has_two.wait()
    # A third element without demand would arrive in one of these turns of the loop.
    await anyio.wait_all_tasks_blocked()
    receiver.subscription.cancel()
    _expect("elements for two requested", receiver.received, [0, 1])


async def _coroutines() -> None:
    async def double(number: int) -> int:
        await anyio.sleep(0.001 * (4 - number))
        return 2 * number

    doubled = await numbers(4).map_async(double, concurrency=4).to_list()
    _expect("results, in order", doubled, [0, 2, 4, 6])


async def _threads() -> None:
    _expect("the sum from a thread", await from_thread(range(100)).sum(), 4950)


async def _cancellation() -> None:
    closed: list[str] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append("closed")

    async with from_aiter(endless).stream() as elements:
        async for _ in elements:
            break
    _expect("the source, after the loop was left", closed, ["closed"])


async def _network() -> None:
    router = Router()

    def count(to: int) -> Any:
        return numbers(to)

    router.route("count.{to}")(count)
    scheme = "ws" if find_spec("websockets") else "tcp"
    async with (
        await serve(f"{scheme}://127.0.0.1:0", router) as server,
        await connect(server.uri, codec=JSON) as requester,
    ):
        stream = requester.request_stream(route="count.1000000")
        _expect("elements over a socket", await stream.take(3).to_list(), [0, 1, 2])


CHECKS: Final[dict[str, Callable[[], Awaitable[None]]]] = {
    "demand": _demand,
    "coroutines": _coroutines,
    "threads": _threads,
    "cancellation": _cancellation,
    "RSocket on 127.0.0.1": _network,
}
"""By the name in the report."""
