"""The subscriber with which the laws look at a publisher.

It writes down whatever happens and judges at once what no scenario may bring: a signal before
on_subscribe, after the end, without demand, inside another. Such a fault is never raised in the
signal, where the publisher might swallow it; the trial raises it, however the scenario ends.
"""

from collections.abc import Callable
from inspect import iscoroutine
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, cast

from ...spec import Subscription
from ...testing.journal import Journal, Kind
from ...testing.safe_repr import safe_repr
from .brake import Brake

if TYPE_CHECKING:
    from .trial import Trial

__all__ = ("UNBOUNDED", "AsyncRecorder", "OnNext", "Recorder", "discard")

UNBOUNDED: Final = 2**63 - 1
KEPT: Final = 10_000
TOO_FAR: Final = 1_000
"""Elements without demand, or after a cancellation, after which the publisher is stopped."""

OnNext = Callable[["Recorder", Any], object]


def discard(returned: object) -> None:
    """End a coroutine that nobody awaits, so that Python does not complain of it later."""
    if iscoroutine(returned):
        returned.close()


class Recorder:
    """A subscriber with ``def`` methods.

    *first* is requested in on_subscribe; *then* is called at the end of each on_next.
    """

    def __init__(self, trial: "Trial", first: int = 0, then: OnNext | None = None) -> None:
        self.trial = trial
        self.journal: Journal = trial.journal(type(self).__name__)
        self._first = first
        self._then = then
        self.elements: list[Any] = []
        """Those that came, up to some number; `received` counts them all."""
        self.received: int = 0
        self.terminals: list[BaseException | None] = []
        """An error, or None for completion."""
        self.subscriptions: list[Subscription] = []
        self.requested: int = 0
        self.cancelled_at: int | None = None
        """How many signals had come when the subscription was cancelled."""
        self.depth: int = 0
        self.deepest: int = 0
        self._inside: int | None = None
        self._home = get_ident()

    # -- what the scenario does -------------------------------------------------------------------
    @property
    def subscription(self) -> Subscription:
        if not self.subscriptions:
            raise self.trial.violation("1.9", "on_subscribe has not come")
        return self.subscriptions[0]

    def request(self, n: int) -> None:
        """Request *n*, which must return normally (3.16)."""
        self.journal.note(Kind.REQUEST, n)
        self.requested += max(n, 0)
        self._call(f"request({n})", "3.16", lambda: self.subscription.request(n))

    def cancel(self) -> None:
        """Cancel, which must return normally (3.15)."""
        self.journal.note(Kind.CANCEL)
        if self.cancelled_at is None:
            self.cancelled_at = self.count
        self._call("cancel()", "3.15", lambda: self.subscription.cancel())

    def _call(self, what: str, rule: str, call: Callable[[], object]) -> None:
        with self.trial.calling(what):
            try:
                returned = call()
            except Brake:
                raise
            except BaseException as error:
                where = "" if get_ident() == self._home else " on another thread"
                self.fault(rule, f"{what}{where} raised {safe_repr(error)}")
            else:
                if returned is not None:
                    discard(returned)
                    self.fault(rule, f"{what} returned {safe_repr(returned, 60)}, not None")

    def fault(self, rule: str, what: str) -> None:
        """Write an offence down; the trial raises it."""
        self.journal.note(Kind.OFFENCE, f"{rule}: {what}")
        self.trial.fault(rule, what)

    # -- what it sees -----------------------------------------------------------------------------
    @property
    def count(self) -> int:
        """How many signals after on_subscribe have come."""
        return self.received + len(self.terminals)

    @property
    def late(self) -> int:
        """How many signals have come after the cancellation."""
        return 0 if self.cancelled_at is None else self.count - self.cancelled_at

    @property
    def ended(self) -> bool:
        return bool(self.terminals)

    @property
    def completed(self) -> bool:
        return bool(self.terminals) and self.terminals[0] is None

    @property
    def error(self) -> BaseException | None:
        """The error of the first terminal signal, if it is one."""
        return self.terminals[0] if self.terminals else None

    def demand(self, condition: bool, rule: str, what: str) -> None:
        """Raise the violation of *rule* unless *condition* holds."""
        self.trial.demand(condition, rule, what, self.journal)

    # -- waiting ----------------------------------------------------------------------------------
    async def took(self, count: int, rule: str = "1.1") -> None:
        """Wait until *count* elements have come, all of them before the end."""
        what = f"{count} elements were requested and did not all come"
        await self.reached(count, rule, what)
        before = f"{count} elements were requested, {self.received} came before the end"
        self.demand(self.received >= count, rule, before)

    async def reached(self, count: int, rule: str, what: str) -> None:
        """Wait until *count* elements have come, or the end."""
        await self.trial.until(
            lambda: self.ended or self.received >= count, rule, what, self.journal
        )

    async def end(self, rule: str = "1.5") -> None:
        """Wait for the terminal signal."""
        await self.trial.until(lambda: self.ended, rule, "no terminal signal came", self.journal)

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> Any:
        self.journal.note(Kind.ON_SUBSCRIBE)
        self.subscriptions.append(subscription)
        if len(self.subscriptions) > 1:
            self.fault("2.12", "on_subscribe came again")
        elif self._first:
            self.request(self._first)

    def on_next(self, element: Any, /) -> Any:
        self._enter(Kind.ON_NEXT, element)
        self.received += 1
        if len(self.elements) < KEPT:
            self.elements.append(element)
        if element is None:
            self.fault("2.13", "on_next(None): None is no element")
        if self.received > self.requested:
            self._beyond_demand()
        elif self.late > TOO_FAR:
            self.fault("1.8", f"{self.late} elements came after cancel(); it had to be stopped")
            raise Brake
        if self._then is not None:
            self._then(self, element)
        self._leave()

    def _beyond_demand(self) -> None:
        if self.received > self.requested + TOO_FAR:
            self.fault("1.1", f"{self.received} came; the publisher had to be stopped")
            raise Brake
        if self.received == self.requested + 1 and self.trial.subject.knows_demand:
            self.fault("1.1", f"{self.requested} were requested in all, {self.received} came")

    def on_error(self, error: BaseException, /) -> Any:
        self._enter(Kind.ON_ERROR, error)
        if not isinstance(cast("object", error), BaseException):
            self.fault("1.4", f"on_error({safe_repr(error, 60)}): this is no exception")
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
            self.fault("1.9", f"{kind.value} came before on_subscribe")
        if self.terminals:
            self.fault("1.7", f"{kind.value} came after the terminal signal")
        if self._inside not in (None, get_ident()):
            self.fault("1.3", f"{kind.value} came on another thread while a signal was under way")
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self._inside = get_ident()

    def _leave(self) -> None:
        self.depth -= 1
        if not self.depth:
            self._inside = None


class AsyncRecorder(Recorder):
    """The same with ``async def`` methods, each of which takes some turns of the loop."""

    _under_way: str = ""

    async def _take_time(self, signal: str) -> None:
        if self._under_way:
            self.fault("1.3", f"{signal} began before {self._under_way} had ended")
        self._under_way = signal
        try:
            for _ in range(2):
                await self.trial.turn()
        finally:
            self._under_way = ""

    async def on_subscribe(self, subscription: Subscription, /) -> None:
        # Requested at once: nothing may come before this signal has ended all the same (1.3).
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
