"""The only module that imports asyncio: scheduling, threads, processes, sockets, error reports.

A subscription belongs to the event loop on which it was created. Every function here is called on
that loop's thread, unless its name ends in ``_threadsafe`` or its docstring says otherwise.
"""

import asyncio
import signal
import threading
import time
from asyncio import (
    AbstractEventLoop,
    BaseTransport,
    BufferedProtocol,
    Future,
    Handle,
    Lock,
    Protocol as SocketProtocol,
    SelectorEventLoop,
    Semaphore,
    Server as Listener,
    SubprocessProtocol,
    SubprocessTransport,
    Task,
    TimerHandle,
    shield,
    sleep,
    timeout,
)
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Sequence,
)
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context, copy_context
from enum import Enum
from functools import partial
from math import inf
from socket import socket
from threading import get_ident
from time import monotonic
from types import FrameType, TracebackType, coroutine
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import ReferenceType, WeakKeyDictionary, ref

from ..errors import NoRunningLoop, TimedOut, WrongLoop
from .losses import count_dropped_error
from .unwinding import is_cleaning_up

__all__ = (
    "NOT_ENTERED",
    "QUEUE_SHUT_DOWN",
    "AbstractEventLoop",
    "BaseTransport",
    "BufferedProtocol",
    "Cancellation",
    "CancelledError",
    "Future",
    "Handle",
    "Listener",
    "Lock",
    "LoopHandle",
    "NotEntered",
    "SelectorEventLoop",
    "Semaphore",
    "SocketProtocol",
    "SubprocessProtocol",
    "SubprocessTransport",
    "Task",
    "TimeLimit",
    "TimerHandle",
    "cancel_task",
    "context_of",
    "current_task",
    "is_being_cancelled",
    "pass_on_signal",
    "report",
    "running_handle",
    "shield",
    "sleep",
    "timeout",
    "unfinished_tasks",
    "wait_first",
    "wait_for_others",
    "wait_settled",
    "yield_to_loop",
)

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
Work = Callable[[], object]
CancelledError = asyncio.CancelledError
_shut_down: type[Exception] | None = getattr(asyncio, "QueueShutDown", None)
QUEUE_SHUT_DOWN: tuple[type[Exception], ...] = () if _shut_down is None else (_shut_down,)
"""What a queue raises after ``shutdown()``, which exists from Python 3.13 on."""

# The collector may free a pending task that only its own callbacks refer to.
_tasks: set[Task[Any]] = set()


@coroutine
def yield_to_loop() -> Generator[None, None, None]:
    """Yield to the event loop for one turn."""
    yield


