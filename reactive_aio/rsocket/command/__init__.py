"""The command: ``python -m reactive_aio.rsocket URI`` talks to a server, as curl does over HTTP.

`arguments` parses the command line, `execution` makes the request, `terminal` reads and writes
without blocking the event loop. The exit status is 0 on success, 1 if the request or the connection
failed, 2 if the command line is wrong, and 130 after Ctrl-C.
"""

import os
import sys
from collections.abc import Sequence

from anyio import run

from .arguments import PROGRAM, UsageError, parse_arguments
from .execution import RequestFailed, execute

__all__ = ("main",)

OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    try:
        run(execute, parse_arguments(arguments))
    except UsageError as error:
        return _report(error, WRONG_USAGE)
    except RequestFailed as error:
        return _report(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return OK


def _report(error: Exception, status: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {' '.join(str(error).split())}\n")
    return status
