"""Decisions: the calls of one coordinator, run one at a time, in order, on its loop."""

from collections import deque
from collections.abc import Callable
from typing import Final

from ..failures import STOPS_PROGRAM, as_failure
from ..loop import LoopHandle
from ..time_slice import TimeSlice

NOTHING: Final = object()
"""No argument. (A call with ``*args`` takes as long as the rest of a decision.)"""
Call = tuple[Callable[..., object], object, object]


def run_now(
    decision: Callable[..., object], first: object = NOTHING, second: object = NOTHING, /
) -> object:
    """Run *decision*: a `submit` for a coordinator that changes all state before it calls."""
    if first is NOTHING:
        return decision()
    return decision(first) if second is NOTHING else decision(first, second)


class Decisions(TimeSlice):
    """Runs a decision at once, unless one is running: then it waits in a queue (rules 1.3, 3.3).

    What `SerialExecutor` does for signals from any thread, without its lock, and for plain
    functions. What a decision raises goes to *fail*. After about 2 ms of decisions, the event loop
    gets a turn.
    """

    __slots__ = ("_fail", "_is_running", "_loop_handle", "_waiting")

    def __init__(self, loop_handle: LoopHandle, fail: Callable[[BaseException], object]) -> None:
        super().__init__()
        self._loop_handle = loop_handle
        self._fail = fail
        self._is_running = False
        self._waiting: deque[Call] | None = None  # 760 bytes, and most never need it

    def submit(
        self, decision: Callable[..., object], first: object = NOTHING, second: object = NOTHING, /
    ) -> None:
        """Run *decision* with its arguments after every decision submitted before."""
        call = (decision, first, second)
        if self._is_running:
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(call)
        else:
            self._is_running = True
            self._loop_handle.run_or_defer(self._run, call)

    def _run(self, call: Call) -> None:
        self._call(call)
        if self._waiting:
            self.start_slice()
            self._run_waiting()
        else:
            self._is_running = False

    def _run_waiting(self) -> None:
        while waiting := self._waiting:
            if self.check_slice():
                self._loop_handle.call_soon(self._resume)
                return
            self._call(waiting.popleft())
        self._is_running = False

    def _resume(self) -> None:
        self.start_slice()
        self._run_waiting()

    def _call(self, call: Call) -> None:
        decision, first, second = call
        try:
            if first is NOTHING:  # as `run_now` does, which is one call less
                decision()
            elif second is NOTHING:
                decision(first)
            else:
                decision(first, second)
        except BaseException as error:
            self._raised(error)

    def _raised(self, error: BaseException) -> None:
        """Fail the flow (1.4): a decision raises, usually because a function of the user did."""
        try:
            self._fail(as_failure(error))
        except BaseException as another:
            self._loop_handle.report("failing a flow raised", another)
        if isinstance(error, STOPS_PROGRAM):
            self._loop_handle.call_soon(self._resume)  # the other decisions still run
            raise error
