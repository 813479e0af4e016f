"""Laws of this library's own rules: the same elements for any demand, and no leaks."""

import asyncio
import contextvars
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ...spec import Publisher
from ...testing.safe_repr import safe_repr
from ..law import law
from ..scenario.equality import alike, all_alike
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED, AsyncRecorder, OnElement, Recorder, cancel_at, with_hook

LENGTH: Final = 17

Drive = Callable[[LawContext, Publisher[Any]], Any]


# -- the same elements for any demand ------------------------------------------------------------


@law("publisher", elements=LENGTH, completes=True)
async def library1_sends_the_same_elements_for_any_demand(context: LawContext) -> None:
    """Requests of all, one, three and random numbers, inside on_next and from a thread."""
    patterns: dict[str, Drive] = {
        "all at once": _by([UNBOUNDED]),
        "one by one": _by([1] * (LENGTH + 1)),
        "in threes": _by([3] * LENGTH),
        "at random": _by(_random_requests()),
        "one by one from another thread": _by([1] * (LENGTH + 1), is_from_a_thread=True),
        "inside on_next": _inside(Recorder, 1, 1),
        "two inside every on_next": _inside(Recorder, 2, 2),
    }
    if context.candidate.awaits_signals:
        patterns["inside an async on_next"] = _inside(AsyncRecorder, 1, 1)
        patterns["ahead of an async on_next"] = _inside(AsyncRecorder, 5, 1)
    first: list[Any] | None = None
    for name, drive in patterns.items():
        recorder: Recorder = await drive(context, await context.publisher(LENGTH))
        recorder.require(recorder.is_completed, f"requested {name}, it did not complete", "1.5")
        expected = first = recorder.elements if first is None else first
        what = f"requested {name}, {recorder.received} of {LENGTH} elements came"
        recorder.require(recorder.received == LENGTH, what)
        same = _same(recorder.elements, expected, context.candidate.ordered)
        what = f"requested {name}, other elements came than {safe_repr(expected, 200)}"
        recorder.require(same, what)


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


def _random_requests() -> Iterator[int]:
    source = random.Random(1)
    return (source.randint(1, 5) for _ in range(LENGTH + 1))


def _by(requests: Iterable[int], is_from_a_thread: bool = False) -> Drive:
    """Request each of *requests*, and wait for the elements before the next one."""

    async def drive(context: LawContext, publisher: Publisher[Any]) -> Recorder:
        recorder = await context.watch(publisher)
        for n in requests:
            if recorder.is_terminated:
                break
            if is_from_a_thread:
                await asyncio.to_thread(recorder.request, n)
            else:
                recorder.request(n)
            what = f"{recorder.requested} were requested in all, and did not all come"
            await recorder.wait_for_elements_or_end(min(recorder.requested, LENGTH), what)
        await recorder.wait_for_end()
        return recorder

    return drive


def _inside(kind: type[Recorder], initial: int, again: int) -> Drive:
    async def drive(context: LawContext, publisher: Publisher[Any]) -> Recorder:
        recorder = await context.watch(
            publisher, kind, initial, lambda self, _: self.request(again)
        )
        await recorder.wait_for_end()
        return recorder

    return drive


# -- cancellation --------------------------------------------------------------------------------


@law("publisher", elements=20)
async def library2_stops_immediately_after_cancel(context: LawContext) -> None:
    """After cancel in on_subscribe, in on_next or between signals no signal follows."""
    watched: list[Recorder] = []
    for kind in context.recorder_types:
        cancels = with_hook(kind, "on_subscribe", lambda recorder: recorder.cancel())
        watched.append(await context.watch(5, cancels, 0))
        watched.append(await context.watch(20, kind, UNBOUNDED, cancel_at(2)))
        for demand in (1, 10):
            recorder = await context.watch(20, kind, demand)
            await recorder.wait_for_elements(1)  # the awaited signal has not ended yet
            recorder.cancel()
            watched.append(recorder)
    await context.settle()
    for recorder in watched:
        what = f"{recorder.signals_after_cancel} signals came after cancel()"
        recorder.require(not recorder.signals_after_cancel, what)


# -- cleanup -----------------------------------------------------------------------------------


@law("closing_publisher")
async def library3_cleans_up_once(context: LawContext) -> None:
    """Resources are released once after completion, after failure and after any cancel()."""
    n = min(5, context.candidate.max_elements)

    def fail(_recorder: Recorder) -> None:
        raise ValueError("a subscriber that raises")

    for kind in context.recorder_types:
        in_subscribe = with_hook(kind, "on_subscribe", lambda recorder: recorder.cancel())
        in_complete = with_hook(kind, "on_complete", lambda recorder: recorder.cancel())
        raising = with_hook(kind, "on_next", fail)
        ways: tuple[tuple[str, int, type[Recorder], int, OnElement | None], ...] = (
            ("completion", 1, in_complete, UNBOUNDED, None),
            ("cancel() in on_subscribe", 0, in_subscribe, 0, None),
            ("cancel() before a request", 0, kind, 0, None),
            ("cancel() in between", 1, kind, 2, None),
            ("cancel() in on_next", 1, kind, n, cancel_at(1)),
            ("cancel() in the last on_next", 1, kind, UNBOUNDED, cancel_at(n)),
            ("a subscriber that raises", 1, raising, UNBOUNDED, None),
            ("a failure", 1, kind, 1, _request_nothing),
        )
        await context.gather(*(_require_closed_once(context, n, *way) for way in ways))


