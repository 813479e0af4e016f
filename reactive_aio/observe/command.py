"""``python -m reactive_aio top PATH``: what the flows of a running process do, again and again."""

import argparse
import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from .._core.foreign_text import printable

__all__ = ("main",)

_TIMEOUT: Final = 5.0
_LONGEST_INTERVAL: Final = 86_400
_CLEAR: Final = "\x1b[H\x1b[2J"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    remaining: int | None = 1 if options.once else None
    try:
        while remaining != 0:
            text = _read(options.path)
            clear = _CLEAR if sys.stdout.isatty() and not options.once else ""
            if not _is_written(clear, text):
                return 0
            if remaining is not None:
                remaining -= 1
            else:
                time.sleep(options.interval)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        where = f"{options.path}: {error.strerror or error}"
        sys.stderr.write(
            f"python -m reactive_aio top: {printable(where)}; the process "
            "has to run `async with observe.serve(path):`\n"
        )
        return 1
    return 0


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
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_TIMEOUT)
        client.connect(path)
        parts: list[bytes] = []
        while part := client.recv(65_536):
            parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")
