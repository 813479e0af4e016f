"""What blocks the event loop: a thread looks at it, and finds the call that does not return."""

import sys
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from .._core.observation.awaited import is_of_user

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..stage import LoopHandle

__all__ = ("BlockedLoopWatch", "blocking_call")

_LOOP: Final = "<reactive_aio "
"""How the file names of generated loops begin."""


class BlockedLoopWatch:
    """Has the loop note the time again and again, and a thread look whether it still does."""

    def __init__(
        self, loop_handle: "LoopHandle", seconds: float, emit: Callable[[str], object]
    ) -> None:
        self._loop_handle = loop_handle
        self._seconds = seconds
        self._emit = emit
        self._beaten_at = monotonic()
        self._timer: TimerHandle | None = None
        self._is_over = Event()
        self._thread = Thread(target=self._look, name="reactive_aio-observe-watch", daemon=True)

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._timer is not None:
            self._timer.cancel()

    def join(self) -> None:
        """Wait until the thread has ended; not on the loop."""
        self._thread.join()

    # -- on the loop ------------------------------------------------------------------------------
    def _beat(self) -> None:
        self._beaten_at = monotonic()
        self._timer = self._loop_handle.call_later(self._seconds / 4, self._beat)

    # -- on the thread ----------------------------------------------------------------------------
    def _look(self) -> None:
        reported = 0.0
        while not self._is_over.wait(self._seconds / 4):
            beaten_at = self._beaten_at
            if monotonic() - beaten_at < self._seconds * 1.25 or beaten_at == reported:
                continue
            frame = sys._current_frames().get(self._loop_handle.thread)
            # The loop may be idle by now, or wait for the system: then nothing of the user runs.
            if frame is not None and (call := blocking_call(frame)) is not None:
                reported = beaten_at
                text = f"the event loop is blocked for more than {self._seconds:g} s by {call}"
                self._loop_handle.call_soon_threadsafe(self._emit, text)


def blocking_call(frame: FrameType | None) -> str | None:
    """The innermost function of the user that runs in *frame*, and the stage that called it."""
    call: str | None = None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_LOOP):
            return f"{call or code.co_name} in {_stage(frame)}"
        if call is None and is_of_user(code.co_filename):
            call = f"{code.co_qualname} ({code.co_filename}:{frame.f_lineno})"
        frame = frame.f_back
    return call


def _stage(frame: FrameType) -> str:
    """The operator that a generated loop executes, and its flow."""
    chain: Any = getattr(frame.f_locals.get("S"), "chain", None)
    if chain is None:
        return "a synchronous flow"
    position = frame.f_globals["STAGE_OF_LINE"][frame.f_lineno]
    is_stage = 0 < position <= len(chain.stages)  # the position after the last one is the delivery
    operator = str(chain.stages[position - 1]) if is_stage else chain.name
    return f"{operator} of the flow {chain.trail()}"
