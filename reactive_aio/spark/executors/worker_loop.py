"""The event loop of a Python worker of Spark: a thread that outlives the tasks that run there."""

import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from importlib.util import find_spec
from threading import Lock, Thread, Timer
from typing import Any, Final, ParamSpec, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from ...errors import Interrupted
from .resources import OPEN_RESOURCES, OpenResources

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS: Final = 30.0
"""The time without a task after which a worker closes what it has opened. Spark ends a worker that
has been idle for a minute, and lets it run no code then."""
_CLOSE_SECONDS: Final = 10.0
"""The time that closing may take."""
_TICK: Final = 0.25
"""Seconds after which a call looks whether the loop still runs."""
_STOPPED: Final = "the event loop of this worker has stopped"
_REUSE: Final = "SPARK_REUSE_WORKER"
"""The environment variable that is set if a worker serves further tasks."""

_log: Final = logging.getLogger("reactive_aio.spark")


class WorkerLoop:
    """The loop of this process, for one task after another.

    It is started by the first task. Between two tasks it goes on, so that connections are kept
    alive, and closed when no task follows.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = Lock()
        self._running: _LoopThread | None = None
        self._resources = OpenResources()
        self._timer: Timer | None = None
        self._has_task = False

    def begin_task(self) -> None:
        """Start the loop, unless it runs; it is not closed until `end_task`."""
        with self._lock:
            self._has_task = True
            self._stop_timer()
            if self._running is None:
                self._running = _LoopThread()

    def end_task(self, *, is_last: bool) -> None:
        """The task has ended. If it *is_last* in this process, close everything now."""
        with self._lock:
            self._has_task = False
            if not is_last and os.environ.get(_REUSE):
                self._timer = Timer(self._idle_seconds, self.close)
                self._timer.daemon = True
                self._timer.start()
                return
        self.close()

    def call(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function on the loop, where `WorkerResource` finds its resources."""
        assert self._running is not None, "no task has begun"

        async def run() -> T:
            OPEN_RESOURCES.set(self._resources)
            return await function(*args, **kwargs)

        return self._running.call(run)

    def close(self) -> None:
        """Close the resources, and end the thread, unless a task has begun meanwhile."""
        with self._lock:
            if self._has_task or self._running is None:
                return
            self._stop_timer()
            running, self._running = self._running, None
            with suppress(Interrupted):  # which the flow has reported
                running.call(self._close_resources)
            self._resources = OpenResources()
            running.close()

    async def _close_resources(self) -> None:
        with anyio.move_on_after(_CLOSE_SECONDS) as scope:
            await self._resources.aclose()
        if scope.cancelled_caught:
            _log.warning("closing the resources of map_flow took more than %s s", _CLOSE_SECONDS)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


class _LoopThread:
    """A thread with an event loop."""

    def __init__(self) -> None:
        self._portal: Future[BlockingPortal] = Future()
        self._thread = Thread(target=self._main, name="map_flow", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        options: dict[str, Any] = {"use_uvloop": find_spec("uvloop") is not None}
        try:
            anyio.run(self._serve, backend_options=options)
        except BaseException as error:
            # SystemExit or KeyboardInterrupt of a coroutine, with which its flow has failed.
            if not self._portal.done():
                self._portal.set_exception(error)

    async def _serve(self) -> None:
        async with BlockingPortal() as portal:
            self._portal.set_result(portal)
            await portal.sleep_until_stopped()

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function on the loop; return its result."""
        portal = self._portal.result()
        try:
            future = portal.start_task_soon(function)
        except RuntimeError as error:
            raise Interrupted(_STOPPED) from error
        while not wait((future,), timeout=_TICK).done:
            if not self._thread.is_alive():
                raise Interrupted(_STOPPED)
        return future.result()

    def close(self) -> None:
        """End the thread, and wait for it."""
        portal = self._portal.result()
        with suppress(Interrupted):
            self.call(portal.stop)
        self._thread.join()


WORKER: Final = WorkerLoop()
"""The loop of this process."""
