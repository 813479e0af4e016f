"""What blocks the event loop: a thread looks at it, and finds the call that does not return."""

import os
import time
from collections.abc import Callable, Iterator
from sys import _current_frames
from sysconfig import get_path
from threading import Event, Thread
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from .._core.compiler.chain import Chain
from .._core.compiler.error_notes import runs
from .._core.observation.awaited import is_of_package_or_python, line_of
from .._core.observation.causes import operator_at, reader_chain
from .._core.observation.registry import current_flow
from .._core.subscription.island import Island
from .._core.upstreams.coordinator import Coordinator

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..stage import LoopHandle

__all__ = ("BlockedLoopWatch", "blocking_call")

_LOOP: Final = "<reactive_aio "
"""How the file names of generated loops begin."""
_ASYNCIO: Final = os.path.join(get_path("stdlib"), "asyncio")
_RUN: Final = frozenset(("_run_once", "run", "run_forever", "run_until_complete"))
"""The functions of asyncio that run a loop; a program calls them, as in ``asyncio.run(main())``."""
_MOST_SEARCHED: Final = 64
_STOPPED: Final = 0.3
"""The least time, in seconds, for which a process that does not run is reported."""


class BlockedLoopWatch:
    """Has the loop note the time again and again, and a thread look whether it still does.

    The thread itself is late if the whole process does not run: if it was stopped, or has used up
    its share of the CPU. That time is no fault of the call that was running then.
    """

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
        pause = self._seconds / 4
        cpu_time = _cpu_clock(self._loop_handle.thread)
        looked_at, used, used_by_all = monotonic(), cpu_time(), time.process_time()
        reported = blocked_since = blocked = 0.0
        while not self._is_over.wait(pause):
            now, cpu, cpu_of_all = monotonic(), cpu_time(), time.process_time()
            passed = now - looked_at
            if passed > 2 * pause:  # by what the loop's thread has computed meanwhile
                self._report_stop(passed - pause, cpu_of_all - used_by_all)
                passed = min(passed, max(pause, cpu - used))
            looked_at, used, used_by_all = now, cpu, cpu_of_all
            beaten_at = self._beaten_at
            if beaten_at != blocked_since:
                blocked_since, blocked = beaten_at, 0.0
                passed = min(passed, now - beaten_at)
            blocked += passed
            if blocked >= self._seconds * 1.25 and beaten_at != reported and self._report():
                reported = beaten_at

    def _report(self) -> bool:
        """Report the call that the loop's thread makes, if that is one of the user."""
        frame = _current_frames().get(self._loop_handle.thread)
        # The loop may be idle by now, or wait for the system: then nothing of the user runs.
        if frame is None or (call := blocking_call(frame)) is None:
            return False
        text = f"the event loop is blocked for more than {self._seconds:g} s by {call}"
        return self._loop_handle.call_soon_threadsafe(self._emit, text)

    def _report_stop(self, late: float, used: float) -> None:
        """This thread has woken up *late* by so many seconds; the process has *used* some CPU."""
        if late >= max(_STOPPED, 2 * self._seconds) and used < late / 2:
            text = (
                f"the process did not run for {late:.1f} s: it was stopped from outside (SIGSTOP, "
                "a debugger, the system), or has used up its share of the CPU; no call of this "
                "program blocks the event loop"
            )
            self._loop_handle.call_soon_threadsafe(self._emit, text)


def _cpu_clock(thread: int) -> Callable[[], float]:
    """Returns the CPU time of *thread*; of the whole process, where the system cannot tell."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None:
        return time.process_time
    clock = clock_of(thread)
    return lambda: time.clock_gettime(clock)


# -- the call --------------------------------------------------------------------------------------
def blocking_call(frame: FrameType | None) -> str | None:
    """The innermost line of the user that runs in *frame*, and the operator that called it."""
    frames = list(_outwards(frame))
    inside = next((i for i, each in enumerate(frames) if _is_of_flow(each)), len(frames))
    line = line_of(frames[:inside])
    if inside == len(frames):
        return line
    place = _place(frames[inside:])
    if line is None:
        # An operator that just works may be about to let the loop go on; a loop calls functions.
        return place if _is_loop(frames[inside]) else None
    return line if place is None else f"{line} in {place}"


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """*frame* and those around it, up to the event loop: what runs that is not to blame."""
    while frame is not None and not _runs_loop(frame):
        yield frame
        frame = frame.f_back


def _runs_loop(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name in _RUN and code.co_filename.startswith(_ASYNCIO)


def _is_of_flow(frame: FrameType) -> bool:
    """Whether *frame* is a generated loop, or an operator that calls functions of the user."""
    if _is_loop(frame):
        return True
    is_ours = is_of_package_or_python(frame.f_code.co_filename)
    return is_ours and _operator(frame.f_locals.get("self")) is not None


def _operator(part: object) -> "Coordinator[Any] | None":
    """*part* if it is an operator, or the operator that it works for."""
    for each in (part, getattr(part, "operator", None)):
        if _is_operator(each):
            return each
    return None


def _is_operator(part: object) -> "TypeGuard[Coordinator[Any]]":
    return isinstance(part, Coordinator)


def _is_loop(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_LOOP)


def _place(frames: list[FrameType]) -> str | None:
    """The operator that *frames*, the innermost first, execute, and its flow."""
    loop = frames[0] if _is_loop(frames[0]) else None
    for chain, name in (found for frame in frames for found in _flows_in(frame)):
        running = chain if loop is None else _running(loop, chain)
        if running is not None:
            operator = running.name if loop is None else operator_at(loop, running) or running.name
            part = f", a part of {name!r}" if name not in (None, chain.label) else ""
            return f"{operator} of the flow {chain.trail()}{part}"
    return None if loop is None else "a synchronous flow"


def _flows_in(frame: FrameType) -> Iterator[tuple[Chain, str | None]]:
    """The flows that *frame*, of this package, works for, and the name that they are part of."""
    if not is_of_package_or_python(frame.f_code.co_filename):
        return
    for value in list(frame.f_locals.values()):
        if (operator := _operator(value)) is not None:
            if (chain := reader_chain(operator)) is not None:
                yield chain, _name(operator)
        elif isinstance(found := getattr(value, "chain", None), Chain):
            # A subscription, a flow, or the reader of a synchronous one.
            yield found, _name(value) if isinstance(value, Island) else None


def _name(subscription: Coordinator[Any] | Island) -> str | None:
    flow = subscription.loop_handle.context.get(current_flow)
    return None if flow is None else flow.name


def _running(loop: FrameType, chain: Chain) -> Chain | None:
    """The chain whose loop *loop* is: *chain*, or one of those above it."""
    waiting = [chain]
    for _ in range(_MOST_SEARCHED):
        if not waiting:
            break
        each = waiting.pop(0)
        if runs(loop, each):
            return each
        waiting += [above.chain for above in each.source.upstreams]
    return None