class _Nesting:
    """How deeply calls between subscriptions are nested on one thread, and the deferred calls."""

    __slots__ = ("deferred", "depth", "loop", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.depth = 0
        self.deferred: deque[tuple[LoopHandle, Work]] = deque()
        # The last loop on which a task was started: with a new one, tasks of closed ones are freed.
        self.loop: ReferenceType[AbstractEventLoop] | None = None


class _Thread(threading.local):
    def __init__(self) -> None:
        self.nesting = _Nesting()


class NotEntered(Enum):
    """The answer of `LoopHandle.enter` if it did not run anything."""

    NOT_ENTERED = "the subscription is running already, or calls are nested too deeply"


NOT_ENTERED: Final = NotEntered.NOT_ENTERED
JOIN_TIME: Final = 5.0
"""The seconds for which the end of an event loop waits for the threads of its flows."""
_DEEPEST: Final = 24  # a hundred boundaries in a row must not exhaust the stack
_thread = _Thread()

_wall_times: Final[WeakKeyDictionary[AbstractEventLoop, float]] = WeakKeyDictionary()
"""For each event loop, the seconds since 1970 when its clock showed 0."""


class LoopHandle:
    """The event loop on which a subscription was created, and the context it was created in."""

    __slots__ = ("_nesting", "context", "event_loop", "is_entered", "thread")

    def __init__(self, what: str = "subscribe()") -> None:
        loop = asyncio._get_running_loop()
        if loop is None:
            raise NoRunningLoop(what)
        self._nesting: _Nesting = _thread.nesting
        self.event_loop: AbstractEventLoop = loop
        self.thread: int = self._nesting.thread
        self.context: Context = copy_context()
        self.is_entered: bool = False

    # -- scheduling -----------------------------------------------------------------------------
    @property
    def is_current_thread(self) -> bool:
        return get_ident() == self.thread

    @property
    def is_running_here(self) -> bool:
        """Whether the caller runs in this event loop: in its thread, and not in another loop."""
        # Asking asyncio for the running loop takes a system call up to CPython 3.11.
        return get_ident() == self.thread and self.event_loop.is_running()

    @property
    def is_closed(self) -> bool:
        """Whether the loop is closed, so that nothing can be scheduled."""
        return self.event_loop.is_closed()

    def run(self, work: Callable[..., object], *args: object) -> None:
        """Run *work* now, in the subscription's context (which cannot be entered twice)."""
        if self.is_entered:
            work(*args)
        else:
            self.enter(_call, partial(work, *args), inf)

    # A call with `*args` takes as long as all the rest: what runs for each hand-over has none.
    def run_or_defer(self, work: Callable[[A], object], argument: A) -> None:
        """Like `run`; at a depth of 24 calls, *work* is deferred to the outermost one (3.3)."""
        if self.is_entered:
            work(argument)
        elif self.enter(work, argument) is NOT_ENTERED:
            self._nesting.deferred.append((self, partial(work, argument)))

    def enter(
        self, work: Callable[[A], R], argument: A, deepest: float = _DEEPEST
    ) -> R | NotEntered:
        """Run *work* now, in the subscription's context, and return its result.

        `NOT_ENTERED` if it was not run, since the subscription is running already, or calls are
        nested too deeply (3.3).
        """
        nesting = self._nesting
        if self.is_entered or nesting.depth >= deepest:
            return NOT_ENTERED
        self.is_entered = True
        nesting.depth += 1
        try:
            return self.context.run(work, argument)
        finally:
            nesting.depth -= 1
            self.is_entered = False
            if nesting.deferred and not nesting.depth:
                _run_deferred(nesting)

    def _run_entered(self, work: Work) -> None:
        """Run *work* for the event loop, which has entered the context."""
        nesting = self._nesting
        self.is_entered = True
        nesting.depth += 1
        try:
            work()
        finally:
            nesting.depth -= 1
            try:
                if nesting.deferred and not nesting.depth:
                    _run_deferred(nesting)
            finally:
                self.is_entered = False

    def time(self) -> float:
        return self.event_loop.time()

    def wall_time(self) -> float:
        """The time of the event loop, in seconds since 1970.

        The clock of the machine is read once for each event loop. After that only the loop's time
        counts: it does not jump when the clock is set, and virtual time applies.
        """
        loop = self.event_loop
        began = _wall_times.get(loop)
        if began is None:
            began = _wall_times[loop] = time.time() - loop.time()
        return began + loop.time()

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of the event loop, for many calls."""
        clock = self.event_loop.time
        # `BaseEventLoop.time` only calls `monotonic`.
        is_usual = getattr(clock, "__func__", None) is asyncio.BaseEventLoop.time
        return monotonic if is_usual else clock

    def call_soon(self, callback: Callable[..., object], *args: object) -> Handle:
        """Call *callback* in the next turn, in the subscription's context."""
        work = partial(callback, *args) if args else callback
        return self.event_loop.call_soon(self._run_entered, work, context=self.context)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: object) -> bool:
        """Like `call_soon`, from any thread; return False if the loop is closed."""
        try:
            self.event_loop.call_soon_threadsafe(self.run, callback, *args)
        except RuntimeError:
            return False
        return True

    def call_later(
        self, seconds: float, callback: Callable[..., object], *args: object
    ) -> TimerHandle:
        """Call *callback* after *seconds*, in the subscription's context."""
        return self.event_loop.call_later(seconds, self.run, callback, *args)

    def create_future(self) -> Future[Any]:
        return self.event_loop.create_future()

    # -- tasks ----------------------------------------------------------------------------------
    def create_task(
        self,
        work: Coroutine[Any, Any, Any],
        name: str,
        on_done: Callable[[Task[Any]], object] | None = None,
    ) -> Task[Any]:
        """Start a task in a copy of the subscription's context, and keep it referenced.

        *on_done* is called with the task when that is done.
        """
        context = self.context.copy()
        task = _FlowTask(work, loop=self.event_loop, name=name, context=context)
        task.context = context
        nesting = self._nesting
        if nesting.loop is None or nesting.loop() is not self.event_loop:
            nesting.loop = ref(self.event_loop)
            _tasks.difference_update([each for each in _tasks if each.get_loop().is_closed()])
        _tasks.add(task)
        task.add_done_callback(_tasks.discard if on_done is None else partial(_forget, on_done))
        return task

    def is_current_task(self, task: Task[Any] | None) -> bool:
        return task is not None and asyncio.current_task(self.event_loop) is task

    # -- sockets --------------------------------------------------------------------------------
    def add_reader(self, connection: socket | int, callback: Callable[..., object]) -> None:
        """Call *callback*, in the subscription's context, in every turn with data to read."""
        self.event_loop.add_reader(connection, self.run, callback)

    def remove_reader(self, connection: socket | int) -> None:
        """Undo `add_reader`; call it before the socket is closed."""
        with suppress(RuntimeError):  # the loop is closed
            self.event_loop.remove_reader(connection)

    def add_writer(self, pipe: int, callback: Callable[..., object]) -> None:
        """Call *callback*, in the subscription's context, in every turn with room to write."""
        self.event_loop.add_writer(pipe, self.run, callback)

    def remove_writer(self, pipe: int) -> None:
        """Undo `add_writer`; call it before the pipe is closed."""
        with suppress(RuntimeError):  # the loop is closed
            self.event_loop.remove_writer(pipe)

    # -- processes ------------------------------------------------------------------------------
    async def start_process(
        self, protocol: SubprocessProtocol, argv: Sequence[str], **options: Any
    ) -> None:
        """Start a program whose events *protocol* receives; *options* are those of ``Popen``."""
        await self.event_loop.subprocess_exec(lambda: protocol, *argv, **options)

    # -- threads --------------------------------------------------------------------------------
    def run_in_executor(
        self, executor: Executor | None, work: Callable[..., T], *args: object
    ) -> Future[T]:
        """Run *work* on an executor's thread, in the subscription's context."""
        context = self.context.copy()  # only one thread at a time may enter a context
        return self.event_loop.run_in_executor(executor, partial(context.run, work, *args))

    def join_at_end(self, user: "UsesThreads") -> None:
        """Join the threads of *user* when the loop ends, unless that is not needed any more.

        They are waited for as long as `JOIN_TIME`, and reported if they still run then.
        """
        users = _users_of_threads.get(self.event_loop)
        if users is None:
            users = _users_of_threads[self.event_loop] = _UsersOfThreads()
        users.add(user)

    def need_not_join(self, user: "UsesThreads") -> None:
        """The threads of *user* are done; called on any thread."""
        users = _users_of_threads.get(self.event_loop)
        if users is not None:
            users.discard(user)

    # -- signals of the system ------------------------------------------------------------------
    def add_signal_handler(
        self, number: int, callback: Callable[..., object]
    ) -> Callable[[], object]:
        """Call *callback* for each signal; return a function that restores the handler before.

        Raises ValueError outside of the main thread, which alone receives signals.
        """
        before = signal.getsignal(number)
        try:
            self.event_loop.add_signal_handler(number, self.run, callback)
        except NotImplementedError:  # Windows, where the handler interrupts any code

            def interrupt(number: int, frame: FrameType | None) -> None:
                self.call_soon_threadsafe(callback)

            signal.signal(number, interrupt)
        except RuntimeError as error:
            raise ValueError(str(error)) from error

        def restore() -> None:
            with suppress(NotImplementedError):  # Windows
                self.event_loop.remove_signal_handler(number)
            if before is not None:  # it was not installed by Python
                signal.signal(number, before)

        return restore

    def watch_signal(self, number: int, callback: Callable[..., object]) -> Callable[[], object]:
        """Call *callback* for each signal that another handler receives as well.

        Return a function that ends it. Without a handler, whose place it would take, only
        `pass_on_signal` tells it; outside of the main thread, which alone receives signals, nothing
        does.
        """
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        before = signal.getsignal(number)
        if callable(before) and not isinstance(before, _WatchedHandler):
            signal.signal(number, _WatchedHandler(before))
        tell = partial(self.call_soon_threadsafe, callback)
        watches = _signal_watches.setdefault(number, [])
        watches.append(tell)

        def restore() -> None:
            watches.remove(tell)
            handler = signal.getsignal(number)
            if not watches and isinstance(handler, _WatchedHandler):
                signal.signal(number, handler.watched)

        return restore

    # -- reporting ------------------------------------------------------------------------------
    def report(self, message: str, error: BaseException, **details: object) -> None:
        """Call the loop's exception handler, for an error that no subscriber can receive (2.13)."""
        count_dropped_error()
        self.event_loop.call_exception_handler({"message": message, "exception": error, **details})


