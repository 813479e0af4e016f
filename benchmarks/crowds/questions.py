"""Questions about a server with many connections: each case is a server, in its own process."""

import time
from abc import abstractmethod
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ..rsocket.pairs import End, Missing
from ..runner.cases import Effort, Kind, Row
from ..runner.question import Measurable
from .clients import Audience, Crowd, Wire, affordable, percentile

IDLE: Final = 10_000
ACTIVE: Final = 1_000
KIB: Final = 1024
MICRO: Final = 1e6


@dataclass(frozen=True)
class Server:
    """A case: an end that serves, and the bytes that its clients send."""

    name: str
    end: str
    wire: Wire
    kind: Kind = "ours"
    goal: float | None = None
    is_demanded: bool = True
    """Whether a client has to request the elements of the hot flow."""
    fan: str = "fan"
    """The command that publishes elements in the hot flow."""
    slow: int = 0
    """Subscribers that take one element in 10 ms."""


@dataclass(frozen=True)
class Found:
    """What was measured of one server."""

    figure: float
    note: str


@dataclass(eq=False)
class CrowdQuestion(Measurable):
    """A question whose first server is hand-written."""

    text: str
    servers: list[Server] = field(default_factory=list[Server])
    unit: str = "µs"
    is_goal_a_figure: bool = False

    async def measure(self, effort: Effort) -> list[Row]:
        """Run each server once a round, in a process of its own."""
        found: dict[Server, list[Found]] = {server: [] for server in self.servers}
        missing: dict[Server, str] = {}
        for _ in range(min(effort.rounds, self.rounds)):
            for server in self.servers:
                if server not in missing:
                    try:
                        found[server].append(await self._run(server, effort))
                    except Missing as error:
                        missing[server] = str(error)
        return [self._row(server, found, missing.get(server, "")) for server in self.servers]

    @property
    def rounds(self) -> int:
        """The most rounds: each takes long."""
        return 3

    async def _run(self, server: Server, effort: Effort) -> Found:
        end = await End.start(server.end, "serve")
        crowd: Crowd | None = None
        try:
            crowd = Crowd(server.wire, int(await end.read()))
            return await self.observe(server, end, crowd, effort)
        finally:
            await end.stop()  # first: a server may report the connections that its clients abort
            if crowd is not None:
                crowd.close()

    @abstractmethod
    async def observe(self, server: Server, end: End, crowd: Crowd, effort: Effort) -> Found:
        """Measure *server*, whose process is *end*."""

    def _row(self, server: Server, found: dict[Server, list[Found]], missing: str) -> Row:
        if missing:
            return Row(server.name, server.kind, None, None, server.goal, missing)
        these = found[server]
        typical = sorted(these, key=lambda each: each.figure)[len(these) // 2]
        limits = found[self.servers[0]]
        ratio = None
        if not self.is_goal_a_figure and all(limit.figure for limit in limits):
            pairs = zip(these, limits, strict=True)
            ratio = median(each.figure / limit.figure for each, limit in pairs)
        return Row(server.name, server.kind, typical.figure, ratio, server.goal, typical.note)


class IdleConnections(CrowdQuestion):
    """The memory of one connection that is open and does nothing."""

    @property
    def rounds(self) -> int:
        """Memory does not depend on what else the machine does."""
        return 1

    async def observe(self, server: Server, end: End, crowd: Crowd, effort: Effort) -> Found:
        wanted = max(AT_LEAST, int(IDLE * effort.scale))
        count = affordable(wanted)
        await crowd.open(8)  # what the first connection imports is not memory of a connection
        before = await end.memory()
        await crowd.open(count)
        grown = await end.memory() - before
        limited = "" if count == wanted else ", by the limit of open files"
        return Found(grown / count / KIB, f"{count:,} connections{limited}")


class ActiveConnections(CrowdQuestion):
    """The server's CPU time for a request and its response, one in flight on each connection."""

    async def observe(self, server: Server, end: End, crowd: Crowd, effort: Effort) -> Found:
        await crowd.open(connections(effort))
        count = requests(effort)
        if effort.is_warmed_up:
            await crowd.ask(count // 4)
        before = await end.cpu()
        elapsed = await crowd.ask(count)
        cpu = await end.cpu() - before
        return Found(cpu / count * MICRO, f"{count / elapsed / 1e3:.1f} k/s by the wall")


class Latency(CrowdQuestion):
    """The 99th percentile of the time of a response, at half of the load that is sustained."""

    async def observe(self, server: Server, end: End, crowd: Crowd, effort: Effort) -> Found:
        await crowd.open(connections(effort))
        count = requests(effort)
        most = count / await crowd.ask(count)
        taken = await crowd.ask_at_rate(count, most / 2)
        note = f"p50 {percentile(taken, 0.5) * MICRO:,.0f} µs, at {most / 2e3:.1f} k/s"
        return Found(percentile(taken, 0.99) * MICRO, note)


class FanOut(CrowdQuestion):
    """The CPU time of the server for an element of a hot flow that one subscriber receives."""

    async def observe(self, server: Server, end: End, crowd: Crowd, effort: Effort) -> Found:
        subscribers = connections(effort)
        count = max(8, int(PUBLISHED * effort.scale))
        await crowd.open(subscribers)
        audience = Audience(crowd, is_demanded=server.is_demanded)
        await audience.subscribe(slow=server.slow)
        memory, cpu = await end.memory(), await end.cpu()
        began = time.perf_counter()
        published = (await end.command(f"{server.fan} {count}")).split()[0]
        assert int(published) == count
        received = await audience.quiet()
        elapsed = audience.last_at - began
        cpu = await end.cpu() - cpu
        memory = await end.memory() - memory
        expected = count * (subscribers - server.slow)
        if received > expected or (server.fan == "fan" and received < expected):
            raise AssertionError(f"{server.name}: {received} of {expected} elements were received")
        lost = "" if received == expected else f", {1 - received / expected:.0%} dropped"
        note = (
            f"{received / elapsed / 1e3:.1f} k/s by the wall{lost}, "
            f"{memory / subscribers / KIB:.1f} KiB a subscriber"
        )
        return Found(cpu / received * MICRO, note)


AT_LEAST: Final = 64
REQUESTS: Final = 40_000
PUBLISHED: Final = 500
"""Elements that each subscriber receives."""


def connections(effort: Effort) -> int:
    """Return the number of active connections."""
    return affordable(max(AT_LEAST, int(ACTIVE * min(1, effort.scale))))


def requests(effort: Effort) -> int:
    return max(4 * AT_LEAST, int(REQUESTS * effort.scale))
