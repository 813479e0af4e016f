"""Laws of this library's own: the same elements whatever the demand, and nothing left behind."""

import asyncio
import contextvars
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ...spec import Publisher
from ...testing.safe_repr import safe_repr
from ..law import law
from ..rules import Strength
from ..scenario.comparing import alike, all_alike
from ..scenario.recorder import UNBOUNDED, AsyncRecorder, Recorder
from ..scenario.trial import Trial
from .moves import cancelling, hooked

__all__ = ()

LENGTH: Final = 17

Drive = Callable[[Trial, Publisher[Any]], Any]


# -- the same elements, whatever the demand ----------------------------------------------------


@law("L.1", "publisher", elements=LENGTH, completes=True, strength=Strength.SHOULD)
async def house1_sends_the_same_whatever_the_demand(trial: Trial) -> None:
    """All at once, one by one, in threes, at random, inside on_next, and from another thread."""
    patterns: dict[str, Drive] = {
        "all at once": _by([UNBOUNDED]),
        "one by one": _by([1] * (LENGTH + 1)),
        "in threes": _by([3] * LENGTH),
        "at random": _by(_some()),
        "one by one from another thread": _from_a_thread,
        "inside on_next": _inside(Recorder, 1, 1),
        "two inside every on_next": _inside(Recorder, 2, 2),
    }
    if trial.subject.awaits_signals:
        patterns["inside an async on_next"] = _inside(AsyncRecorder, 1, 1)
        patterns["ahead of an async on_next"] = _inside(AsyncRecorder, 5, 1)
    first: list[Any] | None = None
    for name, drive in patterns.items():
        seen: Recorder = await drive(trial, await trial.publisher(LENGTH))
        seen.demand(seen.completed, "1.5", f"requested {name}, it did not complete")
        expected = first = seen.elements if first is None else first
        seen.demand(
            seen.received == LENGTH,
            "L.1",
            f"requested {name}, {seen.received} of {LENGTH} elements came",
        )
        same = _same(seen.elements, expected, trial.subject.ordered)
        what = f"requested {name}, other elements came than {safe_repr(expected, 200)}"
        seen.demand(same, "L.1", what)


def _same(one: list[Any], other: list[Any], ordered: bool) -> bool:
    if ordered or len(one) != len(other):
        return all_alike(one, other)
    left = list(other)
    for element in one:
        found = next((at for at, each in enumerate(left) if alike(element, each)), None)
        if found is None:
            return False
        del left[found]
    return not left


def _some() -> Iterator[int]:
    chance = random.Random(1)
    return (chance.randint(1, 5) for _ in range(LENGTH + 1))


def _by(requests: Iterable[int]) -> Drive:
    """Request so many, wait for them, and so on, until the end."""

    async def drive(trial: Trial, publisher: Publisher[Any]) -> Recorder:
        seen = await trial.watch(publisher)
        for n in requests:
            if seen.ended:
                break
            seen.request(n)
            await _came(seen)
        await seen.end()
        return seen

    return drive


async def _from_a_thread(trial: Trial, publisher: Publisher[Any]) -> Recorder:
    seen = await trial.watch(publisher)
    while seen.requested <= LENGTH and not seen.ended:
        await asyncio.to_thread(seen.request, 1)
        await _came(seen)
    await seen.end()
    return seen


async def _came(seen: Recorder) -> None:
    what = f"{seen.requested} were requested in all, and did not all come"
    await seen.reached(min(seen.requested, LENGTH), "L.1", what)


def _inside(kind: type[Recorder], first: int, again: int) -> Drive:
    async def drive(trial: Trial, publisher: Publisher[Any]) -> Recorder:
        seen = await trial.watch(publisher, kind, first, lambda self, _: self.request(again))
        await seen.end()
        return seen

    return drive


# -- silence at once ---------------------------------------------------------------------------


@law("L.2", "publisher", elements=20, strength=Strength.SHOULD)
async def house2_is_silent_at_once_after_cancel(trial: Trial) -> None:
    """Cancelled on the loop, in on_subscribe, in on_next or between signals: none comes after."""
    watched: list[Recorder] = []
    for kind in trial.kinds:
        at_once = hooked(kind, "on_subscribe", lambda seen: seen.cancel())
        watched.append(await trial.watch(await trial.publisher(5), at_once, 0))
        then = cancelling(2)
        watched.append(await trial.watch(await trial.publisher(20), kind, UNBOUNDED, then))
        for demand in (1, 10):
            seen = await trial.watch(await trial.publisher(20), kind, demand)
            await seen.took(1)  # an awaited signal is still under way
            seen.cancel()
            watched.append(seen)
    await trial.quiet()
    for seen in watched:
        seen.demand(not seen.late, "L.2", f"{seen.late} signals came after cancel()")


# -- cleanup -----------------------------------------------------------------------------------


