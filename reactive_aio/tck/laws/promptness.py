"""Laws about time: request and cancel return quickly, and the loop is never held up (3.4, 3.5).

Measured against a heartbeat. What is too long is tried again with a fresh publisher: only one that
holds up the loop each time breaks the law.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from ..law import law
from ..rules import Strength
from ..scenario.heartbeat import Heartbeat
from ..scenario.recorder import UNBOUNDED, Recorder
from ..scenario.trial import Trial

__all__ = ()

TRIES: Final = 3
Measured = Callable[[Trial, Heartbeat], Awaitable[tuple[Recorder, float, str]]]
"""Returns who was watched, how many seconds it took, and what took them."""


async def _is_quick(trial: Trial, rule: str, measured: Measured) -> None:
    with Heartbeat() as heart:
        for attempt in range(TRIES):
            seen, took, what = await measured(trial, heart)
            if took <= trial.terms.held_up:
                return
            if attempt == TRIES - 1:
                seen.demand(False, rule, f"{what} for {took:.1f} s")


async def _request(trial: Trial, heart: Heartbeat) -> tuple[Recorder, float, str]:
    """Requests before, in the middle, and after the end."""
    seen = await trial.watch(await trial.publisher(5))
    took = 0.0
    for asked in (1, 2, 4, 5, 6):
        took = max(took, heart.during(partial(seen.request, asked - seen.requested)))
        await seen.reached(min(asked, 5), "1.1", f"{asked} were requested and did not all come")
        if took > trial.terms.held_up:
            break
    return seen, took, "request() kept its caller waiting"


@law(
    "3.4",
    "publisher",
    elements=5,
    strength=Strength.SHOULD,
    jvm=("untested_spec304_requestShouldNotPerformHeavyComputations",),
)
async def spec304_request_returns_quickly(trial: Trial) -> None:
    """request() does not keep its caller waiting."""
    await _is_quick(trial, "3.4", _request)


async def _gap(trial: Trial, heart: Heartbeat) -> tuple[Recorder, float, str]:
    began = heart.now()

    def enough(seen: Recorder, _element: object) -> None:
        # One that sends for ever inside request would never give the law a turn either.
        if heart.since(began) > 2 * trial.terms.held_up:
            seen.cancel()

    seen = await trial.watch(await trial.make("infinite_publisher"), then=enough)
    began = heart.now()
    took = heart.during(partial(seen.request, UNBOUNDED))
    for _ in range(20):
        moment = heart.now()
        await trial.turn()
        took = max(took, heart.since(moment))
        if took > trial.terms.held_up:
            break
    seen.cancel()
    return seen, took, "the loop had no turn"


@law("3.4", "infinite_publisher", strength=Strength.SHOULD)
async def spec304_leaves_the_loop_to_others(trial: Trial) -> None:
    """An endless stream under unbounded demand gives the loop its turns."""
    await _is_quick(trial, "3.4", _gap)


async def _cancel(trial: Trial, heart: Heartbeat) -> tuple[Recorder, float, str]:
    """Before any request, in the middle with demand left, and again."""
    longest, who = 0.0, None
    for first in (0, 1, 3):
        seen = await trial.watch(await trial.publisher(5), first=first)
        await seen.took(min(first, 1))
        took = heart.during(seen.cancel)
        took = max(took, heart.during(seen.cancel))
        for _ in range(3):
            moment = heart.now()
            await trial.turn()
            took = max(took, heart.since(moment))
        if who is None or took > longest:
            longest, who = took, seen
    assert who is not None
    return who, longest, "cancel() kept its caller, or the loop, waiting"


@law(
    "3.5",
    "publisher",
    elements=5,
    jvm=("untested_spec305_cancelMustNotSynchronouslyPerformHeavyComputation",),
)
async def spec305_cancel_returns_quickly(trial: Trial) -> None:
    """cancel() does not keep its caller waiting, nor the loop after it."""
    await _is_quick(trial, "3.5", _cancel)
