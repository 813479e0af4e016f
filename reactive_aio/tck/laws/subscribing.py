"""Laws about subscribe: what comes first, who is refused and how, and several subscribers."""

from typing import Any

from ...spec import Subscription
from ...testing.journal import Kind
from ...testing.safe_repr import safe_repr
from ..law import NotJudged, law
from ..rules import Strength
from ..scenario.brake import Brake
from ..scenario.comparing import all_alike
from ..scenario.recorder import UNBOUNDED, Recorder, discard
from ..scenario.trial import Trial

__all__ = ()


@law(
    "1.9",
    "publisher",
    jvm=("required_spec109_mustIssueOnSubscribeForNonNullSubscriber",),
)
async def spec109_subscribes_first(trial: Trial) -> None:
    """on_subscribe is the first signal, comes once, and needs no demand."""
    for n in (0, min(3, trial.subject.max_elements)):
        for kind in trial.kinds:
            await trial.watch(await trial.publisher(n), kind)
    await trial.quiet()


@law("1.9", "publisher", jvm=("required_spec109_subscribeThrowNPEOnNullSubscriber",))
async def spec109_refuses_no_subscriber(trial: Trial) -> None:
    """subscribe(None) raises TypeError in the caller."""
    nobody: Any = None
    publisher: Any = await trial.publisher(0)
    journal = trial.journal("nobody")
    journal.note(Kind.NOTE, "subscribe(None)")
    with trial.calling("subscribe(None)"):
        try:
            discard(publisher.subscribe(nobody))
        except TypeError:
            return
        except Brake:
            raise
        except BaseException as error:
            what = f"subscribe(None) raised {safe_repr(error)}, no TypeError"
            raise trial.violation("1.9", what, journal) from error
    raise trial.violation("1.9", "subscribe(None) did not raise TypeError", journal)


@law(
    "1.9",
    "publisher",
    jvm=("untested_spec109_subscribeShouldNotThrowNonFatalThrowable",),
)
async def spec109_never_raises_from_subscribe(trial: Trial) -> None:
    """subscribe() returns normally: again, after the end, and when it cannot serve."""
    publisher = await trial.publisher(min(1, trial.subject.max_elements))
    for _ in range(3):
        seen = await trial.watch(publisher, first=UNBOUNDED)
        if trial.subject.completes:
            await seen.end("1.9")
    if trial.subject.failing_publisher is not None:
        failing = await trial.make("failing_publisher")
        for _ in range(2):
            await trial.watch(failing)


@law(
    "1.9",
    "failing_publisher",
    jvm=(
        "required_spec109_mayRejectCallsToSubscribeIfPublisherIsUnableOrUnwillingToServeThem"
        "RejectionMustTriggerOnErrorAfterOnSubscribe",
    ),
)
async def spec109_refuses_by_on_error(trial: Trial) -> None:
    """Who cannot be served gets on_subscribe and then on_error, without any request."""
    watched = [
        await trial.watch(await trial.make("failing_publisher"), kind) for kind in trial.kinds
    ]
    await trial.quiet()
    for seen in watched:
        if not seen.ended:
            raise NotJudged("this one fails only when something is requested")
        seen.demand(seen.error is not None, "1.9", "it completed instead of failing")


# -- again, and several ------------------------------------------------------------------------


@law("1.10", "publisher", elements=2)
async def spec110_serves_or_refuses_the_next_subscriber(trial: Trial) -> None:
    """Later subscribers of the same publisher get on_subscribe, and then signals or an error."""
    publisher = await trial.publisher(2)
    for nth in ("first", "second", "third"):
        seen = await trial.watch(publisher, first=UNBOUNDED)
        await seen.reached(2, "1.10", f"the {nth} subscriber has got neither elements nor an end")


class _Twice(Recorder):
    """Takes a second subscription as 2.5 says: it cancels it."""

    again = refused = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self.subscriptions:
            super().on_subscribe(subscription)
        else:
            self.again = True
            self.journal.note(Kind.NOTE, "on_subscribe() again, whose subscription is cancelled")
            subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        # Who serves one subscriber only refuses all others so (1.9), not knowing them apart.
        if self.again and not self.refused:
            self.refused = True
            self.journal.note(Kind.NOTE, "on_error(): the second subscription was refused")
        else:
            super().on_error(error)


