"""Laws about references: a publisher forgets its subscriber, and a subscription its elements."""

import asyncio
import gc
import weakref
from typing import Any, Final

from ...spec import Subscription
from ..law import NotJudged, law
from ..rules import Strength
from ..scenario.recorder import UNBOUNDED, Recorder
from ..scenario.trial import Trial

__all__ = ()

Held = tuple[object, Subscription, "weakref.ref[Recorder]"]
"""What the caller holds, and may for ever: publisher and subscription; and what must go."""
LOOKS: Final = 6
"""Looks, one in each turn, before garbage is collected."""


def _held(publisher: object, seen: Recorder) -> Held:
    return publisher, seen.subscription, weakref.ref(seen)


async def _unused(trial: Trial, kind: type[Recorder]) -> Held:
    publisher = await trial.publisher(3)
    seen = await trial.watch(publisher, kind)
    await trial.quiet()
    seen.cancel()
    return _held(publisher, seen)


async def _used(trial: Trial, kind: type[Recorder]) -> Held:
    publisher = await trial.publisher(3)
    seen = await trial.watch(publisher, kind, 1)
    await seen.took(1)
    await trial.quiet()
    seen.cancel()
    return _held(publisher, seen)


async def _begun(trial: Trial, kind: type[Recorder]) -> Held:
    publisher = await trial.publisher(3)
    seen = await trial.watch(publisher, kind)
    seen.request(2)
    seen.cancel()
    return _held(publisher, seen)


async def _completed(trial: Trial, kind: type[Recorder]) -> Held:
    publisher = await trial.publisher(1)
    seen = await trial.watch(publisher, kind, 9)
    await seen.end()
    return _held(publisher, seen)


async def _failed(trial: Trial, kind: type[Recorder]) -> Held:
    publisher = await trial.make("failing_publisher")
    seen = await trial.watch(publisher, kind, UNBOUNDED)
    await seen.end("1.4")
    error = seen.error
    while error is not None:
        # The trial keeps the error, and its frames would keep everything.
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
    return _held(publisher, seen)


async def _forgets(trial: Trial, rule: str, *uses: tuple[str, Any]) -> None:
    held: list[tuple[str, Held]] = []
    for kind in trial.kinds:
        for when, use in uses:
            held.append((when, await use(trial, kind)))
    if not await _gone(trial, [reference for _, (_, _, reference) in held]):
        for when, (_, _, reference) in held:
            kinds = sorted({type(each).__name__ for each in gc.get_referrers(reference())})
            what = f"after {when} the subscriber is still referred to, by objects of {kinds}"
            trial.demand(reference() is None, rule, what)


async def _gone(trial: Trial, references: "list[weakref.ref[Any]]") -> bool:
    """Wait until all of them are; most are at once, and what is garbage must be collected."""
    loop = asyncio.get_running_loop()
    latest = loop.time() + min(trial.terms.come, trial.terms.come_again)
    looks, nap = 0, 0.0
    while any(reference() is not None for reference in references):
        if loop.time() > latest:
            return False
        looks += 1
        if looks > LOOKS:
            gc.collect()
            nap = min(0.1, nap * 2 or 0.001)
        await asyncio.sleep(nap)
    return True


@law(
    "3.13",
    "publisher",
    elements=3,
    jvm=("required_spec313_cancelMustMakeThePublisherEventuallyDropAllReferencesToTheSubscriber",),
)
async def spec313_forgets_the_subscriber(trial: Trial) -> None:
    """After cancel() only its owner holds the subscriber, whoever holds the subscription."""
    await _forgets(
        trial, "3.13", ("an early cancel()", _unused), ("cancel()", _used), ("cancel()", _begun)
    )


@law("L.7", "publisher", elements=1, completes=True, strength=Strength.SHOULD)
async def house7_forgets_the_subscriber_after_completion(trial: Trial) -> None:
    """After on_complete only its owner holds the subscriber, whoever holds the subscription."""
    await _forgets(trial, "L.7", ("on_complete", _completed))


@law("L.7", "failing_publisher", strength=Strength.SHOULD)
async def house7_forgets_the_subscriber_after_failure(trial: Trial) -> None:
    """After on_error only its owner holds the subscriber, whoever holds the subscription."""
    await _forgets(trial, "L.7", ("on_error", _failed))


# -- and nothing too early -----------------------------------------------------------------------


@law("L.9", "publisher", elements=3, strength=Strength.SHOULD)
async def house9_lives_while_it_is_asked(trial: Trial) -> None:
    """What was requested comes, though the caller holds neither publisher nor subscription."""
    for kind in trial.kinds:
        elements = (await trial.watch(await trial.publisher(3), kind, UNBOUNDED)).elements
        loop = asyncio.get_running_loop()
        latest, nap = loop.time() + trial.terms.come, 0.0
        while len(elements) < 3:
            what = f"3 were requested and {len(elements)} came: the rest was forgotten"
            trial.demand(loop.time() < latest, "L.9", what)
            gc.collect()
            await asyncio.sleep(nap)
            nap = min(0.1, nap * 2 or 0.001)


# -- the elements ------------------------------------------------------------------------------


class _Keepsake(Recorder):
    """Keeps only weak references to the elements."""

    def on_next(self, element: Any, /) -> None:
        try:
            weak: Any = weakref.ref(element)
        except TypeError:
            weak = self  # such as an int: nobody can say who holds it
        super().on_next(weak)


@law("L.7", "publisher", elements=5, strength=Strength.SHOULD)
async def house7_forgets_the_elements(trial: Trial) -> None:
    """A subscription that is over holds no elements."""
    finished, cancelled = await _over(trial, 9, 3), await _over(trial, 2, 2)
    references = finished[1] + cancelled[1]
    if trial.subject.completes and await _gone(trial, references):
        return
    if await _gone(trial, cancelled[1]):
        return
    kept = sum(reference() is not None for reference in references)
    del finished, cancelled
    # Now that both subscriptions are gone: what is left is held by somebody else.
    if not await _gone(trial, references):
        raise NotJudged("the elements are held by somebody else")
    trial.demand(False, "L.7", f"{kept} elements are held by a subscription that is over")


async def _over(trial: Trial, first: int, n: int) -> tuple[Subscription, "list[weakref.ref[Any]]"]:
    seen = await trial.watch(await trial.publisher(3 if n == 3 else 5), _Keepsake, first)
    await seen.took(n)
    if seen in seen.elements:
        raise NotJudged("the elements are such that no weak reference to them is possible")
    if n == 3 and trial.subject.completes:
        await seen.end()
    else:
        seen.cancel()
    return seen.subscription, list(seen.elements)
