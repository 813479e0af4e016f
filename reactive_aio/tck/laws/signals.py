"""Laws about the order of signals, and terminal signals."""

import time
from typing import Final

from ..law import NotJudged, law
from ..rules import Strength
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED, AsyncRecorder, Recorder
from .steps import fast_thread_switches, request_one_more, require_stop

SLOW: Final = (1, 2, 3, 7)
"""The elements whose on_next takes long enough for another thread to interfere."""


@law("publisher", elements=3, completes=True)
async def spec102_completes_with_less_than_requested(context: LawContext) -> None:
    """Three elements exist and ten are requested: three elements come, then completion."""
    for kind in context.recorder_types:
        recorder = await context.watch(3, kind, 10)
        await recorder.wait_for_elements(3, "1.2")
        await recorder.wait_for_end("1.2")
        recorder.require_completed("it failed instead of completing")


# -- one at a time -----------------------------------------------------------------------------


def _request_slowly(recorder: Recorder, _element: object) -> None:
    recorder.request(1)
    until = time.perf_counter() + (0.002 if recorder.received in SLOW else 0.0)
    while time.perf_counter() < until:
        pass  # a publisher with several threads would send the next element now


@law("publisher", elements=10)
async def spec103_signals_one_at_a_time(context: LawContext) -> None:
    """Two threads never send signals at the same time, for several patterns of demand."""
    with fast_thread_switches():
        for initial in (1, 5, UNBOUNDED):
            recorder = await context.watch(10, initial=initial, on_element=_request_slowly)
            await recorder.wait_for_elements(10, "1.3")
            if context.candidate.completes:
                await recorder.wait_for_end("1.3")


@law("publisher", elements=8)
async def spec103_does_not_overlap_awaited_signals(context: LawContext) -> None:
    """An awaited signal ends before the next one begins, including the terminal signal."""
    if not context.candidate.awaits_signals:
        raise NotJudged("the candidate does not await signals")
    for initial, on_element in ((UNBOUNDED, None), (2, request_one_more)):
        recorder = await context.watch(8, AsyncRecorder, initial, on_element)
        await recorder.wait_for_elements(8, "1.3")
        if context.candidate.completes:
            await recorder.wait_for_end("1.3")
    recorder = await context.watch(8, AsyncRecorder)
    for _ in range(8):
        # While a signal is being awaited.
        recorder.request(1)
        await context.turn()
    await recorder.wait_for_elements(8, "1.3")


@law("failing_publisher")
async def spec103_does_not_overlap_its_failure(context: LawContext) -> None:
    """on_error begins after the signal before it has ended."""
    for kind in context.recorder_types:
        recorder = await context.watch("failing_publisher", kind, UNBOUNDED)
        await recorder.wait_for_end("1.4")
        await context.settle()


# -- the end -----------------------------------------------------------------------------------


@law("failing_publisher")
async def spec104_signals_its_failure(context: LawContext) -> None:
    """A publisher that fails sends on_error once, with an exception."""
    for kind in context.recorder_types:
        recorder = await context.watch("failing_publisher", kind)
        if not recorder.is_terminated:
            recorder.request(UNBOUNDED)
        await recorder.wait_for_end("1.4")
        recorder.require(recorder.error is not None, "it completed instead of failing")


@law("publisher", elements=3, completes=True)
async def spec105_completes_a_finite_stream(context: LawContext) -> None:
    """on_complete follows the last element, at the latest when one more element is requested."""

    async def completes(n: int, kind: type[Recorder]) -> None:
        recorder = await context.watch(n, kind, n)
        await recorder.wait_for_elements(n)
        await context.settle()
        if not recorder.is_terminated:
            recorder.request(1)
        await recorder.wait_for_end("1.5")
        recorder.require_completed(f"a stream of {n} failed")
        came = recorder.received
        recorder.require(came == n, f"a stream of {n} completed after {came}")

    await context.gather(*(completes(n, kind) for n in (1, 3) for kind in context.recorder_types))


@law("publisher", completes=True)
async def spec105_completes_an_empty_stream(context: LawContext) -> None:
    """publisher(0) completes without an element, at the latest when one is requested."""
    for kind in context.recorder_types:
        recorder = await context.watch(0, kind)
        if not recorder.is_terminated:
            recorder.request(1)
        await recorder.wait_for_end("1.5")
        recorder.require_completed("an empty stream failed")
        came = recorder.received
        recorder.require(not came, f"{came} elements came of an empty stream")


@law("publisher", elements=1, completes=True)
async def spec106_counts_as_cancelled_after_its_end(context: LawContext) -> None:
    """After on_complete calls of request, valid or not, and cancel have no effect."""

    async def ends(kind: type[Recorder], n: int) -> None:
        recorder = await context.watch(n, kind, n + 1)
        await recorder.wait_for_end("1.5")
        await _require_no_effect(context, recorder)

    await context.gather_each(ends, (0, 1))


@law("failing_publisher")
async def spec106_counts_as_cancelled_after_its_failure(context: LawContext) -> None:
    """After on_error calls of request, valid or not, and cancel have no effect."""

    async def fails(kind: type[Recorder]) -> None:
        recorder = await context.watch("failing_publisher", kind, UNBOUNDED)
        await recorder.wait_for_end("1.4")
        await _require_no_effect(context, recorder)

    await context.gather_each(fails)


async def _require_no_effect(context: LawContext, recorder: Recorder) -> None:
    before = recorder.signal_count
    for n in (1, 0, -1, UNBOUNDED):
        recorder.request(n)
    recorder.cancel()
    recorder.request(0)
    recorder.cancel()
    await context.settle()
    recorder.require(recorder.signal_count == before, "signals came after the terminal signal")


@law("publisher", elements=2, completes=True)
async def spec107_is_silent_after_its_end(context: LawContext) -> None:
    """Neither a second terminal signal nor an element follows on_complete on further requests."""

    async def ends(n: int) -> None:
        recorder = await context.watch(n, initial=10)
        await recorder.wait_for_end()
        recorder.request(10)
        await require_stop(context, recorder)

    await context.gather(*map(ends, (0, 1, 2)))


@law("failing_publisher")
async def spec107_is_silent_after_its_failure(context: LawContext) -> None:
    """Neither a second terminal signal nor an element follows on_error on further requests."""
    recorder = await context.watch("failing_publisher", initial=UNBOUNDED)
    await recorder.wait_for_end("1.4")
    recorder.request(10)
    await context.settle()
    recorder.cancel()
    await context.settle()


# -- signals inside request ----------------------------------------------------------------------


@law("publisher", elements=3, strength=Strength.MAY)
async def spec310_sends_inside_request(context: LawContext) -> None:
    """request may send elements before it returns, at most those requested."""
    recorder = await context.watch(3)
    recorder.request(2)
    came = recorder.received
    await recorder.wait_for_elements(2)
    recorder.require(came == 2, "the elements come later")


@law("publisher", elements=1, completes=True, strength=Strength.MAY)
async def spec311_ends_inside_request(context: LawContext) -> None:
    """request may send the terminal signal before it returns."""
    recorder = await context.watch(1)
    recorder.request(2)
    ended = recorder.is_terminated
    await recorder.wait_for_end()
    recorder.require(ended, "the terminal signal comes later")
