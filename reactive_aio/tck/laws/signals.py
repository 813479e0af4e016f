"""Laws about the order of signals, and their end."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ...testing.safe_repr import safe_repr
from ..law import NotJudged, law
from ..rules import Strength
from ..scenario.recorder import UNBOUNDED, AsyncRecorder, Recorder
from ..scenario.trial import Trial
from .moves import one_more, stops

__all__ = ()

FEW: Final = (1, 2, 3, 7)
"""The elements that take their time, so that another thread could come in between."""


@law(
    "1.2",
    "publisher",
    elements=3,
    completes=True,
    jvm=("required_spec102_maySignalLessThanRequestedAndTerminateSubscription",),
)
async def spec102_completes_with_less_than_requested(trial: Trial) -> None:
    """Three elements exist and ten are requested: three come, then completion."""
    for kind in trial.kinds:
        seen = await trial.watch(await trial.publisher(3), kind, 10)
        await seen.took(3, "1.2")
        await seen.end("1.2")
        seen.demand(
            seen.completed, "1.2", f"it failed instead of completing: {safe_repr(seen.error)}"
        )


# -- one at a time -----------------------------------------------------------------------------


def _slowly_one_more(recorder: Recorder, _element: object) -> None:
    recorder.request(1)
    until = time.perf_counter() + (0.002 if recorder.received in FEW else 0.0)
    while time.perf_counter() < until:
        pass  # a publisher of several threads sends the next one now


@contextmanager
def _threads_in_turn() -> Generator[None]:
    """The interpreter turns to the next thread much sooner than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@law(
    "1.3",
    "publisher",
    elements=10,
    jvm=("stochastic_spec103_mustSignalOnMethodsSequentially",),
)
async def spec103_signals_one_at_a_time(trial: Trial) -> None:
    """No two threads are in signals at the same time, however demand comes."""
    with _threads_in_turn():
        for first in (1, 5, UNBOUNDED):
            seen = await trial.watch(await trial.publisher(10), first=first, then=_slowly_one_more)
            await seen.took(10, "1.3")
            if trial.subject.completes:
                await seen.end("1.3")


@law("1.3", "publisher", elements=8)
async def spec103_does_not_overlap_awaited_signals(trial: Trial) -> None:
    """A signal that is awaited has ended before the next begins, the terminal one included."""
    if not trial.subject.awaits_signals:
        raise NotJudged("the subject awaits no signals")
    for first, then in ((UNBOUNDED, None), (2, one_more)):
        seen = await trial.watch(await trial.publisher(8), AsyncRecorder, first, then)
        await seen.took(8, "1.3")
        if trial.subject.completes:
            await seen.end("1.3")
    seen = await trial.watch(await trial.publisher(8), AsyncRecorder)
    for _ in range(8):
        # Requested in the middle of a signal.
        seen.request(1)
        await trial.turn()
    await seen.took(8, "1.3")


@law("1.3", "failing_publisher")
async def spec103_does_not_overlap_its_failure(trial: Trial) -> None:
    """on_error too begins when the signal before it has ended."""
    for kind in trial.kinds:
        seen = await trial.watch(await trial.make("failing_publisher"), kind, UNBOUNDED)
        await seen.end("1.4")
        await trial.quiet()


# -- the end -----------------------------------------------------------------------------------


@law("1.4", "failing_publisher", jvm=("optional_spec104_mustSignalOnErrorWhenFails",))
async def spec104_signals_its_failure(trial: Trial) -> None:
    """A publisher that fails says so by on_error, once, with an exception."""
    for kind in trial.kinds:
        seen = await trial.watch(await trial.make("failing_publisher"), kind)
        if not seen.ended:
            seen.request(UNBOUNDED)
        await seen.end("1.4")
        seen.demand(seen.error is not None, "1.4", "it completed instead of failing")


@law(
    "1.5",
    "publisher",
    elements=3,
    completes=True,
    jvm=("required_spec105_mustSignalOnCompleteWhenFiniteStreamTerminates",),
)
async def spec105_completes_a_finite_stream(trial: Trial) -> None:
    """on_complete follows the last element, at the latest when one more is requested."""

    async def completes(n: int, kind: type[Recorder]) -> None:
        seen = await trial.watch(await trial.publisher(n), kind, n)
        await seen.took(n)
        await trial.quiet()
        if not seen.ended:
            seen.request(1)
        await seen.end("1.5")
        seen.demand(seen.completed, "1.5", f"a stream of {n} failed: {safe_repr(seen.error)}")
        came = seen.received
        seen.demand(came == n, "1.5", f"a stream of {n} completed after {came}")

    await trial.each(*(completes(n, kind) for n in (1, 3) for kind in trial.kinds))


