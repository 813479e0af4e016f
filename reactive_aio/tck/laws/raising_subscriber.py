"""Laws about a subscriber that raises in a signal (2.13): it counts as cancelled."""

from ...testing.safe_repr import safe_repr
from ..law import law
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED, Recorder
from .steps import with_hook


class _SubscriberError(Exception):
    """The error that the subscriber raises."""


def _raising(kind: type[Recorder], signal: str) -> tuple[type[Recorder], _SubscriberError]:
    error = _SubscriberError(f"raised in {signal}")

    def fail(_recorder: Recorder) -> None:
        raise error

    return with_hook(kind, signal, fail), error


async def _require_cancelled(
    context: LawContext, factory: str, signal: str, kind: type[Recorder]
) -> None:
    raising, _ = _raising(kind, signal)
    publisher = await context.create(factory, *((3,) if factory == "publisher" else ()))
    recorder = await context.watch(publisher, raising, UNBOUNDED)
    if signal in ("on_complete", "on_error"):
        await recorder.wait_for_end("2.13")
    elif signal == "on_next":
        await recorder.wait_until(lambda: recorder.signal_count, "no element came")
    await context.settle()
    recorder.request(3)
    await context.settle()
    expected = {"on_subscribe": 0, "on_next": 1}.get(signal, recorder.signal_count)
    late = recorder.signal_count - expected
    recorder.require(late <= 0, f"{late} signals came after the subscriber had raised in {signal}")


@law("publisher", elements=3)
async def spec213_cancels_a_subscriber_that_raises(context: LawContext) -> None:
    """A subscriber that raises in on_subscribe, on_next or on_complete gets no further signal."""
    signals = ["on_subscribe", "on_next"] + ["on_complete"] * context.candidate.completes
    await context.gather(
        *(
            _require_cancelled(context, "publisher", signal, kind)
            for kind in context.recorder_types
            for signal in signals
        )
    )


@law("failing_publisher")
async def spec213_survives_a_subscriber_that_raises_in_on_error(context: LawContext) -> None:
    """A subscriber that raises in on_error gets no further signal."""
    await context.gather(
        *(
            _require_cancelled(context, "failing_publisher", "on_error", kind)
            for kind in context.recorder_types
        )
    )


# -- the error is reported -----------------------------------------------------------------------


async def _require_reported(
    context: LawContext, factory: str, signal: str, kind: type[Recorder]
) -> _SubscriberError:
    raising, error = _raising(kind, signal)
    publisher = await context.create(factory, *((3,) if factory == "publisher" else ()))
    recorder = await context.watch(publisher, raising, UNBOUNDED)

    def times() -> int:
        return sum(event.get("exception") is error for event in context.reported_errors)

    what = f"the subscriber raised in {signal}, and the loop's exception handler was not called"
    await recorder.wait_until(times, what)
    await context.settle()
    recorder.require(times() == 1, f"raised once in {signal}, reported {times()} times")
    return error


async def _require_reports(context: LawContext, factory: str, *signals: str) -> None:
    errors = [
        await _require_reported(context, factory, signal, kind)
        for kind in context.recorder_types
        for signal in signals
    ]
    others = [each for each in context.reported_errors if each.get("exception") not in errors]
    what = f"the loop's exception handler received others: {safe_repr(others)}"
    context.require(not others, what)


@law("publisher", elements=3)
async def library8_reports_a_subscriber_that_raises(context: LawContext) -> None:
    """The loop's exception handler receives an error that a subscriber raises, once."""
    await _require_reports(
        context,
        "publisher",
        *["on_subscribe", "on_next"] + ["on_complete"] * context.candidate.completes,
    )


@law("failing_publisher")
async def library8_reports_a_subscriber_that_raises_in_on_error(context: LawContext) -> None:
    """The same for an error raised in on_error."""
    await _require_reports(context, "failing_publisher", "on_error")
