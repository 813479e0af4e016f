"""The stall doctor: a report when a flow makes no progress, or when something blocks the loop."""

import logging
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Final

import anyio
import anyio.to_thread

from .._core.arguments import require_sync_callable
from .._core.failures import STOPS_PROGRAM
from .._core.observation.figures import stalled
from .._core.observation.registry import named_flows
from ..stage import Duration, LoopHandle, to_seconds
from .background import in_background
from .blocked_loop import BlockedLoopWatch
from .reports import report, stall_text

__all__ = ("watch", "watched")

STALL: Final = 10.0
BLOCK: Final = 0.1
"""The thresholds, in seconds, of those that set none."""
_LOOKS: Final = 5
"""How often a flow is looked at while it might stall."""


@asynccontextmanager
async def watch(
    *,
    stall: Duration = STALL,
    block: Duration | None = BLOCK,
    on_signal: int | None = getattr(signal, "SIGUSR1", None),
    on_report: Callable[[str], object] | None = None,
) -> AsyncGenerator[None]:
    """Report named flows that stall, and what blocks the event loop, inside the block.

    A flow stalls when something is held for it, or a call for it runs, and nothing was delivered
    for *stall* seconds; there is one report until it makes progress again. A call that keeps the
    loop from running for *block* seconds (None: not looked for) is reported with the stage of the
    flow that it belongs to; a thread looks for it.
    The signal *on_signal* (None: no signal) makes a report at once, in the main thread.

    Reports go to *on_report*, or else as warnings to the logger ``reactive_aio``. What *on_report*
    raises goes to the event loop's exception handler.
    """
    seconds = to_seconds(stall, "watch: stall")
    seconds_blocked = None if block is None else to_seconds(block, "watch: block")
    loop_handle = LoopHandle("observe.watch()")
    emit = _emitter(on_report, loop_handle)
    async with AsyncExitStack() as stack:
        if on_signal is not None:
            stack.callback(loop_handle.add_signal_handler(on_signal, lambda: emit(report())))
        stack.enter_context(_known(seconds, seconds_blocked))
        if seconds_blocked is not None:
            await stack.enter_async_context(_looking_for_calls(loop_handle, seconds_blocked, emit))
        await stack.enter_async_context(in_background(_look, seconds, emit))
        yield


_watches: list[tuple[float, float | None]] = []


@contextmanager
def _known(stall: float, block: float | None) -> Generator[None]:
    """Let others, such as the inspector, have the thresholds of this watch while it runs."""
    _watches.append(thresholds := (stall, block))
    try:
        yield
    finally:
        _watches.remove(thresholds)


def watched() -> tuple[float, float]:
    """The seconds without an element, and of a call, after which the watch that runs reports."""
    stall, block = _watches[-1] if _watches else (STALL, BLOCK)
    return stall, BLOCK if block is None else block


def _emitter(
    on_report: Callable[[str], object] | None, loop_handle: LoopHandle
) -> Callable[[str], object]:
    """What passes a report to *on_report*, and does not raise."""
    if on_report is None:
        return logging.getLogger("reactive_aio").warning
    remedy = "start a task of your own."
    require_sync_callable("observe.watch", "on_report", on_report, remedy, takes=1)

    def emit(text: str) -> None:
        try:
            on_report(text)
        except STOPS_PROGRAM:
            raise
        except BaseException as error:
            loop_handle.report("on_report of observe.watch() failed", error)

    return emit


@asynccontextmanager
async def _looking_for_calls(
    loop_handle: LoopHandle, seconds: float, emit: Callable[[str], object]
) -> AsyncGenerator[None]:
    watcher = BlockedLoopWatch(loop_handle, seconds, emit)
    watcher.start()
    try:
        yield
    finally:
        watcher.stop()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(watcher.join)


async def _look(seconds: float, emit: Callable[[str], object]) -> None:
    """Report each subscription that has begun to stall."""
    looks: dict[int, int] = {}
    while True:
        before, looks = looks, {}
        for flow in named_flows():
            for key, stats in stalled(flow, seconds):
                looks[key] = before.get(key, 0) + 1
                # At one look, an element may have arrived just now.
                if looks[key] == 2:
                    emit(stall_text(flow, stats))
        await anyio.sleep(seconds / _LOOKS)
