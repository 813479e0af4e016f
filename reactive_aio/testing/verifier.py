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
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from ..spec import Publisher
from .drawing import draw
from .journal import UNBOUNDED, Entry, Journal, Kind
from .marbles import Lanes, difference
from .probes import (
    TURNS,
    WITHIN,
    AsyncSubscriberProbe,
    SubscriberProbe,
    UnexpectedSignal,
    pass_time,
)
from .virtual_time import VirtualTimeLoop

T = TypeVar("T")

_LONGEST: Final = 70
_NO_LAST_STEP: Final = "end the steps with complete(), error(), cancel() or never_ends()"
_Action = Callable[[SubscriberProbe[T]], Awaitable[object]]
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
    _steps: tuple[tuple[str, _Action[T], float | None], ...] = ()
    """Each with its code, and the seconds in which the subscription must come before it."""

    def _and(self, code: str, action: _Action[T], *, is_waiting: bool = True) -> "Expectation[T]":
        step = (code, action, self._within if is_waiting else None)
        return replace(self, _steps=(*self._steps, step))

    def _last(self, code: str, action: _Action[T]) -> "Verification":
        return Verification(f"{self._start}…{code}", self._and(code, action)._verify)

    # -- what must come ----------------------------------------------------------------------------
    def subscription(self) -> "Expectation[T]":
        """on_subscribe must come. (Every other step waits for it as well.)"""
        return self._and(".subscription()", _pass)

    def next(self, *elements: T) -> "Expectation[T]":
        """These elements must come next, in this order."""

        async def run(probe: SubscriberProbe[T]) -> None:
            for element in elements:
                await self._expect(probe, lambda came: came == element, shortened(element))  # noqa: B023

        return self._and(f".next({', '.join(map(shortened, elements))})", run)

    def next_count(self, count: int) -> "Expectation[T]":
        """So many elements must come next, of any value."""

        async def run(probe: SubscriberProbe[T]) -> None:
            for number in range(1, count + 1):
                await self._expect(probe, lambda _: True, f"element {number} of {count}")

        return self._and(f".next_count({count})", run)

    def next_matching(self, predicate: Callable[[T], object], words: str = "") -> "Expectation[T]":
        """An element must come for which *predicate* is true; *words* describe it."""
        words = words or getattr(predicate, "__name__", "")
        code = f".next_matching({words or shortened(predicate)})"
        what = words or "a match"
        return self._and(code, lambda probe: self._expect(probe, predicate, what))

    def nothing(self, seconds: float = 0.0, *, turns: int = TURNS) -> "Expectation[T]":
        """No signal must come for so many seconds and turns of the loop."""
        code = f".nothing({seconds:g})" if seconds else ".nothing()"
        return self._and(code, lambda probe: probe.expect_nothing(turns=turns, seconds=seconds))

    # -- actions -----------------------------------------------------------------------------------
    def request(self, n: int) -> "Expectation[T]":
        """Request *n* more."""

        async def run(probe: SubscriberProbe[T]) -> None:
            probe.request(n)

        return self._and(f".request({n})", run)

    def after(self, seconds: float) -> "Expectation[T]":
        """Let so many seconds pass; the next steps read the signals that come meanwhile."""
        code = f".after({seconds:g})"
        return self._and(code, lambda _: asyncio.sleep(seconds), is_waiting=False)

    def within(self, seconds: float) -> "Expectation[T]":
        """From here on, what a step waits for must come within so many seconds."""
        return replace(self._and(f".within({seconds:g})", _pass, is_waiting=False), _within=seconds)

    def call(self, action: Callable[[], object]) -> "Expectation[T]":
        """Call *action*, such as a publisher probe's ``emit``, and await its result if possible."""

        async def run(_: SubscriberProbe[T]) -> None:
            if isawaitable(result := action()):
                await result

        code = f".call({getattr(action, '__name__', shortened(action))})"
        return self._and(code, run, is_waiting=False)

    # -- the last step -----------------------------------------------------------------------------
    def complete(self) -> "Verification":
        """on_complete must come next, and nothing after it."""
        return self._last(
            ".complete()",
            lambda probe: self._expect(probe, lambda _: True, "on_complete()", Kind.ON_COMPLETE),
        )

    def error(self, expected: Expected = Exception, *, match: str | None = None) -> "Verification":
        """on_error must come next, and nothing after it.

        *expected* is the type of the error, an equal error, or a function that is true for it;
        *match* is a regular expression that must be found in its text.
        """
        name = getattr(expected, "__name__", "") or shortened(expected)
        arguments = [] if expected is Exception else [name]
        if match is not None:
            arguments.append(f"match={match!r}")

        async def run(probe: SubscriberProbe[T]) -> None:
            is_expected, what = partial(_is, expected), f"on_error({name})"
            entry = await self._expect(probe, is_expected, what, Kind.ON_ERROR)
            if match is not None and not re.search(match, str(entry.value)):
                raise probe.unexpected(f"an error with {match!r} in its words", entry)

        return self._last(f".error({', '.join(arguments)})", run)

    def cancel(self) -> "Verification":
        """Cancel. All earlier signals must have been expected, and soon none must come any more."""
        return self._last(".cancel()", _cancel)

    def never_ends(self, seconds: float = 60.0) -> "Verification":
        """For so many seconds elements may come, but no terminal signal; then cancel."""

        async def run(probe: SubscriberProbe[T]) -> None:
            if await probe.wait_until(lambda: probe.is_terminated, seconds):
                entry = next(each for each in probe.entries if each.kind is not Kind.ON_NEXT)
                words = f"no end was expected for {seconds:g} s, and {entry} came"
                raise UnexpectedSignal(probe.journal, words, entry)
            probe.read_all()
            await _cancel(probe)

        return self._last(f".never_ends({seconds:g})", run)

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

    # -- without a last step -----------------------------------------------------------------------
    # Mistakes: a type checker reports them, so it must not know these methods.
    if not TYPE_CHECKING:

        def __await__(self) -> NoReturn:
            raise TypeError(f"{self._shown()} cannot be awaited yet; {_NO_LAST_STEP}")

        def __getattr__(self, name: str) -> NoReturn:
            hint = ""
            if name == "verify":
                hint = f"; {_NO_LAST_STEP}, then await it or call verify()"
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)

        def _shown(self) -> str:
            return self._start + "".join(code for code, *_ in self._steps)

    # -- running the steps -------------------------------------------------------------------------
    async def _expect(
        self,
        probe: SubscriberProbe[T],
        predicate: Callable[[Any], object],
        expected: str,
        kind: Kind = Kind.ON_NEXT,
    ) -> Entry:
        """Wait for the next signal: one of *kind*, for whose value *predicate* is true."""
        entry = await probe.next_signal(expected, within=self._within)
        if entry.kind is not kind or not predicate(entry.value):
            raise probe.unexpected(expected, entry)
        return entry

    async def _verify(self) -> None:
        probe: SubscriberProbe[T] = (
            SubscriberProbe(self._request)
            if self._turns is None
            else AsyncSubscriberProbe(self._request, turns=self._turns)
        )
        probe.journal = Journal(clock=asyncio.get_running_loop().time)
        number = 0
        try:
            probe.subscribed_to(self._make())
            for number, (_, action, within) in enumerate(self._steps):  # noqa: B007 - for the report
                if within is not None:
                    await probe.expect_subscription(within=within)
                await action(probe)
                _check_rules(probe)
            await probe.expect_nothing()
            _check_rules(probe)
        except UnexpectedSignal as unexpected:
            if unexpected.journal is not probe.journal:
                raise  # of another probe, which a step has called
            codes = [code for code, *_ in self._steps]
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
            if probe.subscriptions and not probe.is_terminated and not probe.is_cancelled:
                probe.cancel()


