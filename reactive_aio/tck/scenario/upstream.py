"""The publisher's side of one subscription, by which laws drive a subscriber under test.

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
from inspect import isawaitable, iscoroutinefunction
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from ...errors import RuleViolation
from ...testing.journal import Kind
from ...testing.safe_repr import safe_repr
from ..candidate import WhiteboxProbe
from ..law import SETUP, NotJudged, StopCandidate
from .equality import same
from .recorder import SIGNALS, Participant

if TYPE_CHECKING:
    from .heartbeat import Heartbeat
    from .law_context import LawContext

_terminal_signal: ContextVar[tuple[object, str] | None] = ContextVar("terminal", default=None)
"""The upstream and name of a terminal signal: tasks and callbacks made in the signal inherit it."""

KINDS: Final = {kind.value: kind for kind in Kind}
TERMINAL: Final = ("on_complete", "on_error")
MAX_SENT: Final = 64
"""The most elements that are sent until a subscriber cancels by itself."""


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
        if self.call_seconds:
            # Another thread can interfere, even if it needs this one's processor.
            time.sleep(self.call_seconds)
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

    async def end(self, error: BaseException | None = None) -> None:
        """Complete, or fail with *error*."""
        self.is_terminated = True
        await self.signal(*terminal_signal(error))

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


def terminal_signal(error: BaseException | None) -> tuple[Any, ...]:
    """The name and arguments of the signal: on_complete, or on_error with *error*."""
    return ("on_complete",) if error is None else ("on_error", error)


def _cause(error: object) -> BaseException | None:
    return error.__cause__ if isinstance(error, BaseException) else None


def _is_positive(n: object) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n >= 1


def _call_text(name: str, *args: Any) -> str:
    if name == "on_subscribe" and args[0] is not None:
        return "on_subscribe()"
    return f"{name}({', '.join(f'{safe_repr(each, 60)}' for each in args)})"


# -- a subscriber under test -----------------------------------------------------------------------
@dataclass
class SubscriberUnderTest:
    """A black box has no *probe*: only its requests are observed."""

    context: "LawContext"
    upstream: Upstream
    probe: WhiteboxProbe | None = None
    _triggered: int = 0

    @property
    def sendable(self) -> int:
        """How many elements to send: requested, and triggered if a processor prefetches."""
        outstanding = self.upstream.outstanding
        if self.probe is None:
            return outstanding
        return min(outstanding, self._triggered - self.upstream.sent)

    @property
    def received(self) -> int:
        """How many elements have been reported to the probe."""
        return 0 if self.probe is None else len(self.probe.elements)

    async def start(self) -> "SubscriberUnderTest":
        await self.upstream.on_subscribe()
        probe = self.probe
        if probe is not None:
            what = "after on_subscribe the subscriber has not called register_on_subscribe"
            await self.upstream.wait_until(lambda: probe.puppet, what, SETUP)
        return self

    async def trigger_demand(self, n: int = 1, rule: str = "2.1") -> None:
        """Make the subscriber request, and wait for its demand."""
        if self.probe is not None:
            await self.command("trigger_request", n)
            self._triggered += n
        elif not self.upstream.outstanding:
            await self.trigger_request()
        await self.upstream.wait_for_demand(rule)

    async def trigger_request(self) -> None:
        """Call the candidate's ``trigger_request``, if there is one."""
        trigger = self.context.candidate.trigger_request
        if trigger is not None:
            await self._call("trigger_request()", "2.1", lambda: trigger(self.upstream.subscriber))

    async def command(self, name: str, *args: int) -> None:
        assert self.probe is not None
        puppet: Any = self.probe.puppet
        await self._call(f"the puppet's {name}()", "2.13", lambda: getattr(puppet, name)(*args))

    async def _call(self, what: str, rule: str, call: Any) -> None:
        """Call code of the candidate's author, and wait for its end."""
        with self.context.calling(what):
            try:
                returned = call()
                if not isawaitable(returned):
                    return
                task = asyncio.ensure_future(returned)
                journal = self.upstream.journal
                await self.context.wait_until(task.done, f"{what} does not end", rule, journal)
                task.result()
            except (RuleViolation, StopCandidate):
                raise
            except BaseException as error:
                raised = f"{what} raised {safe_repr(error)}"
                raise self.context.violation(raised, rule, self.upstream.journal) from error

    # -- what must reach the probe ----------------------------------------------------------------
    async def send_element(self) -> Any:
        """Send an element, and wait until it has been reported to the probe of a white box."""
        before, probe = self.received, self.probe
        sent = await self.upstream.on_next()
        if probe is not None:
            what = f"on_next({safe_repr(sent, 60)}) was sent and has not reached the probe"
            await self.upstream.wait_until(lambda: len(probe.elements) > before, what, "2.11")
            received = probe.elements[before]
            what = f"{safe_repr(sent, 60)} was sent, {safe_repr(received, 60)} was received"
            self.upstream.require(same(received, sent), what, "2.11")
        return sent

    async def send_requested(self, most: int = 8) -> None:
        """Send what has been requested, up to *most* elements."""
        for _ in range(most):
            if self.sendable <= 0:
                return
            await self.send_element()

    async def expect_end(self, error: BaseException | None = None, rule: str = "") -> None:
        """Wait until on_complete, or on_error with *error* itself, has reached the probe."""
        await self.upstream.require_inner_subscriber()
        probe = self.probe
        if probe is None:
            return
        signal = "on_complete" if error is None else f"on_error({safe_repr(error)})"
        what = f"{signal} was sent and has not reached the probe"
        await self.upstream.wait_until(lambda: probe.completions or probe.errors, what, rule)
        if error is None:
            errors = safe_repr(probe.errors, 80)
            what = f"{signal} was sent, {errors} was received"
            self.upstream.require(not probe.errors, what, rule)
            return
        received = probe.errors[0] if probe.errors else "a completion"
        what = f"{signal} was sent, {safe_repr(received, 80)} was received"
        # A CancelledError would look like the cancellation of who reads: it may be the cause of
        # another error.
        is_caused_by_it = isinstance(error, asyncio.CancelledError) and _cause(received) is error
        self.upstream.require(received is error or is_caused_by_it, what, rule)

    # -- steps that several laws share -----------------------------------------------------------
    async def terminate(self, error: BaseException | None, sent: int) -> None:
        """Send *sent* elements and a terminal signal; then the subscription is not called."""
        await self.start()
        if sent:
            await self.trigger_demand(sent)
            await self.send_requested(sent)
        await self.context.settle()  # a late request may answer the elements
        await self.upstream.end(error)
        await self.context.settle()
        late = self.upstream.requests_after_end
        what = f"{sum(late)} more were requested after the terminal signal"
        self.upstream.require(not late or self.context.rule == "2.3", what, "2.4")
        if not self.upstream.is_waiting_for_subscriber:
            await self.expect_end(error)

    async def cancel_second_subscription(self, is_equal: bool = False) -> None:
        """A second subscription is cancelled and never requested from; the first remains in use."""
        second = Upstream(self.context, self.upstream.subscriber, "the second upstream")
        self.upstream.equals_others = second.equals_others = is_equal
        await self.start()
        await self.trigger_demand()
        await second.on_subscribe()
        what = "a second subscription was given, and has not been cancelled"
        if is_equal:
            what = "a second subscription that equals the first was given, and not cancelled"
        await second.wait_for_cancel(what)
        await self.context.settle()
        requested = second.requested
        second.require(not requested, f"{requested} were requested from the second subscription")
        if self.upstream.cancel_calls:
            return  # it may treat a publisher that subscribes twice as broken
        await self.trigger_demand(2)
        await self.send_requested(2)

    async def cancel_on_command(self) -> None:
        """Command a white box to cancel, and wait for cancel().

        The white box may be a processor: its only subscriber cancels, and the subscription upstream
        is no longer needed.
        """
        await self.command("signal_cancel")
        what = "the puppet was commanded to cancel, and cancel() has not come"
        await self.upstream.wait_for_cancel(what, "2.6")

    async def bring_to_cancel(self) -> "SubscriberUnderTest":
        """Command a white box to cancel; send a black box elements until it cancels by itself."""
        await self.start()
        await self.trigger_demand(4)
        if self.probe is not None:
            await self.cancel_on_command()
            return self
        for _ in range(MAX_SENT):
            if self.upstream.outstanding:
                await self.upstream.on_next()
            await self.context.turn()
            if self.upstream.cancel_calls:
                return self
        await self.context.settle()
        if not self.upstream.cancel_calls:
            raise NotJudged(
                f"the subscriber has not cancelled by itself within {MAX_SENT} elements"
            )
        return self

    async def refuse_none(self, signal: str, is_started: bool) -> None:
        """None raises TypeError to the caller, possibly when the signal is awaited."""
        if is_started:
            await self.start()
            if signal == "on_next":
                await self.trigger_demand()
        error = await self.upstream.try_signal(signal, None)
        await self.context.settle()
        if self.probe is not None:
            reported: list[Any] = self.probe.elements if signal == "on_next" else self.probe.errors
            what = f"{signal}(None) was passed on to the probe"
            self.upstream.require(None not in reported, what)
        what = f"{signal}(None) returned normally; it must raise TypeError"
        self.upstream.require(error is not None, what)
        what = f"{signal}(None) raised {safe_repr(error)}; it must raise TypeError"
        self.upstream.require(isinstance(error, TypeError), what)

    async def answer_inside_request(self, n: int, answer: Callable[[], object]) -> None:
        """Make the subscriber request, and call *answer* before request returns."""
        upstream = self.upstream
        # Only ``def`` signals can be sent inside request: an ``async def`` one must be awaited.
        for name in SIGNALS:
            if iscoroutinefunction(getattr(upstream.subscriber, name, None)):
                raise NotJudged(f"{name} is async def: it cannot be sent inside of request")
        upstream.on_request = answer
        await self.start()
        if self.probe is not None:
            await self.command("trigger_request", n)
        else:
            await self.trigger_request()
        await upstream.wait_until(
            lambda: upstream.sent or upstream.is_terminated or upstream.cancel_calls,
            "nothing is requested",
            "2.1",
        )
        await self.context.settle()

    async def receive_end_inside_request(self, error: BaseException | None) -> None:
        """request sends the terminal signal before it returns."""
        upstream = self.upstream

        def send_end() -> None:
            if not upstream.is_terminated:
                upstream.signal_inside_request(*terminal_signal(error))

        await self.answer_inside_request(1, send_end)
        if upstream.is_terminated:
            await self.expect_end(error, "2.9" if error is None else "2.10")


async def new_subscriber(context: "LawContext", factory: str) -> SubscriberUnderTest:
    """A new subscriber; one of the factory ``whitebox_subscriber`` has a probe."""
    probe = WhiteboxProbe() if factory == "whitebox_subscriber" else None
    subscriber = await context.create(factory, *([] if probe is None else [probe]))
    return SubscriberUnderTest(context, Upstream(context, subscriber), probe)
