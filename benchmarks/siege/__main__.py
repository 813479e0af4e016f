"""``python -m benchmarks.siege [NAME …]``: measure, and write the page if all were measured."""

import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Final

from ..runner.results import Run
from .attacks import ATTACKS

PAGE: Final = Path(__file__).parents[2] / "docs" / "what-a-server-withstands.md"
BEGIN: Final = "<!-- measured: python -m benchmarks.siege -->\n"
END: Final = "<!-- end -->"
SECONDS: Final = 6
ON_UVLOOP: Final = ("half-open",)
"""Attacks that cost much more on asyncio's event loop, for a reason that the page names."""
_WARM_UP: Final = 6
"""How long an attack goes on before the healthy client begins."""


@dataclass(frozen=True, slots=True)
class Siege:
    """The figures of one attack."""

    name: str
    median: float
    p99: float
    connect: float
    failed: int
    connections: int
    held: float
    memory: float

    def row(self, how: str = "") -> str:
        """The row of the table."""
        what = (ATTACKS[self.name][0] if self.name else "nobody") + how
        times = " | ".join(f"{each * 1000:.1f}" for each in (self.median, self.p99, self.connect))
        return (
            f"| {what} | {times} | {self.failed} | {self.connections:,} | {self.held:.0f} "
            f"| {self.memory:.0f} |"
        )


@contextmanager
def started(module: str, *arguments: str) -> Generator[Any]:
    """A process that runs *module* of this package, until the end.

    Attackers have machines of their own. Here, the others go before them, where that is permitted.
    """
    command = [sys.executable, "-m", f"benchmarks.siege.{module}", *arguments]
    process = Popen(command, stdin=PIPE, stdout=PIPE, text=True)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, process.pid, -10 if module == "attacks" else -20)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def measure(name: str, seconds: float = SECONDS, *, loop: str = "asyncio") -> Siege:
    """Attack a server by *name*, or not at all; what its healthy client and its memory say."""
    with started("server", loop) as server:
        port = server.stdout.readline().strip()
        attack = (name, port, str(seconds + _WARM_UP + 5)) if name else None
        if attack is None:
            return _measured(name, server, port, seconds)
        with started("attacks", *attack), started("healthy", port, str(_WARM_UP)) as warm:
            warm.wait()
            return _measured(name, server, port, seconds)


def _measured(name: str, server: Any, port: str, seconds: float) -> Siege:
    with started("healthy", port, str(seconds)) as healthy:
        healthy.stdout.readline()
        print(file=server.stdin, flush=True)
        figures = json.loads(server.stdout.readline())
        latencies = json.loads(healthy.stdout.readline())
    print(file=server.stdin, flush=True)
    figures["memory"] = json.loads(server.stdout.readline())["memory"]
    return Siege(name=name, **latencies, **figures)


def main(*names: str) -> None:
    """Measure, print, and write the page if no names are given."""
    rows = list[str]()
    for name in names or ("", *ATTACKS):
        for loop in ("asyncio", "uvloop") if name in ON_UVLOOP else ("asyncio",):
            found = measure(name, loop=loop)
            rows.append(found.row("" if loop == "asyncio" else f", with {loop}"))
            print(rows[-1], flush=True)
    if names:
        return
    head = (
        "| beside | median, ms | p99, ms | new connection, ms | failed | connections | counted, "
        "MiB | memory, MiB |\n|---|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    run = Run.now(loop="asyncio", rounds=1, scale=1.0)
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(rows)
    where = "All processes ran on one core, the server and its healthy client before the others."
    note = f"\n\nPython {run.python}, {run.loop}, {run.machine}. {where}\n\n"
    PAGE.write_text(f"{before}{BEGIN}\n{head}{table}{note}{END}{after}", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
