"""Laws about cancellation: it stops the signals, from anywhere, in any state, again and again."""

import asyncio
from typing import Final

from ..law import law
from ..rules import Strength
from ..scenario.recorder import UNBOUNDED, Recorder
from ..scenario.trial import Trial
from .moves import cancelling, hooked, rest, stops

__all__ = ()

LONG: Final = 1_000
"""Of so many elements no honest publisher has all under way when it is cancelled."""


def _long(trial: Trial) -> int:
    return min(LONG, trial.subject.max_elements)


@law("1.8", "publisher", elements=20)
async def spec108_stops_after_cancel(trial: Trial) -> None:
    """Cancelled inside on_next or between signals, demand left: a few in flight, then silence."""
    n = _long(trial)

    async def inside(kind: type[Recorder]) -> None:
        seen = await trial.watch(await trial.publisher(n), kind, UNBOUNDED, cancelling(2))
        await seen.took(2)
        await stops(trial, seen, "1.8", n - 2)

    async def between(kind: type[Recorder], demand: int) -> None:
        seen = await trial.watch(await trial.publisher(n), kind, demand)
        await seen.took(1)  # an awaited signal is still under way
        left = n - seen.received
        seen.cancel()
        await stops(trial, seen, "1.8", left)

    await trial.each(
        *(inside(kind) for kind in trial.kinds),
        *(between(kind, demand) for kind in trial.kinds for demand in (10, UNBOUNDED)),
    )


@law("1.8", "infinite_publisher")
async def spec108_infinite_stops_after_cancel(trial: Trial) -> None:
    """An endless stream under unbounded demand stops in the middle of it."""

    async def inside(kind: type[Recorder]) -> None:
        publisher = await trial.make("infinite_publisher")
        seen = await trial.watch(publisher, kind, UNBOUNDED, cancelling(3))
        await seen.took(3)
        await stops(trial, seen, "1.8")

    await trial.each(*map(inside, trial.kinds))


@law(
    "1.8",
    "publisher",
    elements=3,
    jvm=(
        "untested_spec108_possiblyCanceledSubscriptionShouldNotReceiveOnErrorOrOnCompleteSignals",
    ),
)
async def spec108_cancel_is_answered_by_no_signal(trial: Trial) -> None:
    """Cancelled when nothing is under way, it sends nothing: no terminal signal, no element."""

    async def at_rest(n: int, asked: int) -> None:
        seen = await trial.watch(await trial.publisher(n), first=asked)
        await rest(trial, seen, asked)
        seen.cancel()
        await trial.quiet()
        seen.demand(not seen.late, "1.8", f"cancel() was answered by {seen.late} signals")

    await trial.each(at_rest(3, 0), at_rest(3, 1), at_rest(3, 2))


@law(
    "3.12",
    "publisher",
    elements=20,
    jvm=("required_spec312_cancelMustMakeThePublisherToEventuallyStopSignaling",),
)
async def spec312_cancel_stops_the_publisher(trial: Trial) -> None:
    """15 of 20 are requested and one is taken: after cancel it stops, and no request revives it."""
    seen = await trial.watch(await trial.publisher(20))
    seen.request(10)
    seen.request(5)
    await seen.took(1)
    seen.cancel()
    await trial.quiet()
    late = seen.late
    seen.request(5)
    await trial.quiet()
    more = seen.late - late
    what = f"signals go on after cancel(): {late} at first, then {more} more"
    seen.demand(not more, "3.12", what)


# -- from anywhere, again, and with requests after it ------------------------------------------


@law("3.5", "publisher", elements=20)
async def spec305_cancels_from_another_thread(trial: Trial) -> None:
    """cancel() may be called from any thread; the signals stop soon."""

    async def at_rest() -> None:
        seen = await rest(trial, await trial.watch(await trial.publisher(5), first=2), 2)
        await asyncio.to_thread(seen.cancel)
        await trial.quiet()
        seen.request(3)
        await trial.quiet()
        seen.demand(not seen.late, "3.5", "signals came after cancel() from another thread")

    async def busy() -> None:
        n = _long(trial)
        seen = await trial.watch(await trial.publisher(n), first=10)
        await seen.took(1)
        await asyncio.to_thread(seen.cancel)
        await stops(trial, seen, "3.5")
        late = seen.late
        seen.request(5)
        await trial.quiet()
        what = "a request after cancel() from another thread is served"
        seen.demand(seen.late == late, "3.5", what)

    with trial.minding_threads("3.5"):
        await trial.each(at_rest(), busy())


@law(
    "3.6",
    "publisher",
    elements=5,
    jvm=("required_spec306_afterSubscriptionIsCancelledRequestMustBeNops",),
)
async def spec306_takes_no_request_after_cancel(trial: Trial) -> None:
    """Requests after cancel() have no effect, be they right or wrong."""

    async def dead(before: int) -> None:
        seen = await rest(trial, await trial.watch(await trial.publisher(5), first=before), before)
        seen.cancel()
        for n in (1, 3, UNBOUNDED, 0, -1):
            seen.request(n)
        await trial.quiet()
        seen.demand(not seen.late, "3.6", f"{seen.late} signals came after cancel() and request()")

    await trial.each(dead(0), dead(2))


@law(
    "3.7",
    "publisher",
    elements=5,
    jvm=("required_spec307_afterSubscriptionIsCancelledAdditionalCancelationsMustBeNops",),
)
async def spec307_takes_cancel_again(trial: Trial) -> None:
    """cancel() after cancel() has no effect, and raises nothing."""

    async def again(before: int) -> None:
        seen = await rest(trial, await trial.watch(await trial.publisher(5), first=before), before)
        for _ in range(3):
            seen.cancel()
        await trial.quiet()
        seen.cancel()
        await trial.quiet()
        seen.demand(not seen.late, "3.7", f"{seen.late} signals came after cancel()")

    await trial.each(again(0), again(1))


@law("3.15", "publisher", elements=3)
async def spec315_cancel_returns_normally(trial: Trial) -> None:
    """cancel returns, and None: inside each signal, outside, again, and after the end."""

    async def inside(kind: type[Recorder], signal: str) -> None:
        cancels = hooked(kind, signal, lambda seen: seen.cancel())
        seen = await trial.watch(await trial.publisher(3), cancels, 2)
        if signal == "on_error":
            seen.request(-1)
        else:
            seen.request(2)
        await trial.quiet()
        seen.cancel()

    signals = ("on_subscribe", "on_next", "on_error", "on_complete")
    await trial.each(*(inside(kind, signal) for kind in trial.kinds for signal in signals))


@law("3.14", "closing_publisher", strength=Strength.MAY)
async def spec314_cancel_shuts_the_publisher_down(trial: Trial) -> None:
    """When its only subscriber cancels, the publisher gives back what it holds."""
    closed: list[bool] = []
    n = min(5, trial.subject.max_elements)
    publisher = await trial.make("closing_publisher", n, lambda: closed.append(True))
    seen = await trial.watch(publisher, first=1)
    await seen.reached(1, "1.1", "1 was requested and did not come")
    seen.cancel()
    await trial.quiet()
    seen.demand(bool(closed), "3.14", "nothing was given back after cancel()")
