"""A server that the kit starts itself, and starts again when a law has been its end."""

import asyncio
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import IO

__all__ = ("Keeper",)

WITHIN = 20.0
"""Seconds that a server may take until it answers."""
ENDS_WITHIN = 1.0


class Keeper:
    """Starts a command, tells how it ended, and ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command: list[str] = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self, answers: Callable[[], Awaitable[str]]) -> str:
        """Start it anew; why it does not answer, empty if it does."""
        try:
            self._process = process = await asyncio.to_thread(self._run)
        except OSError as error:
            return f"{self.command[0]} cannot be started: {error}"
        why = "it has not begun"
        try:
            async with asyncio.timeout(WITHIN):
                while why and process.poll() is None:
                    why = await answers()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pass
        return why and f"{why}; {await asyncio.to_thread(self.how)}"

    def _run(self) -> subprocess.Popen[bytes]:
        self.stop()
        self._output.truncate(0)
        self._output.seek(0)
        return subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,  # many servers end with it
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def how(self) -> str:
        """How it is, or how it ended, and what it said last."""
        if self._process is None:
            return "it does not run"
        try:
            # Whoever has closed its connections may take a moment more to end.
            status = self._process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            return "it still runs"
        self._output.seek(0)
        said = self._output.read().decode("utf-8", "replace").strip()[-300:]
        return f"it ended with status {status}, and said last: {said!r}"

    def stop(self) -> None:
        """End it, if it runs."""
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
