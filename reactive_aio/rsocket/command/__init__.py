"""The command: ``python -m reactive_aio.rsocket URI`` talks to a server, as curl does over HTTP.

`options` reads the command line, `talk` does what it says, `terminal` reads and writes without
holding up the connection. The exit status is 0 if all went well, 1 if the request or the connection
failed, 2 if the call was wrong, and 130 after Ctrl-C.
"""

import os
import sys
from collections.abc import Sequence

from anyio import run

from . import talk
from .options import PROGRAM, BadCall, read

__all__ = ("main",)

OK, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; the exit status."""
    try:
        wish = read(arguments)
        run(talk.talk, wish)
    except BadCall as error:
        return _tell(error, WRONG_CALL)
    except talk.Failed as error:
        return _tell(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return OK


def _tell(error: Exception, status: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {' '.join(str(error).split())}\n")
    return status
