"""Laws about time: request and cancel return quickly and do not block the loop (3.4, 3.5).

Durations are measured by a heartbeat. A slow attempt is repeated with a new publisher: the law is
broken if every attempt is slow.
"""

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Final

from ..law import Scenario, law
from ..rules import Strength
from ..scenario.heartbeat import Heartbeat
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED, Recorder

ATTEMPTS: Final = 3
TURNS: Final = 6
"""Turns of the loop that an endless stream is watched for."""
Measured = tuple[Recorder, float, str]
"""The recorder, the seconds, and what took them."""
Measurement = Callable[[LawContext, Heartbeat], Awaitable[Measured]]


def _requiring_quick(measure: Measurement) -> Scenario:
    """A scenario that fails if each attempt to measure takes too long."""

    @wraps(measure)
    async def scenario(context: LawContext) -> None:
        with Heartbeat() as heartbeat:
            for attempt in range(ATTEMPTS):
                recorder, took, what = await measure(context, heartbeat)
                if took <= context.timeouts.max_block:
                    return
                if attempt == ATTEMPTS - 1:
                    recorder.require(False, f"{what} for {took:.1f} s")

    return scenario


@law("publisher", elements=5, strength=Strength.SHOULD)
@_requiring_quick
async def spec304_request_returns_quickly(context: LawContext, heartbeat: Heartbeat) -> Measured:
    """request() does not keep its caller waiting.

    Requests before the first element, between elements, and after the end.
    """
    recorder = await context.watch(5)
    took = 0.0
    for total in (1, 2, 4, 5, 6):
        took = max(took, heartbeat.during(partial(recorder.request, total - recorder.requested)))
        what = f"{total} were requested and did not all come"
        await recorder.wait_for_elements_or_end(min(total, 5), what, "1.1")
        if took > context.timeouts.max_block:
            break
    return recorder, took, "request() kept its caller waiting"


@law("infinite_publisher", strength=Strength.SHOULD)
@_requiring_quick
async def spec304_yields_to_the_loop(context: LawContext, heartbeat: Heartbeat) -> Measured:
    """An endless stream with unbounded demand lets the loop run other callbacks."""
    began = heartbeat.now()

    def cancel_late(recorder: Recorder, _element: object) -> None:
        # A publisher that sends forever inside request would not return to the law, either.
        if heartbeat.since(began) > 2 * context.timeouts.max_block:
            recorder.cancel()

    recorder = await context.watch("infinite_publisher", on_element=cancel_late)
    began = heartbeat.now()
    took = heartbeat.during(partial(recorder.request, UNBOUNDED))
    for _ in range(TURNS):
        moment = heartbeat.now()
        await context.turn()
        took = max(took, heartbeat.since(moment))
        if took > context.timeouts.max_block:
            break
    recorder.cancel()
    return recorder, took, "the loop had no turn"


@law("publisher", elements=5)
@_requiring_quick
async def spec305_cancel_returns_quickly(context: LawContext, heartbeat: Heartbeat) -> Measured:
    """cancel() does not keep its caller waiting, nor does it block the loop afterwards.

    Cancels before any request, between elements with demand left, and repeatedly.
    """
    longest, slowest = 0.0, None
    for initial in (0, 1, 3):
        recorder = await context.watch(5, initial=initial)
        await recorder.wait_for_elements(min(initial, 1))
        took = heartbeat.during(recorder.cancel)
        took = max(took, heartbeat.during(recorder.cancel))
        for _ in range(3):
            moment = heartbeat.now()
            await context.turn()
            took = max(took, heartbeat.since(moment))
        if slowest is None or took > longest:
            longest, slowest = took, recorder
    assert slowest is not None
    return slowest, longest, "cancel() kept its caller, or the loop, waiting"
