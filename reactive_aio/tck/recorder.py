"""The subscriber with which the laws look at a publisher, and how long they wait.

Two kinds of waiting, never mixed up. What *must come* is waited for long, and the wait ends the
moment it is there; what *must not come* is given some turns of the loop. So a law is quick on a
publisher that keeps it, and a busy machine cannot make it fail.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from threading import get_ident
from typing import Any, Final, Self

from ..errors import RuleViolation
from ..spec import Publisher, Subscription

__all__ = ("COMPLETE", "KINDS", "AsyncRecorder", "Recorder", "Terms", "terms")

COMPLETE: Final = "on_complete"
_LONGEST_LOG: Final = 30


@dataclass(frozen=True)
class Terms:
    """How a publisher is judged."""

    come: float = 10.0
    """Seconds of the loop's clock for what must come."""
    turns: int = 25
    """Turns of the loop for what must not come."""
    quiet: float = 0.0
    """Seconds besides, for a publisher that is driven by time or by another thread."""
    in_flight: int = 0
    """Signals that may still arrive after a cancellation (2.8)."""
    ordered: bool = True
    """Whether every subscriber sees the elements in the same order."""


terms: ContextVar[Terms] = ContextVar("terms", default=Terms())  # noqa: B039 - it is frozen

OnNext = Callable[["Recorder", Any], object]