def _request_nothing(recorder: Recorder, _element: object) -> None:
    recorder.request(0)


async def _require_closed_once(
    context: LawContext,
    n: int,
    when: str,
    least: int,
    kind: type[Recorder],
    initial: int,
    on_element: OnElement | None,
) -> None:
    closed: list[bool] = []
    publisher = await context.create("closing_publisher", n, lambda: closed.append(True))
    recorder = await context.watch(publisher, kind, initial, on_element)
    expected = min(initial, n) if on_element is None else 1
    if "raises" not in when:
        what = f"{expected} were requested and did not all come"
        await recorder.wait_for_elements_or_end(expected, what, "1.1")
    if when.startswith("cancel()") and recorder.count_at_cancel is None:
        recorder.cancel()
        recorder.cancel()
    if least:
        await recorder.wait_until(lambda: closed, f"nothing was released after {when}")
    await context.settle()
    recorder.require(len(closed) <= 1, f"resources were released {len(closed)} times after {when}")


# -- context -----------------------------------------------------------------------------------

_VARIABLE: Final = contextvars.ContextVar("reactive_aio_tck", default="nothing")


def _note_variable(signal: str, found: list[tuple[str, str]]) -> Callable[[Recorder], None]:
    return lambda _recorder: found.append((signal, _VARIABLE.get()))


@law("publisher", elements=6)
async def library4_keeps_context_variables(context: LawContext) -> None:
    """Signals see the variables as they were at subscribe, whatever requests them."""
    found: list[tuple[str, str]] = []
    for kind in context.recorder_types:
        watching = kind
        for signal in ("on_subscribe", "on_next", "on_complete"):
            watching = with_hook(watching, signal, _note_variable(signal, found))
        _VARIABLE.set("as subscribed")
        recorder = await context.watch(6, watching)
        _VARIABLE.set("set later")
        recorder.request(1)
        await recorder.wait_for_elements(1)
        contextvars.Context().run(recorder.request, 1)
        await recorder.wait_for_elements(2)
        await asyncio.create_task(asyncio.to_thread(recorder.request, 1))
        await recorder.wait_for_elements(3)
        asyncio.get_running_loop().call_soon(recorder.request, 10)
        await recorder.wait_for_elements(6)
        if context.candidate.completes:
            await recorder.wait_for_end()
        await context.settle()
        for signal, value in found:
            what = f"in {signal} the variable was {value!r}, at subscribe 'as subscribed'"
            recorder.require(value == "as subscribed", what)


# -- leaks ---------------------------------------------------------------------------------------


async def _use(context: LawContext) -> list[Recorder]:
    """One subscription that is cancelled early, one in the middle, and one that completes."""
    watched: list[Recorder] = []
    for kind in context.recorder_types:
        for initial in (0, 2, UNBOUNDED):
            recorder = await context.watch(5, kind, initial)
            await recorder.wait_for_elements(min(initial, 5))
            if initial == UNBOUNDED and context.candidate.completes:
                await recorder.wait_for_end()
            else:
                recorder.cancel()
            watched.append(recorder)
    return watched


@law("publisher", elements=5)
async def library5_leaves_no_task(context: LawContext) -> None:
    """No task is alive after the end or after cancel()."""
    before = asyncio.all_tasks()
    watched = await _use(context)

    def left() -> list[str]:
        return [str(task.get_coro()) for task in asyncio.all_tasks() - before]

    await _require_none_left(context, left, "tasks", watched[-1])


@law("publisher", elements=5)
async def library6_leaves_no_thread(context: LawContext) -> None:
    """No thread of a subscription is alive after the end or after cancel()."""
    await _use(context)  # a pool may remain, and starts its threads on first use
    before = set(threading.enumerate())
    watched = [*await _use(context), *await _use(context)]

    def left() -> list[str]:
        new = [thread.name for thread in set(threading.enumerate()) - before]
        return new if len(new) >= len(watched) else []

    await _require_none_left(context, left, "threads", watched[-1])


async def _require_none_left(
    context: LawContext, left: Callable[[], list[str]], what: str, recorder: Recorder
) -> None:
    for _ in range(context.timeouts.quiet_turns):
        if not left():
            return
        await context.turn()
    try:
        await context.wait_until(lambda: not left(), "")
    except Exception as error:
        remaining = left()
        what = f"{len(remaining)} {what} remain: {', '.join(remaining)[:200]}"
        raise context.violation(what, journal=recorder.journal) from error
