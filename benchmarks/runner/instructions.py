"""Counts the instructions of bytecode that a case executes for each element.

The count is the same on a busy and on an idle machine: nothing of it is a time. Two runs of
different lengths are compared, so that the cost of starting and ending cancels out. What runs in
C counts by the instructions that call it.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final

from reactive_aio._core.time_slice import set_clock

from .cases import TIME, Case
from .question import Measurable, Question

LONGER: Final = 3
"""How much longer the second run is."""


class Counter:
    """The number of instructions executed so far."""

    def __init__(self) -> None:
        self.count = 0


def counted_cases(question: Measurable) -> list[Case]:
    """Return the cases of this package whose instructions can be counted."""
    if not isinstance(question, Question) or not question.counted or question.unit != TIME:
        return []
    return [case for case in question.cases if case.kind == "ours"]


def instructions_each(question: Question, case: Case) -> float:
    """Return the instructions that one element costs."""
    few = question.counted
    _executed(case, few)  # fills caches, and lets the interpreter specialize
    short, long = _executed(case, few), _executed(case, LONGER * few)
    return (long - short) / ((LONGER - 1) * few)


def _executed(case: Case, count: int) -> int:
    async def run() -> float:
        return await case.run(count)

    with _repeatable(), asyncio.Runner(debug=False) as runner:
        loop = runner.get_loop()
        work: Coroutine[Any, Any, float] = run()
        with _counting() as counter:
            loop.run_until_complete(work)
        return counter.count


@contextmanager
def _repeatable() -> Generator[None]:
    """Stop the clock of time slices, and the collector: both act at any time."""
    clock = set_clock(lambda: 0.0)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        set_clock(clock)


@contextmanager
def _counting() -> Generator[Counter]:
    """Count the instructions of this thread."""
    counter = Counter()
    end = _monitor(counter) if sys.version_info >= (3, 12) else _trace(counter)
    try:
        yield counter
    finally:
        end()


def _trace(counter: Counter) -> Callable[[], None]:
    def count(frame: FrameType, event: str, _: object) -> Any:
        if event == "opcode":
            counter.count += 1
        return count

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return count

    before = sys.gettrace()
    sys.settrace(enter)
    return lambda: sys.settrace(before)


if sys.version_info >= (3, 12):

    def _monitor(counter: Counter) -> Callable[[], None]:
        monitoring = sys.monitoring
        tool, event = monitoring.PROFILER_ID, monitoring.events.INSTRUCTION

        def count(_: CodeType, __: int) -> None:
            counter.count += 1

        monitoring.use_tool_id(tool, "benchmarks")
        monitoring.register_callback(tool, event, count)
        monitoring.set_events(tool, event)

        def end() -> None:
            monitoring.set_events(tool, monitoring.events.NO_EVENTS)
            monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)

        return end

else:

    def _monitor(counter: Counter) -> Callable[[], None]:
        raise NotImplementedError  # `sys.monitoring` is new in 3.12; before, `settrace` counts
