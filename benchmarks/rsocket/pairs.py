"""Runs pairs of processes interleaved: a server and a client, over TCP on loopback.

The costs of an element are the CPU time of the busier process, and the elapsed time. Both are
compared with the limit's of the same round: frames of raw asyncio, written in batches.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Final, Self

from ..runner.cases import Effort, Kind, Row
from ..runner.question import Measurable

HERE: Final = Path(__file__).parent / "ends"


class Missing(Exception):
    """This machine lacks what an end needs."""


@cache
def rsocket_js() -> tuple[str, str]:
    """Return Node and the folder of rsocket-js, which the tests install."""
    try:
        from tests.node import packages
    except ImportError as error:
        raise Missing(f"the tests' packages cannot be installed: {error}") from None
    try:
        found = packages.install(packages.HERE / "alpha")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Missing(f"{error}") from None
    return found.node, str(found.modules)


def command(end: str) -> tuple[list[str], dict[str, str]]:
    """Return the command of the end *end*: a module, with its options, or ``js``.

    An option is a package that the end needs, ``--each`` or ``--credit``.
    """
    name, *options = end.split()
    if name == "js":
        node, modules = rsocket_js()
        return [node, str(HERE / "js.cjs")], {"NODE_PATH": modules}
    for needed in ["rsocket"] if name == "pypi" else [each.strip("-") for each in options]:
        if needed not in ("each", "credit", "buffer") and find_spec(needed) is None:
            raise Missing(f"{needed} is not installed")
    module = name if "." in name else f"benchmarks.rsocket.ends.{name}"
    return [sys.executable, "-m", module, *options], {}


class End:
    """A process that reads commands, one per line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, end: str, *arguments: str) -> Self:
        program, environment = command(end)
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *program, *arguments, stdin=pipe, stdout=pipe, env=os.environ | environment
            )
        )

    async def read(self) -> str:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("an end of the connection has exited")
        return line.decode().strip()

    async def command(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        return await self.read()

    async def cpu(self) -> float:
        return float(await self.command("cpu"))

    async def memory(self) -> int:
        """Return the bytes that the process has in memory now; its peak where that is unknown."""
        found = _resident(self._process.pid)
        return int(await self.command("peak")) if found is None else found

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.communicate()


def _resident(pid: int) -> int | None:
    """Return the bytes that the process *pid* has in memory, where the system reports them."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    return int(status.read_text("ascii").partition("VmRSS:")[2].split()[0]) * 1024


@dataclass(frozen=True)
class Case:
    """An end and its work, with a *share* of the elements where all would take too long."""

    name: str
    end: str
    work: str
    share: float = 1.0
    goal: float | None = None
    """The ratio to the limit that its CPU time should reach."""

    @property
    def kind(self) -> Kind:
        return "ours" if self.end.startswith("ours") else "other" if "raw" in self.end else "peer"


@dataclass(frozen=True)
class Spent:
    """The cost of one element in microseconds: CPU time of the busier end, elapsed time."""

    cpu: float
    wall: float


class Pair:
    """Both ends of one connection."""

    def __init__(self, server: End, client: End) -> None:
        self._server = server
        self._client = client

    @classmethod
    async def start(cls, end: str, stack: AsyncExitStack) -> Self:
        server = await End.start(end, "serve")
        stack.push_async_callback(server.stop)
        client = await End.start(end, "call", await server.read())
        stack.push_async_callback(client.stop)
        await client.read()
        return cls(server, client)

    async def run(self, work: str, count: int) -> Spent:
        ends = (self._server, self._client)
        before = [await end.cpu() for end in ends]
        received, wall = (await self._client.command(f"{work} {count}")).split()
        if int(received) != count:
            raise AssertionError(f"{received} of {count} elements were received")
        busier = max([await end.cpu() - then for end, then in zip(ends, before, strict=True)])
        return Spent(busier / count * 1e6, float(wall) / count * 1e6)


@dataclass(eq=False)
class RSocketQuestion(Measurable):
    """A question about a connection. Its first case is the limit."""

    text: str
    elements: int
    cases: list[Case]
    unit: str = "µs"
    is_goal_a_figure: bool = False

    async def measure(self, effort: Effort) -> list[Row]:
        """Run every case once a round, after one round of warm-up."""
        missing: dict[str, str] = {}
        spent: dict[str, list[Spent]] = {case.name: [] for case in self.cases}
        async with AsyncExitStack() as stack:
            pairs: dict[str, Pair] = {}
            for case in self.cases:
                try:
                    pairs[case.end] = pairs.get(case.end) or await Pair.start(case.end, stack)
                except Missing as error:
                    missing[case.name] = str(error)
            for number in range(effort.rounds + effort.is_warmed_up):
                for case in self.cases:
                    if case.end in pairs:
                        # A multiple of the number in flight.
                        count = max(640, int(self.elements * case.share * effort.scale) // 64 * 64)
                        once = await pairs[case.end].run(case.work, count)
                        if number >= effort.is_warmed_up:
                            spent[case.name].append(once)
        return [self._row(case, spent, missing.get(case.name, "")) for case in self.cases]

    def _row(self, case: Case, spent: dict[str, list[Spent]], missing: str) -> Row:
        kind: Kind = "hand-written" if case is self.cases[0] else case.kind
        if missing:
            return Row(case.name, kind, None, None, case.goal, missing)
        limit, this = spent[self.cases[0].name], spent[case.name]
        ratio = median(each.cpu / floor.cpu for each, floor in zip(this, limit, strict=True))
        rate = 1e3 / median(each.wall for each in this)
        cpu = median(each.cpu for each in this)
        return Row(case.name, kind, cpu, ratio, case.goal, f"{rate:.1f} k/s by the wall")
