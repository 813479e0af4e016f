"""Sources that read files.

A thread only makes calls that return soon. All waiting is done on the loop: so it follows the
loop's clock, a cancellation ends it at once, and a file that is followed keeps no thread.
"""

import os
import stat
from collections.abc import AsyncIterator, Callable
from functools import partial
from io import FileIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .._core.loop import CancelledError, shield, sleep, wait_settled
from .._shared.framing import LIMIT, Lines, require_encoding
from ..stage import (
    Duration,
    InlineStage,
    LoopHandle,
    describe,
    from_async,
    require_int,
    to_seconds,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("from_lines",)

T = TypeVar("T")

CHUNK: Final = 65_536
"""The most bytes that are read at a time."""


def lines_of(name: str, limit: int, encoding: str, errors: str) -> Lines:
    return Lines(name, limit, encoding, errors, only_newlines=False)


_LINES = InlineStage(
    "lines",
    params=("limit", "encoding", "errors"),
    uses=(chain, lines_of),
    setup='$lines = lines_of("from_lines", $limit, $encoding, $errors)',
    each="emit each chain.from_iterable($lines.batches(x))",
    after="emit each $lines.end()",
    checked=True,
)


def from_lines(
    path: "str | os.PathLike[str]",
    *,
    follow: bool = False,
    poll: Duration = 0.25,
    encoding: str = "utf-8",
    errors: str = "strict",
    limit: int = LIMIT,
) -> "Flow[str]":
    r"""Emit the lines of a file, without their ends (``\n``, ``\r\n`` or ``\r``).

    Each subscription opens the file, and reads it on threads of the loop's executor. The last line
    may have no end. *encoding* and *errors* are those of ``open``.

    ::

        from_lines(three_lines)
        a--b--c--|

    With *follow*, the flow emits the lines that are there, and then continues at the end of the
    file, as ``tail -n +1 -F`` does: it looks for more every *poll* seconds. A line that has begun
    is emitted when its end is written. When another file has taken the name, or the file has become
    shorter, its lines are emitted from the first one on, after those that were left of the old one;
    what was left of an unfinished line is a line of its own. While there is no file of that name,
    the flow waits for one, except at the start. For new lines only, run the program:
    ``from_process(["tail", "-n", "0", "-F", path]).lines()``.

    Demand: passed through, one chunk of 65,536 bytes after the other until the requested lines are
        complete. Without demand, the file is not touched.
    Completes: at the end of the file; with *follow*, never.
    Fails: when the file cannot be opened or read, or is not a regular one; with UnicodeDecodeError,
        which gives the number of the line; with `FrameTooLong` when a line has more than *limit*
        bytes without its end; after the lines before it.
    Cancels: at once while it waits for more of the file, else when the read of a chunk returns; the
        file is then closed, and ``aclose`` waits for that.
    Holds: 1 chunk, which is being split, and up to *limit* bytes of a line that has begun.
    Rules: 1.1, 3.13
    """
    path = _require_path(path)
    seconds = to_seconds(poll, "from_lines: poll")
    require_encoding("from_lines", encoding, errors)
    limit = require_int("from_lines", "limit", limit, least=1)
    name = f"from_lines({path!r}{', follow=True' if follow else ''})"
    read = partial(_followed, path, seconds) if follow else partial(_chunks, path)
    chunks: Flow[bytes] = from_async(read, name=name, checked=True)
    return chunks.via(_LINES, limit, encoding, errors, holds=1, contents=1)


def _require_path(path: Any) -> str:
    text: Any = os.fspath(path) if isinstance(path, str) or hasattr(path, "__fspath__") else None
    if isinstance(text, str):
        return text
    kind = type(path).__name__
    raise TypeError(f"from_lines: path must be a str or a path, not {describe(path)} ({kind})")


# -- on the loop -----------------------------------------------------------------------------------
async def _chunks(path: str) -> AsyncIterator[bytes]:
    loop_handle, file = LoopHandle("from_lines"), _File(path)
    try:
        while chunk := await _in_thread(loop_handle, file.read):
            yield chunk
    finally:
        file.close()


async def _followed(path: str, poll: float) -> AsyncIterator[bytes]:
    loop_handle, file = LoopHandle("from_lines"), _FollowedFile(path)
    try:
        while True:
            if chunk := await _in_thread(loop_handle, file.read):
                yield chunk
            else:
                await sleep(poll)
    finally:
        file.close()


async def _in_thread(loop_handle: LoopHandle, call: Callable[[], T]) -> T:
    """Return what *call* returns on a thread; a cancellation waits until it has returned."""
    future = loop_handle.run_in_executor(None, call)
    try:
        return await shield(future)
    except CancelledError:
        while not future.done():
            try:
                await wait_settled(future)
            except CancelledError:
                continue  # of the same subscription
        if not future.cancelled():
            future.exception()  # dropped: there is no subscriber for it
        raise


# -- on a thread -----------------------------------------------------------------------------------
class _File:
    """A file that is opened when it is first read. One thread at a time uses it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: FileIO | None = None

    def read(self) -> bytes:
        """The next chunk; empty at the end of the file."""
        return self._opened().read(CHUNK)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _opened(self) -> FileIO:
        if self._file is None:
            self._file = _open(self._path)
        return self._file


class _FollowedFile(_File):
    """What is written to a file, and to those that take its name after it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._next: FileIO | None = None
        self._last = b"\n"
        """The last byte that was read."""

    def read(self) -> bytes:
        """The next chunk; empty if there is none yet."""
        chunk = super().read()
        if not chunk and self._is_over():
            # A line that the old file left unfinished ends here.
            chunk = super().read() if self._last == b"\n" else b"\n"
        self._last = chunk[-1:] or self._last
        return chunk

    def close(self) -> None:
        super().close()
        if self._next is not None:
            self._next.close()

    def _is_over(self) -> bool:
        """Whether reading begins again at a start, since nothing of the old file is left."""
        file = self._opened()
        if self._next is not None:
            file.close()
            self._file, self._next = self._next, None
            return True
        self._next = _open_other(self._path, file)
        if self._next is not None:
            return False  # but something may have been written just before the other took its name
        if file.tell() <= os.fstat(file.fileno()).st_size:
            return False
        file.seek(0)
        return True


def _open(path: str) -> FileIO:
    if not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode):
        raise ValueError(
            f"from_lines: {path!r} is not a regular file, and to read it may block without end; "
            "read it with from_thread, which takes a function that interrupts it"
        )
    return open(path, "rb", buffering=0)


def _open_other(path: str, file: FileIO) -> FileIO | None:
    """Open the file that has the name *path*, if there is one and it is another than *file*."""
    try:
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return None
        return _open(path)
    except FileNotFoundError:
        return None
