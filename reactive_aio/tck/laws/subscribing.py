"""Laws about subscribe: the first signal, refusals, and several subscribers."""

from typing import Any

from ...spec import Subscription
from ...testing.journal import Kind
from ...testing.safe_repr import safe_repr
from ..law import NotJudged, law
from ..rules import Strength
from ..scenario.equality import all_alike
from ..scenario.law_context import LawContext
from ..scenario.recorder import UNBOUNDED, Recorder, close_coroutine


@law("publisher")
async def spec109_subscribes_first(context: LawContext) -> None:
    """on_subscribe is the first signal, comes once, and needs no demand."""
    for n in (0, min(3, context.candidate.max_elements)):
        for kind in context.recorder_types:
            await context.watch(n, kind)
    await context.settle()


@law("publisher")
async def spec109_rejects_none_as_subscriber(context: LawContext) -> None:
    """subscribe(None) raises TypeError in the caller."""
    nothing: Any = None
    publisher: Any = await context.publisher(0)
    journal = context.journal("no subscriber")
    journal.note(Kind.NOTE, "subscribe(None)")
    returned, error = context.try_call("subscribe(None)", lambda: publisher.subscribe(nothing))
    close_coroutine(returned)
    what = "subscribe(None) did not raise TypeError"
    if error is not None:
        what = f"subscribe(None) raised {safe_repr(error)}, not a TypeError"
    if not isinstance(error, TypeError):
        raise context.violation(what, journal=journal) from error


@law("publisher")
async def spec109_never_raises_from_subscribe(context: LawContext) -> None:
    """subscribe() returns normally: repeatedly, after the end, and when it refuses."""
    publisher = await context.publisher(min(1, context.candidate.max_elements))
    for _ in range(3):
        recorder = await context.watch(publisher, initial=UNBOUNDED)
        if context.candidate.completes:
            await recorder.wait_for_end("1.9")
    if context.candidate.failing_publisher is not None:
        failing = await context.create("failing_publisher")
        for _ in range(2):
            await context.watch(failing)


@law("failing_publisher")
async def spec109_refuses_by_on_error(context: LawContext) -> None:
    """A refused subscriber receives on_subscribe and then on_error, without any request."""
    watched = [await context.watch("failing_publisher", kind) for kind in context.recorder_types]
    await context.settle()
    for recorder in watched:
        if not recorder.is_terminated:
            raise NotJudged("the publisher fails only after a request")
        recorder.require(recorder.error is not None, "it completed instead of failing")


# -- several subscribers -------------------------------------------------------------------------


@law("publisher", elements=2)
async def spec110_serves_or_refuses_the_next_subscriber(context: LawContext) -> None:
    """Later subscribers of the same publisher receive on_subscribe, then signals or an error."""
    publisher = await context.publisher(2)
    for nth in ("first", "second", "third"):
        recorder = await context.watch(publisher, initial=UNBOUNDED)
        what = f"the {nth} subscriber received neither elements nor an end"
        await recorder.wait_for_elements_or_end(2, what)


class _SubscribedTwice(Recorder):
    """Cancels a second subscription, as rule 2.5 requires."""

    is_subscribed_again = is_refused = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self.subscriptions:
            super().on_subscribe(subscription)
        else:
            self.is_subscribed_again = True
            self.journal.note(Kind.NOTE, "on_subscribe() again, whose subscription is cancelled")
            subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        # A publisher for one subscriber refuses the second subscription so (1.9).
        if self.is_subscribed_again and not self.is_refused:
            self.is_refused = True
            self.journal.note(Kind.NOTE, "on_error(): the second subscription was refused")
        else:
            super().on_error(error)


@law("publisher", elements=5)
async def spec110_takes_the_same_subscriber_twice(context: LawContext) -> None:
    """Subscribed twice, a subscriber receives at most what it requests, one signal at a time."""
    publisher = await context.publisher(5)
    recorder = _SubscribedTwice(context)
    for _ in range(2):
        await context.subscribe(publisher, context.track(recorder))
    recorder.request(2)
    what = "subscribed twice, it receives neither elements nor an end"
    await recorder.wait_until(
        lambda: recorder.is_refused or recorder.is_terminated or recorder.received >= 2, what
    )
    await context.settle()
    # The recorder detects excess elements, and signals after the end.
    recorder.require(True, "")


@law("publisher", elements=1, strength=Strength.MAY)
async def spec111_takes_two_subscribers(context: LawContext) -> None:
    """Two concurrent subscribers both receive on_subscribe, and no error."""
    publisher = await context.publisher(1)
    both = [await context.watch(publisher) for _ in range(2)]
    await context.settle()
    for recorder in both:
        recorder.require_no_error("one was refused")


@law("publisher", elements=1, strength=Strength.MAY)
async def spec111_serves_two_subscribers(context: LawContext) -> None:
    """Two concurrent subscribers both receive an element, or completion."""
    publisher = await context.publisher(1)
    both = [await context.watch(publisher) for _ in range(2)]
    for recorder in both:
        recorder.request(1)
    for recorder in both:
        await recorder.wait_for_elements_or_end(1, "one received neither an element nor completion")
        recorder.require_no_error("one was refused")


@law("publisher", elements=5, completes=True, strength=Strength.MAY)
async def spec111_sends_all_to_each_one_by_one(context: LawContext) -> None:
    """Three subscribers that request in small steps receive the same elements in order."""
    three = await _three(context, 5)
    steps = ((0, 1), (1, 1), (0, 1), (2, 2), (0, 1), (1, 2), (2, 3), (0, 2), (1, 2))
    for index, n in steps:
        three[index].request(n)
        await context.turn()
    await _same(three, 5)
    await _completed(three)


@law("publisher", elements=3, strength=Strength.MAY)
async def spec111_sends_all_to_each_requested_at_once(context: LawContext) -> None:
    """Three subscribers that request more than exists receive the same elements in order."""
    three = await _three(context, 3)
    for recorder in three:
        recorder.request(4)
    await _same(three, 3)


@law("publisher", elements=3, completes=True, strength=Strength.MAY)
async def spec111_sends_all_to_each_and_completes(context: LawContext) -> None:
    """Three subscribers that request more than exists receive the same elements and completion."""
    three = await _three(context, 3)
    for recorder in three:
        recorder.request(4)
    await _same(three, 3)
    await _completed(three)


async def _three(context: LawContext, n: int) -> list[Recorder]:
    publisher = await context.publisher(n)
    return [await context.watch(publisher) for _ in range(3)]


async def _same(watched: list[Recorder], n: int) -> None:
    for recorder in watched:
        await recorder.wait_for_elements_or_end(n, f"one of three did not receive {n} elements")
        what = f"one of three received {recorder.received} of {n} elements"
        recorder.require(recorder.received == n, what)
        same = all_alike(recorder.elements, watched[0].elements)
        recorder.require(same, "not all received the same elements in the same order")


async def _completed(watched: list[Recorder]) -> None:
    for recorder in watched:
        if not recorder.is_terminated:
            recorder.request(1)
        # One element more than exists: this waits for the end.
        what = "one of three received no completion"
        await recorder.wait_for_elements_or_end(recorder.received + 1, what)
        recorder.require_completed("one of three failed")


@law("publisher", elements=2)
async def spec212_subscribes_once(context: LawContext) -> None:
    """on_subscribe is not repeated after a request, between elements, or after the end."""
    for kind in context.recorder_types:
        recorder = await context.watch(2, kind)
        recorder.request(1)
        await recorder.wait_for_elements(1)
        recorder.request(UNBOUNDED)
        await recorder.wait_for_elements(2)
    await context.settle()
