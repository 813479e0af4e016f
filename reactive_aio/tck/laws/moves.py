"""What the scenarios of several laws do: moves of a subscriber, and what they wait for."""

from collections.abc import Callable
from typing import Any, cast

from ..scenario.recorder import AsyncRecorder, OnNext, Recorder
from ..scenario.trial import Trial

__all__ = ("cancelling", "hooked", "one_more", "rest", "stops")


def one_more(recorder: Recorder, _element: object) -> None:
    """Request one more inside on_next."""
    recorder.request(1)


def cancelling(at: int) -> OnNext:
    """Cancel inside the on_next of element number *at*."""

    def then(recorder: Recorder, _element: object) -> None:
        if recorder.received == at:
            recorder.cancel()

    return then


def hooked(
    kind: type[Recorder], signal: str, action: Callable[[Recorder], object]
) -> type[Recorder]:
    """A kind of recorder that does something at the end of each *signal*."""
    method: Any = getattr(kind, signal)

    def plain(self: Recorder, *args: object) -> None:
        method(self, *args)
        action(self)

    async def asynchronous(self: Recorder, *args: object) -> None:
        await method(self, *args)
        action(self)

    chosen = asynchronous if issubclass(kind, AsyncRecorder) else plain
    made: Any = type(f"{kind.__name__}, {signal}", (kind,), {signal: chosen})
    return cast("type[Recorder]", made)


async def rest(trial: Trial, seen: Recorder, asked: int) -> Recorder:
    """Wait until all *asked* elements have come and nothing more is under way."""
    await seen.took(asked)
    await trial.quiet()
    return seen


async def stops(trial: Trial, seen: Recorder, rule: str, left: int = 0) -> None:
    """Signals under way may still come for a while after cancel (2.8); then none do.

    *left* were there to come when it was called, if that is known.
    """
    await trial.quiet()
    late, all_came = seen.late, seen.late >= left > 0
    seen.demand(not all_came, rule, f"all {left} elements that were left came after cancel()")
    await trial.quiet()
    more = seen.late - late
    seen.demand(not more, rule, f"signals go on after cancel(): {late} at first, then {more} more")
