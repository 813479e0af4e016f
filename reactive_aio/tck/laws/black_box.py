"""Laws for subscribers of which no more is seen than what they request."""

from typing import Final

from ..law import law
from ..rules import Strength
from ..scenario.trial import Trial
from ..scenario.upstream import Equal
from . import receiving
from .box import black

__all__ = ("UNTESTED_BLACK_BOX",)

UNTESTED_BLACK_BOX: Final[dict[str, str]] = {
    "untested_spec206_blackbox_mustCallSubscriptionCancelIfItIsNoLongerValid": (
        "only itself knows when it needs no more; the white box can be told to"
    ),
    "untested_spec211_blackbox_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessing"
    "OfTheRespectiveEvents": "its processing is not seen; that of a white box is",
}
"""Tests of the JVM's kit for which there is no law, and why."""


@law(
    "2.1",
    "subscriber",
    jvm=("required_spec201_blackbox_mustSignalDemandViaSubscriptionRequest",),
)
async def spec201_requests_what_it_takes(trial: Trial) -> None:
    """It requests by itself, and takes as many elements as it has requested, round by round."""
    await receiving.requests_and_takes(await black(trial))


@law(
    "2.2",
    "subscriber",
    strength=Strength.SHOULD,
    jvm=("untested_spec202_blackbox_shouldAsynchronouslyDispatch",),
)
async def spec202_keeps_nobody_waiting(trial: Trial) -> None:
    """No signal, nor what it makes, holds up the loop: work that takes long is done elsewhere."""
    await receiving.keeps_nobody_waiting(black(trial) for _ in range(receiving.TRIES))


@law(
    "2.3",
    "subscriber",
    jvm=("required_spec203_blackbox_mustNotCallMethodsOnSubscriptionOrPublisherInOnComplete",),
)
async def spec203_calls_nothing_in_on_complete(trial: Trial) -> None:
    """Neither on_complete nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await receiving.ends(await black(trial), None, sent, "2.3")


@law(
    "2.3",
    "subscriber",
    jvm=("required_spec203_blackbox_mustNotCallMethodsOnSubscriptionOrPublisherInOnError",),
)
async def spec203_calls_nothing_in_on_error(trial: Trial) -> None:
    """Neither on_error nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await receiving.ends(await black(trial), RuntimeError("broken"), sent, "2.3")


@law(
    "2.4",
    "subscriber",
    jvm=(
        "untested_spec204_blackbox_mustConsiderTheSubscriptionAsCancelledInAfter"
        "RecievingOnCompleteOrOnError",
    ),
)
async def spec204_requests_nothing_after_the_end(trial: Trial) -> None:
    """After a terminal signal nothing more is requested; to cancel would do no harm."""
    for end in (None, RuntimeError("broken")):
        await receiving.ends(await black(trial), end, 2, "2.4")


@law(
    "2.5",
    "subscriber",
    jvm=(
        "required_spec205_blackbox_mustCallSubscriptionCancelIfItAlreadyHasAnSubscription"
        "AndReceivesAnotherOnSubscribeSignal",
    ),
)
async def spec205_cancels_a_second_subscription(trial: Trial) -> None:
    """A second subscription is cancelled, and never requested from; the first works on."""
    await receiving.has_enough_of_one(await black(trial))


@law(
    "2.7",
    "subscriber",
    jvm=(
        "untested_spec207_blackbox_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSame"
        "ThreadOrTakeCareOfSynchronization",
    ),
)
async def spec207_calls_one_at_a_time(trial: Trial) -> None:
    """Calls of request and cancel take a moment, and never overlap."""
    await receiving.calls_serially(await black(trial))


@law(
    "2.8",
    "subscriber",
    jvm=(
        "untested_spec208_blackbox_mustBePreparedToReceiveOnNextSignalsAfterHavingCalled"
        "SubscriptionCancel",
    ),
)
async def spec208_takes_elements_under_way(trial: Trial) -> None:
    """Elements that come after it has cancelled by itself are no reason to raise."""
    await receiving.gets_more_after_cancel(await black(trial))


@law(
    "2.9",
    "subscriber",
    jvm=(
        "required_spec209_blackbox_mustBePreparedToReceiveAnOnCompleteSignalWith"
        "PrecedingRequestCall",
    ),
)
async def spec209_takes_completion_after_a_request(trial: Trial) -> None:
    """It requests, and on_complete comes instead of an element."""
    box = await (await black(trial)).begin()
    await box.ask()
    await box.up.on_complete()


@law(
    "2.9",
    "subscriber",
    jvm=(
        "required_spec209_blackbox_mustBePreparedToReceiveAnOnCompleteSignalWithout"
        "PrecedingRequestCall",
    ),
)
async def spec209_takes_completion_at_once(trial: Trial) -> None:
    """on_complete comes right behind on_subscribe."""
    box = await (await black(trial)).begin()
    await box.up.on_complete()


