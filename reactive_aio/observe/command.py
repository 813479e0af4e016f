"""``python -m reactive_aio top PATH``: what the flows of a running process do, again and again."""

import argparse
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from .._core.foreign_text import printable

__all__ = ("main",)

_TIMEOUT: Final = 5.0
_LONGEST_INTERVAL: Final = 86_400
_CLEAR: Final = "\x1b[H\x1b[2J"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    clear = _CLEAR if sys.stdout.isatty() and not options.once else ""
    try:
        while True:
            try:
                text = _read(options.path)
            except _NoAnswer as silence:
                if options.once:
                    raise
                text = f"{options.path}: {silence}"  # it may go on
            if not _is_written(clear, text) or options.once:
                return 0
            time.sleep(options.interval)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        what = f"python -m reactive_aio top: {options.path}: {_explained(error, options.path)}"
        sys.stderr.write(printable(what) + "\n")
        return 1


class _NoAnswer(OSError):
    """The process has accepted the connection, and sends nothing."""


def _explained(error: OSError, path: str) -> str:
    """What *error* means: whether the process at *path* has ended, or never served there."""
    if isinstance(error, _NoAnswer):
        return str(error)
    serve = "the process has to run `async with observe.serve(path):`"
    if not isinstance(error, ConnectionRefusedError):
        return f"{error.strerror or error}; {serve}"
    if not Path(path).is_socket():
        return f"this is no socket; {serve}"
    return "the process that served there has ended, and was killed: nothing serves there now"


def _is_written(clear: str, text: str) -> bool:
    """Write *text*; return False if nothing reads the output any more, as after ``| head``."""
    try:
        sys.stdout.write(f"{clear}{printable(text)}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # At its end, Python flushes the output once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reactive_aio",
        description=__doc__,
        epilog="Without a command: versions, extras, Java, and a test of this installation.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    top = commands.add_parser("top", help="show what the flows of a running process do")
    top.add_argument("path", help="the Unix socket that the process has given to observe.serve()")
    top.add_argument("--interval", type=_seconds, default=1.0, help="seconds between two looks")
    top.add_argument("--once", action="store_true", help="look once, and end")
    return parser


def _seconds(text: str) -> float:
    with suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < _LONGEST_INTERVAL:
            return seconds
    message = f"must be a number of seconds, more than 0 and less than {_LONGEST_INTERVAL}"
    raise argparse.ArgumentTypeError(f"{message}, not {text!r}")


def _read(path: str) -> str:
    if sys.platform == "win32":
        raise OSError("Unix sockets are not used on Windows; observe.inspector() is a page")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_TIMEOUT)
        client.connect(path)
        parts: list[bytes] = []
        try:
            while part := client.recv(65_536):
                parts.append(part)
        except TimeoutError:
            raise _NoAnswer(_silence(_server_of(client))) from None
    return b"".join(parts).decode("utf-8", "replace")


def _silence(process: int | None) -> str:
    """Why *process* sends nothing."""
    who = "the process" if process is None else f"the process {process}"
    if process is not None and _is_stopped(process):
        return (
            f"{who} is stopped (SIGSTOP, Ctrl-Z or a debugger), so that it does not answer; "
            f"kill -CONT {process} lets it go on"
        )
    return (
        f"{who} has not answered for {_TIMEOUT:g} s: its event loop is blocked by a call that does "
        "not return, or it gets no CPU. observe.watch() in that process reports the call; "
        f"`py-spy dump --pid {process or 'PID'}` shows it from outside"
    )


def _server_of(client: socket.socket) -> int | None:
    """The process that serves there, where the system tells it."""
    option: int | None = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    process, _, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, option, 12))
    return process or None  # 0: in another namespace, such as a container


def _is_stopped(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(") ")[2][:1] in ("T", "t")
