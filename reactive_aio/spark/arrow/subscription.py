"""The subscription of mode ``"arrow"``: it carries out the decisions of `reading_state`.

Threads only make the blocking calls of `WindowJobs` (a job, its confirmation); the rows themselves
are read on the loop, when there is demand for a row that has not been read yet and everything
handed over has been processed. Otherwise the socket is left alone, and the rows of a finished job
wait in the JVM, where they block nothing: the tasks of the job have ended, and a thread of its own
serves the rows.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, TypeVar, cast
from weakref import finalize

from ...stage import Downstream
from .._internals import ArrowBatches, java_dataset, release
from .._internals.partition_jobs import RunJob, job_runner, marking_job_runner
from ..call_threads import CallThreads
from ..checkpoint import Resume
from ..errors import PartitionTooLarge
from ..progress import MakeMeter
from ..rows import Decode
from ..stepping import SteppedSubscription
from ..tagged_jobs import TaggedJobs
from .commits import PartitionCommits
from .jvm_socket import END, LARGE, PARTITION_END, FrameReader, connect
from .reading_state import Action, ReadingState, Window

T = TypeVar("T")
R = TypeVar("R")


class WindowJobs:
    """The jobs of one subscription. Its methods block, and are called on its threads."""

    def __init__(self, jobs: TaggedJobs, rows: int, resume: Resume | None = None) -> None:
        self._jobs = jobs
        self._rows = rows  # of a record batch of the first window
        self.resume: Resume | None = resume
        """Which partitions are computed; None: all of them."""
        self._batches: ArrowBatches | None = None
        self._publish: Callable[[Any], object] | None = None  # the query's observations, if any
        self._run_job: RunJob | None = None
        self._rdds: list[Any] = []
        self._servers: dict[int, Any] = {}  # by the first partition of their window

    def prepare(self) -> None:
        """Look up what does not depend on the plan, on another thread than `plan`."""
        with self._jobs.explained():
            self._publish = self._jobs.observe(java_dataset(self._jobs.df))
            runner = job_runner if self.resume is None else marking_job_runner
            self._run_job = runner(self._jobs.context)

    def plan(self) -> int:
        """Plan the query, and run its shuffles; return the number of partitions to compute."""
        with self._jobs.starting():
            self._require_active()
            if self.resume is not None:
                self.resume.list_files_again(self._jobs.df)
            dataset = java_dataset(self._jobs.plan())
            self._batches = ArrowBatches(self._jobs.context, dataset)
            self._rdds.append(self._rdd(self._rows))
            partitions = cast("int", self._rdds[0].getNumPartitions())
            if self.resume is None:
                return partitions
            return self.resume.begin(self._batches.dataset, partitions)

    @property
    def is_observed(self) -> bool:
        """Whether the query has observations, which count rows that are computed twice."""
        return self._publish is not None

    def _rdd(self, rows: int) -> Any:
        """Return a new RDD of record batches over the plan of this subscription.

        When a job fails, Spark fails all other jobs over the same RDD: those of the windows
        before would lose their valid rows. So each window has an RDD of its own; an RDD costs a
        millisecond, and they share the shuffles. A query with an observation has one RDD for all
        windows, since Spark collects its figures for each RDD.
        """
        with suppress(IndexError):  # the RDD that was made for the plan
            return self._rdds.pop() if self._publish is None else self._rdds[0]
        assert self._batches is not None, "the query was planned"
        return self._batches.rdd(rows)

    def run(self, start: int, stop: int, rows: int) -> FrameReader:
        """Compute partitions as one job; return the connection that serves their rows.

        `plan` and `prepare` have returned before. A record batch has up to *rows* rows. The
        connection is made at once, even if its rows are read later: the JVM waits 15 seconds.
        """
        with self._jobs.starting():
            self._require_active()
            assert self._run_job is not None
            partitions: Sequence[int] = range(start, stop)
            if self.resume is not None:
                partitions = self.resume.partitions[start:stop]
            address, secret, server = self._run_job(self._rdd(rows), partitions)
            self._servers[start] = server
            return connect(address, secret)

    def confirm(self, start: int, error: Exception | None = None) -> None:
        """Ask Spark whether it sent all rows of the window that begins at *start*.

        The end of the connection alone does not prove it: it looks the same when the JVM has
        died. With an *error* of the connection, raise Spark's reason for it, or else the error.
        """
        with self._jobs.explained():
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
        if self._batches is not None:
            if self._publish is not None:
                with suppress(Exception):  # a lost session, which the flow reports
                    self._publish(self._batches.dataset)
            self._rdds.append(self._batches.dataset)
        release(self._jobs.context, *self._servers.values(), *self._rdds)
        self._jobs.close()
        self._servers.clear()
        self._rdds.clear()
        self._batches = self._publish = self._run_job = None

    def stop(self) -> None:
        """Start no further job. On the loop, or in the garbage collector."""
        self._jobs.is_cancelled = True

    def cancel(self) -> None:
        """Cancel the jobs that run now."""
        self._jobs.cancel()

    def _require_active(self) -> None:
        if self._jobs.is_cancelled:
            raise RuntimeError("the subscription has been cancelled")


class ArrowSubscription(SteppedSubscription[T]):
    """One subscription. Every method runs on the loop's thread."""

    __slots__ = ("_commits", "_decode", "_finalizer", "_is_started", "_jobs", "_readers", "_state",
                 "_threads", "_watched")  # fmt: skip
    # Less than a drain may take: rows are seldom the only work on their loop.
    time_slice: ClassVar[float] = 0.0005

    def __init__(
        self,
        downstream: Downstream[T],
        state: ReadingState[T],
        jobs: WindowJobs,
        decode: Decode,
        make_meter: MakeMeter,
    ) -> None:
        """With a checkpoint, elements are deliveries, and *jobs* mark the end of each partition."""
        super().__init__(downstream, "from_dataframe()", make_meter)
        self._state = state
        self._jobs = jobs
        self._decode = decode
        self._threads = CallThreads(self._loop_handle, "from_dataframe", interrupt=jobs.cancel)
        self._commits: PartitionCommits | None = None
        if (resume := jobs.resume) is not None:
            self._commits = PartitionCommits(
                self._loop_handle, resume.commit, resume.number, self._on_commit
            )
        self._readers: dict[Window, FrameReader] = {}  # whose connections are open
        self._watched: FrameReader | None = None
        self._is_started = False
        # Not __del__: in a cycle, the sockets could be collected before it is called.
        self._finalizer = finalize(self, _release, self._readers, jobs, self._threads)
        self._finalizer.atexit = False
        self._threads.on_loop_closed = self._finalizer

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        self._meter.on_request(n)
        self._state.request(n)
        if self._is_started:
            self._advance()
        else:
            self._is_started = True
            self._call(self._jobs.plan, self._on_planned)
            self._call(self._jobs.prepare, self._on_prepared)

    def processed(self) -> None:
        """Everything handed over has been processed, and there is no new demand."""
        self._state.is_processed = True
        self._advance()

    async def aclose(self) -> None:
        """Wait, after a cancellation, until Spark has ended the jobs."""
        await self._threads.wait_done()

    # -- results of the threads -------------------------------------------------------------------
    def _call(self, work: Callable[[], R], on_result: Callable[[R], None]) -> None:
        """Run *work* on a thread; then *on_result*, or the end of the flow if it has failed."""

        def on_return(result: Any, error: Exception | None) -> None:
            if error is not None:
                self._end(error)
            elif self._downstream is not None:
                on_result(result)
                self._advance()

        self._threads.call(work, on_return)

    def _on_planned(self, partitions: int) -> None:
        self._state.on_planned(partitions)
        self._meter.add("partitions", partitions)
        if (resume := self._jobs.resume) is not None:
            self._meter.add("resumed", resume.committed)

    def _on_prepared(self, _: None) -> None:
        self._state.is_prepared = True

    def _on_served(
        self, window: Window, reader: FrameReader | None, error: Exception | None
    ) -> None:
        if self._downstream is None:
            if reader is not None:
                reader.close()
            return
        if reader is not None:
            self._readers[window] = reader
            self._state.on_served(window)
            self._meter.add("computed", window.partitions)
        elif isinstance(error, PartitionTooLarge) and self._is_split(window):
            self._meter.add("launched", -window.partitions)
        elif error is not None:
            self._state.on_failed(window, error)
        self._advance()

    def _is_split(self, window: Window) -> bool:
        """Compute the partitions of *window* by smaller jobs, if that changes no observation."""
        return not self._jobs.is_observed and self._state.split(window)

    def _on_confirmed(self, window: Window, _: None) -> None:
        self._state.on_confirmed()
        self._meter.add("done", window.partitions - window.whole_partitions)

    def _on_commit(self) -> None:
        """A commit has ended, of this subscription or after it."""
        error = None if self._commits is None else self._commits.error
        if error is not None and self._downstream is None:
            self._loop_handle.report("a partition could not be committed", error)
        elif error is not None:
            self._end(error)
        else:
            self._advance()

    # -- carrying out the decisions ---------------------------------------------------------------
    def _act(self) -> bool:
        """Carry out one action; return whether another one may follow at once."""
        state = self._state
        match state.next_action():
            case Action.PUSH:
                state.push(self)
            case Action.READ:
                return self._read(state.window)
            case Action.LAUNCH:
                window = state.window
                run = partial(self._jobs.run, window.start, window.stop, window.batch)
                self._threads.call(run, partial(self._on_served, window))
                self._meter.add("launched", window.partitions)
            case Action.CONFIRM:
                window = state.window
                confirm = partial(self._jobs.confirm, window.start, window.error)
                self._call(confirm, partial(self._on_confirmed, window))
            case Action.COMPLETE:
                if self._commits is not None and self._commits.pending:
                    return False
                self._end(None)
            case Action.FAIL:
                self._end(state.window.error)
            case Action.WAIT:
                if self._watched is not None:
                    self._watch(None)
                return False
        return True

    def _read(self, window: Window) -> bool:
        """Read a record batch, or, without demand, only whether another one follows."""
        reader = self._readers[window]
        has_demand = bool(self._state.demand)
        try:
            if reader.is_storing:
                return False
            frame = reader.read(body=has_demand)
            if frame is None:
                self._watch(reader if has_demand or reader.is_between_frames else None)
                return False
            if frame is END:
                self._end_window(window, reader)
            elif frame is PARTITION_END:
                self._end_partition(window)
            elif frame is LARGE:
                self._watch(None)
                reader.is_storing = True
                self._threads.call(reader.store, partial(self._on_stored, window, reader))
                return False
            else:
                self._take_frame(window, frame)
        except (OSError, EOFError) as error:
            self._end_window(window, reader, error)
        return True

    def _take_frame(self, window: Window, frame: Any) -> None:
        decoded = self._decode(frame)
        window.bytes += len(frame)
        window.rows += decoded.rows
        self._meter.add("bytes", len(frame))
        window.elements += decoded.elements
        parts = decoded.parts
        if self._commits is not None:
            deliver = partial(self._commits.deliver, window.current)
            parts = ((deliver(*part), part[1]) for part in parts)
        self._state.held.put(parts, decoded.elements)

    def _on_stored(
        self, window: Window, reader: FrameReader, _: None, error: Exception | None
    ) -> None:
        if self._downstream is None:
            return
        if isinstance(error, OSError | EOFError):
            self._end_window(window, reader, error)
        elif error is not None:
            self._end(error)
        self._advance()

    def _end_partition(self, window: Window) -> None:
        """All rows of a partition were read: the job was done before the first of them."""
        assert self._commits is not None, "only then the ends are marked"
        self._commits.on_read(window.current)
        window.whole_partitions += 1
        self._meter.add("done", 1)

    def _end_window(
        self, window: Window, reader: FrameReader, error: Exception | None = None
    ) -> None:
        """The connection has ended; Spark is asked next whether that was the end of the rows."""
        self._watch(None)
        del self._readers[window]
        reader.close()
        self._state.on_end(window, error)

    # -- sockets ----------------------------------------------------------------------------------
    def _watch(self, reader: FrameReader | None) -> None:
        """Advance when the connection of *reader*, and no other, can be read."""
        if self._watched is not reader:
            if self._watched is not None:
                self._loop_handle.remove_reader(self._watched.connection)
            self._watched = reader
            if reader is not None:
                self._loop_handle.add_reader(reader.connection, self._advance)

    def _close(self) -> None:
        """Close every connection now, drop what was read, and let the jobs and the threads end."""
        self._watch(None)
        self._jobs.stop()
        self._state.close()
        self._threads.interrupt()  # after an error too, other windows may be in flight
        self._finalizer()


def _release(readers: dict[Window, FrameReader], jobs: WindowJobs, threads: CallThreads) -> None:
    """Release what a subscription holds that was dropped without a signal, or whose loop closed.

    Safe inside the garbage collector: it starts no thread and does not touch the loop.
    """
    jobs.stop()
    for reader in [*readers.values()]:
        reader.close()
    threads.stop(jobs.close)
