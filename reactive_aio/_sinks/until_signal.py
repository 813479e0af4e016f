"""run_until_signal: run a flow as the work of a process, until that is asked to terminate."""

import signal
from collections.abc import Callable
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final, cast

from .._core.loop import pass_on_signal
from .._core.process_end import NOT_DONE, ProcessEnd
from ..stage import Duration, Fluent, LoopHandle, describe, to_seconds
from .running import DRAIN_TIME, DrainReport, Run

if TYPE_CHECKING:
    from types import FrameType

    from .._core.loop import Future

__all__ = ("run_until_signal",)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


async def run_until_signal(
    flow: "Fluent[Any] | Run[Any]",
    *,
    timeout: Duration | None = DRAIN_TIME,
    on_drained: Callable[[DrainReport], object] | None = None,
) -> int:
    """Run a flow until it ends or the process is asked to terminate; return the exit status.

    ::

        sys.exit(asyncio.run(run_until_signal(orders.running(save, concurrency=8), timeout=25)))

    *flow* is a flow, or what its ``running`` has returned. The first SIGTERM or SIGINT drains it,
    as ``Run.drain`` does; then *on_drained* is called with the report. The next signal ends the
    process then and there, as the system does it: whatever hangs, also in what the program does
    after this has returned.

    *timeout* is the time from the first signal to the end of the process. The flow has four fifths
    of it, and acknowledgements and cleanups one tenth (half a second at least). The rest, a second
    at least, is for what the program does when this has returned: if it has not ended by then, it
    is ended with the status 75. What is still waited for when the time is over is written to
    standard error, in one line. None means that there is no limit.

    The exit status is 0 when the flow has completed or was drained, and 75 when the time was over
    before, also that of another drain (a temporary failure, by the names of ``sysexits.h``). After
    a second signal, a shell shows 128 + its number. Raises the error of a flow that fails: Python
    then exits with status 1.

    Several calls may run at a time, as in a task group: the first signal drains all of their flows,
    each within its own *timeout*, and the process ends when the longest one is over.

    Demand: unbounded.
    Completes: returns when the flow has completed, or was drained or cancelled.
    Fails: raises the error of the flow.
    Cancels: when the time is over, and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    seconds = None
    if timeout is not None:
        seconds = to_seconds(timeout, "run_until_signal: timeout", zero=True)
    return await _Service(_run_of(flow), seconds, on_drained).run()


def _run_of(flow: "Fluent[Any] | Run[Any]") -> Run[Any]:
    if isinstance(flow, Run):
        return flow
    if isinstance(cast("object", flow), Fluent):
        return Run(flow)
    raise TypeError(
        f"run_until_signal: {describe(flow)} ({type(flow).__name__}) is neither a flow nor what "
        "flow.running() returns"
    )


class _Service:
    """One call of `run_until_signal`."""

    def __init__(
        self,
        run: Run[Any],
        seconds: float | None,
        on_drained: Callable[[DrainReport], object] | None,
    ) -> None:
        self._run = run
        self._on_drained = on_drained
        self._loop_handle = LoopHandle("run_until_signal()")
        self._signalled: Future[Any] = self._loop_handle.create_future()
        self._end = ProcessEnd(SIGNALS, seconds)

    async def run(self) -> int:
        _services.join(self)
        try:
            async with self._run:
                if await self._run.ended_before(self._signalled):
                    return 0 if self._run.is_complete else NOT_DONE
                return await self._drain()
        finally:
            _services.leave(self)
            self._end.drained()

    async def _drain(self) -> int:
        end = self._end
        report = await self._run.drain_within(end.drain, end.note_what_waits)
        if not report.is_clean:
            end.say_what_waits()
        elif not report.is_complete:
            end.say_what_was_cut(report.waits_for)
        if self._on_drained is not None:
            self._on_drained(report)
        return 0 if report.is_complete and report.is_clean else NOT_DONE

    def receive(self, number: int) -> None:
        """The process was asked to terminate; it may be told in the middle of any code."""
        self._end.begin(number)
        self._loop_handle.call_soon_threadsafe(self._set_signalled)

    def _set_signalled(self) -> None:
        if not self._signalled.done():
            self._signalled.set_result(None)


class _Services:
    """The calls of `run_until_signal` that run now: a signal is for all of them."""

    def __init__(self) -> None:
        self._running: list[_Service] = []
        self._before: dict[int, Any] = {}
        """The handlers whose place was taken."""
        self._received = 0
        """The signal that they have received; 0 if there was none."""

    def join(self, service: _Service) -> None:
        if not self._running or current_thread() is not main_thread():
            self._install()
        self._running.append(service)
        if self._received:  # the others are drained already
            service.receive(self._received)

    def leave(self, service: _Service) -> None:
        self._running.remove(service)
        if self._running:
            return
        if not self._received:
            for number, handler in self._before.items():
                # It may have another handler by now, which calls this one: that is left alone.
                if handler is not None and signal.getsignal(number) == self._on_signal:
                    signal.signal(number, handler)
        self._received = 0

    def _install(self) -> None:
        try:
            for number in SIGNALS:
                # Not those of the event loop, which would not be called while that is blocked.
                before = signal.signal(number, self._on_signal)
                if before != self._on_signal:
                    self._before[number] = before
        except ValueError as error:
            raise RuntimeError(
                "run_until_signal: signals are received in the main thread of the main "
                "interpreter only; elsewhere, write `async with flow.running() as run:` and "
                "await run.drain()"
            ) from error

    def _on_signal(self, number: int, frame: "FrameType | None") -> None:
        before = self._before[number]
        if self._running:
            self._received = number
            for service in list(self._running):
                service.receive(number)
            pass_on_signal(before, number, frame)
        elif callable(before):
            before(number, frame)
        elif before is signal.SIG_DFL:
            signal.signal(number, before)
            signal.raise_signal(number)


_services: Final = _Services()
