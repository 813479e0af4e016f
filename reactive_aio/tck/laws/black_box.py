"""Laws for subscribers of which only the requests are observed."""

from typing import Final

from ..law import law
from ..rules import Strength
from ..scenario.law_context import LawContext
from ..scenario.upstream import EqualSubscription
from . import subscriber_scenarios as scenarios
from .subscriber_under_test import new_black_box

__all__ = ("UNTESTED_BLACK_BOX",)

UNTESTED_BLACK_BOX: Final[dict[str, str]] = {
    "untested_spec206_blackbox_mustCallSubscriptionCancelIfItIsNoLongerValid": (
        "only the subscriber knows when it needs no more; a white box is commanded to cancel"
    ),
    "untested_spec211_blackbox_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessing"
    "OfTheRespectiveEvents": "its processing is not observed; that of a white box is",
}
"""Tests of the JVM's kit for which there is no law, and why."""


@law(
    "2.1",
    "subscriber",
    jvm=("required_spec201_blackbox_mustSignalDemandViaSubscriptionRequest",),
)
async def spec201_requests_what_it_takes(context: LawContext) -> None:
    """It requests, and receives as many elements as it has requested, in three rounds."""
    await scenarios.request_and_take(await new_black_box(context))


@law(
    "2.2",
    "subscriber",
    strength=Strength.SHOULD,
    jvm=("untested_spec202_blackbox_shouldAsynchronouslyDispatch",),
)
async def spec202_does_not_block_the_loop(context: LawContext) -> None:
    """No signal, and no task or callback that it makes, blocks the loop."""
    await scenarios.return_quickly(new_black_box(context) for _ in range(scenarios.ATTEMPTS))


@law(
    "2.3",
    "subscriber",
    jvm=("required_spec203_blackbox_mustNotCallMethodsOnSubscriptionOrPublisherInOnComplete",),
)
async def spec203_calls_nothing_in_on_complete(context: LawContext) -> None:
    """Neither on_complete nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await scenarios.terminate(await new_black_box(context), None, sent, "2.3")


@law(
    "2.3",
    "subscriber",
    jvm=("required_spec203_blackbox_mustNotCallMethodsOnSubscriptionOrPublisherInOnError",),
)
async def spec203_calls_nothing_in_on_error(context: LawContext) -> None:
    """Neither on_error nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await scenarios.terminate(await new_black_box(context), RuntimeError("broken"), sent, "2.3")


@law(
    "2.4",
    "subscriber",
    jvm=(
        "untested_spec204_blackbox_mustConsiderTheSubscriptionAsCancelledInAfter"
        "RecievingOnCompleteOrOnError",
    ),
)
async def spec204_requests_nothing_after_the_end(context: LawContext) -> None:
    """After a terminal signal nothing more is requested; a cancellation is allowed."""
    for end in (None, RuntimeError("broken")):
        await scenarios.terminate(await new_black_box(context), end, 2, "2.4")


@law(
    "2.5",
    "subscriber",
    jvm=(
        "required_spec205_blackbox_mustCallSubscriptionCancelIfItAlreadyHasAnSubscription"
        "AndReceivesAnotherOnSubscribeSignal",
    ),
)
async def spec205_cancels_a_second_subscription(context: LawContext) -> None:
    """A second subscription is cancelled and never requested from; the first remains in use."""
    await scenarios.cancel_second_subscription(await new_black_box(context))


@law(
    "2.7",
    "subscriber",
    jvm=(
        "untested_spec207_blackbox_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSame"
        "ThreadOrTakeCareOfSynchronization",
    ),
)
async def spec207_calls_one_at_a_time(context: LawContext) -> None:
    """Calls of request and cancel take a moment, and do not overlap."""
    await scenarios.call_serially(await new_black_box(context))


@law(
    "2.8",
    "subscriber",
    jvm=(
        "untested_spec208_blackbox_mustBePreparedToReceiveOnNextSignalsAfterHavingCalled"
        "SubscriptionCancel",
    ),
)
async def spec208_accepts_elements_after_cancel(context: LawContext) -> None:
    """Elements that arrive after it has cancelled by itself do not make it raise."""
    await scenarios.receive_elements_after_cancel(await new_black_box(context))


@law(
    "2.9",
    "subscriber",
    jvm=(
        "required_spec209_blackbox_mustBePreparedToReceiveAnOnCompleteSignalWith"
        "PrecedingRequestCall",
    ),
)
async def spec209_takes_completion_after_a_request(context: LawContext) -> None:
    """It requests, and receives on_complete instead of an element."""
    tested = await (await new_black_box(context)).start()
    await tested.trigger_demand()
    await tested.upstream.on_complete()


@law(
    "2.9",
    "subscriber",
    jvm=(
        "required_spec209_blackbox_mustBePreparedToReceiveAnOnCompleteSignalWithout"
        "PrecedingRequestCall",
    ),
)
async def spec209_takes_completion_at_once(context: LawContext) -> None:
    """on_complete follows on_subscribe immediately."""
    tested = await (await new_black_box(context)).start()
    await tested.upstream.on_complete()