@law(
    "2.10",
    "subscriber",
    jvm=(
        "required_spec210_blackbox_mustBePreparedToReceiveAnOnErrorSignalWithPrecedingRequestCall",
    ),
)
async def spec210_takes_an_error_after_a_request(trial: Trial) -> None:
    """It requests, and on_error comes instead of an element."""
    box = await (await black(trial)).begin()
    await box.ask()
    await box.up.on_error(RuntimeError("broken"))


@law(
    "2.10",
    "subscriber",
    jvm=(
        "required_spec210_blackbox_mustBePreparedToReceiveAnOnErrorSignalWithout"
        "PrecedingRequestCall",
    ),
)
async def spec210_takes_an_error_at_once(trial: Trial) -> None:
    """on_error comes right behind on_subscribe."""
    box = await (await black(trial)).begin()
    await box.up.on_error(RuntimeError("broken"))


@law(
    "2.12",
    "subscriber",
    jvm=("untested_spec212_blackbox_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality",),
)
async def spec212_is_not_fooled_by_equality(trial: Trial) -> None:
    """A second subscription that equals the first is cancelled all the same."""
    await receiving.has_enough_of_one(await black(trial, Equal), Equal)
    await receiving.gets_the_same_again(await black(trial))


@law(
    "2.13",
    "subscriber",
    jvm=(
        "required_spec213_blackbox_onSubscribe_mustThrowNullPointerExceptionWhenParametersAreNull",
    ),
)
async def spec213_refuses_none_in_on_subscribe(trial: Trial) -> None:
    """on_subscribe(None) raises TypeError to the caller."""
    await receiving.refuses_none(await black(trial), "on_subscribe", begun=False)


@law(
    "2.13",
    "subscriber",
    jvm=("required_spec213_blackbox_onNext_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_refuses_none_in_on_next(trial: Trial) -> None:
    """on_next(None) raises TypeError to the caller."""
    await receiving.refuses_none(await black(trial), "on_next", begun=True)


@law(
    "2.13",
    "subscriber",
    jvm=("required_spec213_blackbox_onError_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_refuses_none_in_on_error(trial: Trial) -> None:
    """on_error(None) raises TypeError to the caller."""
    await receiving.refuses_none(await black(trial), "on_error", begun=True)


@law("2.13", "subscriber", jvm=("untested_spec213_blackbox_failingOnSignalInvocation",))
async def spec213_returns_normally(trial: Trial) -> None:
    """No signal raises, whatever the error is that on_error brings, nor goes on for ever."""
    for error in receiving.errors():
        box = await (await black(trial)).begin()
        await box.ask()
        await box.take_all(2)
        await box.up.on_error(error)
        await trial.turn()


@law(
    "3.1",
    "subscriber",
    jvm=("untested_spec301_blackbox_mustNotBeCalledOutsideSubscriberContext",),
)
async def spec301_uses_its_own_subscription(trial: Trial) -> None:
    """Of two subscribers one is served; the other one's subscription is not called for it."""
    await receiving.uses_its_own(await black(trial), await black(trial))


@law(
    "3.8",
    "subscriber",
    jvm=("untested_spec308_blackbox_requestMustRegisterGivenNumberElementsToBeProduced",),
)
async def spec308_takes_all_it_has_requested(trial: Trial) -> None:
    """What it has requested, in however many calls, comes in one go and is taken."""
    await receiving.takes_all_it_requested(await black(trial))


@law(
    "3.10",
    "subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec310_blackbox_requestMaySynchronouslyCallOnNextOnSubscriber",),
)
async def spec310_takes_elements_inside_request(trial: Trial) -> None:
    """A publisher may send elements before request returns; that is no reason to raise."""
    await receiving.is_answered_at_once(await black(trial))


@law(
    "3.11",
    "subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec311_blackbox_requestMaySynchronouslyCallOnCompleteOrOnError",),
)
async def spec311_takes_the_end_inside_request(trial: Trial) -> None:
    """A publisher may send the terminal signal before request returns."""
    await receiving.is_ended_at_once(await black(trial), "on_complete")


@law(
    "3.14",
    "subscriber",
    strength=Strength.MAY,
    jvm=(
        "untested_spec314_blackbox_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists",
    ),
)
async def spec314_takes_the_end_after_cancel(trial: Trial) -> None:
    """A publisher that shuts down as it was cancelled may say so; that is no reason to raise."""
    await receiving.gets_the_end_after_cancel(await black(trial), None)


@law(
    "3.15",
    "subscriber",
    jvm=("untested_spec315_blackbox_cancelMustNotThrowExceptionAndMustSignalOnError",),
)
async def spec315_takes_an_error_after_cancel(trial: Trial) -> None:
    """cancel() goes wrong, returns normally, and on_error says it: that is no reason to raise."""
    await receiving.gets_the_end_after_cancel(await black(trial), RuntimeError("broken"))


@law(
    "3.16",
    "subscriber",
    jvm=("untested_spec316_blackbox_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber",),
)
async def spec316_takes_an_error_inside_request(trial: Trial) -> None:
    """request() goes wrong, and says so by on_error before it returns: no reason to raise."""
    await receiving.is_ended_at_once(await black(trial), "on_error", RuntimeError("broken"))
