"""The publisher's side of one subscription, by which laws drive a subscriber.

A scenario sends each signal explicitly, and each is awaited to its end before the next one. Some
faults are detected at once, in any scenario: a signal that raises or never ends, a request that is
not positive, a call that a terminal signal caused, calls that overlap.
"""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from inspect import isawaitable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from ...testing.journal import Kind
from ...testing.safe_repr import safe_repr
from ..law import NotJudged
from .recorder import Participant

if TYPE_CHECKING:
    from .heartbeat import Heartbeat
    from .law_context import LawContext

__all__ = ("Upstream",)

_terminal_signal: ContextVar[tuple[object, str] | None] = ContextVar("terminal", default=None)
"""The upstream and name of a terminal signal: tasks and callbacks made in the signal inherit it."""

KINDS: Final = {kind.value: kind for kind in Kind}
TERMINAL: Final = ("on_complete", "on_error")


class Upstream(Participant):
    """One subscription of *subscriber*: sends its signals and records its calls."""

    def __init__(
        self, context: "LawContext", subscriber: Any, name: str = "upstream of the subscriber"
    ) -> None:
        super().__init__(context, name)
        self.subscriber = subscriber
        self.equals_others: bool = False
        """Whether the subscriber receives a subscription that equals others."""
        self.requested: int = 0
        self.request_calls: int = 0
        self.cancel_calls: int = 0
        self.sent: int = 0
        self.is_terminated: bool = False
        self.requests_after_end: list[int] = []
        """What was requested after the terminal signal."""
        self.call_seconds: float = 0.0
        """Seconds that each call of request and cancel takes."""
        self.on_request: Callable[[], object] | None = None
        """Called inside request, but not inside itself."""
        self.heartbeat: Heartbeat | None = None
        """Measures how long signals block the loop."""
        self.longest_block: tuple[float, str] = (0.0, "")
        """The longest time that a signal blocked the loop, and the signal."""
        self._is_in_on_request = False
        self._current_call: tuple[int, str] | None = None

    # -- calls of the subscriber ------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        self.journal.note(Kind.REQUEST, n)
        with self._checked_call(f"request({n!r})"):
            if not _is_positive(n):
                self.record_fault("3.9", f"request({n!r}): a request must be at least 1")
                return
            self.request_calls += 1
            self.requested += n
            if self.is_terminated:
                self.requests_after_end.append(n)
            elif self.on_request is not None and not self._is_in_on_request:
                self._is_in_on_request = True
                try:
                    self.on_request()
                finally:
                    self._is_in_on_request = False

    def cancel(self) -> None:
        self.journal.note(Kind.CANCEL)
        with self._checked_call("cancel()"):
            self.cancel_calls += 1

    @contextmanager
    def _checked_call(self, what: str) -> Generator[None]:
        terminal, thread, before = _terminal_signal.get(), get_ident(), self._current_call
        if terminal is not None and terminal[0] is self:
            self.record_fault("2.3", f"{what} was called because of {terminal[1]}")
        if before is not None and before[0] != thread:
            fault = f"{what} began on another thread while {before[1]} was under way"
            self.record_fault("2.7", fault)
        self._current_call = thread, what
        until = time.perf_counter() + self.call_seconds
        while time.perf_counter() < until:
            pass  # gives another thread the chance to interfere
        try:
            yield
        finally:
            self._current_call = before

    # -- signals ----------------------------------------------------------------------------------
    async def on_subscribe(self) -> None:
        subscription = EqualSubscription(self) if self.equals_others else self
        await self.signal("on_subscribe", subscription)

    async def on_next(self, element: Any = None) -> Any:
        """Send *element*, or the candidate's next one; return it."""
        sent = self.next_element() if element is None else element
        self.sent += 1
        await self.signal("on_next", sent)
        return sent

    async def on_complete(self) -> None:
        self.is_terminated = True
        await self.signal("on_complete")

    async def on_error(self, error: BaseException) -> None:
        self.is_terminated = True
        await self.signal("on_error", error)

    async def signal(self, name: str, *args: Any) -> None:
        """Send a signal and wait for its end, which must be normal (2.13)."""
        error = await self.try_signal(name, *args)
        if error is not None:
            what = f"{_call_text(name, *args)} raised {safe_repr(error)}"
            raise self.context.violation(what, "2.13", self.journal)

    async def try_signal(self, name: str, *args: Any) -> BaseException | None:
        """Send a signal and wait for its end; return what it raised."""
        with self._marked_terminal(name, *args):
            with self._measured(name):
                returned, error = self._call_signal(name, *args)
            if error is not None:
                return error
            return await self._wait_for_signal(returned, name, *args)

    @contextmanager
    def _marked_terminal(self, name: str, *args: Any) -> Generator[None]:
        """Mark tasks and callbacks that a terminal signal makes."""
        is_terminal = name in TERMINAL and args != (None,)
        token = _terminal_signal.set((self, name)) if is_terminal else None
        try:
            yield
        finally:
            if token is not None:
                _terminal_signal.reset(token)

    def _call_signal(self, name: str, *args: Any) -> tuple[Any, BaseException | None]:
        """Call a signal; return what it returned, or what it raised."""
        self.journal.note(KINDS[name], *args[:1])
        return self.context.try_call(
            _call_text(name, *args), lambda: getattr(self.subscriber, name)(*args)
        )

    @contextmanager
    def _measured(self, name: str) -> Generator[None]:
        moment = self.heartbeat.now() if self.heartbeat is not None else None
        try:
            yield
        finally:
            if self.heartbeat is not None and moment is not None:
                seconds = self.heartbeat.since(moment)
                self.longest_block = max(self.longest_block, (seconds, name))

    async def _measure_turns(self, name: str) -> None:
        """Measure some turns of the loop, in which tasks made by the signal run."""
        for _ in range(self.context.timeouts.quiet_turns if self.heartbeat is not None else 0):
            with self._measured(name):
                await self.context.turn()

    async def _wait_for_signal(self, returned: Any, name: str, *args: Any) -> BaseException | None:
        if not isawaitable(returned):
            await self._measure_turns(name)
            return None
        task: asyncio.Future[Any] = asyncio.ensure_future(returned)
        try:
            await self._measure_turns(name)
            what = f"{_call_text(name, *args)} returned an awaitable, and it does not end"
            await self.wait_until(task.done, what, "2.13")
        finally:
            task.cancel()
        return asyncio.CancelledError() if task.cancelled() else task.exception()

    def signal_inside_request(self, name: str, *args: Any) -> None:
        """Send a signal to a subscriber with ``def`` methods, inside request or cancel."""
        self.sent += name == "on_next"
        self.is_terminated = self.is_terminated or name in TERMINAL
        with self._marked_terminal(name, *args):
            _, error = self._call_signal(name, *args)
            if error is not None:
                what = f"{_call_text(name, *args)}, sent inside of request"
                self.record_fault("2.13", f"{what}, raised {safe_repr(error)}")

    def next_element(self) -> Any:
        return self.context.candidate.element(self.sent)

    # -- waiting ----------------------------------------------------------------------------------
    @property
    def outstanding(self) -> int:
        """How many elements may be sent."""
        return 0 if self.cancel_calls or self.is_terminated else self.requested - self.sent

    async def wait_for_demand(self, rule: str = "2.1") -> None:
        """Wait until the subscriber has requested an element."""
        what = (
            "nothing is requested, so no element may ever come; a subscriber that requests "
            "only on command needs trigger_request"
        )
        await self.wait_until(lambda: self.outstanding or self.cancel_calls, what, rule)
        if self.cancel_calls:
            raise NotJudged("the subscriber cancels before it has received all elements")

    @property
    def is_waiting_for_subscriber(self) -> bool:
        """Whether the subscriber is an adapted operator whose inner subscriber is not there yet."""
        return getattr(self.subscriber, "is_waiting_for_subscriber", False) is True

    async def require_inner_subscriber(self) -> None:
        """Signals that wait outside of an adapted operator cannot be judged."""
        if self.is_waiting_for_subscriber:
            await self.context.settle()
        if self.is_waiting_for_subscriber:
            raise NotJudged("the operator does not subscribe before something is requested")

    async def wait_for_cancel(self, what: str, rule: str = "") -> None:
        await self.wait_until(lambda: self.cancel_calls, what, rule)


@dataclass(frozen=True)
class EqualSubscription:
    """A subscription that equals all others of its type."""

    upstream: Upstream = field(compare=False)

    def request(self, n: int, /) -> None:
        self.upstream.request(n)

    def cancel(self) -> None:
        self.upstream.cancel()


def _is_positive(n: object) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n >= 1


def _call_text(name: str, *args: Any) -> str:
    if name == "on_subscribe" and args[0] is not None:
        return "on_subscribe()"
    return f"{name}({', '.join(f'{safe_repr(each, 60)}' for each in args)})"