@law(
    "2.10",
    "subscriber",
    jvm=(
        "required_spec210_blackbox_mustBePreparedToReceiveAnOnErrorSignalWithPrecedingRequestCall",
    ),
)
async def spec210_takes_an_error_after_a_request(context: LawContext) -> None:
    """It requests, and receives on_error instead of an element."""
    tested = await (await new_black_box(context)).start()
    await tested.trigger_demand()
    await tested.upstream.on_error(RuntimeError("broken"))


@law(
    "2.10",
    "subscriber",
    jvm=(
        "required_spec210_blackbox_mustBePreparedToReceiveAnOnErrorSignalWithout"
        "PrecedingRequestCall",
    ),
)
async def spec210_takes_an_error_at_once(context: LawContext) -> None:
    """on_error follows on_subscribe immediately."""
    tested = await (await new_black_box(context)).start()
    await tested.upstream.on_error(RuntimeError("broken"))


@law(
    "2.12",
    "subscriber",
    jvm=("untested_spec212_blackbox_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality",),
)
async def spec212_compares_subscriptions_by_identity(context: LawContext) -> None:
    """A second subscription that equals the first is cancelled as well."""
    await scenarios.cancel_second_subscription(
        await new_black_box(context, EqualSubscription), EqualSubscription
    )
    await scenarios.receive_same_subscription_again(await new_black_box(context))


@law(
    "2.13",
    "subscriber",
    jvm=(
        "required_spec213_blackbox_onSubscribe_mustThrowNullPointerExceptionWhenParametersAreNull",
    ),
)
async def spec213_refuses_none_in_on_subscribe(context: LawContext) -> None:
    """on_subscribe(None) raises TypeError to the caller."""
    await scenarios.refuse_none(await new_black_box(context), "on_subscribe", is_started=False)


@law(
    "2.13",
    "subscriber",
    jvm=("required_spec213_blackbox_onNext_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_refuses_none_in_on_next(context: LawContext) -> None:
    """on_next(None) raises TypeError to the caller."""
    await scenarios.refuse_none(await new_black_box(context), "on_next", is_started=True)


@law(
    "2.13",
    "subscriber",
    jvm=("required_spec213_blackbox_onError_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_refuses_none_in_on_error(context: LawContext) -> None:
    """on_error(None) raises TypeError to the caller."""
    await scenarios.refuse_none(await new_black_box(context), "on_error", is_started=True)


@law("2.13", "subscriber", jvm=("untested_spec213_blackbox_failingOnSignalInvocation",))
async def spec213_returns_normally(context: LawContext) -> None:
    """No signal raises or runs forever, whatever the error that on_error brings."""
    for error in scenarios.errors():
        tested = await (await new_black_box(context)).start()
        await tested.trigger_demand()
        await tested.send_requested(2)
        await tested.upstream.on_error(error)
        await context.turn()


@law(
    "3.1",
    "subscriber",
    jvm=("untested_spec301_blackbox_mustNotBeCalledOutsideSubscriberContext",),
)
async def spec301_uses_its_own_subscription(context: LawContext) -> None:
    """One of two subscribers is served; it does not call the other one's subscription."""
    await scenarios.use_own_subscription(await new_black_box(context), await new_black_box(context))


@law(
    "3.8",
    "subscriber",
    jvm=("untested_spec308_blackbox_requestMustRegisterGivenNumberElementsToBeProduced",),
)
async def spec308_takes_all_it_has_requested(context: LawContext) -> None:
    """All requested elements arrive without a pause, and it accepts them."""
    await scenarios.take_all_requested(await new_black_box(context))


@law(
    "3.10",
    "subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec310_blackbox_requestMaySynchronouslyCallOnNextOnSubscriber",),
)
async def spec310_takes_elements_inside_request(context: LawContext) -> None:
    """A publisher may send elements before request returns; no signal raises."""
    await scenarios.receive_elements_inside_request(await new_black_box(context))


@law(
    "3.11",
    "subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec311_blackbox_requestMaySynchronouslyCallOnCompleteOrOnError",),
)
async def spec311_takes_the_end_inside_request(context: LawContext) -> None:
    """A publisher may send the terminal signal before request returns; it does not raise."""
    await scenarios.receive_end_inside_request(await new_black_box(context), "on_complete")


@law(
    "3.14",
    "subscriber",
    strength=Strength.MAY,
    jvm=(
        "untested_spec314_blackbox_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists",
    ),
)
async def spec314_takes_the_end_after_cancel(context: LawContext) -> None:
    """A publisher that shuts down after cancel() sends on_complete; no signal raises."""
    await scenarios.receive_end_after_cancel(await new_black_box(context), None)


@law(
    "3.15",
    "subscriber",
    jvm=("untested_spec315_blackbox_cancelMustNotThrowExceptionAndMustSignalOnError",),
)
async def spec315_takes_an_error_after_cancel(context: LawContext) -> None:
    """cancel() fails, returns normally and reports the failure by on_error; no signal raises."""
    await scenarios.receive_end_after_cancel(await new_black_box(context), RuntimeError("broken"))


@law(
    "3.16",
    "subscriber",
    jvm=("untested_spec316_blackbox_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber",),
)
async def spec316_takes_an_error_inside_request(context: LawContext) -> None:
    """request() fails and reports it by on_error before it returns; no signal raises."""
    await scenarios.receive_end_inside_request(
        await new_black_box(context), "on_error", RuntimeError("broken")
    )
