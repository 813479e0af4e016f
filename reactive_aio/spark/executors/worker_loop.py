"""The event loop of a Python worker of Spark: a thread that outlives the tasks that run there."""

import logging
import os
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from anyio import move_on_after
from anyio.from_thread import BlockingPortal, start_blocking_portal

from .resources import OPEN_RESOURCES, OpenResources

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS: Final = 30.0
"""The time without a task after which a worker closes what it has opened. Spark ends a worker that
has been idle for a minute, and lets it run no code then."""
_CLOSE_SECONDS: Final = 10.0
"""The time that closing may take."""
_REUSE: Final = "SPARK_REUSE_WORKER"
"""The variable by which Spark tells its workers that they serve further tasks."""

_log: Final = logging.getLogger("reactive_aio.spark")


class WorkerLoop:
    """The loop of this process, for one task after another.

    It is started by the first task that needs it. Between two tasks it runs on, so that
    connections are kept alive and closed in time.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = Lock()
        self._running: AbstractContextManager[BlockingPortal] | None = None
        self._portal: BlockingPortal | None = None
        self._resources = OpenResources()
        self._timer: Timer | None = None
        self._has_task = False

    def begin_task(self) -> None:
        """Start the loop, unless it runs; it is not closed until `end_task`."""
        with self._lock:
            self._has_task = True
            self._stop_timer()
            if self._portal is None:
                options = {"use_uvloop": _has_uvloop()}
                self._running = start_blocking_portal("asyncio", options, name="map_flow")
                self._portal = self._running.__enter__()

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
        assert self._portal is not None, "no task has begun"

        async def run() -> T:
            OPEN_RESOURCES.set(self._resources)
            return await function(*args, **kwargs)

        return self._portal.call(run)

    def close(self) -> None:
        """Close the resources, and end the thread, unless a task has begun meanwhile."""
        with self._lock:
            if self._has_task or self._running is None or self._portal is None:
                return
            self._stop_timer()
            running, portal, self._running, self._portal = self._running, self._portal, None, None
            try:
                portal.call(self._close_resources)
            except RuntimeError:  # the loop has stopped, by SystemExit in a coroutine
                _log.warning("the event loop of this worker has stopped", exc_info=True)
            self._resources = OpenResources()
            running.__exit__(None, None, None)

    async def _close_resources(self) -> None:
        with move_on_after(_CLOSE_SECONDS) as scope:
            await self._resources.aclose()
        if scope.cancelled_caught:
            _log.warning("closing the resources of map_flow took more than %s s", _CLOSE_SECONDS)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


def _has_uvloop() -> bool:
    return find_spec("uvloop") is not None


WORKER: Final = WorkerLoop()
"""The loop of this process."""
