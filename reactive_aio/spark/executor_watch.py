"""A warning when a job waits for an executor, and the cluster has none.

Spark keeps such a job waiting for ever: an executor may still come. So the flow waits as well, and
without a warning it would look like a slow query.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, WeakSet

from ._internals import count_executors
from .thread_pool import NEW_THREADS

if TYPE_CHECKING:
    from pyspark import SparkContext

WARN_AFTER: Final = 15.0
"""Seconds without an executor, of a job that runs, until the warning."""
_WARN_AGAIN_AFTER: Final = 60.0
_CHECK_EVERY: Final = 5.0
_log: Final = logging.getLogger("reactive_aio.spark")
_lock: Final = Lock()
_watches: WeakKeyDictionary["SparkContext", "ExecutorWatch"] = WeakKeyDictionary()


def watch_executors(context: "SparkContext", user: object) -> None:
    """Warn when no executor is left for the jobs of *context*, as long as *user* is referenced.

    A context whose tasks run in its own process needs none.
    """
    master = context.master or ""
    if master.startswith("local") and not master.startswith("local-cluster"):
        return
    with _lock:
        watch = _watches.get(context)
        if watch is None:
            watch = _watches[context] = ExecutorWatch(context)
            try:
                NEW_THREADS.run(watch.run, "reactive_aio-executor-watch")
            except RuntimeError:  # the system has no thread: the flow works without a warning
                del _watches[context]
        watch.users.add(user)


@dataclass(eq=False)
class ExecutorWatch:
    """Looks at the executors of a context from time to time, on a thread, while it has users."""

    context: "SparkContext"
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], object] = sleep
    users: WeakSet[object] = field(default_factory=WeakSet[object], init=False)
    _missing_since: float | None = field(default=None, init=False)
    _next_warning: float = field(default=0.0, init=False)

    def run(self) -> None:
        """Check until there is no user, or the session is lost."""
        while self._is_used():
            try:
                self.check()
            except Exception:  # a lost session, which its flows report
                with _lock:
                    _watches.pop(self.context, None)
                return
            self.sleep(_CHECK_EVERY)

    def _is_used(self) -> bool:
        with _lock:
            if not self.users:
                _watches.pop(self.context, None)
            return bool(self.users)

    def check(self) -> None:
        """Warn if a job runs, and there has been no executor for a while. Calls the JVM."""
        is_missing = bool(
            not count_executors(self.context) and self.context.statusTracker().getActiveJobsIds()
        )
        now = self.clock()
        if not is_missing:
            if self._next_warning > now:
                _log.warning("Spark's cluster has executors again.")
            self._missing_since, self._next_warning = None, 0.0
            return
        if self._missing_since is None:
            self._missing_since = now
        seconds = now - self._missing_since
        if seconds >= WARN_AFTER and now >= self._next_warning:
            self._next_warning = now + _WARN_AGAIN_AFTER
            _log.warning(
                "A Spark job waits: it runs on %s, which has had no executor for %.0f s. "
                "Spark goes on when one registers: look at the cluster's workers, and at "
                "spark.cores.max and spark.executor.memory if it has some. To fail instead, add "
                ".timeout(seconds) to the flow, or asyncio.timeout(seconds) around the call.",
                self.context.master, seconds,
            )  # fmt: skip
