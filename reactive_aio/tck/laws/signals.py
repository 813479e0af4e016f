"""Laws about signals: their order, their end, and subscribers that raise in one."""

import time
from functools import partial
from typing import Final

from ...testing.safe_repr import safe_repr
from ..law import NotJudged, law
from ..rules import Strength
from ..scenario.law_context import LawContext, fast_thread_switches
from ..scenario.recorder import UNBOUNDED, AsyncRecorder, Recorder, request_one_more, with_hook

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
    if recorder.received in SLOW:
        # A publisher with several threads would send the next element now. A loop that keeps this
        # thread busy would also keep the core that a thread of such a publisher needs.
        time.sleep(0.001)


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
        await recorder.require_stop()

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


# -- a subscriber that raises counts as cancelled (2.13) -----------------------------------------


class _SubscriberError(Exception):
    """The error that the subscriber raises."""


async def _watch_raising(
    context: LawContext, factory: str, signal: str, kind: type[Recorder]
) -> tuple[Recorder, BaseException]:
    """A recorder that has requested everything and raises in *signal*, and what it raises."""
    error = _SubscriberError(f"raised in {signal}")

    def fail(_recorder: Recorder) -> None:
        raise error

    source = 3 if factory == "publisher" else factory
    return await context.watch(source, with_hook(kind, signal, fail), UNBOUNDED), error


def _signals(context: LawContext) -> list[str]:
    return ["on_subscribe", "on_next"] + ["on_complete"] * context.candidate.completes


async def _require_cancelled(context: LawContext, factory: str, *signals: str) -> None:
    async def cancelled(kind: type[Recorder], signal: str) -> None:
        recorder, _ = await _watch_raising(context, factory, signal, kind)
        if signal in ("on_complete", "on_error"):
            await recorder.wait_for_end("2.13")
        elif signal == "on_next":
            await recorder.wait_until(lambda: recorder.signal_count, "no element came")
        await context.settle()
        recorder.request(3)
        await context.settle()
        expected = {"on_subscribe": 0, "on_next": 1}.get(signal, recorder.signal_count)
        late = recorder.signal_count - expected
        what = f"{late} signals came after the subscriber had raised in {signal}"
        recorder.require(late <= 0, what)

    await context.gather_each(cancelled, signals)


@law("publisher", elements=3)
async def spec213_cancels_a_subscriber_that_raises(context: LawContext) -> None:
    """A subscriber that raises in on_subscribe, on_next or on_complete gets no further signal."""
    await _require_cancelled(context, "publisher", *_signals(context))


@law("failing_publisher")
async def spec213_survives_a_subscriber_that_raises_in_on_error(context: LawContext) -> None:
    """A subscriber that raises in on_error gets no further signal."""
    await _require_cancelled(context, "failing_publisher", "on_error")


# -- the error is reported -----------------------------------------------------------------------


async def _require_reports(context: LawContext, factory: str, *signals: str) -> None:
    errors: list[BaseException] = []

    def times(error: BaseException) -> int:
        return sum(event.get("exception") is error for event in context.reported_errors)

    for kind in context.recorder_types:
        for signal in signals:
            recorder, error = await _watch_raising(context, factory, signal, kind)
            errors.append(error)
            not_called = "the loop's exception handler was not called"
            what = f"the subscriber raised in {signal}, and {not_called}"
            await recorder.wait_until(partial(times, error), what)
            await context.settle()
            what = f"raised once in {signal}, reported {times(error)} times"
            recorder.require(times(error) == 1, what)
    others = [each for each in context.reported_errors if each.get("exception") not in errors]
    what = f"the loop's exception handler received others: {safe_repr(others)}"
    context.require(not others, what)


@law("publisher", elements=3)
async def library8_reports_a_subscriber_that_raises(context: LawContext) -> None:
    """The loop's exception handler receives an error that a subscriber raises, once."""
    await _require_reports(context, "publisher", *_signals(context))


@law("failing_publisher")
async def library8_reports_a_subscriber_that_raises_in_on_error(context: LawContext) -> None:
    """The same for an error raised in on_error."""
    await _require_reports(context, "failing_publisher", "on_error")
