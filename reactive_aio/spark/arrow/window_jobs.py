"""The jobs that compute windows of partitions as Arrow record batches. All calls block."""

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .._internals import arrow_batches, java_dataset, job_runner, release
from ..errors import explained
from ..tagged_jobs import TaggedJobs
from .jvm_socket import FrameReader, connect

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("WindowJobs",)


class WindowJobs:
    """The jobs of one subscription. Its methods are called on the subscription's threads."""

    def __init__(self, jobs: TaggedJobs, rows: int) -> None:
        self._jobs = jobs
        self._rows = rows  # of a record batch of the first window
        self._dataset: Any = None
        self._publish: Callable[[Any], object] | None = None  # the query's observations, if any
        self._run_job: Callable[[Any, range], tuple[Any, Any, Any]] | None = None
        self._rdds: list[Any] = []
        self._servers: dict[int, Any] = {}  # by the first partition of their window
        self.is_cancelled: bool = False
        """Set on the loop: no further job is started."""

    def prepare(self) -> None:
        """Look up what does not depend on the plan, on another thread than `plan`."""
        self._jobs.run(self._prepare, owns_thread=True)

    def _prepare(self) -> None:
        self._publish = self._jobs.observe(java_dataset(self._jobs.df))
        self._run_job = job_runner(self._jobs.context)

    def plan(self) -> int:
        """Plan the query, and run its shuffles; return the number of partitions."""
        return self._jobs.run(self._plan, owns_thread=True)

    def _plan(self) -> int:
        self._require_active()
        self._dataset = java_dataset(self._jobs.plan())
        self._rdds.append(self._rdd(self._rows))
        return cast("int", self._rdds[0].getNumPartitions())

    def _rdd(self, rows: int) -> Any:
        """Return a new RDD of record batches over the plan of this subscription.

        When a job fails, Spark fails all other jobs over the same RDD: those of the windows
        before would lose their valid rows. So each window has an RDD of its own; an RDD costs a
        millisecond, and they share the shuffles. A query with an observation has one RDD for all
        windows, since Spark collects its figures for each RDD.
        """
        with suppress(IndexError):  # the RDD that was made for the plan
            return self._rdds.pop() if self._publish is None else self._rdds[0]
        return arrow_batches(self._jobs.context, self._dataset, rows)

    def run(self, start: int, stop: int, rows: int) -> FrameReader:
        """Compute partitions as one job; return the connection that serves their rows.

        `plan` and `prepare` have returned before. A record batch has up to *rows* rows. The
        connection is made at once, even if its rows are read later: the JVM waits 15 seconds.
        """
        return self._jobs.run(partial(self._run, start, stop, rows), owns_thread=True)

    def _run(self, start: int, stop: int, rows: int) -> FrameReader:
        self._require_active()
        assert self._run_job is not None
        address, secret, server = self._run_job(self._rdd(rows), range(start, stop))
        self._servers[start] = server
        return connect(address, secret)

    def confirm(self, start: int, error: Exception | None = None) -> None:
        """Ask Spark whether it sent all rows of the window that begins at *start*.

        The end of the connection alone does not prove it: it looks the same when the JVM has
        died. With an *error* of the connection, raise Spark's reason for it, or else the error.
        """
        with explained(self._jobs.df):
            server = self._servers.pop(start)
            try:
                server.getResult()
            finally:
                release(self._jobs.context, server)  # which holds the rows
            if error is not None:
                raise error

    def close(self) -> None:
        """Release what is held in the JVM; all other calls have returned. Calls the JVM.

        Before that the observations are published: no more rows will be computed.
        """
        if self._publish is not None and self._dataset is not None:
            with suppress(Exception):  # a lost session, which the flow reports
                self._publish(self._dataset)
        handles = (*self._servers.values(), *self._rdds, self._dataset)
        release(self._jobs.context, *filter(None, handles))
        self._servers.clear()
        self._rdds.clear()
        self._dataset = self._publish = self._run_job = None

    def cancel(self) -> None:
        """Cancel the jobs that run now."""
        self._jobs.cancel()

    def _require_active(self) -> None:
        if self.is_cancelled:
            raise RuntimeError("the subscription has been cancelled")
