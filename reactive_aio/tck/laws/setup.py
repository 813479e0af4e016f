"""Laws about what a person gives to be judged: without these the others say nothing."""

import sys
from typing import Final

from ...testing.safe_repr import safe_repr
from ..law import SETUP, law
from ..scenario.recorder import UNBOUNDED
from ..scenario.trial import Trial

__all__ = ()

MANY: Final = 1_000
"""More elements than this are not made only to see whether they can be."""


@law(
    SETUP,
    "publisher",
    elements=1,
    completes=True,
    jvm=("required_createPublisher1MustProduceAStreamOfExactly1Element",),
)
async def setup_makes_a_stream_of_one(trial: Trial) -> None:
    """publisher(1) sends one element and completes."""
    await _exactly(trial, 1)


@law(
    SETUP,
    "publisher",
    elements=3,
    completes=True,
    jvm=("required_createPublisher3MustProduceAStreamOfExactly3Elements",),
)
async def setup_makes_a_stream_of_three(trial: Trial) -> None:
    """publisher(3) sends three elements and completes."""
    await _exactly(trial, 3)


async def _exactly(trial: Trial, n: int) -> None:
    seen = await trial.watch(await trial.publisher(n))
    for asked in range(1, n + 1):
        seen.request(1)
        await seen.took(asked, SETUP)
    if not seen.ended:
        # Completion may wait for one request more.
        seen.request(1)
    await seen.reached(n + 1, SETUP, f"publisher({n}) sent {n} elements and did not complete")
    seen.demand(seen.received == n, SETUP, f"publisher({n}) sent more than {n} elements")
    seen.demand(seen.completed, SETUP, f"publisher({n}) failed: {safe_repr(seen.error)}")


@law(SETUP, "publisher", jvm=("required_validate_maxElementsFromPublisher",))
async def setup_can_make_max_elements(trial: Trial) -> None:
    """max_elements is a length that publisher(n) can make."""
    most = trial.subject.max_elements
    trial.demand(most >= 0, SETUP, f"max_elements is {most}")
    if most > MANY:
        return
    seen = await trial.watch(await trial.publisher(most), first=UNBOUNDED)
    await seen.took(most, SETUP)


@law(SETUP, "publisher", jvm=("required_validate_boundedDepthOfOnNextAndRequestRecursion",))
async def setup_has_room_for_max_depth(trial: Trial) -> None:
    """max_depth is at least 1, and a depth that Python's stack has room for."""
    depth, room = trial.subject.max_depth, sys.getrecursionlimit()
    trial.demand(depth >= 1, SETUP, f"max_depth is {depth}")
    what = f"max_depth is {depth}, and Python's stack has room for {room} calls"
    trial.demand(depth < room, SETUP, what)