_signal_watches: Final[dict[int, list[Callable[[], object]]]] = {}
"""What `LoopHandle.watch_signal` has to call, by the number of the signal."""


class _WatchedHandler:
    """The handler of a signal that is watched: it runs as well."""

    def __init__(self, watched: Callable[[int, FrameType | None], object]) -> None:
        self.watched = watched

    def __call__(self, number: int, frame: FrameType | None) -> None:
        _tell_watches(number)
        self.watched(number, frame)


def _tell_watches(number: int) -> None:
    for tell in list(_signal_watches.get(number, ())):
        tell()


def pass_on_signal(before: object, number: int, frame: FrameType | None) -> None:
    """Tell what watches a signal, for a handler that has taken the place of *before*.

    If *before* is watched, it is called as well: it is that of a server, which is to stop.
    """
    if isinstance(before, _WatchedHandler) and not _is_interrupt(before.watched):
        before(number, frame)
    else:
        _tell_watches(number)


def _is_interrupt(handler: Callable[..., object]) -> bool:
    """Whether *handler* is what Python or asyncio does at Ctrl-C: it cuts what runs."""
    function = handler.func if isinstance(handler, partial) else handler
    module = getattr(function, "__module__", "")
    return function is signal.default_int_handler or module == "asyncio.runners"


