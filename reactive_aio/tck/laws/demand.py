"""Laws about demand: what is requested comes, and no more, whatever requests it."""

import asyncio
import contextvars
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from ...testing.safe_repr import safe_repr
from ..law import law
from ..rules import Strength
from ..scenario.law_context import LawContext
from ..scenario.recorder import SIGNALS, UNBOUNDED, Recorder, cancel_at, request_one_more, with_hook

LENGTH: Final = 40
PART: Final = 10


@law("publisher", elements=5)
async def spec101_sends_no_more_than_requested(context: LawContext) -> None:
    """No element without demand, one for request(1), three for 1 and 2, then no more."""

    async def counts(kind: type[Recorder]) -> None:
        recorder = await context.watch(5, kind)
        await context.settle()
        for requests, total in (((1,), 1), ((1, 2), 4)):
            for n in requests:
                recorder.request(n)
            await recorder.wait_for_elements(total)
            await context.settle()
        what = f"4 were requested in all, {recorder.received} came"
        recorder.require(recorder.received == 4, what)

    await context.gather_each(counts)


@law("infinite_publisher")
async def spec101_infinite_sends_no_more_than_requested(context: LawContext) -> None:
    """Three elements of an endless stream are requested, then two more."""
    for kind in context.recorder_types:
        recorder = await context.watch("infinite_publisher", kind, 3)
        await recorder.wait_for_elements(3)
        await context.settle()
        recorder.request(2)
        await recorder.wait_for_elements(5)
    await context.settle()


# -- the origin of requests ----------------------------------------------------------------------


@law("publisher", elements=6)
async def spec207_takes_calls_from_changing_threads(context: LawContext) -> None:
    """Requests from alternating threads, one after the other, all count.

    The publisher is idle when the other thread requests, which must wake it in the right way.
    """
    recorder = await context.watch(6)
    with context.checking_thread_calls("2.7"):
        for pair in (1, 2, 3):
            recorder.request(1)
            await recorder.wait_for_elements(2 * pair - 1, "2.7")
            await context.settle()
            await asyncio.to_thread(recorder.request, 1)
            await recorder.wait_for_elements(2 * pair, "2.7")


@law("publisher", elements=6)
async def spec301_takes_requests_outside_of_signals(context: LawContext) -> None:
    """Requests from callbacks, timers and tasks of the subscriber count like those in signals."""
    loop = asyncio.get_running_loop()

    async def request(recorder: Recorder) -> None:
        recorder.request(1)

    for kind in context.recorder_types:
        recorder = await context.watch(6, kind)
        loop.call_soon(recorder.request, 1)
        await recorder.wait_for_elements(1, "3.1")
        loop.call_later(0.0001, recorder.request, 1)
        await recorder.wait_for_elements(2, "3.1")
        await asyncio.create_task(request(recorder))
        await recorder.wait_for_elements(3, "3.1")
        contextvars.Context().run(recorder.request, 2)
        await recorder.wait_for_elements(5, "3.1")
        loop.call_soon(recorder.cancel)
        await context.turn()
    await context.settle()


@law("publisher", elements=6)
async def spec302_takes_requests_inside_signals(context: LawContext) -> None:
    """Requests inside on_subscribe and inside each on_next count."""

    def three(recorder: Recorder) -> None:
        for _ in range(3):
            recorder.request(1)

    for kind in context.recorder_types:
        requesting = with_hook(kind, "on_subscribe", three)
        recorder = await context.watch(6, requesting, on_element=request_one_more)
        await recorder.wait_for_elements(6, "3.2")
        recorder.require_no_error("requests inside signals")
        if context.candidate.completes:
            await recorder.wait_for_end("3.2")
            recorder.require_completed("requests inside signals")


@law("infinite_publisher")
async def spec302_infinite_takes_requests_inside_signals(context: LawContext) -> None:
    """The same for an endless stream, which is cancelled inside on_next after some elements."""
    enough = cancel_at(50)

    def more(recorder: Recorder, element: object) -> None:
        recorder.request(1)
        enough(recorder, element)

    for kind in context.recorder_types:
        recorder = await context.watch("infinite_publisher", kind, 3, more)
        await recorder.wait_for_elements(50, "3.2")


# -- the amount of demand ------------------------------------------------------------------------


@law("publisher", elements=5)
async def spec308_adds_requests_up(context: LawContext) -> None:
    """Requests in one turn of the loop add up."""
    watched: list[Recorder] = []
    for requests in ((1, 2), (2, 1), (1, 1, 1)):
        recorder = await context.watch(5)
        for n in requests:
            recorder.request(n)
        await recorder.wait_for_elements(3, "3.8")
        watched.append(recorder)
    await context.settle()
    for recorder in watched:
        recorder.require(recorder.received == 3, f"3 were requested, {recorder.received} came")


@law("publisher", elements=10)
async def spec309_refuses_zero(context: LawContext) -> None:
    """request(0) is answered by on_error with a ValueError, before and after the first element."""
    await context.gather(*(_refuses(context, 0, before) for before in (0, 1)))


