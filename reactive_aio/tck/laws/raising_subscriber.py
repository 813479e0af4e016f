"""Laws about a subscriber that raises in a signal (2.13): it counts as cancelled."""

from functools import partial

from ...testing.safe_repr import safe_repr
from ..law import law
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED, Recorder
from .steps import with_hook


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
    async def cancelled(signal: str, kind: type[Recorder]) -> None:
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

    kinds = context.recorder_types
    await context.gather(*(cancelled(signal, kind) for kind in kinds for signal in signals))


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
