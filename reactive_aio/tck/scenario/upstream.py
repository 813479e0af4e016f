"""Upstream: the publisher's side of one subscription, with which the kit feeds a subscriber.

It sends signals by hand, each awaited to its end before the next one, and judges at once what no
scenario may bring: a signal that raises or never ends, a request that is not positive, a call made
because of the end, calls that overlap.
"""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import isawaitable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from ...testing.journal import Journal, Kind
from ...testing.safe_repr import safe_repr
from ..law import NotJudged
from .brake import Brake

if TYPE_CHECKING:
    from ...spec import Subscription
    from .heartbeat import Heartbeat
    from .trial import Trial

__all__ = ("Equal", "Held", "Upstream")

_ending: ContextVar[tuple[object, str] | None] = ContextVar("ending", default=None)
"""Whose terminal signal is being handled; it goes along into tasks and callbacks made there."""

KINDS: Final = {kind.value: kind for kind in Kind}


class Held:
    """The subscription that the subscriber is given."""

    def __init__(self, up: "Upstream") -> None:
        self._up = up

    def request(self, n: int, /) -> None:
        self._up.take(n)

    def cancel(self) -> None:
        self._up.stop()


class Equal(Held):
    """One that is equal to all others of its kind."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 1


class Upstream:
    """One subscription of *subscriber*, seen from above."""

    def __init__(
        self, trial: "Trial", subscriber: Any, name: str = "", kind: type[Held] = Held
    ) -> None:
        self.trial = trial
        self.subscriber = subscriber
        self.journal: Journal = trial.journal(name or "upstream of the subscriber")
        self.subscription: Subscription = kind(self)
        self.requested: int = 0
        self.requests: int = 0
        """How often request was called."""
        self.cancels: int = 0
        self.sent: int = 0
        self.ended: bool = False
        self.late: list[int] = []
        """What was requested after the terminal signal."""
        self.linger: float = 0.0
        """Seconds that each call of request and cancel takes."""
        self.answer: Callable[[], object] | None = None
        """Called inside request, never inside itself."""
        self.heart: Heartbeat | None = None
        """Measures how long signals hold up the loop."""
        self.held_up: tuple[float, str] = (0.0, "")
        """The most seconds, and the signal that took them."""
        self._answering = False
        self._caller: tuple[int, str] | None = None

    # -- what the subscriber calls ----------------------------------------------------------------
    def take(self, n: int) -> None:
        """request(n)."""
        self.journal.note(Kind.REQUEST, n)
        with self._call(f"request({n!r})"):
            if not _is_positive(n):
                self.fault("3.9", f"request({n!r}): what is requested must be at least 1")
                return
            self.requests += 1
            self.requested += n
            if self.ended:
                self.late.append(n)
            elif self.answer is not None and not self._answering:
                self._answering = True
                try:
                    self.answer()
                finally:
                    self._answering = False

    def stop(self) -> None:
        """cancel()."""
        self.journal.note(Kind.CANCEL)
        with self._call("cancel()"):
            self.cancels += 1

    @contextmanager
    def _call(self, what: str) -> Generator[None]:
        ending, me, before = _ending.get(), get_ident(), self._caller
        if ending is not None and ending[0] is self:
            self.fault("2.3", f"{what} was called because of {ending[1]}")
        if before is not None and before[0] != me:
            self.fault("2.7", f"{what} began on another thread while {before[1]} was under way")
        self._caller = me, what
        until = time.perf_counter() + self.linger
        while time.perf_counter() < until:
            pass  # another thread may come in between
        try:
            yield
        finally:
            self._caller = before

    def fault(self, rule: str, what: str) -> None:
        """Write an offence down; the trial raises it."""
        self.journal.note(Kind.OFFENCE, f"{rule}: {what}")
        self.trial.fault(rule, what)

    # -- signals ----------------------------------------------------------------------------------
    async def on_subscribe(self) -> None:
        await self.signal("on_subscribe", self.subscription)

    async def on_next(self, element: Any = None) -> Any:
        """Send *element*, or the next one of the subject; returns it."""
        sent = self.next() if element is None else element
        self.sent += 1
        await self.signal("on_next", sent)
        return sent

    async def on_complete(self) -> None:
        self.ended = True
        await self.signal("on_complete")

    async def on_error(self, error: BaseException) -> None:
        self.ended = True
        await self.signal("on_error", error)

    async def signal(self, name: str, *args: Any) -> None:
        """Send a signal and wait for its end, which must be a normal one (2.13)."""
        error = await self.attempt(name, *args)
        if error is not None:
            what = f"{_shown(name, *args)} raised {safe_repr(error)}"
            raise self.trial.violation("2.13", what, self.journal)

    async def attempt(self, name: str, *args: Any) -> BaseException | None:
        """Send a signal and wait for its end; returns what it raised."""
        terminal = name in ("on_complete", "on_error") and args != (None,)
        token = _ending.set((self, name)) if terminal else None
        try:
            with self._measured(name):
                returned = self.start(name, *args)
            return await self._ended(returned, name, *args)
        except Raised as raised:
            return raised.error
        finally:
            if token is not None:
                _ending.reset(token)

    def start(self, name: str, *args: Any) -> Any:
        """Call a signal, and return what it returns; what it raises comes as `Raised`."""
        self.journal.note(KINDS[name], *args[:1])
        with self.trial.calling(_shown(name, *args)):
            try:
                return getattr(self.subscriber, name)(*args)
            except Brake:
                raise
            except BaseException as error:
                raise Raised(error) from error

    @contextmanager
    def _measured(self, name: str) -> Generator[None]:
        moment = self.heart.now() if self.heart is not None else None
        try:
            yield
        finally:
            if self.heart is not None and moment is not None:
                self.held_up = max(self.held_up, (self.heart.since(moment), name))

    async def _turns(self, name: str) -> None:
        """What the signal has made, such as a task, has its turns, each of which is measured."""
        for _ in range(self.trial.terms.turns if self.heart is not None else 0):
            with self._measured(name):
                await self.trial.turn()

    async def _ended(self, returned: Any, name: str, *args: Any) -> BaseException | None:
        if not isawaitable(returned):
            await self._turns(name)
            return None
        task: asyncio.Future[Any] = asyncio.ensure_future(returned)
        try:
            await self._turns(name)
            what = f"{_shown(name, *args)} returned something to await, and it does not end"
            await self.trial.until(task.done, "2.13", what, self.journal)
        finally:
            task.cancel()
        return asyncio.CancelledError() if task.cancelled() else task.exception()

    def now(self, name: str, *args: Any) -> None:
        """Send a signal to a subscriber with ``def`` methods, inside of request or cancel."""
        self.sent += name == "on_next"
        self.ended = self.ended or name in ("on_complete", "on_error")
        terminal = name in ("on_complete", "on_error")
        token = _ending.set((self, name)) if terminal else None
        try:
            self.start(name, *args)
        except Raised as raised:
            what = (
                f"{_shown(name, *args)}, sent inside of request, raised {safe_repr(raised.error)}"
            )
            self.fault("2.13", what)
        finally:
            if token is not None:
                _ending.reset(token)

    def next(self) -> Any:
        """The element that is to be sent now."""
        return self.trial.subject.element(self.sent)

    # -- waiting ----------------------------------------------------------------------------------
    @property
    def outstanding(self) -> int:
        """How many elements may be sent."""
        return 0 if self.cancels or self.ended else self.requested - self.sent

    async def asked(self, rule: str = "2.1") -> None:
        """Wait for demand."""
        what = (
            "nothing is requested, so no element may ever come; a subscriber that requests "
            "only when it is told to needs trigger_request"
        )
        await self.trial.until(lambda: self.outstanding or self.cancels, rule, what, self.journal)
        if self.cancels:
            raise NotJudged("the subscriber cancels without having taken what is sent here")

    @property
    def asleep(self) -> bool:
        """Whether it is an adapted operator that subscribes to nothing before it is asked."""
        return getattr(self.subscriber, "asleep", False) is True

    async def reached_it(self) -> None:
        """What was sent waits outside of an operator that is asleep: that is not to be judged."""
        if self.asleep:
            await self.trial.quiet()
        if self.asleep:
            raise NotJudged("the operator subscribes to nothing before something is requested")

    async def cancelled(self, rule: str, what: str) -> None:
        """Wait for cancel()."""
        await self.trial.until(lambda: self.cancels, rule, what, self.journal)

    def demand(self, condition: bool, rule: str, what: str) -> None:
        """Raise the violation of *rule* unless *condition* holds."""
        self.trial.demand(condition, rule, what, self.journal)


class Raised(Exception):
    """A signal raised *error*."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error: BaseException = error


def _is_positive(n: object) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n >= 1


def _shown(name: str, *args: Any) -> str:
    if name == "on_subscribe" and args[0] is not None:
        return "on_subscribe()"
    return f"{name}({', '.join(f'{safe_repr(each, 60)}' for each in args)})"
