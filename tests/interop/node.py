"""Peers that run in Node: one process for each line of rsocket-js, shared by all tests."""

import asyncio
import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.node.packages import Packages

__all__ = ("PEERS", "JsPeer", "running")

PEERS: Final = Path(__file__).parent / "peers"
WITHIN: Final = 25.0
_ids = count(1)


class JsPeer:
    """A process that serves at `uri` and sends requests to other servers."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._read = b""
        self._lock = threading.Lock()
        ports: dict[str, int] = json.loads(self._line())
        self._ports = ports

    def uri(self, transport: str) -> str:
        return f"{transport}://127.0.0.1:{self._ports[transport]}"

    async def ask(self, uri: str, script: str, **command: Any) -> Any:
        """Run *script* against *uri* and return its report."""
        return await asyncio.to_thread(self._ask, {"uri": uri, "script": script, **command})

    def _ask(self, command: dict[str, Any]) -> Any:
        with self._lock:
            command["id"] = next(_ids)
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
            while True:
                report: dict[str, Any] = json.loads(self._line())
                if report.get("id") == command["id"]:  # not the report of a test that has timed out
                    return report

    def _line(self) -> str:
        # Without a thread: the tests check that no thread is left.
        assert self._process.stdout is not None
        until = time.monotonic() + WITHIN
        while b"\n" not in self._read:
            left = max(0.0, until - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise AssertionError(f"the peer in Node has said nothing for {WITHIN} s")
            data = os.read(self._process.stdout.fileno(), 65536)
            assert data, f"the peer in Node has ended, with status {self._process.wait()}"
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


@contextmanager
def running(packages: Packages, script: str, *arguments: str) -> Generator[JsPeer]:
    """Run the peer *script*."""
    command = [packages.node, str(PEERS / script), *arguments]
    with subprocess.Popen(
        command,
        env=packages.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield JsPeer(process)
        finally:
            process.kill()
