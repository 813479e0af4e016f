"""Laws about the candidate's factories: without these the other laws prove nothing."""

import sys
from typing import Final

from ..law import SETUP, law
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED

MANY: Final = 1_000
"""A larger max_elements is not verified."""


@law("publisher", elements=1, completes=True)
async def setup_makes_a_stream_of_one(context: LawContext) -> None:
    """publisher(1) sends one element and completes."""
    await _exactly(context, 1)


@law("publisher", elements=3, completes=True)
async def setup_makes_a_stream_of_three(context: LawContext) -> None:
    """publisher(3) sends three elements and completes."""
    await _exactly(context, 3)


async def _exactly(context: LawContext, n: int) -> None:
    recorder = await context.watch(n)
    for count in range(1, n + 1):
        recorder.request(1)
        await recorder.wait_for_elements(count, SETUP)
    if not recorder.is_terminated:
        # Completion may follow one more request.
        recorder.request(1)
    what = f"publisher({n}) sent {n} elements and did not complete"
    await recorder.wait_for_elements_or_end(n + 1, what)
    recorder.require(recorder.received == n, f"publisher({n}) sent more than {n} elements")
    recorder.require_completed(f"publisher({n}) failed")


@law("publisher")
async def setup_can_make_max_elements(context: LawContext) -> None:
    """max_elements is a length that publisher(n) can make."""
    limit = context.candidate.max_elements
    if limit > MANY:
        return
    recorder = await context.watch(limit, initial=UNBOUNDED)
    await recorder.wait_for_elements(limit, SETUP)


@law("publisher")
async def setup_max_depth_fits_the_stack(context: LawContext) -> None:
    """max_depth is at least 1 and fits Python's recursion limit."""
    depth, limit = context.candidate.max_depth, sys.getrecursionlimit()
    context.require(depth < limit, f"max_depth is {depth}, and Python's recursion limit is {limit}")
