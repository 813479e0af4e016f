"""A verifier: what a flow must do, step by step or as a marble diagram.

::

    await expect(flow).next(1, 2).after(5).complete()
    await expect(flow).marbles("a-b|")

The steps run when the last one is awaited, or by ``verify()`` where no loop runs: it creates one
with virtual time, on which ``after(3600)`` takes no time. The last step is ``complete``, ``error``,
``cancel`` or ``never_ends``; signals that no step expects are failures, and the subscription is
cancelled in any case. ``marbles`` describes the whole subscription, and is the only step.

A failure shows the steps, the one that failed, what came instead, and a drawing of all signals.
"""

import asyncio
import re
import warnings
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from inspect import isawaitable
from reprlib import repr as shortened
from typing import Any, Final, Generic, TypeVar

from ..spec import Publisher
from .drawing import draw
from .journal import Entry, Journal, Kind
from .lanes import UNBOUNDED, Lanes
from .marbles import difference
from .probes import (
    TURNS,
    WITHIN,
    AsyncSubscriberProbe,
    SubscriberProbe,
    UnexpectedSignal,
    pass_time,
)
from .virtual_time import VirtualTimeLoop

__all__ = ("Expectation", "Verification", "expect")

T = TypeVar("T")

_LONGEST: Final = 70
Expected = type[BaseException] | BaseException | Callable[[BaseException], object]


