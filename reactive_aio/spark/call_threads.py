"""A few threads that make the blocking calls of one subscription, and end with it.

They are daemon threads, unlike those of a `ThreadPoolExecutor`: a call that never returns must not
keep the interpreter from exiting. All state is changed on the loop's thread; the call threads only
take calls from a queue and post results to the loop.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, TypeVar

from .._core.loop import Future, LoopHandle

T = TypeVar("T")
Call = tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]
"""The function to run, and the callback for its result or its error."""

_INTERRUPT_EVERY: Final = 0.05  # seconds; one interruption may precede the call that it should end
_numbers = count(1)


class CallThreads:
    """Runs calls on up to *size* threads and posts their results to the loop."""

    __slots__ = ("_all_done", "_interrupt", "_loop_handle", "_name", "_queue", "_size", "_threads",
                 "on_loop_closed", "pending_calls")  # fmt: skip

    def __init__(
        self, loop_handle: LoopHandle, name: str, *, size: int, interrupt: Callable[[], object]
    ) -> None:
        self._loop_handle = loop_handle
        self._name = f"reactive_aio-{name}-{next(_numbers)}"
        self._size = size
        self._interrupt = interrupt
        self._queue: SimpleQueue[Call | _Stop] = SimpleQueue()
        self._threads: list[Thread] = []
        self._all_done: Future[None] | None = None
        self.pending_calls: int = 0
        """How many calls have not posted their result yet."""
        self.on_loop_closed: Callable[[], object] = self.stop
        """Called on a thread that cannot post a result; set it before the first call."""

    def call(
        self, work: Callable[[], T], callback: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run *work* on a thread, then *callback*, with its result or its error, on the loop."""
        self.pending_calls += 1
        if self.pending_calls > len(self._threads) < self._size:
            thread = self._make_thread(
                f"{len(self._threads)}", _run_calls, self._queue, self._loop_handle,
                self.on_loop_closed,
            )  # fmt: skip
            try:
                thread.start()
            except RuntimeError as error:  # the system has no thread to give
                if not self._threads:
                    self._loop_handle.call_soon(self._post, callback, None, error)
                    return
            else:
                self._threads.append(thread)
        self._queue.put((work, lambda result, error: self._post(callback, result, error)))

    def _make_thread(self, name: str, target: Callable[..., object], *args: object) -> Thread:
        # A context can be entered by one thread at a time, and the loop's thread enters ours.
        run = self._loop_handle.context.copy().run
        return Thread(target=run, args=(target, *args), name=f"{self._name}-{name}", daemon=True)

    def _post(self, callback: Callable[..., None], result: Any, error: Exception | None) -> None:
        self.pending_calls -= 1
        if not self.pending_calls and self._all_done is not None and not self._all_done.done():
            self._all_done.set_result(None)
        callback(result, error)

    def stop(self, last_call: Callable[[], object] | None = None) -> None:
        """Let every thread end after its queued calls; the last one to end runs *last_call*.

        So no other call runs at the same time. Without a thread, *last_call* is not made. Safe
        inside the garbage collector.
        """
        stop = _Stop(last_call, count(len(self._threads) - 1, -1))
        for _ in self._threads:
            self._queue.put(stop)

    def interrupt(self) -> None:
        """Make the pending calls return early: repeat the interruption until they have."""
        if not self.pending_calls:
            return
        helper = self._make_thread(
            "interrupt", _keep_interrupting, self._interrupt, tuple(self._threads)
        )
        with suppress(RuntimeError):  # without a thread, the calls end when their work is done
            helper.start()

    async def wait_done(self) -> None:
        """Wait until no call is pending."""
        if self.pending_calls:
            self._all_done = self._all_done or self._loop_handle.create_future()
            await self._all_done


class _Stop(NamedTuple):
    """What each of some threads takes once, in place of a call."""

    last_call: Callable[[], object] | None
    remaining: Iterator[int]
    """Counts the threads down; `next` is atomic, and takes no lock."""


def _run_calls(
    queue: "SimpleQueue[Call | _Stop]",
    loop_handle: LoopHandle,
    on_loop_closed: Callable[[], object],
) -> None:
    while not isinstance(call := queue.get(), _Stop):
        work, post = call
        try:
            result, error = work(), None
        except Exception as raised:
            result, error = None, raised
        if not loop_handle.call_soon_threadsafe(post, result, error):
            on_loop_closed()
        del call, work, post, result, error  # a thread that waits must keep nothing alive
    if not next(call.remaining) and call.last_call is not None:
        with suppress(Exception):  # no caller is left to receive it
            call.last_call()


def _keep_interrupting(interrupt: Callable[[], object], threads: tuple[Thread, ...]) -> None:
    while alive := [thread for thread in threads if thread.is_alive()]:
        interrupt()
        alive[0].join(_INTERRUPT_EVERY)
