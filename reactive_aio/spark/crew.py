"""A few threads for the blocking calls of one subscription, which end with it.

Daemon threads, unlike those of a `ThreadPoolExecutor`: a call that never returns must not keep the
interpreter from ending. The loop's thread owns all of the state; a thread only takes calls.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

from .._core.loop import Future, LoopHandle

__all__ = ("Crew",)

T = TypeVar("T")
Call = tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]

_REPEAT: Final = 0.05  # seconds between two interruptions: one may come before what it is to end
_numbers = count(1)


class Crew:
    """Runs calls on up to *size* threads, and tells the loop what they returned."""

    __slots__ = (
        "_calls",
        "_closing",
        "_interrupt",
        "_loop_handle",
        "_name",
        "_size",
        "_threads",
        "lost",
        "under_way",
    )  # fmt: skip

    def __init__(
        self, loop_handle: LoopHandle, name: str, *, size: int, interrupt: Callable[[], object]
    ) -> None:
        self._loop_handle = loop_handle
        self._name = f"reactive_aio-{name}-{next(_numbers)}"
        self._size = size
        self._interrupt = interrupt
        self._calls: SimpleQueue[Call | _Dismissal] = SimpleQueue()
        self._threads: list[Thread] = []
        self._closing: Future[None] | None = None
        self.under_way: int = 0
        """How many calls have not told what they returned."""
        self.lost: Callable[[], object] = self.dismiss
        """Called on a thread that finds the loop closed under it; set before the first call."""

    def call(
        self, work: Callable[[], T], told: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run *work* on a thread; then *told*, with its result or its error, on the loop."""
        self.under_way += 1
        if self.under_way > len(self._threads) < self._size:
            thread = Thread(
                # A context can be entered by one thread at a time, and the loop's uses ours.
                target=self._loop_handle.context.copy().run,
                args=(_work, self._calls, self._loop_handle, self.lost),
                name=f"{self._name}-{len(self._threads)}",
                daemon=True,
            )
            try:
                thread.start()
            except RuntimeError as error:  # the system has none to give
                if not self._threads:
                    self._loop_handle.call_soon(self._told, told, None, error)
                    return
            else:
                self._threads.append(thread)
        self._calls.put((work, lambda result, error: self._told(told, result, error)))

    def _told(self, told: Callable[..., None], result: Any, error: Exception | None) -> None:
        self.under_way -= 1
        if not self.under_way and self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        told(result, error)

    def dismiss(self, last: Callable[[], object] | None = None) -> None:
        """Let every thread end after the calls it has; the one that does so at last calls *last*.

        So nothing else is under way then. No thread, no *last*. Safe inside the garbage collector.
        """
        dismissal = _Dismissal(last, len(self._threads))
        for _ in self._threads:
            self._calls.put(dismissal)

    def interrupt(self) -> None:
        """Make the calls under way return early: again and again, until they have."""
        if not self.under_way:
            return
        helper = Thread(
            target=self._loop_handle.context.copy().run,
            args=(_keep, self._interrupt, tuple(self._threads)),
            name=f"{self._name}-interrupt",
            daemon=True,
        )
        with suppress(RuntimeError):  # no thread to be had: the calls end by themselves, some day
            helper.start()

    async def closed(self) -> None:
        """Wait until no call is under way."""
        if self.under_way:
            self._closing = self._closing or self._loop_handle.create_future()
            await self._closing


class _Dismissal:
    """What each of some threads takes once, in place of a call."""

    __slots__ = ("_at_work", "_last")

    def __init__(self, last: Callable[[], object] | None, threads: int) -> None:
        self._last = last
        self._at_work = count(threads - 1, -1)  # next() is atomic, and takes no lock

    def leave(self) -> None:
        """On a thread that ends."""
        if not next(self._at_work) and self._last is not None:
            with suppress(Exception):  # nobody waits for it
                self._last()


def _work(
    calls: "SimpleQueue[Call | _Dismissal]", loop_handle: LoopHandle, lost: Callable[[], object]
) -> None:
    """The life of a thread."""
    while not isinstance(call := calls.get(), _Dismissal):
        work, told = call
        try:
            result, error = work(), None
        except Exception as raised:
            result, error = None, raised
        if not loop_handle.call_soon_threadsafe(told, result, error):
            lost()
        del call, work, told, result, error  # a thread that waits must keep nothing alive
    call.leave()


def _keep(interrupt: Callable[[], object], threads: tuple[Thread, ...]) -> None:
    while alive := [thread for thread in threads if thread.is_alive()]:
        interrupt()
        alive[0].join(_REPEAT)