class Recorder:
    """A subscriber with ``def`` methods; it writes down whatever happens, in its order.

    *first* is requested in on_subscribe; *then* is called at the end of each on_next.
    """

    def __init__(self, first: int = 0, then: OnNext | None = None) -> None:
        self._first = first
        self._then = then
        self.log: list[str] = []
        """Signals and what was asked for, for the message of a violation."""
        self.elements: list[Any] = []
        self.terminals: list[BaseException | str] = []
        self.subscriptions: list[Subscription] = []
        self.requested: int = 0
        self.cancelled_at: int | None = None
        """How many signals had come when the subscription was cancelled."""
        self.depth: int = 0
        self.deepest: int = 0
        self.overlaps: int = 0
        """Signals that began before the one before had ended."""
        self._inside: int | None = None
        self._faults: list[RuleViolation] = []

    # -- what the law does ------------------------------------------------------------------------
    async def subscribed_to(self, publisher: Publisher[Any]) -> Self:
        """Subscribe to *publisher*, and wait for on_subscribe, which may come later (1.9)."""
        try:
            publisher.subscribe(self)
        except Exception as error:
            raise self.violation("1.9", f"subscribe raised {error!r}") from error
        await self.until(lambda: self.log, "1.9", "on_subscribe has not come")
        self.demand(self.log[0] == "on_subscribe", "1.9", "a signal came before on_subscribe")
        return self

    @property
    def subscription(self) -> Subscription:
        if not self.subscriptions:
            raise self.violation("1.9", "on_subscribe has not come")
        return self.subscriptions[0]

    def request(self, n: int) -> None:
        """Request *n*, which must return normally (3.16)."""
        self._note(f"request({n})")
        self.requested += n
        try:
            self.subscription.request(n)
        except Exception as error:
            self._fault("3.16", f"request({n}) raised {error!r}")

    def cancel(self) -> None:
        """Cancel, which must return normally (3.15)."""
        self._note("cancel()")
        if self.cancelled_at is None:
            self.cancelled_at = self.count
        try:
            self.subscription.cancel()
        except Exception as error:
            self._fault("3.15", f"cancel() raised {error!r}")

    def _fault(self, rule: str, what: str) -> None:
        """Raise in the law, never in a signal."""
        fault = self.violation(rule, what)
        if self.depth:
            self._faults.append(fault)
        else:
            raise fault

    # -- what it sees -----------------------------------------------------------------------------
    @property
    def count(self) -> int:
        """How many signals after on_subscribe have come."""
        return len(self.elements) + len(self.terminals)

    @property
    def ended(self) -> bool:
        return bool(self.terminals)

    @property
    def error(self) -> BaseException | None:
        last = self.terminals[-1] if self.terminals else None
        return last if isinstance(last, BaseException) else None

    def violation(self, rule: str, what: str) -> RuleViolation:
        """The error of a law, with what was seen."""
        log = self.log
        if len(log) > _LONGEST_LOG:
            half = _LONGEST_LOG // 2
            log = [*log[:half], f"… {len(log) - 2 * half} more …", *log[-half:]]
        return RuleViolation(rule, f"{what}\n    seen: {' '.join(log) or 'nothing'}")

    def demand(self, condition: bool, rule: str, what: str) -> None:
        """Raise the violation of *rule* unless *condition* holds."""
        if self._faults:
            raise self._faults[0]
        if not condition:
            raise self.violation(rule, what)

    # -- waiting ----------------------------------------------------------------------------------
    async def until(self, condition: Callable[[], object], rule: str, what: str) -> None:
        """Wait for what must come; *what* says what did not."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + terms.get().come
        nap = 0.0
        for turn in range(1_000_000):
            if condition():
                return self.demand(True, rule, what)
            if loop.time() > latest:
                break
            if turn > 200:
                nap = min(0.05, nap * 1.5 or 0.0005)
            await asyncio.sleep(nap)
        raise self.violation(rule, what)

    async def quiet(self) -> None:
        """Give what must not come the time to come."""
        for _ in range(terms.get().turns):
            await asyncio.sleep(0)
        if terms.get().quiet:
            await asyncio.sleep(terms.get().quiet)

    async def received(self, count: int, rule: str) -> None:
        """Wait until *count* elements have come."""
        await self.reached(count, rule, f"of {count} requested elements not all came")
        self.demand(
            len(self.elements) >= count,
            rule,
            f"{count} elements were requested, {len(self.elements)} came before the end",
        )

    async def reached(self, count: int, rule: str, what: str) -> None:
        """Wait until *count* elements have come, or the end."""
        await self.until(lambda: self.ended or len(self.elements) >= count, rule, what)

    async def end(self, rule: str = "1.5") -> None:
        """Wait for the terminal signal."""
        await self.until(lambda: self.ended, rule, "no terminal signal came")

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> Any:
        self._note("on_subscribe")
        self.subscriptions.append(subscription)
        if self._first and len(self.subscriptions) == 1:
            self.request(self._first)

    def on_next(self, element: Any, /) -> Any:
        self._enter(f"on_next({element!r:.60})")
        self.elements.append(element)
        if self._then is not None:
            self._then(self, element)
        self._leave()

    def on_error(self, error: BaseException, /) -> Any:
        self._enter(f"on_error({error!r:.200})")
        self.terminals.append(error)
        self._leave()

    def on_complete(self) -> Any:
        self._enter(COMPLETE)
        self.terminals.append(COMPLETE)
        self._leave()

    def _enter(self, what: str) -> None:
        self._note(what)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self._inside not in (None, get_ident()):
            self.overlaps += 1
            self._note("[overlaps on another thread]")
        self._inside = get_ident()

    def _begin(self, what: str) -> None:
        """A signal that takes its time begins: another must not be under way."""
        if self.depth:
            self.overlaps += 1
            self._note(f"[{what} overlaps]")
        self.depth += 1

    def _leave(self) -> None:
        self.depth -= 1
        if not self.depth:
            self._inside = None

    def _note(self, what: str) -> None:
        self.log.append(what)


class AsyncRecorder(Recorder):
    """The same with ``async def`` methods, each of which takes some turns of the loop."""

    async def _take_time(self, what: str) -> None:
        self._begin(what)
        try:
            for _ in range(2):
                await asyncio.sleep(0)
        finally:
            self._leave()

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
        await self._take_time(COMPLETE)


KINDS: Final[tuple[type[Recorder], ...]] = (Recorder, AsyncRecorder)
