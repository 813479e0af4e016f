"""Laws about depth: request and on_next do not call each other without a limit (3.3)."""

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from ...spec import Publisher
from ..law import law
from ..scenario.recorder import Recorder
from ..scenario.trial import Trial

__all__ = ()

LENGTH: Final = 40
PART: Final = 10


def _stack() -> int:
    """How many calls are under way; of a coroutine, those that await each other are."""
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def _measuring(depths: list[int]) -> Callable[[Recorder, object], None]:
    """Requests one by one inside on_next, and cancels in the end: the stream may be endless."""

    def then(seen: Recorder, _element: object) -> None:
        depths.append(_stack())
        if seen.received < LENGTH:
            seen.request(1)
        else:
            seen.cancel()

    return then


async def _does_not_recurse(
    trial: Trial, publisher: Publisher[object], kind: type[Recorder]
) -> None:
    depths: list[int] = []
    seen = await trial.watch(publisher, kind, 1, _measuring(depths))
    await seen.took(LENGTH, "3.3")
    most, deepest = trial.subject.max_depth, seen.deepest
    seen.demand(deepest <= most, "3.3", f"on_next was called inside on_next, {deepest} deep")
    # The shallowest of each part count, and each must be deeper than the one before: a signal may
    # take another way now and then, or all of them from somewhere on, which is no growth.
    floors = [min(depths[at : at + PART]) for at in range(0, LENGTH, PART)]
    grown = min(after - before for before, after in pairwise(floors))
    what = f"the stack grows with every request inside on_next: by {grown} calls in {PART} elements"
    seen.demand(grown < PART, "3.3", what)


@law("3.3", "publisher", elements=LENGTH, jvm=("required_spec303_mustNotAllowUnboundedRecursion",))
async def spec303_does_not_recurse(trial: Trial) -> None:
    """However many elements are requested one by one inside on_next, none arrives inside it."""
    for kind in trial.kinds:
        await _does_not_recurse(trial, await trial.publisher(LENGTH), kind)


@law("3.3", "infinite_publisher")
async def spec303_infinite_does_not_recurse(trial: Trial) -> None:
    """The same of an endless stream."""
    for kind in trial.kinds:
        await _does_not_recurse(trial, await trial.make("infinite_publisher"), kind)