@dataclass(eq=False, repr=False)
class Verification:
    """All the steps: await it, or call ``verify()`` where no loop runs."""

    _code: str
    _verify: Callable[[], Awaitable[None]]
    _has_run: bool = field(default=False, init=False)

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


async def _pass(_: object) -> None:
    """The action of a step that only waits, or changes how long later ones wait."""


async def _cancel(probe: SubscriberProbe[Any]) -> None:
    await probe.expect_nothing(turns=0)
    probe.cancel()
    await pass_time(TURNS)  # signals in flight may still arrive (2.8)
    probe.read_all()


def _is(expected: Expected, error: object) -> bool:
    if isinstance(expected, type):
        return isinstance(error, expected)
    if isinstance(expected, BaseException):
        return type(error) is type(expected) and getattr(error, "args", ()) == expected.args
    return isinstance(error, BaseException) and bool(expected(error))


def _check_rules(probe: SubscriberProbe[T]) -> None:
    if offence := _first_offence(probe.journal.entries):
        raise UnexpectedSignal(probe.journal, offence[1], offence[0])
    if getattr(probe, "overlaps", 0):
        words = "1.3: a signal began before the one before had ended"
        raise UnexpectedSignal(probe.journal, words)


def _first_offence(entries: list[Entry]) -> tuple[Entry, str] | None:
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