@law(
    "1.10",
    "publisher",
    elements=5,
    jvm=("untested_spec110_rejectASubscriptionRequestIfTheSameSubscriberSubscribesTwice",),
)
async def spec110_takes_the_same_subscriber_twice(trial: Trial) -> None:
    """Subscribed twice, a subscriber gets no more than it requests, one signal at a time."""
    publisher = await trial.publisher(5)
    seen = _Twice(trial)
    for _ in range(2):
        await trial.subscribe(publisher, trial.add(seen))
    seen.request(2)
    what = "subscribed twice, it gets neither elements nor an end"
    await trial.until(
        lambda: seen.refused or seen.ended or seen.received >= 2, "1.10", what, seen.journal
    )
    await trial.quiet()
    # More than requested, and after the end: the recorder sees it.
    seen.demand(True, "1.10", "")


@law(
    "1.11",
    "publisher",
    elements=1,
    strength=Strength.MAY,
    jvm=("optional_spec111_maySupportMultiSubscribe",),
)
async def spec111_takes_two_subscribers(trial: Trial) -> None:
    """Two subscribers at the same time both get on_subscribe, and no error."""
    publisher = await trial.publisher(1)
    both = [await trial.watch(publisher) for _ in range(2)]
    await trial.quiet()
    for seen in both:
        seen.demand(seen.error is None, "1.11", f"one was refused: {safe_repr(seen.error)}")


@law(
    "1.11",
    "publisher",
    elements=1,
    strength=Strength.MAY,
    jvm=("optional_spec111_registeredSubscribersMustReceiveOnNextOrOnCompleteSignals",),
)
async def spec111_serves_two_subscribers(trial: Trial) -> None:
    """Two subscribers at the same time both get an element, or completion."""
    publisher = await trial.publisher(1)
    both = [await trial.watch(publisher) for _ in range(2)]
    for seen in both:
        seen.request(1)
    for seen in both:
        await seen.reached(1, "1.11", "one got neither an element nor completion")
        seen.demand(seen.error is None, "1.11", f"one was refused: {safe_repr(seen.error)}")


_MULTICAST = (
    "optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfIts"
    "SubscribersWhenRequesting"
)


@law(
    "1.11",
    "publisher",
    elements=5,
    completes=True,
    strength=Strength.MAY,
    jvm=(f"{_MULTICAST}OneByOne",),
)
async def spec111_sends_all_to_each_one_by_one(trial: Trial) -> None:
    """Three subscribers that request in small steps get the same elements in the same order."""
    three = await _three(trial, 5)
    steps = ((0, 1), (1, 1), (0, 1), (2, 2), (0, 1), (1, 2), (2, 3), (0, 2), (1, 2))
    for who, n in steps:
        three[who].request(n)
        await trial.turn()
    await _same(three, 5)
    await _completed(three)


@law("1.11", "publisher", elements=3, strength=Strength.MAY, jvm=(f"{_MULTICAST}ManyUpfront",))
async def spec111_sends_all_to_each_requested_at_once(trial: Trial) -> None:
    """Three subscribers that request more than there is get the same elements in the same order."""
    three = await _three(trial, 3)
    for seen in three:
        seen.request(4)
    await _same(three, 3)


@law(
    "1.11",
    "publisher",
    elements=3,
    completes=True,
    strength=Strength.MAY,
    jvm=(f"{_MULTICAST}ManyUpfrontAndCompleteAsExpected",),
)
async def spec111_sends_all_to_each_and_completes(trial: Trial) -> None:
    """Three subscribers that request more than there is get the same elements, and completion."""
    three = await _three(trial, 3)
    for seen in three:
        seen.request(4)
    await _same(three, 3)
    await _completed(three)


async def _three(trial: Trial, n: int) -> list[Recorder]:
    publisher = await trial.publisher(n)
    return [await trial.watch(publisher) for _ in range(3)]


async def _same(watched: list[Recorder], n: int) -> None:
    for seen in watched:
        await seen.reached(n, "1.11", f"one of three did not get {n} elements")
        seen.demand(seen.received == n, "1.11", f"one of three got {seen.received} of {n} elements")
        same = all_alike(seen.elements, watched[0].elements)
        seen.demand(same, "1.11", "not all got the same elements in the same order")


async def _completed(watched: list[Recorder]) -> None:
    for seen in watched:
        if not seen.ended:
            seen.request(1)
        # One element more than exist: only the end can be waited for.
        await seen.reached(seen.received + 1, "1.11", "one of three got no completion")
        seen.demand(seen.completed, "1.11", f"one of three failed: {safe_repr(seen.error)}")


@law("2.12", "publisher", elements=2)
async def spec212_subscribes_once(trial: Trial) -> None:
    """on_subscribe does not come again: with a request, in the middle, or after the end."""
    for kind in trial.kinds:
        seen = await trial.watch(await trial.publisher(2), kind)
        seen.request(1)
        await seen.took(1)
        seen.request(UNBOUNDED)
        await seen.took(2)
    await trial.quiet()