def expect(
    flow: Publisher[T] | Callable[[], Publisher[T]],
    *,
    request: int = UNBOUNDED,
    within: float = WITHIN,
    turns: int | None = None,
) -> "Expectation[T]":
    """Begin to describe what *flow*, or the flow that a function returns, must do.

    *request* is requested with the subscription; with 0, a step ``request`` has to. What a step
    waits for must come *within* so many seconds of the loop's clock. With *turns*, the subscriber's
    methods are ``async def``, and take so many turns of the loop each.
    """
    make = flow if callable(flow) else lambda: flow
    name = repr(flow)
    arguments = [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"]
    if request != UNBOUNDED:
        arguments.append(f"request={request}")
    start = f"expect({', '.join(arguments)})"
    return Expectation(make, request, within, turns, start)


@dataclass(frozen=True, eq=False, repr=False)
class Expectation(Generic[T]):
    """The steps so far, immutable: each step returns a new one, so beginnings can be shared.

    It can be awaited after a last step.
    """

    _make: Callable[[], Publisher[T]]
    _request: int
    _within: float
    _turns: int | None
    _start: str
    _steps: "tuple[tuple[str, _Action[T]], ...]" = ()
    """Each with its code."""

    def _and(self, code: str, action: "_Action[T]") -> "Expectation[T]":
        return replace(self, _steps=(*self._steps, (code, action)))

    def _last(self, code: str, action: "_Action[T]") -> "Verification":
        return Verification(f"{self._start}…{code}", self._and(code, action)._verify)

    # -- what must come ----------------------------------------------------------------------------
    def subscription(self) -> "Expectation[T]":
        """on_subscribe must come. (Every other step waits for it as well.)"""
        return self._and(".subscription()", lambda runner: runner.expect_subscription())

    def next(self, *elements: T) -> "Expectation[T]":
        """These elements must come next, in this order."""

        async def run(runner: _StepRunner[T]) -> None:
            for element in elements:
                await runner.expect_element(lambda came: came == element, shortened(element))  # noqa: B023

        return self._and(f".next({', '.join(map(shortened, elements))})", run)

    def next_count(self, count: int) -> "Expectation[T]":
        """So many elements must come next, of any value."""

        async def run(runner: _StepRunner[T]) -> None:
            for number in range(count):
                await runner.expect_element(lambda _: True, f"element {number + 1} of {count}")

        return self._and(f".next_count({count})", run)

    def next_matching(self, predicate: Callable[[T], object], words: str = "") -> "Expectation[T]":
        """An element must come for which *predicate* is true; *words* describe it."""
        words = words or getattr(predicate, "__name__", "")
        code = f".next_matching({words or shortened(predicate)})"
        return self._and(code, lambda runner: runner.expect_element(predicate, words or "a match"))

    def nothing(self, seconds: float = 0.0, *, turns: int = TURNS) -> "Expectation[T]":
        """No signal must come for so many seconds and turns of the loop."""
        code = f".nothing({seconds:g})" if seconds else ".nothing()"
        return self._and(code, lambda runner: runner.expect_nothing(turns, seconds))

    # -- actions -----------------------------------------------------------------------------------
    def request(self, n: int) -> "Expectation[T]":
        """Request *n* more."""

        async def run(runner: _StepRunner[T]) -> None:
            await runner.expect_subscription()
            runner.probe.request(n)

        return self._and(f".request({n})", run)

    def after(self, seconds: float) -> "Expectation[T]":
        """Let so many seconds pass; the next steps read the signals that come meanwhile."""
        return self._and(f".after({seconds:g})", lambda _: asyncio.sleep(seconds))

    def within(self, seconds: float) -> "Expectation[T]":
        """From here on, what a step waits for must come within so many seconds."""

        async def run(runner: _StepRunner[T]) -> None:
            runner.within = seconds

        return self._and(f".within({seconds:g})", run)

    def call(self, action: Callable[[], object]) -> "Expectation[T]":
        """Call *action*, such as a publisher probe's ``emit``, and await its result if possible."""

        async def run(_: _StepRunner[T]) -> None:
            if isawaitable(result := action()):
                await result

        return self._and(f".call({getattr(action, '__name__', shortened(action))})", run)

    # -- the last step -----------------------------------------------------------------------------
    def complete(self) -> "Verification":
        """on_complete must come next, and nothing after it."""
        return self._last(
            ".complete()",
            lambda runner: runner.expect(Kind.ON_COMPLETE, lambda _: True, "on_complete()"),
        )

    def error(self, expected: Expected = Exception, *, match: str | None = None) -> "Verification":
        """on_error must come next, and nothing after it.

        *expected* is the type of the error, an equal error, or a function that is true for it;
        *match* is a regular expression that must be found in its text.
        """
        arguments = [] if expected is Exception else [_named(expected)]
        if match is not None:
            arguments.append(f"match={match!r}")

        async def run(runner: _StepRunner[T]) -> None:
            what = f"on_error({_named(expected)})"
            entry = await runner.expect(Kind.ON_ERROR, lambda error: _is(expected, error), what)
            if match is not None and not re.search(match, str(entry.value)):
                raise runner.probe.unexpected(f"an error with {match!r} in its words", entry)

        return self._last(f".error({', '.join(arguments)})", run)

    def cancel(self) -> "Verification":
        """Cancel. All earlier signals must have been expected, and soon none must come any more."""
        return self._last(".cancel()", lambda runner: runner.cancel())

    def never_ends(self, seconds: float = 60.0) -> "Verification":
        """For so many seconds elements may come, but no terminal signal; then cancel."""
        return self._last(f".never_ends({seconds:g})", lambda runner: runner.expect_no_end(seconds))

    def marbles(self, diagram: str | Lanes, *, tick: float = 1.0) -> "Verification":
        """The whole subscription must look like *diagram*, whose ticks take *tick* seconds.

        ``a--b|`` is the lane of its signals under unbounded demand; a demand lane in a line above
        requests as it says::

            await expect(flow).marbles(\"\"\"
                demand   1---1-x
                signals  a---b--
            \"\"\")

        Elements are compared as they are drawn. A lane without a terminal signal leaves open what
        comes after it.
        """
        if self._steps or self._request != UNBOUNDED or self._turns is not None:
            raise ValueError("marbles() is the only step, and its demand lane replaces request=")
        lanes = Lanes.parse(diagram) if isinstance(diagram, str) else diagram

        async def run() -> None:
            if words := await difference(self._make, lanes, tick):
                raise AssertionError(words)

        return Verification(f"{self._start}.marbles(…)", run)

    async def _verify(self) -> None:
        runner = _StepRunner[T](self._request, self._within, self._turns)
        number = 0
        try:
            runner.probe.subscribed_to(self._make())
            for number, (_, action) in enumerate(self._steps):  # noqa: B007 - for the report
                await action(runner)
                runner.check_rules()
            await runner.expect_nothing(TURNS, 0)
            runner.check_rules()
        except UnexpectedSignal as unexpected:
            if unexpected.journal is not runner.probe.journal:
                raise  # of another probe, which a step has called
            codes = [code for code, _ in self._steps]
            lines = [
                f"step {number + 1} of {len(codes)}, {codes[number]}: {unexpected.words}",
                "",
                f"    {self._start}",
                *(
                    f"{'  >' if at == number else '   '}     {code}"
                    for at, code in enumerate(codes)
                ),
                "",
                draw(unexpected.journal),
            ]
            raise AssertionError("\n".join(lines)) from None
        finally:
            runner.close()


class Verification:
    """All the steps: await it, or call ``verify()`` where no loop runs."""

    def __init__(self, code: str, run: Callable[[], Awaitable[None]]) -> None:
        self._code = code
        self._verify = run
        self._has_run = False

    def __await__(self) -> Generator[Any, None, None]:
        return self._run().__await__()

    def verify(self) -> None:
        """Run the steps on a loop with virtual time."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                runner.run(self._run())
        else:
            self._has_run = True
            raise RuntimeError("verify() is for where no loop runs; here one does: await instead")

    def __del__(self) -> None:
        if not self._has_run:
            words = f"{self._code} was never awaited: nothing was verified"
            warnings.warn(words, RuntimeWarning, stacklevel=2)

    async def _run(self) -> None:
        self._has_run = True
        await self._verify()


class _StepRunner(Generic[T]):
    """A probe and its subscription, on which the steps run."""

    def __init__(self, request: int, within: float, turns: int | None) -> None:
        self.within = within
        self._is_cancelled = False
        self.probe: SubscriberProbe[T] = (
            SubscriberProbe(request)
            if turns is None
            else AsyncSubscriberProbe(request, turns=turns)
        )
        self.probe.journal = Journal(clock=asyncio.get_running_loop().time)

    def close(self) -> None:
        if self.probe.subscriptions and not self.probe.is_terminated and not self._is_cancelled:
            self.probe.cancel()

    async def expect_subscription(self) -> None:
        await self.probe.expect_subscription(within=self.within)

    async def expect(self, kind: Kind, predicate: Callable[[Any], object], expected: str) -> Entry:
        """Wait for the next signal: one of *kind*, for whose value *predicate* is true."""
        await self.expect_subscription()
        entry = await self.probe.next_signal(expected, within=self.within)
        if entry.kind is not kind or not predicate(entry.value):
            raise self.probe.unexpected(expected, entry)
        return entry

    async def expect_element(self, predicate: Callable[[T], object], expected: str) -> None:
        await self.expect(Kind.ON_NEXT, predicate, expected)

    async def expect_nothing(self, turns: int, seconds: float) -> None:
        await self.expect_subscription()
        await self.probe.expect_nothing(turns=turns, seconds=seconds)

    async def cancel(self) -> None:
        await self.expect_nothing(0, 0)
        self._is_cancelled = True
        self.probe.cancel()
        await pass_time(TURNS)  # signals in flight may still arrive (2.8)
        await self._read_all()

    async def expect_no_end(self, seconds: float) -> None:
        await self.expect_subscription()
        if await self.probe.wait_until(lambda: self.probe.is_terminated, seconds):
            entry = next(each for each in self.probe.entries if each.kind is not Kind.ON_NEXT)
            words = f"no end was expected for {seconds:g} s, and {entry} came"
            raise UnexpectedSignal(self.probe.journal, words, entry)
        await self._read_all()
        await self.cancel()

    async def _read_all(self) -> None:
        while self.probe.unread:
            await self.probe.next_signal()

    def check_rules(self) -> None:
        if offence := first_offence(self.probe.journal.entries):
            raise UnexpectedSignal(self.probe.journal, offence[1], offence[0])
        if getattr(self.probe, "overlaps", 0):
            words = "1.3: a signal began before the one before had ended"
            raise UnexpectedSignal(self.probe.journal, words)


_Action = Callable[[_StepRunner[T]], Awaitable[object]]


def _named(expected: Expected) -> str:
    return getattr(expected, "__name__", "") or shortened(expected)


def _is(expected: Expected, error: object) -> bool:
    if isinstance(expected, type):
        return isinstance(error, expected)
    if isinstance(expected, BaseException):
        return type(error) is type(expected) and getattr(error, "args", ()) == expected.args
    return isinstance(error, BaseException) and bool(expected(error))


def first_offence(entries: list[Entry]) -> tuple[Entry, str] | None:
    """The first entry that breaks a rule about the order of signals, and how."""
    requested, has_begun, has_ended = 0, False, False
    for entry in entries:
        if entry.kind is Kind.REQUEST and isinstance(entry.value, int):
            requested += max(entry.value, 0)
        if not entry.kind.is_signal:
            continue
        if entry.kind is Kind.ON_SUBSCRIBE:
            if has_begun:
                return entry, "2.12: on_subscribe came twice"
            has_begun = True
            continue
        if not has_begun:
            return entry, "1.9: a signal came before on_subscribe"
        if has_ended:
            return entry, "1.7: a signal came after the end"
        if entry.kind is not Kind.ON_NEXT:
            has_ended = True
        elif entry.value is None:
            return entry, "2.13: None came as an element"
        elif requested < 1:
            return entry, "1.1: an element came without demand"
        else:
            requested -= 1
    return None
