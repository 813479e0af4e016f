"""Laws about demand: what is requested comes, and no more, from wherever it is requested."""

import asyncio
import contextvars

from ...testing.safe_repr import safe_repr
from ..law import law
from ..rules import Strength
from ..scenario.recorder import UNBOUNDED, Recorder
from ..scenario.trial import Trial
from .moves import cancelling, hooked, one_more

__all__ = ()


@law(
    "1.1",
    "publisher",
    elements=5,
    jvm=("required_spec101_subscriptionRequestMustResultInTheCorrectNumberOfProducedElements",),
)
async def spec101_sends_no_more_than_requested(trial: Trial) -> None:
    """Nothing without demand, one for one, three for one and two; then silence again."""

    async def counts(kind: type[Recorder]) -> None:
        seen = await trial.watch(await trial.publisher(5), kind)
        await trial.quiet()
        for requests, asked in (((1,), 1), ((1, 2), 4)):
            for n in requests:
                seen.request(n)
            await seen.took(asked)
            await trial.quiet()
        seen.demand(seen.received == 4, "1.1", f"4 were requested in all, {seen.received} came")

    await trial.each(*map(counts, trial.kinds))


@law("1.1", "infinite_publisher")
async def spec101_infinite_sends_no_more_than_requested(trial: Trial) -> None:
    """Three of an endless stream, then two more."""
    for kind in trial.kinds:
        seen = await trial.watch(await trial.make("infinite_publisher"), kind, 3)
        await seen.took(3)
        await trial.quiet()
        seen.request(2)
        await seen.took(5)
    await trial.quiet()


# -- from wherever -----------------------------------------------------------------------------


@law("2.7", "publisher", elements=6)
async def spec207_takes_calls_from_changing_threads(trial: Trial) -> None:
    """Requests come from one thread and then from another, one after the other: all count.

    The publisher is at rest when the other thread comes: it has to be woken, in the right way.
    """
    seen = await trial.watch(await trial.publisher(6))
    with trial.minding_threads("2.7"):
        for asked in (1, 2, 3):
            seen.request(1)
            await seen.took(2 * asked - 1, "2.7")
            await trial.quiet()
            await asyncio.to_thread(seen.request, 1)
            await seen.took(2 * asked, "2.7")


@law("3.1", "publisher", elements=6)
async def spec301_takes_requests_outside_of_signals(trial: Trial) -> None:
    """Requests from callbacks, timers and tasks of the subscriber's count like those in signals."""
    loop = asyncio.get_running_loop()

    async def request(seen: Recorder) -> None:
        seen.request(1)

    for kind in trial.kinds:
        seen = await trial.watch(await trial.publisher(6), kind)
        loop.call_soon(seen.request, 1)
        await seen.took(1, "3.1")
        loop.call_later(0.0001, seen.request, 1)
        await seen.took(2, "3.1")
        await asyncio.create_task(request(seen))
        await seen.took(3, "3.1")
        contextvars.Context().run(seen.request, 2)
        await seen.took(5, "3.1")
        loop.call_soon(seen.cancel)
        await trial.turn()
    await trial.quiet()


@law(
    "3.2",
    "publisher",
    elements=6,
    jvm=("required_spec302_mustAllowSynchronousRequestCallsFromOnNextAndOnSubscribe",),
)
async def spec302_takes_requests_inside_signals(trial: Trial) -> None:
    """Requests inside on_subscribe and inside each on_next count."""

    def three(seen: Recorder) -> None:
        for _ in range(3):
            seen.request(1)

    for kind in trial.kinds:
        asking = hooked(kind, "on_subscribe", three)
        seen = await trial.watch(await trial.publisher(6), asking, then=one_more)
        await seen.took(6, "3.2")
        seen.demand(seen.error is None, "3.2", f"requests inside signals: {safe_repr(seen.error)}")
        if trial.subject.completes:
            await seen.end("3.2")
            seen.demand(seen.completed, "3.2", f"requests inside signals: {safe_repr(seen.error)}")


@law("3.2", "infinite_publisher")
async def spec302_infinite_takes_requests_inside_signals(trial: Trial) -> None:
    """The same of an endless stream, which is cancelled inside on_next after some elements."""
    enough = cancelling(50)

    def more(seen: Recorder, element: object) -> None:
        seen.request(1)
        enough(seen, element)

    for kind in trial.kinds:
        seen = await trial.watch(await trial.make("infinite_publisher"), kind, 3, more)
        await seen.took(50, "3.2")


# -- how much ----------------------------------------------------------------------------------


@law("3.8", "publisher", elements=5)
async def spec308_adds_requests_up(trial: Trial) -> None:
    """Requests before anything could come are worth their sum."""
    watched: list[Recorder] = []
    for requests in ((1, 2), (2, 1), (1, 1, 1)):
        seen = await trial.watch(await trial.publisher(5))
        for n in requests:
            seen.request(n)
        await seen.took(3, "3.8")
        watched.append(seen)
    await trial.quiet()
    for seen in watched:
        seen.demand(seen.received == 3, "3.8", f"3 were requested, {seen.received} came")


@law(
    "3.9",
    "publisher",
    elements=10,
    jvm=("required_spec309_requestZeroMustSignalIllegalArgumentException",),
)
async def spec309_refuses_zero(trial: Trial) -> None:
    """request(0) is answered by on_error with a ValueError, before and after the first element."""
    await trial.each(*(_refuses(trial, 0, before) for before in (0, 1)))


