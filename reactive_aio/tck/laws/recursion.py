"""Laws about recursion: request and on_next do not call each other without bound (3.3)."""

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from ..law import law
from ..scenario.law_context import LawContext
from ..scenario.recorder import Recorder

LENGTH: Final = 40
PART: Final = 10


def _stack() -> int:
    """The depth of the stack, including coroutines that await each other."""
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def _measuring(depths: list[int]) -> Callable[[Recorder, object], None]:
    """Request one by one inside on_next, and cancel in the end: the stream may be endless."""

    def on_element(recorder: Recorder, _element: object) -> None:
        depths.append(_stack())
        if recorder.received < LENGTH:
            recorder.request(1)
        else:
            recorder.cancel()

    return on_element


async def _does_not_recurse(context: LawContext, source: int | str, kind: type[Recorder]) -> None:
    depths: list[int] = []
    recorder = await context.watch(source, kind, 1, _measuring(depths))
    await recorder.wait_for_elements(LENGTH, "3.3")
    limit, deepest = context.candidate.max_depth, recorder.deepest
    recorder.require(deepest <= limit, f"on_next was called inside on_next, {deepest} deep")
    # Compare the minimum depth of each part, and require growth from each part to the next: some
    # signals may take a longer path, or all of them from some element on, without recursion.
    floors = [min(depths[at : at + PART]) for at in range(0, LENGTH, PART)]
    grown = min(after - before for before, after in pairwise(floors))
    what = f"the stack grows with every request inside on_next: by {grown} calls in {PART} elements"
    recorder.require(grown < PART, what)


@law("publisher", elements=LENGTH)
async def spec303_does_not_recurse(context: LawContext) -> None:
    """Elements that are requested one by one inside on_next do not arrive inside it."""
    for kind in context.recorder_types:
        await _does_not_recurse(context, LENGTH, kind)


@law("infinite_publisher")
async def spec303_infinite_does_not_recurse(context: LawContext) -> None:
    """The same for an endless stream."""
    for kind in context.recorder_types:
        await _does_not_recurse(context, "infinite_publisher", kind)