@law("L.3", "closing_publisher", strength=Strength.SHOULD)
async def house3_cleans_up_once(trial: Trial) -> None:
    """What is held is given back once: after completion and failure, and after any cancel()."""
    n = min(5, trial.subject.max_elements)

    def raises(_seen: Recorder) -> None:
        raise ValueError("a subscriber that raises")

    for kind in trial.kinds:
        in_subscribe = hooked(kind, "on_subscribe", lambda seen: seen.cancel())
        in_complete = hooked(kind, "on_complete", lambda seen: seen.cancel())
        wrong = hooked(kind, "on_next", raises)
        last = cancelling(n)
        await trial.each(
            _closes(trial, n, "completion", 1, (in_complete, UNBOUNDED, None)),
            _closes(trial, n, "cancel() in on_subscribe", 0, (in_subscribe, 0, None)),
            _closes(trial, n, "cancel() before a request", 0, (kind, 0, None)),
            _closes(trial, n, "cancel() in between", 1, (kind, 2, None)),
            _closes(trial, n, "cancel() in on_next", 1, (kind, n, cancelling(1))),
            _closes(trial, n, "cancel() in the last on_next", 1, (kind, UNBOUNDED, last)),
            _closes(trial, n, "a subscriber that raises", 1, (wrong, UNBOUNDED, None)),
            _closes(trial, n, "a failure", 1, (kind, 1, _request_nothing)),
        )


def _request_nothing(seen: Recorder, _element: object) -> None:
    seen.request(0)


async def _closes(trial: Trial, n: int, when: str, least: int, how: tuple[Any, int, Any]) -> None:
    closed: list[bool] = []
    publisher = await trial.make("closing_publisher", n, lambda: closed.append(True))
    kind, first, then = how
    seen = await trial.watch(publisher, kind, first, then)
    wanted = min(first, n) if then is None else 1
    if "raises" not in when:
        await seen.reached(wanted, "1.1", f"{wanted} were requested and did not all come")
    if when.startswith("cancel()") and seen.cancelled_at is None:
        seen.cancel()
        seen.cancel()
    if least:
        what = f"nothing was given back after {when}"
        await trial.until(lambda: closed, "L.3", what, seen.journal)
    await trial.quiet()
    what = f"it was given back {len(closed)} times after {when}"
    seen.demand(len(closed) <= 1, "L.3", what)


# -- context -----------------------------------------------------------------------------------

_VARIABLE: Final = contextvars.ContextVar("reactive_aio_tck", default="nothing")


def _noting(signal: str, found: list[tuple[str, str]]) -> Callable[[Recorder], None]:
    return lambda _seen: found.append((signal, _VARIABLE.get()))


@law("L.4", "publisher", elements=6, strength=Strength.SHOULD)
async def house4_keeps_context_variables(trial: Trial) -> None:
    """Signals see the variables as they were at subscribe, whoever requests, from wherever."""
    found: list[tuple[str, str]] = []
    for kind in trial.kinds:
        watching = kind
        for signal in ("on_subscribe", "on_next", "on_complete"):
            watching = hooked(watching, signal, _noting(signal, found))
        _VARIABLE.set("as subscribed")
        seen = await trial.watch(await trial.publisher(6), watching)
        _VARIABLE.set("set later")
        seen.request(1)
        await seen.took(1)
        contextvars.Context().run(seen.request, 1)
        await seen.took(2)
        await asyncio.create_task(asyncio.to_thread(seen.request, 1))
        await seen.took(3)
        asyncio.get_running_loop().call_soon(seen.request, 10)
        await seen.took(6)
        if trial.subject.completes:
            await seen.end()
        await trial.quiet()
        for signal, value in found:
            what = f"in {signal} the variable was {value!r}, at subscribe 'as subscribed'"
            seen.demand(value == "as subscribed", "L.4", what)


# -- nothing alive -----------------------------------------------------------------------------


async def _uses(trial: Trial) -> list[Recorder]:
    """One subscription that is cancelled early, one in the middle, and one to its end."""
    watched: list[Recorder] = []
    for kind in trial.kinds:
        for first in (0, 2, UNBOUNDED):
            seen = await trial.watch(await trial.publisher(5), kind, first)
            await seen.took(min(first, 5))
            if first == UNBOUNDED and trial.subject.completes:
                await seen.end()
            else:
                seen.cancel()
            watched.append(seen)
    return watched


@law("L.5", "publisher", elements=5, strength=Strength.SHOULD)
async def house5_leaves_no_task(trial: Trial) -> None:
    """No task is alive after the end, nor after cancel()."""
    before = asyncio.all_tasks()
    watched = await _uses(trial)

    def left() -> list[str]:
        return [str(task.get_coro()) for task in asyncio.all_tasks() - before]

    await _none_left(trial, left, "L.5", "tasks", watched[-1])


@law("L.6", "publisher", elements=5, strength=Strength.SHOULD)
async def house6_leaves_no_thread(trial: Trial) -> None:
    """No thread of a subscription is alive after the end, nor after cancel()."""
    await _uses(trial)  # a pool may stay, and may fill up with the first uses
    before = set(threading.enumerate())
    watched = [*await _uses(trial), *await _uses(trial)]

    def left() -> list[str]:
        new = [thread.name for thread in set(threading.enumerate()) - before]
        return new if len(new) >= len(watched) else []

    await _none_left(trial, left, "L.6", "threads", watched[-1])


async def _none_left(
    trial: Trial, left: Callable[[], list[str]], rule: str, what: str, seen: Recorder
) -> None:
    for _ in range(trial.terms.turns):
        if not left():
            return
        await trial.turn()
    try:
        await trial.until(lambda: not left(), rule, "")
    except Exception as error:
        stay = left()
        raise trial.violation(
            rule, f"{len(stay)} {what} stay: {', '.join(stay)[:200]}", seen.journal
        ) from error
