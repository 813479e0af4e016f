"""The one door to asyncio: scheduling, waking from a thread, hopping to an executor, reporting.

A subscription belongs to the event loop on which it was made. Everything here is called on that
loop's thread, except what is named ``…_threadsafe`` or says so.
"""

import asyncio
import threading
from asyncio import (
    AbstractEventLoop,
    BaseTransport,
    Future,
    Handle,
    Protocol as SocketProtocol,
    Server as Listener,
    Task,
    TimerHandle,
    shield,
)
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from socket import socket
from threading import get_ident
from types import coroutine
from typing import Any, Final, TypeVar

from ..errors import NoRunningLoop

__all__ = (
    "QUEUE_SHUT_DOWN",
    "AbstractEventLoop",
    "BaseTransport",
    "CancelledError",
    "Future",
    "Handle",
    "Listener",
    "LoopHandle",
    "SocketProtocol",
    "Task",
    "TimerHandle",
    "report",
    "shield",
    "wait_settled",
    "yield_to_loop",
)

T = TypeVar("T")
CancelledError = asyncio.CancelledError
_shut_down: type[Exception] | None = getattr(asyncio, "QueueShutDown", None)
QUEUE_SHUT_DOWN: tuple[type[Exception], ...] = () if _shut_down is None else (_shut_down,)
"""What a queue raises that was shut down, from Python 3.13 on."""

# A task that only its own callbacks refer to may be collected while it is pending.
_tasks: set[Task[Any]] = set()


@coroutine
def yield_to_loop() -> Generator[None, None, None]:
    """Give the loop one turn."""
    yield


class _Nesting(threading.local):
    """How deep subscriptions call each other on this thread, and what waits for that to end."""

    def __init__(self) -> None:
        self.depth = 0
        self.waiting: deque[tuple[LoopHandle, Callable[..., object], tuple[object, ...]]] = deque()


_DEEPEST: Final = 24  # a hundred boundaries in a row must not exhaust the stack
_nesting = _Nesting()


class LoopHandle:
    """What one subscription needs of the loop it was made on, and the context it was made in."""

    __slots__ = ("context", "entered", "loop", "thread")

    def __init__(self, what: str = "subscribe()") -> None:
        loop = asyncio._get_running_loop()
        if loop is None:
            raise NoRunningLoop(what)
        self.loop: AbstractEventLoop = loop
        self.thread: int = get_ident()
        self.context: Context = copy_context()
        self.entered: bool = False

    # -- scheduling -----------------------------------------------------------------------------
    @property
    def is_current_thread(self) -> bool:
        """Whether the caller is on the loop's thread."""
        return get_ident() == self.thread

    @property
    def is_closed(self) -> bool:
        """Whether the loop is closed, so that nothing can be scheduled any more."""
        return self.loop.is_closed()

    def run(self, work: Callable[..., object], *args: object) -> None:
        """Run *work* now, in the subscription's context; a context cannot be entered twice."""
        if self.entered:
            work(*args)
            return
        nesting = _nesting
        self.entered = True
        nesting.depth += 1
        try:
            self.context.run(work, *args)
        finally:
            nesting.depth -= 1
            self.entered = False
            if nesting.waiting and not nesting.depth:
                _catch_up(nesting)

    def run_or_defer(self, work: Callable[..., object], *args: object) -> None:
        """The same; but deep inside others, *work* runs when the outermost has returned (3.3)."""
        if _nesting.depth < _DEEPEST or self.entered:
            self.run(work, *args)
        else:
            _nesting.waiting.append((self, work, args))

    def time(self) -> float:
        """The loop's clock, in seconds; virtual where the loop's time is."""
        return self.loop.time()

    def call_soon(self, callback: Callable[..., object], *args: object) -> Handle:
        """Call back in the next turn, in the subscription's context."""
        return self.loop.call_soon(self.run, callback, *args)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: object) -> bool:
        """The same from any thread; False if the loop is closed, and so nobody is left to call."""
        try:
            self.loop.call_soon_threadsafe(self.run, callback, *args)
        except RuntimeError:
            return False
        return True

    def call_later(
        self, seconds: float, callback: Callable[..., object], *args: object
    ) -> TimerHandle:
        """Call back after *seconds*, in the subscription's context."""
        return self.loop.call_later(seconds, self.run, callback, *args)

    def create_future(self) -> Future[Any]:
        return self.loop.create_future()

    # -- tasks ----------------------------------------------------------------------------------
    def create_task(self, work: Coroutine[Any, Any, Any], name: str) -> Task[Any]:
        """Start a task in a copy of the subscription's context; it is kept alive until it ends."""
        task: Task[Any] = Task(work, loop=self.loop, name=name, context=self.context.copy())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        return task

    def is_current_task(self, task: Task[Any] | None) -> bool:
        """Whether the caller runs in *task*."""
        return task is not None and asyncio.current_task(self.loop) is task

    # -- sockets --------------------------------------------------------------------------------
    def add_reader(self, connection: socket, callback: Callable[..., object]) -> None:
        """Call back, in the subscription's context, in every turn in which it can be read."""
        self.loop.add_reader(connection, self.run, callback)

    def remove_reader(self, connection: socket) -> None:
        """Do so no more; to be called before the socket is closed."""
        with suppress(RuntimeError):  # a loop that is closed watches nothing
            self.loop.remove_reader(connection)

    # -- threads --------------------------------------------------------------------------------
    def run_in_executor(
        self, executor: Executor | None, work: Callable[..., T], *args: object
    ) -> Future[T]:
        """Run *work* on an executor's thread, in the subscription's context."""
        context = self.context.copy()  # one thread at a time may be in a context
        return self.loop.run_in_executor(executor, partial(context.run, work, *args))

    # -- reporting ------------------------------------------------------------------------------
    def report(self, message: str, error: BaseException, **details: object) -> None:
        """Tell the loop's exception handler what nobody else can be told (rule 2.13)."""
        self.loop.call_exception_handler({"message": message, "exception": error, **details})


def report(message: str, error: BaseException) -> None:
    """The same where there is no door: to the loop that runs, or else to the caller."""
    loop = asyncio._get_running_loop()
    if loop is None:
        raise error
    loop.call_exception_handler({"message": message, "exception": error})


def _catch_up(nesting: _Nesting) -> None:
    nesting.depth += 1  # so that nobody inside does it
    try:
        while nesting.waiting:
            loop_handle, work, args = nesting.waiting.popleft()
            loop_handle.run(work, *args)
    finally:
        nesting.depth -= 1


async def wait_settled(*work: Awaitable[Any]) -> None:
    """Wait until all of *work* is done, whatever its outcome, and cancel none of it."""
    if work:
        await asyncio.wait([asyncio.ensure_future(each) for each in work])
