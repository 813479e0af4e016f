"""What a function of the application raised, as the failure that its client is answered with."""

from .._core.failures import as_failure, is_cancelled_here, stop_program
from .._core.loop import LoopHandle


def failure_of(error: BaseException, loop_handle: LoopHandle) -> BaseException:
    """Return the failure for the client; raise *error* if it cancels the task that runs now.

    ``KeyboardInterrupt`` and ``SystemExit`` leave the event loop in its next turn: a server, which
    logs whatever an app raises, would catch them here.
    """
    if loop_handle.is_closed or is_cancelled_here(error):
        raise error
    stop_program(loop_handle, error)
    return as_failure(error)
