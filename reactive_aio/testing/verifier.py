"""A step verifier: what a flow must do, step by step, and where it did something else.

::

    await expect(flow).next(1, 2).after(5).complete()

The steps are written down, and taken when the last one is awaited, or by ``verify()`` where no loop
runs: it makes one with virtual time, on which ``after(3600)`` takes no time. The last step is
``complete``, ``error``, ``cancel`` or ``never_ends``; signals that no step has expected are
failures, and the subscription is cancelled in any case.

A failure shows the steps, the one that failed, what came instead, and a drawing of all signals.
"""

import asyncio
import re
import warnings
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from inspect import isawaitable
from reprlib import repr as shortened
from typing import Any, Final, Generic, TypeVar, cast

from ..spec import Publisher
from .drawing import draw
from .journal import Entry, Journal, Kind
from .probes import TURNS, WITHIN, AsyncSubscriberProbe, SubscriberProbe, pass_time
from .virtual_time import VirtualTimeLoop

__all__ = ("Expectation", "Verification", "expect")

T = TypeVar("T")

UNBOUNDED: Final = 2**63 - 1
_LONGEST: Final = 70
Expected = type[BaseException] | BaseException | Callable[[BaseException], object]


def expect(
    flow: Publisher[T] | Callable[[], Publisher[T]],
    *,
    request: int = UNBOUNDED,
    within: float = WITHIN,
    turns: int | None = None,
) -> "Expectation[T]":
    """Begin to say what *flow*, or the flow that a function makes, must do.

    *request* is asked for with the subscription; 0 asks for nothing until a step ``request`` does.
    What a step waits for must come *within* so many seconds of the loop's clock. With *turns*, the
    subscriber's methods are ``async def``, and take so many turns of the loop each.
    """
    make = flow if callable(flow) else lambda: flow
    name = repr(flow)
    arguments = [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"]
    if request != UNBOUNDED:
        arguments.append(f"request={request}")
    start = f"expect({', '.join(arguments)})"
    return Expectation(_Plan(make, request, within, turns, start), ())


@dataclass(frozen=True)
class _Plan(Generic[T]):
    make: Callable[[], Publisher[T]]
    request: int
    within: float
    turns: int | None
    start: str


@dataclass(frozen=True)
class _Step(Generic[T]):
    code: str
    run: "Callable[[_Trial[T]], Awaitable[object]]"


class Expectation(Generic[T]):
    """The steps so far. It does not change: each step makes a new one, so beginnings can be shared.

    To be awaited it needs a last step.
    """

    def __init__(self, plan: _Plan[T], steps: tuple[_Step[T], ...]) -> None:
        self._plan = plan
        self._steps = steps

    def _and(self, code: str, run: "Callable[[_Trial[T]], Awaitable[object]]") -> "Expectation[T]":
        return Expectation(self._plan, (*self._steps, _Step(code, run)))

    def _last(
        self, code: str, run: "Callable[[_Trial[T]], Awaitable[object]]"
    ) -> "Verification[T]":
        return Verification(self._plan, (*self._steps, _Step(code, run)))

    # -- what must come ----------------------------------------------------------------------------
    def subscription(self) -> "Expectation[T]":
        """on_subscribe must come. (Every other step waits for it as well.)"""
        return self._and(".subscription()", lambda trial: trial.subscribed())

    def next(self, *elements: T) -> "Expectation[T]":
        """These elements must come next, in this order."""

        async def run(trial: _Trial[T]) -> None:
            for element in elements:
                await trial.element(lambda came: came == element, shortened(element))  # noqa: B023

        return self._and(f".next({', '.join(map(shortened, elements))})", run)

    def next_count(self, count: int) -> "Expectation[T]":
        """So many elements must come next, whatever they are."""

        async def run(trial: _Trial[T]) -> None:
            for number in range(count):
                await trial.element(lambda _: True, f"element {number + 1} of {count}")

        return self._and(f".next_count({count})", run)

    def next_matching(self, predicate: Callable[[T], object], words: str = "") -> "Expectation[T]":
        """An element must come for which *predicate* is true; *words* say which that is."""
        words = words or getattr(predicate, "__name__", "")
        code = f".next_matching({words or shortened(predicate)})"
        return self._and(code, lambda trial: trial.element(predicate, words or "a match"))

    def nothing(self, seconds: float = 0.0, *, turns: int = TURNS) -> "Expectation[T]":
        """No signal must come for so many seconds and turns of the loop."""
        code = f".nothing({seconds:g})" if seconds else ".nothing()"
        return self._and(code, lambda trial: trial.nothing(turns, seconds))

    # -- what is done ------------------------------------------------------------------------------
    def request(self, n: int) -> "Expectation[T]":
        """Request *n* more."""

        async def run(trial: _Trial[T]) -> None:
            await trial.subscribed()
            trial.probe.request(n)

        return self._and(f".request({n})", run)

    def after(self, seconds: float) -> "Expectation[T]":
        """Let so many seconds pass, whatever comes meanwhile: the next steps are about that."""
        return self._and(f".after({seconds:g})", lambda _: asyncio.sleep(seconds))

    def within(self, seconds: float) -> "Expectation[T]":
        """From here on, what a step waits for must come within so many seconds."""

        async def run(trial: _Trial[T]) -> None:
            trial.within = seconds

        return self._and(f".within({seconds:g})", run)

    def call(self, action: Callable[[], object]) -> "Expectation[T]":
        """Call *action*, such as a puppet's ``emit``; what it returns is awaited, if possible."""

        async def run(_: _Trial[T]) -> None:
            if isawaitable(result := action()):
                await result

        return self._and(f".call({getattr(action, '__name__', shortened(action))})", run)

    # -- the last step -----------------------------------------------------------------------------
    def complete(self) -> "Verification[T]":
        """on_complete must come next, and nothing after it."""
        return self._last(".complete()", lambda trial: trial.completed())

    def error(
        self, expected: Expected = Exception, *, match: str | None = None
    ) -> "Verification[T]":
        """on_error must come next, and nothing after it.

        *expected* is the type of the error, an equal error, or a function that is true for it;
        *match* is a regular expression that must be found in its words.
        """
        arguments = [] if expected is Exception else [_named(expected)]
        if match is not None:
            arguments.append(f"match={match!r}")
        code = f".error({', '.join(arguments)})"
        return self._last(code, lambda trial: trial.failed(expected, match))

    def cancel(self) -> "Verification[T]":
        """Cancel. What came before must have been expected; soon after, nothing must come."""
        return self._last(".cancel()", lambda trial: trial.cancelled())

    def never_ends(self, seconds: float = 60.0) -> "Verification[T]":
        """For so many seconds elements may come, but no terminal signal; then cancel."""
        return self._last(f".never_ends({seconds:g})", lambda trial: trial.goes_on(seconds))


class Verification(Generic[T]):
    """All the steps: await it, or call ``verify()`` where no loop runs."""

    def __init__(self, plan: _Plan[T], steps: tuple[_Step[T], ...]) -> None:
        self._plan = plan
        self._steps = steps
        self._taken = False

    def __await__(self) -> Generator[Any, None, None]:
        return self._run().__await__()

    def verify(self) -> None:
        """Take the steps on a loop with virtual time."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                runner.run(self._run())
        else:
            self._taken = True
            raise RuntimeError("verify() is for where no loop runs; here one does: await instead")

    def __del__(self) -> None:
        if not self._taken:
            words = (
                f"{self._plan.start}…{self._steps[-1].code} was never awaited: nothing was verified"
            )
            warnings.warn(words, RuntimeWarning, stacklevel=2)

    async def _run(self) -> None:
        self._taken = True
        trial = _Trial(self._plan)
        try:
            trial.begin()
            for trial.reached, step in enumerate(self._steps):
                await step.run(trial)
                trial.keeps_the_rules()
            await trial.quiet_at_the_end()
        except Unexpected as unexpected:
            raise AssertionError(self._report(unexpected, trial)) from None
        finally:
            trial.leave()

    def _report(self, unexpected: "Unexpected", trial: "_Trial[T]") -> str:
        """The steps with the one that failed, and what came."""
        failed = trial.reached
        words, journal = str(unexpected), trial.probe.journal
        if unexpected.entry is not None:
            journal.blame(unexpected.entry, words)
        else:
            journal.note(Kind.OFFENCE, words)
        lines = [
            f"step {failed + 1} of {len(self._steps)}, {self._steps[failed].code}: {words}",
            "",
        ]
        lines.append(f"    {self._plan.start}")
        for number, step in enumerate(self._steps):
            lines.append(f"{'  >' if number == failed else '   '}     {step.code}")
        return "\n".join([*lines, "", draw(journal)])


class Unexpected(Exception):
    """A step did not get what it expected."""

    def __init__(self, words: str, entry: Entry | None = None) -> None:
        super().__init__(words)
        self.entry = entry


class _Trial(Generic[T]):
    """One subscription, and what the steps want of it."""

    def __init__(self, plan: _Plan[T]) -> None:
        self.within = plan.within
        self._make = plan.make
        self._over = False
        self.reached = 0
        """The step that is being taken."""
        self.probe: SubscriberProbe[T] = (
            SubscriberProbe(plan.request)
            if plan.turns is None
            else AsyncSubscriberProbe(plan.request, turns=plan.turns)
        )
        self.probe.journal = Journal(clock=asyncio.get_running_loop().time)

    def begin(self) -> None:
        self.probe.subscribed_to(self._make())

    def leave(self) -> None:
        if self.probe.subscriptions and not self.probe.is_terminated and not self._over:
            self.probe.cancel()

    async def subscribed(self) -> None:
        if not await self.probe.wait_until(lambda: self.probe.subscriptions, self.within):
            raise Unexpected(f"on_subscribe did not come within {self.within:g} s")

    async def signal(self, wanted: str) -> Entry:
        await self.subscribed()
        if not await self.probe.wait_until(lambda: self.probe.unread, self.within):
            raise Unexpected(f"{wanted} was expected, and nothing came within {self.within:g} s")
        return await self.probe.next_signal()

    async def element(self, predicate: Callable[[T], object], wanted: str) -> None:
        entry = await self.signal(wanted)
        if entry.kind is not Kind.ON_NEXT or not predicate(cast("T", entry.value)):
            raise Unexpected(f"{wanted} was expected, and {entry} came", entry)

    async def nothing(self, turns: int, seconds: float) -> None:
        await self.subscribed()
        await pass_time(turns, seconds)
        if unread := self.probe.unread:
            raise Unexpected(f"nothing was expected, and {unread[0]} came", unread[0])

    async def completed(self) -> None:
        entry = await self.signal("on_complete()")
        if entry.kind is not Kind.ON_COMPLETE:
            raise Unexpected(f"on_complete() was expected, and {entry} came", entry)

    async def failed(self, expected: Expected, match: str | None) -> None:
        wanted = f"on_error({_named(expected)})"
        entry = await self.signal(wanted)
        if entry.kind is not Kind.ON_ERROR or not _is(expected, cast("object", entry.value)):
            raise Unexpected(f"{wanted} was expected, and {entry} came", entry)
        if match is not None and not re.search(match, str(entry.value)):
            words = f"an error with {match!r} in its words was expected, and {entry} came"
            raise Unexpected(words, entry)

    async def cancelled(self) -> None:
        await self.nothing(0, 0)
        self._over = True
        self.probe.cancel()
        await pass_time(TURNS)  # what is on its way may arrive (2.8)
        for _ in self.probe.unread:
            await self.probe.next_signal()

    async def goes_on(self, seconds: float) -> None:
        await self.subscribed()
        if await self.probe.wait_until(lambda: self.probe.is_terminated, seconds):
            entry = next(each for each in self.probe.entries if each.kind is not Kind.ON_NEXT)
            raise Unexpected(f"no end was expected for {seconds:g} s, and {entry} came", entry)
        while self.probe.unread:
            await self.probe.next_signal()
        await self.cancelled()

    async def quiet_at_the_end(self) -> None:
        await self.nothing(TURNS, 0)
        self.keeps_the_rules()

    def keeps_the_rules(self) -> None:
        if offence := first_offence(self.probe.journal.entries):
            raise Unexpected(offence[1], offence[0])
        overlaps = getattr(self.probe, "overlaps", 0)
        if overlaps:
            raise Unexpected("1.3: a signal began before the one before had ended")


def _named(expected: Expected) -> str:
    return getattr(expected, "__name__", "") or shortened(expected)


def _is(expected: Expected, error: object) -> bool:
    if isinstance(expected, type):
        return isinstance(error, expected)
    if isinstance(expected, BaseException):
        return type(error) is type(expected) and getattr(error, "args", ()) == expected.args
    return isinstance(error, BaseException) and bool(expected(error))


def first_offence(entries: list[Entry]) -> tuple[Entry, str] | None:
    """The first entry that breaks the order of signals, and how."""
    requested, begun, ended = 0, False, False
    for entry in entries:
        if entry.kind is Kind.REQUEST and isinstance(entry.value, int):
            requested += max(entry.value, 0)
        if not entry.kind.is_signal:
            continue
        if entry.kind is Kind.ON_SUBSCRIBE:
            if begun:
                return entry, "2.12: on_subscribe came twice"
            begun = True
            continue
        if not begun:
            return entry, "1.9: a signal came before on_subscribe"
        if ended:
            return entry, "1.7: a signal came after the end"
        if entry.kind is not Kind.ON_NEXT:
            ended = True
        elif entry.value is None:
            return entry, "2.13: None came as an element"
        elif requested < 1:
            return entry, "1.1: an element came that nobody had requested"
        else:
            requested -= 1
    return None