@law(
    "3.9",
    "publisher",
    elements=10,
    jvm=("required_spec309_requestNegativeNumberMustSignalIllegalArgumentException",),
)
async def spec309_refuses_a_negative_number(trial: Trial) -> None:
    """request(-1), or less, is answered by on_error with a ValueError."""
    tried = ((-1, 0), (-1, 1), (-(2**40), 0), (-(2**70), 1))
    await trial.each(*(_refuses(trial, n, before) for n, before in tried), _not_undone(trial))


async def _not_undone(trial: Trial) -> None:
    """A right request right behind a wrong one does not make it good."""
    seen = await trial.watch(await trial.publisher(10))
    seen.request(-1)
    seen.request(1)
    what = "request(-1) was not answered, as request(1) followed at once"
    await trial.until(lambda: seen.ended, "3.9", what, seen.journal)
    seen.demand(isinstance(seen.error, ValueError), "3.9", what)


async def _refuses(trial: Trial, n: int, before: int) -> None:
    seen = await trial.watch(await trial.publisher(10), first=before)
    await seen.took(before)
    seen.request(n)
    await trial.until(lambda: seen.ended, "3.9", f"request({n}) was not answered", seen.journal)
    answer = "on_complete()" if seen.error is None else f"on_error({safe_repr(seen.error)})"
    is_right = isinstance(seen.error, ValueError)
    seen.demand(is_right, "3.9", f"request({n}) was answered by {answer}, by no ValueError")
    seen.request(5)
    await trial.quiet()
    seen.demand(seen.count == before + 1, "3.9", "signals came after the answer")


@law(
    "3.9",
    "publisher",
    elements=10,
    strength=Strength.SHOULD,
    jvm=(
        "optional_spec309_requestNegativeNumberMaySignalIllegalArgumentExceptionWith"
        "SpecificMessage",
    ),
)
async def spec309_says_what_was_wrong(trial: Trial) -> None:
    """The answer to request(-1) names rule 3.9, or says that the request is not positive."""
    seen = await trial.watch(await trial.publisher(10))
    seen.request(-1)
    await trial.until(lambda: seen.ended, "3.9", "request(-1) was not answered", seen.journal)
    text = str(seen.error)
    said = any(
        words in text
        for words in (
            "3.9",
            "non-positive subscription request",
            "negative subscription request",
        )
    )
    seen.demand(said, "3.9", f"the answer does not say what was wrong: {safe_repr(text)}")


_PENDING = "required_spec317_mustSupportA{}PendingElementCountUpToLongMaxValue"


@law("3.17", "publisher", elements=3, jvm=(_PENDING.format(""),))
async def spec317_takes_the_largest_demand(trial: Trial) -> None:
    """2**63-1 at once."""
    await _takes(trial, (UNBOUNDED,))


@law("3.17", "publisher", elements=3, jvm=(_PENDING.format("Cumulative"),))
async def spec317_adds_up_to_the_largest_demand(trial: Trial) -> None:
    """2**63-1 as a sum."""
    await _takes(trial, (2**62, 2**62 - 1))
    await _takes(trial, (1, 2**62, 2**62 - 2))


@law(
    "3.17",
    "publisher",
    elements=12,
    jvm=("required_spec317_mustNotSignalOnErrorWhenPendingAboveLongMaxValue",),
)
async def spec317_takes_more_than_the_largest_demand(trial: Trial) -> None:
    """Far more than 2**63-1, at once, as a sum, and inside on_next."""
    for requests in ((UNBOUNDED, UNBOUNDED, 1), (2**62, 2**62, 2**62), (2**64,)):
        await _takes(trial, requests)

    def more(seen: Recorder, _element: object) -> None:
        seen.request(UNBOUNDED - 1)
        if seen.received == 11:
            seen.cancel()

    for kind in trial.kinds:
        seen = await trial.watch(await trial.publisher(12), kind, 1, more)
        await seen.reached(11, "3.17", "demand beyond 2**63-1, and not all elements came")
        seen.demand(seen.error is None, "3.17", f"demand beyond 2**63-1 made it fail: {seen.error}")


async def _takes(trial: Trial, requests: tuple[int, ...]) -> None:
    seen = await trial.watch(await trial.publisher(3))
    for n in requests:
        seen.request(n)
    what = f"{requests} were requested, and not all of 3 elements came"
    await seen.reached(3, "3.17", what)
    seen.demand(
        seen.error is None, "3.17", f"a demand of {requests} made it fail: {safe_repr(seen.error)}"
    )
    seen.demand(seen.received == 3, "3.17", what)
    if trial.subject.completes:
        await seen.end("3.17")
        seen.demand(
            seen.completed, "3.17", f"a demand of {requests} made it fail: {safe_repr(seen.error)}"
        )


# -- request returns normally ------------------------------------------------------------------


@law("3.16", "publisher", elements=3)
async def spec316_request_returns_normally(trial: Trial) -> None:
    """request returns, and None: inside each signal, outside, right or wrong, and after the end."""

    async def inside(kind: type[Recorder], signal: str, n: int) -> None:
        asking = hooked(kind, signal, lambda seen: seen.request(n))
        seen = await trial.watch(await trial.publisher(3), asking, 2)
        seen.request(2)
        if n < 1:  # at the latest now, if that signal has not come by itself
            seen.request(n)
        await trial.quiet()
        seen.request(n)

    signals = ("on_subscribe", "on_next", "on_error", "on_complete")
    await trial.each(
        *(inside(kind, signal, n) for kind in trial.kinds for signal in signals for n in (1, 0, -1))
    )

    seen = await trial.watch(await trial.publisher(3))
    seen.cancel()
    for n in (1, 0, -1, UNBOUNDED):
        seen.request(n)