class UsesThreads(Protocol):
    """What has threads that run."""

    def stop_threads(self) -> None:
        """On the loop: let them end, or return from their calls, soon."""
        ...

    def join_threads(self, seconds: float) -> str:
        """On another thread: wait for that; return the name of what runs for longer, or nothing."""
        ...


class _UsersOfThreads(set[UsesThreads]):
    """What has threads on one event loop.

    A flow that is left by ``break`` does not wait for its thread, and at the end of the program the
    interpreter would kill that in the middle of a cleanup. ``asyncio.run`` closes the asynchronous
    generators of its loop before it closes that: one of them waits for the threads.
    """

    def __init__(self) -> None:
        super().__init__()
        self._generator = _join_at_end(self)
        with suppress(StopIteration):
            self._generator.__anext__().send(None)  # from now on, the loop knows it


_users_of_threads: WeakKeyDictionary[AbstractEventLoop, _UsersOfThreads] = WeakKeyDictionary()


async def _join_at_end(users: set[UsesThreads]) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        stopped = list(users)
        for user in stopped:
            user.stop_threads()
        if stopped:
            loop = asyncio.get_running_loop()
            left = await loop.run_in_executor(None, _join, stopped)
            await yield_to_loop()  # what they have passed on last
            for name in left:
                error = TimedOut(
                    f"{name} still runs {JOIN_TIME:g} s after the end of its event loop"
                )
                report("a thread of a flow is left behind", error)


def _join(users: list[UsesThreads]) -> list[str]:
    end = monotonic() + JOIN_TIME
    left = [user.join_threads(max(0.0, end - monotonic())) for user in users]
    return [name for name in left if name]


def running_handle(before: LoopHandle | None, what: str, remedy: str) -> LoopHandle:
    """The handle of something that belongs to the loop on which it is used first.

    *before*, if its loop runs here; a new one, if there is none or its loop is closed. Raises
    `WrongLoop` if its loop runs elsewhere.
    """
    if before is None or before.is_closed:
        return LoopHandle(what)
    if not before.is_running_here:
        raise WrongLoop(what, remedy, is_closed=False)
    return before


def report(message: str, error: BaseException) -> None:
    """Report to the running loop's exception handler; without a running loop, raise *error*."""
    loop = asyncio._get_running_loop()
    if loop is None:
        raise error
    count_dropped_error()
    loop.call_exception_handler({"message": message, "exception": error})


def _call(work: Work) -> None:
    work()


def _forget(on_done: Callable[[Task[Any]], object], task: Task[Any]) -> None:
    _tasks.discard(task)
    on_done(task)


def _run_deferred(nesting: _Nesting) -> None:
    nesting.depth += 1  # so that a nested call does not do the same
    try:
        while nesting.deferred:
            loop_handle, work = nesting.deferred.popleft()
            loop_handle.run(work)
    finally:
        nesting.depth -= 1


class _FlowTask(Task[Any]):
    """A task of a flow. `Cancellation` cancels it."""

    context: Context | None = None
    """That of the subscription."""
    is_ending = False
    """It was cancelled by `cancel_task`, and is not cancelled again."""
    cancellation: object = None
    """The mark of the one that has reached it, unless that was withdrawn."""

    def cancel(self, msg: Any | None = None) -> bool:
        # While the loop does not run, `asyncio.run` cancels what is left at the end of the program.
        # Within the loop, it may be a time limit that a cleanup has set for itself.
        loop = self.get_loop()
        if loop.is_running() or loop.is_closed():
            return super().cancel(msg)
        if not self.is_ending:
            Cancellation(self)
        return True


