"""Unix sockets that a process has left behind."""

import os
import socket
import stat
import sys


def remove_unused_socket(what: str, path: str) -> None:
    """Remove the socket at *path* of a process that has ended, so that *what* can listen there.

    Raises FileExistsError for anything else. It is called in a thread, as it uses the disk; a
    server that has no time for a connection is not waited for.
    """
    try:
        is_socket = stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if sys.platform != "win32" and is_socket:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
                return
            except BlockingIOError:  # its queue of connections is full
                pass
    reason = "another process serves there" if is_socket else "it is not a socket"
    raise FileExistsError(f"{what}: {path!r} exists, and {reason}; give another path")
