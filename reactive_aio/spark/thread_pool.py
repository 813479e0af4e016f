"""The threads on which Spark flows make blocking calls, shared by all flows of an event loop.

A call has a thread from its beginning to its end, and a flow without a call has none: a thousand
flows that wait for demand cost no thread. There is no limit on the number of threads, since calls
may wait for each other: a job that needs the slots of another job, whose rows nothing reads yet.
A thread without a call ends after a second.

They are daemon threads, unlike those of a `ThreadPoolExecutor`: a call that never returns must not
keep the interpreter from exiting.
"""

import _thread
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final
from weakref import WeakKeyDictionary

from .._core.loop import AbstractEventLoop

IDLE_NAME: Final = "idle thread for calls of Spark"
_IDLE_SECONDS: Final = 1.0
Work = Callable[[], object]


class ThreadPool:
    """Runs each function at once, on an idle thread or on a new one."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = Lock()
        self._idle: list[_Worker] = []

    def run(self, work: Work, name: str) -> None:
        """Run *work*, which must not raise, on a thread that has that *name* meanwhile.

        Raises RuntimeError if the system has no thread for it.
        """
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            worker.thread.start()
        worker.give(work, name)

    def run_from_finalizer(self, work: Work, name: str) -> None:
        """Run *work* like `run`, from code that the garbage collector may call anywhere.

        It may have interrupted a thread that holds the lock of this pool, or one of `threading`.
        Starting a thread without `threading` takes neither.
        """
        with suppress(RuntimeError):  # the interpreter ends, or the system has no thread
            _thread.start_new_thread(self._run_quietly, (work, name))

    def _run_quietly(self, work: Work, name: str) -> None:
        with suppress(RuntimeError):
            self.run(work, name)

    # -- from its threads -------------------------------------------------------------------------
    @property
    def idle_seconds(self) -> float:
        return self._idle_seconds

    def put(self, worker: "_Worker") -> None:
        """*worker* has nothing to do."""
        with self._lock:
            self._idle.append(worker)

    def remove(self, worker: "_Worker") -> bool:
        """Let *worker* end; return False if it has just been given work."""
        with self._lock:
            if worker in self._idle:
                self._idle.remove(worker)
                return True
        return False


class _Worker:
    """A thread of the pool."""

    __slots__ = ("_inbox", "_is_waiting", "_pool", "thread")

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self._inbox: SimpleQueue[tuple[Work, str]] = SimpleQueue()
        self._is_waiting = True
        self.thread: Thread = Thread(target=self._run, name=IDLE_NAME, daemon=True)

    def give(self, work: Work, name: str) -> None:
        self._is_waiting = False
        self._inbox.put((work, name))

    def is_parked(self) -> bool:
        """Whether the thread waits for another thread: `reactive_aio.testing.Parkable`."""
        return self._is_waiting

    def _run(self) -> None:
        while (job := self._next()) is not None:
            work, self.thread.name = job
            work()
            del work, job  # a thread that waits must keep nothing alive
            self.thread.name = IDLE_NAME
            self._is_waiting = True
            self._pool.put(self)

    def _next(self) -> tuple[Work, str] | None:
        """Wait for work; None when none has come for a while."""
        try:
            return self._inbox.get(timeout=self._pool.idle_seconds)
        except Empty:
            return None if self._pool.remove(self) else self._inbox.get()


# -- which pool a flow uses ------------------------------------------------------------------------
_pools: WeakKeyDictionary[AbstractEventLoop, ThreadPool] = WeakKeyDictionary()
_pools_lock: Final = Lock()


def pool_of(loop: AbstractEventLoop) -> ThreadPool:
    """Return the pool of an event loop.

    A loop with virtual time waits for the threads that were started since it exists.
    """
    with _pools_lock:
        return _pools.setdefault(loop, ThreadPool())


class NewThreads(ThreadPool):
    """Runs each function on a thread of its own.

    For calls that leave something behind on their thread, as local properties of Spark.
    """

    def run(self, work: Work, name: str) -> None:
        Thread(target=work, name=name, daemon=True).start()


NEW_THREADS: Final = NewThreads()
