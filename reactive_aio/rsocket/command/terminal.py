"""Standard input and output, without holding up the connection; and a line on how it goes."""

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TextIO

from anyio import to_thread, wait_readable, wait_writable

__all__ = ("Progress", "lines", "write")

_PIECE: Final = 4096
"""What a pipe that is writable takes without blocking."""
_SOME: Final = 64 * 1024


async def _ready(wait: Callable[[int], Awaitable[None]], fd: int) -> bool:
    """Wait until *fd* is ready; False if that cannot be waited for, as for a file."""
    try:
        await wait(fd)
    except (OSError, ValueError, NotImplementedError):
        return False
    return True


async def lines() -> AsyncIterator[bytes]:
    """The lines of standard input, without their ends, as they come."""
    fd, rest = sys.stdin.fileno(), b""
    while True:
        if await _ready(wait_readable, fd) or os.name != "nt":
            data = os.read(fd, _SOME)
        else:
            data = await to_thread.run_sync(os.read, fd, _SOME, abandon_on_cancel=True)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if not data:
            if rest:
                yield rest
            return


async def write(data: bytes) -> None:
    """Write *data* to standard output; whoever reads slowly slows down only what is asked for."""
    fd, view = sys.stdout.fileno(), memoryview(data)
    while view:
        size = _PIECE if await _ready(wait_writable, fd) else len(view)
        view = view[os.write(fd, view[:size]) :]


class Progress:
    """One line on standard error: what has been asked for, and what has come."""

    def __init__(self, stream: TextIO, *, shown: bool | None) -> None:
        self._stream = stream
        # On a terminal where the elements go as well, it would get between them.
        self._shown = stream.isatty() and not sys.stdout.isatty() if shown is None else shown
        self._asked = self._came = 0
        self._began = time.monotonic()
        self._next = 0.0

    def asked(self, n: int) -> None:
        self._asked += n
        self._show()

    def came(self, n: int) -> None:
        self._came += n
        self._show()

    def _show(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._shown and (last or now >= self._next):
            self._next = now + 0.1
            end = "\n" if last else ""
            begin = "\r\x1b[K" if self._stream.isatty() else ""
            if begin or last:
                seconds = now - self._began
                told = f"asked for {self._asked}, {self._came} came, {seconds:.1f} s"
                self._stream.write(f"{begin}{told}{end}")
                self._stream.flush()

    def end(self) -> None:
        self._show(last=True)