@law("publisher", elements=10)
async def spec309_refuses_a_negative_number(context: LawContext) -> None:
    """request(-1), or less, is answered by on_error with a ValueError."""
    tried = ((-1, 0), (-1, 1), (-(2**40), 0), (-(2**70), 1))
    await context.gather(
        *(_refuses(context, n, before) for n, before in tried),
        _still_fails_after_a_valid_request(context),
    )


async def _still_fails_after_a_valid_request(context: LawContext) -> None:
    """A valid request immediately after an invalid one does not undo it."""
    recorder = await context.watch(10)
    recorder.request(-1)
    recorder.request(1)
    what = "request(-1) was not answered, as request(1) followed at once"
    await recorder.wait_until(lambda: recorder.is_terminated, what)
    recorder.require(isinstance(recorder.error, ValueError), what)


async def _refuses(context: LawContext, n: int, before: int) -> None:
    recorder = await context.watch(10, initial=before)
    await recorder.wait_for_elements(before)
    recorder.request(n)
    await recorder.wait_until(lambda: recorder.is_terminated, f"request({n}) was not answered")
    answer = "on_complete()" if recorder.error is None else f"on_error({safe_repr(recorder.error)})"
    is_right = isinstance(recorder.error, ValueError)
    recorder.require(is_right, f"request({n}) was answered by {answer}, not by a ValueError")
    recorder.request(5)
    await context.settle()
    recorder.require(recorder.signal_count == before + 1, "signals came after the answer")


@law("publisher", elements=10, strength=Strength.SHOULD)
async def spec309_names_the_problem(context: LawContext) -> None:
    """The error after request(-1) names rule 3.9 or says that the request is not positive."""
    recorder = await context.watch(10)
    recorder.request(-1)
    await recorder.wait_until(lambda: recorder.is_terminated, "request(-1) was not answered")
    text = str(recorder.error)
    is_named = any(
        words in text
        for words in ("3.9", "non-positive subscription request", "negative subscription request")
    )
    recorder.require(is_named, f"the answer does not say what was wrong: {safe_repr(text)}")


@law("publisher", elements=3)
async def spec317_takes_the_largest_demand(context: LawContext) -> None:
    """One request of 2**63-1 is served."""
    await _takes(context, (UNBOUNDED,))


@law("publisher", elements=3)
async def spec317_adds_up_to_the_largest_demand(context: LawContext) -> None:
    """Requests that add up to 2**63-1 are served."""
    await _takes(context, (2**62, 2**62 - 1))
    await _takes(context, (1, 2**62, 2**62 - 2))


@law("publisher", elements=12)
async def spec317_takes_more_than_the_largest_demand(context: LawContext) -> None:
    """Demand beyond 2**63-1, at once, as a sum and inside on_next, does not fail the stream."""
    for requests in ((UNBOUNDED, UNBOUNDED, 1), (2**62, 2**62, 2**62), (2**64,)):
        await _takes(context, requests)

    def more(recorder: Recorder, _element: object) -> None:
        recorder.request(UNBOUNDED - 1)
        if recorder.received == 11:
            recorder.cancel()

    for kind in context.recorder_types:
        recorder = await context.watch(12, kind, 1, more)
        what = "demand beyond 2**63-1, and not all elements came"
        await recorder.wait_for_elements_or_end(11, what)
        what = f"demand beyond 2**63-1 made it fail: {recorder.error}"
        recorder.require(recorder.error is None, what)


async def _takes(context: LawContext, requests: tuple[int, ...]) -> None:
    recorder = await context.watch(3)
    for n in requests:
        recorder.request(n)
    what = f"{requests} were requested, and not all of 3 elements came"
    await recorder.wait_for_elements_or_end(3, what)
    recorder.require_no_error(f"a demand of {requests} made it fail")
    recorder.require(recorder.received == 3, what)
    if context.candidate.completes:
        await recorder.wait_for_end("3.17")
        recorder.require_completed(f"a demand of {requests} made it fail")


# -- request returns normally ------------------------------------------------------------------


@law("publisher", elements=3)
async def spec316_request_returns_normally(context: LawContext) -> None:
    """request returns None inside each signal, outside, valid or not, and after the end."""

    async def inside(kind: type[Recorder], signal: str, n: int) -> None:
        requesting = with_hook(kind, signal, lambda recorder: recorder.request(n))
        recorder = await context.watch(3, requesting, 2)
        recorder.request(2)
        if n < 1:  # triggers on_error if that signal has not come yet
            recorder.request(n)
        await context.settle()
        recorder.request(n)

    await context.gather_each(inside, SIGNALS, (1, 0, -1))
    recorder = await context.watch(3)
    recorder.cancel()
    for n in (1, 0, -1, UNBOUNDED):
        recorder.request(n)


# -- recursion between request and on_next (3.3) -------------------------------------------------


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