@law(
    "1.5",
    "publisher",
    completes=True,
    jvm=("optional_spec105_emptyStreamMustTerminateBySignallingOnComplete",),
)
async def spec105_completes_an_empty_stream(trial: Trial) -> None:
    """publisher(0) completes without any element, at the latest when one is requested."""
    for kind in trial.kinds:
        seen = await trial.watch(await trial.publisher(0), kind)
        if not seen.ended:
            seen.request(1)
        await seen.end("1.5")
        seen.demand(seen.completed, "1.5", f"an empty stream failed: {safe_repr(seen.error)}")
        came = seen.received
        seen.demand(not came, "1.5", f"{came} elements came of an empty stream")


@law(
    "1.6",
    "publisher",
    elements=1,
    completes=True,
    jvm=(
        "untested_spec106_mustConsiderSubscriptionCancelledAfterOnErrorOrOnCompleteHasBeenCalled",
    ),
)
async def spec106_counts_as_cancelled_after_its_end(trial: Trial) -> None:
    """After on_complete the subscription takes requests, right or wrong, and cancel, silently."""

    async def ends(kind: type[Recorder], n: int) -> None:
        seen = await trial.watch(await trial.publisher(n), kind, n + 1)
        await seen.end("1.5")
        await _is_dead(trial, seen)

    await trial.each(*(ends(kind, n) for kind in trial.kinds for n in (0, 1)))


@law("1.6", "failing_publisher")
async def spec106_counts_as_cancelled_after_its_failure(trial: Trial) -> None:
    """After on_error the subscription takes requests, right or wrong, and cancel, silently."""

    async def fails(kind: type[Recorder]) -> None:
        seen = await trial.watch(await trial.make("failing_publisher"), kind, UNBOUNDED)
        await seen.end("1.4")
        await _is_dead(trial, seen)

    await trial.each(*map(fails, trial.kinds))


async def _is_dead(trial: Trial, seen: Recorder) -> None:
    before = seen.count
    for n in (1, 0, -1, UNBOUNDED):
        seen.request(n)
    seen.cancel()
    seen.request(0)
    seen.cancel()
    await trial.quiet()
    seen.demand(seen.count == before, "1.6", "signals came after the terminal signal")


@law(
    "1.7",
    "publisher",
    elements=2,
    completes=True,
    jvm=("required_spec107_mustNotEmitFurtherSignalsOnceOnCompleteHasBeenSignalled",),
)
async def spec107_is_silent_after_its_end(trial: Trial) -> None:
    """No second terminal signal and no element follow on_complete, whatever is requested."""

    async def ends(n: int) -> None:
        seen = await trial.watch(await trial.publisher(n), first=10)
        await seen.end()
        seen.request(10)
        await stops(trial, seen, "1.7")

    await trial.each(*map(ends, (0, 1, 2)))


@law(
    "1.7",
    "failing_publisher",
    jvm=("untested_spec107_mustNotEmitFurtherSignalsOnceOnErrorHasBeenSignalled",),
)
async def spec107_is_silent_after_its_failure(trial: Trial) -> None:
    """No second terminal signal and no element follow on_error, whatever is requested."""
    seen = await trial.watch(await trial.make("failing_publisher"), first=UNBOUNDED)
    await seen.end("1.4")
    seen.request(10)
    await trial.quiet()
    seen.cancel()
    await trial.quiet()


# -- requests that send before they return -----------------------------------------------------


@law("3.10", "publisher", elements=3, strength=Strength.MAY)
async def spec310_sends_inside_request(trial: Trial) -> None:
    """request may send elements before it returns, no more than were requested."""
    seen = await trial.watch(await trial.publisher(3))
    seen.request(2)
    came = seen.received
    await seen.took(2)
    seen.demand(came == 2, "3.10", "the elements come later")


@law("3.11", "publisher", elements=1, completes=True, strength=Strength.MAY)
async def spec311_ends_inside_request(trial: Trial) -> None:
    """request may send the terminal signal before it returns."""
    seen = await trial.watch(await trial.publisher(1))
    seen.request(2)
    ended = seen.ended
    await seen.end()
    seen.demand(ended, "3.11", "the terminal signal comes later")