def context_of(task: Task[Any]) -> Context | None:
    """The context in which a task of a flow runs; None for any other task."""
    return task.context if isinstance(task, _FlowTask) else None


def unfinished_tasks(loop: AbstractEventLoop) -> list[Task[Any]]:
    """The tasks of *loop* that are not done; called on any thread."""
    return list(asyncio.all_tasks(loop))


class Cancellation:
    """Cancels a task of a flow, but none of its cleanups.

    A task that is cleaning up, or has been reached by another cancellation that is not withdrawn
    yet, is looked at again after each of its steps, and cancelled when that is over.
    """

    __slots__ = ("_is_withdrawn", "_mark", "_task")

    def __init__(self, task: Task[Any]) -> None:
        self._task = cast("_FlowTask", task)
        self._mark = object()  # what the task refers to: with this, it would be in a cycle
        self._is_withdrawn = False
        self._try()

    def _try(self, _: object = None) -> None:
        task = self._task
        if self._is_withdrawn or task.done():
            return
        loop = task.get_loop()
        if asyncio.current_task(loop) is task:
            loop.call_soon(self._try)  # only where it is suspended can be said what it is doing
        elif task.cancellation is None and not is_cleaning_up(task.get_coro()):
            task.cancellation = self._mark
            cast("Any", Task).cancel(task)
        elif (waiter := getattr(task, "_fut_waiter", None)) is None:
            loop.call_soon(self._try)
        else:
            waiter.add_done_callback(self._try)  # called directly after the task

    def withdraw(self) -> bool:
        """It is not needed any more; return whether it has reached the task."""
        self._is_withdrawn = True
        task = self._task
        if task.cancellation is not self._mark:
            return False
        task.cancellation = None
        task.uncancel()
        return True


def cancel_task(task: Task[Any]) -> None:
    """Cancel a task of a flow, which has to end; its cleanups run to their end.

    If its loop is closed, it is released, as nothing else ever would.
    """
    if not task.get_loop().is_closed():
        flow_task = cast("_FlowTask", task)
        if not flow_task.is_ending:
            flow_task.is_ending = True
            Cancellation(task)
        return
    _tasks.discard(task)
    # It was cancelled, so no "Task was destroyed but it is pending!" is due when it is collected.
    task._log_destroy_pending = False  # type: ignore[attr-defined]


class TimeLimit:
    """Limits the time of work in a task of a flow as ``asyncio.timeout`` does, but no cleanup.

    Work that is cleaning up when the time is over is waited for, and its outcome counts.
    """

    __slots__ = ("_before", "_cancellation", "_seconds", "_task", "_timer", "is_expired")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._cancellation: Cancellation | None = None
        self.is_expired: bool = False
        """Whether the work was cancelled."""

    def __enter__(self) -> "TimeLimit":
        self._task = cast("Task[Any]", asyncio.current_task())
        self._before = self._task.cancelling()
        self._timer = self._task.get_loop().call_later(self._seconds, self._expire)
        return self

    def _expire(self) -> None:
        self._cancellation = Cancellation(self._task)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._cancellation is None or not self._cancellation.withdraw():
            return
        self.is_expired = True
        if isinstance(error, CancelledError) and self._task.cancelling() <= self._before:
            raise TimeoutError from error


def current_task() -> Task[Any] | None:
    """The task that runs now; None outside of one."""
    return asyncio.current_task()


def leave_loop(error: BaseException) -> None:
    """Let *error* leave the running loop in its next turn: a destructor cannot raise it."""
    with suppress(RuntimeError):  # there is none
        asyncio.get_running_loop().call_soon(raise_error, error)
        return
    raise error


def raise_error(error: BaseException) -> None:
    """Raise *error*: a callback of the loop, which it leaves if it stops the program."""
    raise error


def is_being_cancelled() -> bool:
    """Whether the task that runs now has been cancelled, and has not ended yet."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def wait_first(*work: Future[Any]) -> None:
    """Wait until one of *work* is done; a cancellation does not reach it."""
    await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)


async def wait_for_others(tasks: Iterable[Future[Any]]) -> bool:
    """Wait until those of *tasks* have ended that do not run now; return whether there were any."""
    running = asyncio.current_task()
    if others := [task for task in tasks if not task.done() and task is not running]:
        await asyncio.wait(others)
        return True
    return False


async def wait_settled(*work: Awaitable[Any]) -> None:
    """Wait until all of *work* is done, whatever its outcome; a cancellation does not reach it."""
    if work:
        await asyncio.wait([asyncio.ensure_future(each) for each in work])
