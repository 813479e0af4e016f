"""Standard input and output without blocking the event loop, and the progress line."""

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TextIO

from anyio import to_thread, wait_readable, wait_writable

__all__ = ("Progress", "read_lines", "write")

_WRITE_SIZE: Final = 4096
"""The number of bytes that a writable pipe takes without blocking."""
_READ_SIZE: Final = 64 * 1024
_INTERVAL: Final = 0.1
"""The minimum number of seconds between two updates of the progress line."""


async def _ready(wait: Callable[[int], Awaitable[None]], fd: int) -> bool:
    """Wait until *fd* is ready; return False if waiting is impossible, as for a file."""
    try:
        await wait(fd)
    except (OSError, ValueError, NotImplementedError):
        return False
    return True


async def read_lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input, without their line ends, as they come."""
    fd, rest = sys.stdin.fileno(), b""
    while True:
        if await _ready(wait_readable, fd) or os.name != "nt":
            data = os.read(fd, _READ_SIZE)
        else:
            data = await to_thread.run_sync(os.read, fd, _READ_SIZE, abandon_on_cancel=True)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
        if not data:
            if rest:
                yield rest
            return


async def write(data: bytes) -> None:
    """Write *data* to standard output. A slow reader slows down the requests, nothing else."""
    fd, view = sys.stdout.fileno(), memoryview(data)
    while view:
        size = _WRITE_SIZE if await _ready(wait_writable, fd) else len(view)
        view = view[os.write(fd, view[:size]) :]


class Progress:
    """One line on standard error: how many elements were requested and received."""

    def __init__(self, stream: TextIO, *, shown: bool | None) -> None:
        self._stream = stream
        # If standard output is the same terminal, the line would mix with the elements.
        self._shown = stream.isatty() and not sys.stdout.isatty() if shown is None else shown
        self._requested = self._received = 0
        self._start = time.monotonic()
        self._next_update = 0.0

    def add_requested(self, n: int) -> None:
        self._requested += n
        self._show()

    def add_received(self, n: int) -> None:
        self._received += n
        self._show()

    def end(self) -> None:
        self._show(last=True)

    def _show(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if not self._shown or (now < self._next_update and not last):
            return
        self._next_update = now + _INTERVAL
        clear = "\r\x1b[K" if self._stream.isatty() else ""
        if clear or last:
            counts = f"requested {self._requested}, received {self._received}"
            end = "\n" if last else ""
            self._stream.write(f"{clear}{counts}, {now - self._start:.1f} s{end}")
            self._stream.flush()
