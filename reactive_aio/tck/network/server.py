"""The server under test: its routes, credentials and limits, and its process if the kit starts it.

Each route does something simple, which `ROUTES` describes; a server may have other names for them.
A law that needs a route that the server does not have is not judged.
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

START_TIMEOUT = 20.0
"""Seconds until the server must accept a connection."""
EXIT_TIMEOUT = 1.0
ROUTES: Final[dict[str, tuple[str, str]]] = {
    "echo": (
        "tck.echo",
        "request/response: responds with the data it received; also accepts fire-and-forget",
    ),
    "stream": (
        "tck.stream.{n}",
        "request/stream: *n* elements, the texts `0`, `1`, `2` …, then completes",
    ),
    "endless": ("tck.endless", "request/stream: elements of about 1000 bytes, without end"),
    "fail": (
        "tck.fail",
        "request/response and request/stream: fails; a stream first sends one element",
    ),
    "never": ("tck.never", "request/response: does not respond; waits until it is cancelled"),
    "channel": (
        "tck.channel",
        "request/channel: sends back each element it receives, and completes when they complete",
    ),
    "ask": (
        "tck.ask",
        "request/response: sends a request to the kit, by the script in its data (see below)",
    ),
}
"""By name: the default route, and what it does."""
ROUTINGS: Final = ("composite", "plain")
"""How a request may name its route: within composite metadata, or as the whole of its metadata."""


@dataclass(frozen=True)
class ServerProfile:
    """One server: its routes, its credentials, and how far it may be tested."""

    routes: dict[str, str] = field(
        default_factory=lambda: {name: route for name, (route, _) in ROUTES.items()}
    )
    """By name; a missing or empty route is not offered."""
    routing: str = ROUTINGS[0]
    user: tuple[str, str] | None = None
    """Name and password that the server accepts."""
    rejected_user: tuple[str, str] | None = None
    """Name and password that the server rejects."""
    largest: int = 17 * 1024 * 1024
    """The largest payload to send."""
    patience: float = 12.0
    """Seconds within which the server should disconnect a silent client."""
    pid: int | None = None
    """The process of the server, if it runs on this machine: to measure its memory."""

    def __post_init__(self) -> None:
        if unknown := self.routes.keys() - ROUTES.keys():
            known = ", ".join(ROUTES)
            raise ValueError(f"unknown route {', '.join(sorted(unknown))}; the routes are {known}")
        if self.routing not in ROUTINGS:
            raise ValueError(f"routing must be composite or plain, not {self.routing!r}")


class ServerProcess:
    """Starts a command, again after a law has ended it, reports how it ended, and kills it."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command: list[str] = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self, connection_error: Callable[[], Awaitable[str]]) -> str:
        """Start or restart it; return why it accepts no connection, empty if it does."""
        try:
            self._process = process = await asyncio.to_thread(self._start)
        except OSError as error:
            return f"{self.command[0]} cannot be started: {error}"
        why = "it has not started"
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while why and process.poll() is None:
                    why = await connection_error()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pass
        return why and f"{why}; {await asyncio.to_thread(self.status)}"

    def _start(self) -> subprocess.Popen[bytes]:
        self.stop()
        self._output.truncate(0)
        self._output.seek(0)
        return subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,  # many servers exit when it is closed
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def status(self) -> str:
        """Whether it runs; else how it ended, and the end of its output."""
        if self._process is None:
            return "it does not run"
        try:
            # It may take a moment to exit after it has closed its connections.
            status = self._process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            return "it still runs"
        self._output.seek(0)
        output = self._output.read().decode("utf-8", "replace").strip()[-300:]
        return f"it ended with status {status}; its last output: {output!r}"

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        process.kill()
        process.wait()

    def close(self) -> None:
        self.stop()
        self._output.close()
