"""Laws about a subscriber that raises in a signal (2.13): it counts as cancelled."""

from ...testing.safe_repr import safe_repr
from ..law import law
from ..rules import Strength
from ..scenario.recorder import UNBOUNDED, Recorder
from ..scenario.trial import Trial
from .moves import hooked

__all__ = ()


class _Wrong(Exception):
    """What the subscriber raises."""


def _raising(kind: type[Recorder], signal: str) -> tuple[type[Recorder], _Wrong]:
    error = _Wrong(f"raised in {signal}")

    def throw(_seen: Recorder) -> None:
        raise error

    return hooked(kind, signal, throw), error


async def _raises(trial: Trial, part: str, signal: str, kind: type[Recorder]) -> None:
    raising, _ = _raising(kind, signal)
    publisher = await trial.make(part, *((3,) if part == "publisher" else ()))
    seen = await trial.watch(publisher, raising, UNBOUNDED)
    if signal in ("on_complete", "on_error"):
        await seen.end("2.13")
    elif signal == "on_next":
        await trial.until(lambda: seen.count, "2.13", "no element came", seen.journal)
    await trial.quiet()
    seen.request(3)
    await trial.quiet()
    expected = {"on_subscribe": 0, "on_next": 1}.get(signal, seen.count)
    late = seen.count - expected
    what = f"{late} signals came after the subscriber had raised in {signal}"
    seen.demand(late <= 0, "2.13", what)


@law("2.13", "publisher", elements=3)
async def spec213_cancels_a_subscriber_that_raises(trial: Trial) -> None:
    """Who raises in on_subscribe, on_next or on_complete gets no further signal."""
    signals = ["on_subscribe", "on_next"] + ["on_complete"] * trial.subject.completes
    await trial.each(
        *(_raises(trial, "publisher", signal, kind) for kind in trial.kinds for signal in signals)
    )


@law("2.13", "failing_publisher")
async def spec213_survives_a_subscriber_that_raises_in_on_error(trial: Trial) -> None:
    """Who raises in on_error gets no further signal, and nobody else is told through the flow."""
    await trial.each(
        *(_raises(trial, "failing_publisher", "on_error", kind) for kind in trial.kinds)
    )


# -- somebody is told --------------------------------------------------------------------------


async def _told(trial: Trial, part: str, signal: str, kind: type[Recorder]) -> _Wrong:
    raising, error = _raising(kind, signal)
    publisher = await trial.make(part, *((3,) if part == "publisher" else ()))
    seen = await trial.watch(publisher, raising, UNBOUNDED)

    def times() -> int:
        return sum(context.get("exception") is error for context in trial.heard)

    what = f"the subscriber raised in {signal}, and the loop's exception handler was not told"
    await trial.until(times, "L.8", what, seen.journal)
    await trial.quiet()
    seen.demand(times() == 1, "L.8", f"raised once in {signal}, told {times()} times")
    return error


async def _tells(trial: Trial, part: str, *signals: str) -> None:
    told = [await _told(trial, part, signal, kind) for kind in trial.kinds for signal in signals]
    others = [each for each in trial.heard if each.get("exception") not in told]
    trial.demand(
        not others, "L.8", f"the loop's exception handler was told of others: {safe_repr(others)}"
    )


@law("L.8", "publisher", elements=3, strength=Strength.SHOULD)
async def house8_tells_of_a_subscriber_that_raises(trial: Trial) -> None:
    """The loop's exception handler is told, once, of what a subscriber raises in a signal."""
    await _tells(
        trial,
        "publisher",
        *["on_subscribe", "on_next"] + ["on_complete"] * trial.subject.completes,
    )


@law("L.8", "failing_publisher", strength=Strength.SHOULD)
async def house8_tells_of_a_subscriber_that_raises_in_on_error(trial: Trial) -> None:
    """The same in on_error."""
    await _tells(trial, "failing_publisher", "on_error")
