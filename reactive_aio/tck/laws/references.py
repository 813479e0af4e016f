"""Laws about references: publishers release subscribers, and subscriptions release elements."""

import asyncio
import gc
import weakref
from functools import partial
from types import FrameType
from typing import Any, Final

from ...spec import Subscription
from ..law import NotJudged, law
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED, Recorder

CancelledOrEnded = tuple[object, Subscription, "weakref.ref[Recorder]"]
"""What the caller keeps, publisher and subscription, and the subscriber to be released."""
POLLS: Final = 6
"""Turns of the loop before garbage is collected."""


async def _cancelled(
    context: LawContext, kind: type[Recorder], requested: int, settles: bool
) -> CancelledOrEnded:
    publisher = await context.publisher(3)
    recorder = await context.watch(publisher, kind)
    if requested:
        recorder.request(requested)
    if settles:
        await recorder.take_and_settle(requested)
    recorder.cancel()
    return publisher, recorder.subscription, weakref.ref(recorder)


async def _completed(context: LawContext, kind: type[Recorder]) -> CancelledOrEnded:
    publisher = await context.publisher(1)
    recorder = await context.watch(publisher, kind, 9)
    await recorder.wait_for_end()
    return publisher, recorder.subscription, weakref.ref(recorder)


async def _failed(context: LawContext, kind: type[Recorder]) -> CancelledOrEnded:
    publisher = await context.create("failing_publisher")
    recorder = await context.watch(publisher, kind, UNBOUNDED)
    await recorder.wait_for_end("1.4")
    error = recorder.error
    while error is not None:
        # The context keeps the error, whose frames would keep the subscriber.
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
    kept = publisher, recorder.subscription, weakref.ref(recorder)
    # From CPython 3.13 on, an error that the publisher keeps may keep this frame as well.
    del recorder
    return kept


async def _require_released(context: LawContext, *uses: tuple[str, Any]) -> None:
    kept: list[tuple[str, CancelledOrEnded]] = []
    for kind in context.recorder_types:
        for when, use in uses:
            kept.append((when, await use(context, kind)))
    if not await _wait_until_released(context, [reference for _, (_, _, reference) in kept]):
        for when, (_, _, reference) in kept:
            kinds = _kinds_of_referrers(reference)
            what = f"after {when} the subscriber is still referred to, by objects of {kinds}"
            context.require(reference() is None, what)


def _kinds_of_referrers(reference: "weakref.ref[Any]") -> list[str]:
    """A function, since a coroutine is a referrer itself while it looks: from CPython 3.14 on."""
    return sorted({_kind(each) for each in gc.get_referrers(reference())})


def _kind(referrer: object) -> str:
    """Its type, and the function that a frame belongs to: an error that is kept may keep frames."""
    if isinstance(referrer, FrameType):
        return f"frame of {referrer.f_code.co_qualname}"
    return type(referrer).__name__


async def _wait_until_released(context: LawContext, references: "list[weakref.ref[Any]]") -> bool:
    """Wait until all of them are released; garbage is collected after some turns."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(context.timeouts.response, context.timeouts.reduced_response)
    polls, pause = 0, 0.0
    while any(reference() is not None for reference in references):
        if loop.time() > deadline:
            return False
        polls += 1
        if polls > POLLS:
            gc.collect()
            pause = min(0.1, pause * 2 or 0.001)
        await asyncio.sleep(pause)
    return True


@law("publisher", elements=3)
async def spec313_releases_the_subscriber(context: LawContext) -> None:
    """After cancel() neither publisher nor subscription refers to the subscriber."""
    await _require_released(
        context,
        ("an early cancel()", partial(_cancelled, requested=0, settles=True)),
        ("cancel()", partial(_cancelled, requested=1, settles=True)),
        ("cancel()", partial(_cancelled, requested=2, settles=False)),
    )


@law("publisher", elements=1, completes=True)
async def library7_releases_the_subscriber_after_completion(context: LawContext) -> None:
    """After on_complete neither publisher nor subscription refers to the subscriber."""
    await _require_released(context, ("on_complete", _completed))


@law("failing_publisher")
async def library7_releases_the_subscriber_after_failure(context: LawContext) -> None:
    """After on_error neither publisher nor subscription refers to the subscriber."""
    await _require_released(context, ("on_error", _failed))


# -- no premature release ------------------------------------------------------------------------


@law("publisher", elements=3)
async def library9_stays_alive_while_elements_are_requested(context: LawContext) -> None:
    """Requested elements come even if the caller keeps neither publisher nor subscription."""
    for kind in context.recorder_types:
        elements = (await context.watch(3, kind, UNBOUNDED)).elements
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + context.timeouts.response, 0.0
        while len(elements) < 3:
            what = (
                f"3 were requested and {len(elements)} came: the subscription was garbage-collected"
            )
            context.require(loop.time() < deadline, what)
            gc.collect()
            await asyncio.sleep(pause)
            pause = min(0.1, pause * 2 or 0.001)


# -- the elements ------------------------------------------------------------------------------


class _WeakRecorder(Recorder):
    """Keeps only weak references to the elements."""

    def on_next(self, element: Any, /) -> None:
        try:
            reference: Any = weakref.ref(element)
        except TypeError:
            reference = self  # an int, for example: it has no weak references
        super().on_next(reference)


@law("publisher", elements=5)
async def library7_releases_the_elements(context: LawContext) -> None:
    """A terminated or cancelled subscription refers to no elements."""
    finished = await _used_subscription(context, 9, 3)
    cancelled = await _used_subscription(context, 2, 2)
    references = finished[1] + cancelled[1]
    if context.candidate.completes and await _wait_until_released(context, references):
        return
    if await _wait_until_released(context, cancelled[1]):
        return
    kept = sum(reference() is not None for reference in references)
    del finished, cancelled
    # Both subscriptions are gone: something else refers to what is left.
    if not await _wait_until_released(context, references):
        raise NotJudged("something else refers to the elements")
    context.require(False, f"{kept} elements are held by a subscription that has ended")


async def _used_subscription(
    context: LawContext, first: int, n: int
) -> tuple[Subscription, "list[weakref.ref[Any]]"]:
    recorder = await context.watch(3 if n == 3 else 5, _WeakRecorder, first)
    await recorder.wait_for_elements(n)
    if recorder in recorder.elements:
        raise NotJudged("the elements do not support weak references")
    if n == 3 and context.candidate.completes:
        await recorder.wait_for_end()
    else:
        recorder.cancel()
    return recorder.subscription, list(recorder.elements)
