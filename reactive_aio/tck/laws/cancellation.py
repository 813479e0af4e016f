"""Laws about cancellation: from any thread and in any state, repeatedly, it stops the signals."""

import asyncio
from typing import Final

from ..law import law
from ..rules import Strength
from ..scenario.law_context import LawContext
from ..scenario.recorder import SIGNALS, UNBOUNDED, Recorder, cancel_at, with_hook

LONG: Final = 1_000
"""A length of which a conforming publisher does not have all elements under way at a cancel."""


def _long(context: LawContext) -> int:
    return min(LONG, context.candidate.max_elements)


@law("publisher", elements=20)
async def spec108_stops_after_cancel(context: LawContext) -> None:
    """After cancel inside on_next or between signals, with demand left, signals soon stop."""
    n = _long(context)

    async def inside(kind: type[Recorder]) -> None:
        recorder = await context.watch(n, kind, UNBOUNDED, cancel_at(2))
        await recorder.wait_for_elements(2)
        await recorder.require_stop(n - 2)

    async def between(kind: type[Recorder], demand: int) -> None:
        recorder = await context.watch(n, kind, demand)
        await recorder.wait_for_elements(1)  # the awaited signal has not ended yet
        left = n - recorder.received
        recorder.cancel()
        await recorder.require_stop(left)

    await context.gather(
        *(inside(kind) for kind in context.recorder_types),
        *(between(kind, demand) for kind in context.recorder_types for demand in (10, UNBOUNDED)),
    )


@law("infinite_publisher")
async def spec108_infinite_stops_after_cancel(context: LawContext) -> None:
    """An endless stream with unbounded demand stops after cancel inside on_next."""

    async def inside(kind: type[Recorder]) -> None:
        recorder = await context.watch("infinite_publisher", kind, UNBOUNDED, cancel_at(3))
        await recorder.wait_for_elements(3)
        await recorder.require_stop()

    await context.gather_each(inside)


@law("publisher", elements=3)
async def spec108_cancel_triggers_no_signal(context: LawContext) -> None:
    """After cancel while no signal is under way, no signal follows, not even a terminal one."""

    async def idle(n: int, requested: int) -> None:
        recorder = await context.watch(n, initial=requested)
        await recorder.take_and_settle(requested)
        recorder.cancel()
        await context.settle()
        what = f"cancel() was answered by {recorder.signals_after_cancel} signals"
        recorder.require(not recorder.signals_after_cancel, what)

    await context.gather(idle(3, 0), idle(3, 1), idle(3, 2))


@law("publisher", elements=20)
async def spec312_cancel_stops_the_publisher(context: LawContext) -> None:
    """After cancel with demand left the signals stop, and a later request has no effect."""
    recorder = await context.watch(20)
    recorder.request(10)
    recorder.request(5)
    await recorder.wait_for_elements(1)
    recorder.cancel()
    await recorder.require_stop(then_request=5)


# -- from any thread, repeatedly, and followed by requests ---------------------------------------


@law("publisher", elements=20)
async def spec305_cancels_from_another_thread(context: LawContext) -> None:
    """cancel() may be called from any thread; the signals soon stop."""

    async def idle() -> None:
        recorder = await (await context.watch(5, initial=2)).take_and_settle(2)
        await asyncio.to_thread(recorder.cancel)
        await context.settle()
        recorder.request(3)
        await context.settle()
        what = "signals came after cancel() from another thread"
        recorder.require(not recorder.signals_after_cancel, what)

    async def busy() -> None:
        n = _long(context)
        recorder = await context.watch(n, initial=10)
        await recorder.wait_for_elements(1)
        await asyncio.to_thread(recorder.cancel)
        await recorder.require_stop()
        late = recorder.signals_after_cancel
        recorder.request(5)
        await context.settle()
        what = "a request after cancel() from another thread is served"
        recorder.require(recorder.signals_after_cancel == late, what)

    with context.checking_thread_calls("3.5"):
        await context.gather(idle(), busy())


@law("publisher", elements=5)
async def spec306_ignores_requests_after_cancel(context: LawContext) -> None:
    """Requests after cancel() have no effect, valid or not."""

    async def cancelled(before: int) -> None:
        recorder = await (await context.watch(5, initial=before)).take_and_settle(before)
        recorder.cancel()
        for n in (1, 3, UNBOUNDED, 0, -1):
            recorder.request(n)
        await context.settle()
        what = f"{recorder.signals_after_cancel} signals came after cancel() and request()"
        recorder.require(not recorder.signals_after_cancel, what)

    await context.gather(cancelled(0), cancelled(2))


@law("publisher", elements=5)
async def spec307_ignores_repeated_cancel(context: LawContext) -> None:
    """cancel() after cancel() has no effect and does not raise."""

    async def cancelled(before: int) -> None:
        recorder = await (await context.watch(5, initial=before)).take_and_settle(before)
        for _ in range(3):
            recorder.cancel()
        await context.settle()
        recorder.cancel()
        await context.settle()
        what = f"{recorder.signals_after_cancel} signals came after cancel()"
        recorder.require(not recorder.signals_after_cancel, what)

    await context.gather(cancelled(0), cancelled(1))


@law("publisher", elements=3)
async def spec315_cancel_returns_normally(context: LawContext) -> None:
    """cancel returns None inside each signal, outside, repeatedly, and after the end."""

    async def inside(kind: type[Recorder], signal: str) -> None:
        cancels = with_hook(kind, signal, lambda recorder: recorder.cancel())
        recorder = await context.watch(3, cancels, 2)
        if signal == "on_error":
            recorder.request(-1)
        else:
            recorder.request(2)
        await context.settle()
        recorder.cancel()

    await context.gather_each(inside, SIGNALS)


@law("closing_publisher", strength=Strength.MAY)
async def spec314_cancel_shuts_the_publisher_down(context: LawContext) -> None:
    """When its only subscriber cancels, the publisher releases its resources."""
    closed: list[bool] = []
    n = min(5, context.candidate.max_elements)
    publisher = await context.create("closing_publisher", n, lambda: closed.append(True))
    recorder = await context.watch(publisher, initial=1)
    await recorder.wait_for_elements_or_end(1, "1 was requested and did not come", "1.1")
    recorder.cancel()
    await context.settle()
    recorder.require(bool(closed), "nothing was released after cancel()")
