"""ProcessPool: processes that flows share, for functions that compute.

Each thread of the pool owns one process, and makes a call there: it sends the function and its
arguments through a pipe, and waits for the answer. So the queue, the futures and the end of the
program are those of `ThreadPoolExecutor`, and a process that dies takes nothing with it but the
call that it was making: the next call of its thread starts another one.

A process ends when its thread does, and when the program is killed (see `_end_with_parent`).
"""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from .stage import require_int

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

__all__ = ("ProcessPool",)

P = ParamSpec("P")
T = TypeVar("T")

_MOST_KEPT: Final = 8
"""How many functions a process remembers that were sent once."""
_SECONDS_TO_END: Final = 5.0
_keys = count()

_NOT_STARTED: Final = (
    "a process ended before it was ready. Each imports the program's main module: let that run "
    'flows under `if __name__ == "__main__":` only. (A program that is read from standard input '
    "cannot be imported. The process itself has printed what stopped it.)"
)


class SentOnce:
    """A function that a `ProcessPool` sends to each of its processes once, pickled.

    A process keeps the last eight of them, so that a function with much data is cheap to call.
    """

    def __init__(self, pickled: bytes) -> None:
        self.key: int = next(_keys)
        self._pickled = pickled
        self._function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getstate__(self) -> tuple[int, bytes]:
        return self.key, self._pickled

    def __setstate__(self, state: tuple[int, bytes]) -> None:
        self.key, self._pickled = state
        self._function = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, unpickled when it is needed first."""
        function = self._function
        if function is None:
            function = self._function = pickle.loads(self._pickled)
        return function


class ProcessPool(Executor):
    """Processes for ``map_in_process(f, pool=...)``, which flows share, and event loops too.

    ::

        with rx.ProcessPool(workers=4) as pool:
            async for picture in paths.map_in_process(render, pool=pool):
                ...

    A process is started by the first call for which no other is idle. It imports the program's
    main module, so that the program needs an ``if __name__ == "__main__":``, and it waits for the
    next call when one has returned. All of them end with ``shutdown()``, which ``with`` calls, with
    the program, and at once if the program is killed. They ignore Ctrl-C, which is for the program
    itself to act on. A process that dies fails the call that it was making with a
    `concurrent.futures.process.BrokenProcessPool`; the next call gets a new process.

    Without ``pool=``, `map_in_process` uses one pool for the whole program, with a process for each
    core. It is a `concurrent.futures.Executor` itself: ``submit`` and ``map`` call any function in
    its processes.

    Args:
        workers: The most processes, and so the most calls at the same time; by default one for each
            core that the program may use.
    """

    _thread_name = "reactive_aio-ProcessPool"

    def __init__(self, workers: int | None = None) -> None:
        if workers is None:
            workers = _available_cores()
        self._workers = require_int("ProcessPool", "workers", workers, least=1)
        self._owner = os.getpid()
        self._processes: list[BaseProcess] = []
        self._local = threading.local()
        # It must not refer to the pool: a pool that is forgotten ends its threads when it is freed.
        start = partial(_try_to_start, self._local, self._processes)
        self._threads = ThreadPoolExecutor(workers, self._thread_name, start)

    @property
    def workers(self) -> int:
        """The most processes, and so the most calls at the same time."""
        return self._workers

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn(*args, **kwargs)`` in one of the processes, as soon as one is idle."""
        if os.getpid() != self._owner:
            raise RuntimeError(
                f"this ProcessPool belongs to the process {self._owner}, from which this one was "
                "forked; make a pool here"
            )
        return self._threads.submit(_call, self._local, self._processes, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; with *wait*, return when all have returned and all processes ended.

        With *cancel_futures*, the calls that have not begun are cancelled.
        """
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for process in self._processes:
                process.join()


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# -- the pools of flows that name none -------------------------------------------------------------
_lock: Final = threading.Lock()
_shared: ProcessPool | None = None
SHARED_NAME: Final = "reactive_aio-shared-processes"


class _SharedProcesses(ProcessPool):
    _thread_name = SHARED_NAME


def shared_processes() -> ProcessPool:
    """The pool of all flows that name none; without a call, it has no process."""
    global _shared
    with _lock:
        if _shared is None or _shared._owner != os.getpid():
            _shared = _SharedProcesses()
        return _shared


class SharedThreads:
    """The threads of all flows that name no pool, as many as these need, while there are such.

    There is no limit, since calls may wait for each other.
    """

    _executor: ThreadPoolExecutor | None = None

    def __init__(self, name: str) -> None:
        self._name = name
        # Re-entrant, since a subscription may be freed, and so release them, at any time.
        self._lock = threading.RLock()
        self._users = 0

    def acquire(self) -> ThreadPoolExecutor:
        """The threads, for one more flow, which has to `release` them."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(2**31, self._name)
            self._users += 1
            return self._executor

    def release(self) -> None:
        """One flow less submits calls; without any, the threads end when their calls return."""
        with self._lock:
            self._users -= 1
            if not self._users and self._executor is not None:
                self._executor.shutdown(wait=False)
                self._executor = None

    def end(self) -> None:
        """Let the threads end when their calls return, whoever has not released them."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False)


# -- on a thread of the pool -----------------------------------------------------------------------
class _Worker:
    """The process of one thread."""

    def __init__(self, processes: "list[BaseProcess]") -> None:
        from multiprocessing import get_context, resource_tracker  # 20 ms, which few need

        if sys.platform != "win32":
            resource_tracker.ensure_running()  # to start it with a process would unblock SIGINT
        _block_interrupts(True)  # which the process inherits, until it can ignore them
        context = get_context("spawn")  # a program with threads, or a JVM, must not be forked
        self._connection, other = context.Pipe()
        with other:
            self._process = context.Process(target=_serve, args=(other,), name="ProcessPool")
            self._process.start()
        self._known: dict[int, None] = {}
        self._receive(_NOT_STARTED)
        self._processes = processes
        processes.append(self._process)

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def close(self) -> None:
        """End the process."""
        self._connection.close()

    def forget(self) -> None:
        """Release what the pool has of the process, which has ended."""
        self._processes.remove(self._process)
        self._process.close()

    def call(self, fn: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call *fn* in the process, and return what it returns."""
        key = fn.key if isinstance(fn, SentOnce) else None
        message = pickle.dumps((key if key in self._known else fn, args, kwargs), -1)
        if key is not None and key not in self._known:
            _keep(self._known, key, None)
        try:
            self._connection.send_bytes(message)
        except ConnectionError:
            pass  # it has died: receiving says so
        answer = self._receive("process {} {} in the middle of a call")
        is_result, result = pickle.loads(answer)
        if not is_result:
            raise result
        return result

    def _receive(self, died: str) -> bytes:
        try:
            return self._connection.recv_bytes()
        except (EOFError, OSError) as error:  # OSError in the middle of an answer
            from concurrent.futures.process import BrokenProcessPool

            self._process.join(_SECONDS_TO_END)
            self._process.kill()  # one that has only closed the pipe
            self._process.join()
            how = _how_it_ended(self._process.exitcode)
            raise BrokenProcessPool(died.format(self._process.pid, how)) from error


def _how_it_ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with the exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a signal without a name
        return f"was killed by the signal {-code}"


class _Owner:
    """What a thread has of its process: when the thread has ended, this is freed, and ends it.

    (The worker itself may live longer, in the traceback of an error.)
    """

    def __init__(self, processes: "list[BaseProcess]") -> None:
        self.worker = _Worker(processes)

    def __del__(self) -> None:
        if hasattr(self, "worker"):
            self.worker.close()


def _try_to_start(local: threading.local, processes: "list[BaseProcess]") -> None:
    """Start the process of a thread, before that takes a call from the queue.

    Meanwhile the threads whose processes have started make the calls.
    """
    try:
        local.owner = _Owner(processes)
    except Exception:
        local.owner = None  # the first call tries again, and reports the error


def _call(
    local: threading.local,
    processes: "list[BaseProcess]",
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if local.owner is not None and not local.owner.worker.is_alive:
        local.owner.worker.forget()
        local.owner = None
    if local.owner is None:
        local.owner = _Owner(processes)
    return local.owner.worker.call(fn, args, kwargs)


# -- in a process ----------------------------------------------------------------------------------
def _serve(connection: "Connection[bytes, bytes]") -> None:
    """Make the calls that arrive on *connection*, until the other side is closed."""
    # Ctrl-C is for the program, which may drain. (SIG_IGN would pass on to programs started here.)
    signal.signal(signal.SIGINT, _ignore)
    _block_interrupts(False)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    kept: dict[int, SentOnce] = {}
    try:
        connection.send_bytes(b"ready")
        while True:
            connection.send_bytes(_answer(connection.recv_bytes(), kept))
    except (EOFError, OSError):
        pass  # the pool has been shut down, or the program has ended in the middle of a call


def _ignore(number: int, frame: object) -> None:
    pass


def _block_interrupts(is_blocked: bool) -> None:
    """Hold back SIGINT on this thread, or no longer."""
    if sys.platform != "win32":
        how = signal.SIG_BLOCK if is_blocked else signal.SIG_UNBLOCK
        signal.pthread_sigmask(how, {signal.SIGINT})


def _end_with_parent() -> None:
    """End this process when the program was killed: in the middle of a call too.

    Otherwise it would outlive the program, and keep its standard output open.
    """
    from multiprocessing import parent_process

    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _answer(message: bytes, kept: dict[int, SentOnce]) -> bytes:
    """Whether the call returned, and its result or error, pickled."""
    try:
        fn, args, kwargs = pickle.loads(message)
        if isinstance(fn, int):
            fn = kept[fn]
        elif isinstance(fn, SentOnce):
            _keep(kept, fn.key, fn)
        return pickle.dumps((True, fn(*args, **kwargs)), -1)
    except BaseException as error:
        return pickle.dumps((False, sendable(error)), -1)


def _keep(kept: dict[int, T], key: int, value: T) -> None:
    """Add to *kept*, and forget the oldest if there are too many: the same on both sides."""
    kept[key] = value
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


class _Rebuilt:
    """An error whose ``__init__`` takes something else than ``args``: it arrives without that."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self._error), self._error.args, vars(self._error))


def _rebuild(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]
) -> BaseException:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


def sendable(error: BaseException) -> Any:
    """What arrives in another process as *error*, with its traceback as a note."""
    text = "".join(format_exception(error)).rstrip()
    error.add_note(f"raised in a process:\n{text}")
    try:
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error) and copy.args == error.args:
            return error
    except Exception:
        pass  # many errors can be pickled, and not unpickled
    try:
        pickle.loads(pickle.dumps(rebuilt := _Rebuilt(error)))
        return rebuilt
    except Exception as reason:
        told = RuntimeError(
            f"{type(error).__name__}: {error} (the error itself cannot be sent: {reason})"
        )
        told.add_note(f"raised in a process:\n{text}")
        return told
