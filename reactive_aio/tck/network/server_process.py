"""A server that the kit starts itself, and starts again after a law has ended it."""

import asyncio
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import IO

START_TIMEOUT = 20.0
"""Seconds until the server must accept a connection."""
EXIT_TIMEOUT = 1.0


class ServerProcess:
    """Starts a command, reports how it ended, and kills it."""

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
