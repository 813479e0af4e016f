"""Functions of the application that are notified: what they raise ends nothing else."""

from collections.abc import Callable

from ..._core.failures import is_cancelled_here, stop_program
from ..._core.loop import LoopHandle


def notify(
    loop_handle: LoopHandle, name: str, callback: Callable[..., object], *arguments: object
) -> bool:
    """Call *callback*, the option *name*; report what it raises, and return whether it returned."""
    try:
        callback(*arguments)
    except BaseException as error:
        loop_handle.report(f"{name} of an RSocket connection failed", error)
        stop_program(loop_handle, error)
        return False
    return True


def ends_task(loop_handle: LoopHandle, error: BaseException) -> bool:
    """Whether *error* ends the task that runs now, which is cancelled or has lost its loop.

    Any other one is a failure of the function that raised it.
    """
    is_lost = isinstance(error, GeneratorExit) and loop_handle.is_closed
    return is_lost or is_cancelled_here(error)
