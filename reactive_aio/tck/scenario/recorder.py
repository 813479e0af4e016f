"""The recording subscribers by which laws observe a publisher.

A recorder writes every signal into a journal and detects at once what no scenario may produce: a
signal before on_subscribe, after the end, without demand, or inside another. Such a fault is not
raised in the signal, where the publisher might swallow it; the context raises it, however the
scenario ends.
"""

from collections.abc import Callable
from inspect import iscoroutine
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, cast

from ...spec import Subscription
from ...testing.journal import Journal, Kind
from ...testing.safe_repr import safe_repr
from ..law import StopCandidate

if TYPE_CHECKING:
    from .law_context import LawContext

UNBOUNDED: Final = 2**63 - 1
SIGNALS: Final = ("on_subscribe", "on_next", "on_error", "on_complete")
MAX_KEPT: Final = 10_000
MAX_EXCESS: Final = 1_000
"""Elements without demand, or after a cancellation, after which the publisher is stopped."""

OnElement = Callable[["Recorder", Any], object]


def close_coroutine(returned: object) -> None:
    """Close a coroutine that is not awaited, to prevent Python's warning about it."""
    if iscoroutine(returned):
        returned.close()


class Participant:
    """One side of a subscription, as the kit plays it: writes a journal and detects faults."""

    def __init__(self, context: "LawContext", name: str) -> None:
        self.context = context
        self.journal: Journal = context.journal(name)

    def record_fault(self, rule: str, what: str) -> None:
        """Mark an offence in the journal; the context raises it."""
        self.journal.note(Kind.OFFENCE, f"{rule}: {what}")
        self.context.record_fault(rule, what)

    def require(self, condition: bool, what: str, rule: str = "") -> None:
        """Raise the violation of *rule* unless *condition* holds."""
        self.context.require(condition, what, rule, self.journal)

    async def wait_until(self, condition: Callable[[], object], what: str, rule: str = "") -> None:
        """Wait for *condition*; if it does not come about, *rule* is broken, as *what* says."""
        await self.context.wait_until(condition, what, rule, self.journal)


