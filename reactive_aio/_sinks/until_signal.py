"""run_until_signal: run a flow as the work of a process, until that is asked to terminate."""

import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from ..stage import Duration, Fluent, LoopHandle, describe, to_seconds
from .running import DRAIN_TIME, DrainReport, Run

if TYPE_CHECKING:
    from .._core.loop import Future

__all__ = ("run_until_signal",)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_NOT_DRAINED: Final = 75  # EX_TEMPFAIL of sysexits.h: what was not done is to be done again


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
    as ``Run.drain`` does within *timeout* seconds; then *on_drained* is called with the report. A
    second signal cancels it at once. The handlers of both signals are restored at the end.

    The exit status is 0 when the flow has completed or was drained, 75 when the time was over
    before (a temporary failure, by the names of ``sysexits.h``), and 128 + the number of the second
    signal. Raises the error of a flow that fails: Python then exits with status 1.

    Demand: unbounded.
    Completes: returns when the flow has completed, or was drained or cancelled.
    Fails: raises the error of the flow.
    Cancels: by the second signal, when the time is over, and when its task is cancelled.
    Holds: nothing.
    Rules: 2.1
    """
    if timeout is not None:
        to_seconds(timeout, "run_until_signal: timeout", zero=True)
    return await _Service(_run_of(flow), timeout, on_drained).run()


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
        timeout: Duration | None,
        on_drained: Callable[[DrainReport], object] | None,
    ) -> None:
        self._run = run
        self._timeout = timeout
        self._on_drained = on_drained
        self._loop_handle = LoopHandle("run_until_signal()")
        self._received: list[int] = []
        self._first: Future[Any] = self._loop_handle.create_future()
        self._second: Future[Any] = self._loop_handle.create_future()

    async def run(self) -> int:
        with ExitStack() as handlers:
            self._install(handlers)
            async with self._run:
                if await self._run.ended_before(self._first):
                    return 0
                report = await self._run.drain_unless(self._second, self._timeout)
                if report is None:
                    return 128 + self._received[-1]
                if self._on_drained is not None:
                    self._on_drained(report)
                return 0 if report.is_complete else _NOT_DRAINED

    def _install(self, handlers: ExitStack) -> None:
        for number in SIGNALS:
            try:
                restore = self._loop_handle.add_signal_handler(
                    number, partial(self._on_signal, number)
                )
            except ValueError as error:
                raise RuntimeError(
                    "run_until_signal: signals are received in the main thread of the main "
                    "interpreter only; elsewhere, write `async with flow.running() as run:` and "
                    "await run.drain()"
                ) from error
            handlers.callback(restore)

    def _on_signal(self, number: int) -> None:
        self._received.append(number)
        for waiting in (self._first, self._second)[: len(self._received)]:
            if not waiting.done():
                waiting.set_result(None)
