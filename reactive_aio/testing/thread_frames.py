"""The innermost Python frame of each thread."""

import gc
import sys
import threading
from types import FrameType
from typing import Final

_one_at_a_time: Final = threading.Lock()


def current_frames() -> dict[int, FrameType]:
    """The innermost frame of each other thread, by `threading.Thread.ident`.

    Before CPython 3.11.9, a garbage collection inside `sys._current_frames` can stop the process
    for ever: that function allocates while it holds the lock of the interpreter's list of threads,
    and a finalizer may give the GIL to a thread that starts or ends, which waits for that lock.
    Hence no collection takes place meanwhile.
    """
    with _one_at_a_time:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            found = sys._current_frames()
        finally:
            if was_enabled:
                gc.enable()
    # Its frames would refer to what they have found, and so keep the frames of the other threads.
    del found[threading.get_ident()]
    return found


def frame_of(thread: threading.Thread) -> FrameType | None:
    """The innermost frame of *thread*; None before it starts and after it has ended."""
    return current_frames().get(thread.ident or 0)