class Recorder(Participant):
    """A subscriber with ``def`` methods.

    *initial* is requested in on_subscribe; *on_element* is called at the end of each on_next.
    """

    def __init__(
        self, context: "LawContext", initial: int = 0, on_element: OnElement | None = None
    ) -> None:
        super().__init__(context, type(self).__name__)
        self._initial = initial
        self._on_element = on_element
        self.elements: list[Any] = []
        """The first elements, up to a limit; `received` counts all of them."""
        self.received: int = 0
        self.terminals: list[BaseException | None] = []
        """The terminal signals: an error, or None for completion."""
        self.subscriptions: list[Subscription] = []
        self.requested: int = 0
        self.count_at_cancel: int | None = None
        """How many signals had come when the subscription was cancelled."""
        self.depth: int = 0
        self.deepest: int = 0
        self._signaling_thread: int | None = None
        self._own_thread = get_ident()

    # -- calls of the scenario --------------------------------------------------------------------
    @property
    def subscription(self) -> Subscription:
        if not self.subscriptions:
            raise self.context.violation("on_subscribe has not come", "1.9")
        return self.subscriptions[0]

    def request(self, n: int) -> None:
        """Request *n*, which must return normally (3.16)."""
        self.journal.note(Kind.REQUEST, n)
        self.requested += max(n, 0)
        self._call(f"request({n})", "3.16", lambda: self.subscription.request(n))

    def cancel(self) -> None:
        """Cancel, which must return normally (3.15)."""
        self.journal.note(Kind.CANCEL)
        if self.count_at_cancel is None:
            self.count_at_cancel = self.signal_count
        self._call("cancel()", "3.15", lambda: self.subscription.cancel())

    def _call(self, what: str, rule: str, call: Callable[[], object]) -> None:
        returned, error = self.context.try_call(what, call)
        if error is not None:
            where = "" if get_ident() == self._own_thread else " on another thread"
            self.record_fault(rule, f"{what}{where} raised {safe_repr(error)}")
        elif returned is not None:
            close_coroutine(returned)
            self.record_fault(rule, f"{what} returned {safe_repr(returned, 60)}, not None")

    # -- what it has recorded ---------------------------------------------------------------------
    @property
    def signal_count(self) -> int:
        """How many signals after on_subscribe have come."""
        return self.received + len(self.terminals)

    @property
    def signals_after_cancel(self) -> int:
        """How many signals have come after the cancellation."""
        return 0 if self.count_at_cancel is None else self.signal_count - self.count_at_cancel

    @property
    def is_terminated(self) -> bool:
        return bool(self.terminals)

    @property
    def is_completed(self) -> bool:
        return bool(self.terminals) and self.terminals[0] is None

    @property
    def error(self) -> BaseException | None:
        """The error of the first terminal signal, if it is one."""
        return self.terminals[0] if self.terminals else None

    def require_no_error(self, before: str) -> None:
        """Require that it has not failed; *before* begins the message."""
        self.require(self.error is None, f"{before}: {safe_repr(self.error)}")

    def require_completed(self, before: str, rule: str = "") -> None:
        """Require completion, not failure; *before* begins the message."""
        self.require(self.is_completed, f"{before}: {safe_repr(self.error)}", rule)

    # -- waiting ----------------------------------------------------------------------------------
    async def wait_for_elements(self, count: int, rule: str = "1.1") -> None:
        """Wait until *count* elements have come, all of them before the end."""
        what = f"{count} elements were requested and did not all come"
        await self.wait_for_elements_or_end(count, what, rule)
        before = f"{count} elements were requested, {self.received} came before the end"
        self.require(self.received >= count, before, rule)

    async def wait_for_elements_or_end(self, count: int, what: str, rule: str = "") -> None:
        """Wait until *count* elements have come, or a terminal signal."""
        await self.wait_until(lambda: self.is_terminated or self.received >= count, what, rule)

    async def wait_for_end(self, rule: str = "1.5") -> None:
        await self.wait_until(lambda: self.is_terminated, "no terminal signal came", rule)

    async def take_and_settle(self, count: int) -> "Recorder":
        """Wait until *count* elements have come and no signal is under way."""
        await self.wait_for_elements(count)
        await self.context.settle()
        return self

    async def require_stop(self, left: int = 0, then_request: int = 0) -> None:
        """After a cancellation signals under way may still come (2.8), but then they stop.

        *left* is how many elements were still to come when it was called, if that is known.
        *then_request* is requested after the cancellation, and must have no effect.
        """
        await self.context.settle()
        late, all_came = self.signals_after_cancel, self.signals_after_cancel >= left > 0
        self.require(not all_came, f"all {left} elements that were left came after cancel()")
        if then_request:
            self.request(then_request)
        await self.context.settle()
        more = self.signals_after_cancel - late
        what = f"signals continue after cancel(): {late} at first, then {more} more"
        self.require(not more, what)

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> Any:
        self.journal.note(Kind.ON_SUBSCRIBE)
        self.subscriptions.append(subscription)
        if len(self.subscriptions) > 1:
            self.record_fault("2.12", "on_subscribe was called again")
        elif self._initial:
            self.request(self._initial)

    def on_next(self, element: Any, /) -> Any:
        self._enter(Kind.ON_NEXT, element)
        self.received += 1
        if len(self.elements) < MAX_KEPT:
            self.elements.append(element)
        if element is None:
            self.record_fault("2.13", "on_next(None): None is not an element")
        if self.received > self.requested:
            self._check_excess()
        elif self.signals_after_cancel > MAX_EXCESS:
            what = f"{self.signals_after_cancel} elements came after cancel(); it had to be stopped"
            self.record_fault("1.8", what)
            raise StopCandidate
        if self._on_element is not None:
            self._on_element(self, element)
        self._leave()

    def _check_excess(self) -> None:
        if self.received > self.requested + MAX_EXCESS:
            self.record_fault("1.1", f"{self.received} came; the publisher had to be stopped")
            raise StopCandidate
        if self.received == self.requested + 1 and self.context.candidate.knows_demand:
            self.record_fault(
                "1.1", f"{self.requested} were requested in all, {self.received} came"
            )

    def on_error(self, error: BaseException, /) -> Any:
        self._enter(Kind.ON_ERROR, error)
        if not isinstance(cast("object", error), BaseException):
            self.record_fault("1.4", f"on_error({safe_repr(error, 60)}): this is not an exception")
        self._terminal(error)

    def on_complete(self) -> Any:
        self._enter(Kind.ON_COMPLETE)
        self._terminal(None)

    def _terminal(self, signal: BaseException | None) -> None:
        self.terminals.append(signal)
        self._leave()

    def _enter(self, kind: Kind, value: Any = None) -> None:
        self.journal.note(kind, value)
        if not self.subscriptions:
            self.record_fault("1.9", f"{kind.value} came before on_subscribe")
        if self.terminals:
            self.record_fault("1.7", f"{kind.value} came after the terminal signal")
        if self._signaling_thread not in (None, get_ident()):
            what = f"{kind.value} came on another thread while a signal was under way"
            self.record_fault("1.3", what)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self._signaling_thread = get_ident()

    def _leave(self) -> None:
        self.depth -= 1
        if not self.depth:
            self._signaling_thread = None


class AsyncRecorder(Recorder):
    """A subscriber with ``async def`` methods, each of which takes some turns of the loop."""

    _current_signal: str = ""

    async def _take_time(self, signal: str) -> None:
        if self._current_signal:
            self.record_fault("1.3", f"{signal} began before {self._current_signal} had ended")
        self._current_signal = signal
        try:
            for _ in range(2):
                await self.context.turn()
        finally:
            self._current_signal = ""

    async def on_subscribe(self, subscription: Subscription, /) -> None:
        # It requests at once: even so, no signal may come before this one has ended (1.3).
        super().on_subscribe(subscription)
        await self._take_time("on_subscribe")

    async def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        await self._take_time("on_next")

    async def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        await self._take_time("on_error")

    async def on_complete(self) -> None:
        super().on_complete()
        await self._take_time("on_complete")


# -- what a recorder does in its signals ----------------------------------------------------------
def request_one_more(recorder: Recorder, _element: object) -> None:
    recorder.request(1)


def cancel_at(count: int) -> OnElement:
    """Cancel inside the on_next of element number *count*."""

    def on_element(recorder: Recorder, _element: object) -> None:
        if recorder.received == count:
            recorder.cancel()

    return on_element


def with_hook(
    kind: type[Recorder], signal: str, action: Callable[[Recorder], object]
) -> type[Recorder]:
    """A type of recorder that calls *action* at the end of each *signal*."""
    method: Any = getattr(kind, signal)

    def synchronous(self: Recorder, *args: object) -> None:
        method(self, *args)
        action(self)

    async def asynchronous(self: Recorder, *args: object) -> None:
        await method(self, *args)
        action(self)

    chosen = asynchronous if issubclass(kind, AsyncRecorder) else synchronous
    made: Any = type(f"{kind.__name__}, {signal}", (kind,), {signal: chosen})
    return cast("type[Recorder]", made)
