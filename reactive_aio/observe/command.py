"""``python -m reactive_aio top PATH``: what the flows of a running process do, again and again."""

import argparse
import socket
import sys
import time
from collections.abc import Sequence
from typing import Final

__all__ = ("main",)

_TIMEOUT: Final = 5.0
_CLEAR: Final = "\x1b[H\x1b[2J"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    remaining: int | None = 1 if options.once else None
    try:
        while remaining != 0:
            text = _read(options.path)
            clear = _CLEAR if sys.stdout.isatty() and not options.once else ""
            sys.stdout.write(f"{clear}{text}\n")
            sys.stdout.flush()
            if remaining is not None:
                remaining -= 1
            else:
                time.sleep(options.interval)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        sys.stderr.write(
            f"python -m reactive_aio top: {options.path}: {error.strerror or error}; the process "
            "has to run `async with observe.serve(path):`\n"
        )
        return 1
    return 0


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
    seconds = float(text)
    if not 0 < seconds < 86_400:
        raise ValueError
    return seconds


def _read(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_TIMEOUT)
        client.connect(path)
        parts: list[bytes] = []
        while part := client.recv(65_536):
            parts.append(part)
    return b"".join(parts).decode()
