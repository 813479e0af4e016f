"""Laws for subscribers that report their signals to a probe and accept commands."""

from ...testing.safe_repr import safe_repr
from ..law import SETUP, NotJudged, law
from ..rules import Strength
from ..scenario.equality import all_same
from ..scenario.law_context import LawContext
from ..scenario.upstream import EqualSubscription
from . import subscriber_scenarios as scenarios
from .subscriber_under_test import new_white_box

__all__ = ()


@law(SETUP, "whitebox_subscriber", jvm=("required_exerciseWhiteboxHappyPath",))
async def setup_probe_and_puppet_work(context: LawContext) -> None:
    """Elements requested on command reach the probe, and a cancel on command goes upstream."""
    tested = await (await new_white_box(context)).start()
    await tested.trigger_demand(1)
    await tested.command("trigger_request", 1)
    await tested.send_element()
    await tested.upstream.wait_for_demand()
    await tested.send_element()
    await tested.trigger_demand(1)
    await tested.send_element()
    await tested.command("signal_cancel")
    if context.candidate.processor is None:
        what = "the puppet was commanded to cancel, and cancel() has not come"
        await tested.upstream.wait_for_cancel("2.6", what)
    tested.upstream.require(
        tested.received == 3, "2.11", f"3 elements were sent, {tested.received} received"
    )


@law(
    "2.1",
    "whitebox_subscriber",
    jvm=("required_spec201_mustSignalDemandViaSubscriptionRequest",),
)
async def spec201_requests_on_command(context: LawContext) -> None:
    """A request on command goes upstream, and that many elements reach the probe."""
    await scenarios.request_and_take(await new_white_box(context))


@law(
    "2.2",
    "whitebox_subscriber",
    strength=Strength.SHOULD,
    jvm=("untested_spec202_shouldAsynchronouslyDispatch",),
)
async def spec202_probed_does_not_block_the_loop(context: LawContext) -> None:
    """No signal, and no task or callback that it makes, blocks the loop."""
    await scenarios.return_quickly(new_white_box(context) for _ in range(scenarios.ATTEMPTS))


@law(
    "2.3",
    "whitebox_subscriber",
    jvm=("required_spec203_mustNotCallMethodsOnSubscriptionOrPublisherInOnComplete",),
)
async def spec203_probed_calls_nothing_in_on_complete(context: LawContext) -> None:
    """Neither on_complete nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await scenarios.terminate(await new_white_box(context), None, sent, "2.3")


@law(
    "2.3",
    "whitebox_subscriber",
    jvm=("required_spec203_mustNotCallMethodsOnSubscriptionOrPublisherInOnError",),
)
async def spec203_probed_calls_nothing_in_on_error(context: LawContext) -> None:
    """Neither on_error nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await scenarios.terminate(await new_white_box(context), RuntimeError("broken"), sent, "2.3")


@law(
    "2.4",
    "whitebox_subscriber",
    jvm=(
        "untested_spec204_mustConsiderTheSubscriptionAsCancelledInAfter"
        "RecievingOnCompleteOrOnError",
    ),
)
async def spec204_probed_requests_nothing_after_the_end(context: LawContext) -> None:
    """After a terminal signal nothing more is requested; a cancellation is allowed."""
    for end in (None, RuntimeError("broken")):
        await scenarios.terminate(await new_white_box(context), end, 2, "2.4")


@law(
    "2.5",
    "whitebox_subscriber",
    jvm=(
        "required_spec205_mustCallSubscriptionCancelIfItAlreadyHasAnSubscription"
        "AndReceivesAnotherOnSubscribeSignal",
    ),
)
async def spec205_probed_cancels_a_second_subscription(context: LawContext) -> None:
    """A second subscription is cancelled and never requested from; the first remains in use."""
    await scenarios.cancel_second_subscription(await new_white_box(context))


@law(
    "2.6",
    "whitebox_subscriber",
    jvm=("untested_spec206_mustCallSubscriptionCancelIfItIsNoLongerValid",),
)
async def spec206_cancels_on_command(context: LawContext) -> None:
    """A subscription that is no longer needed is cancelled, with demand or without."""
    for has_demand in (True, False):
        tested = await (await new_white_box(context)).start()
        if has_demand:
            await tested.trigger_demand()
        await tested.command("signal_cancel")
        await context.settle()
        if not tested.upstream.cancel_calls and context.candidate.processor is not None:
            raise NotJudged("the processor continues when its subscriber cancels, as it may")
        what = "the puppet was commanded to cancel, and cancel() has not come"
        await tested.upstream.wait_for_cancel("2.6", what)


@law(
    "2.7",
    "whitebox_subscriber",
    jvm=(
        "untested_spec207_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSame"
        "ThreadOrTakeCareOfSynchronization",
    ),
)
async def spec207_probed_calls_one_at_a_time(context: LawContext) -> None:
    """Calls of request and cancel take a moment, and do not overlap."""
    await scenarios.call_serially(await new_white_box(context))


@law(
    "2.8",
    "whitebox_subscriber",
    jvm=(
        "required_spec208_mustBePreparedToReceiveOnNextSignalsAfterHavingCalledSubscriptionCancel",
    ),
)
async def spec208_probed_accepts_elements_after_cancel(context: LawContext) -> None:
    """Elements that arrive after the command to cancel do not make it raise."""
    await scenarios.receive_elements_after_cancel(await new_white_box(context))


@law(
    "2.9",
    "whitebox_subscriber",
    jvm=("required_spec209_mustBePreparedToReceiveAnOnCompleteSignalWithPrecedingRequestCall",),
)
async def spec209_probed_takes_completion_after_a_request(context: LawContext) -> None:
    """It requests; on_complete comes instead of an element, and reaches the probe."""
    tested = await (await new_white_box(context)).start()
    await tested.trigger_demand()
    await tested.upstream.on_complete()
    await tested.expect_completion("2.9")


@law(
    "2.9",
    "whitebox_subscriber",
    jvm=("required_spec209_mustBePreparedToReceiveAnOnCompleteSignalWithoutPrecedingRequestCall",),
)
async def spec209_probed_takes_completion_at_once(context: LawContext) -> None:
    """on_complete follows on_subscribe immediately, and reaches the probe."""
    tested = await (await new_white_box(context)).start()
    await tested.upstream.on_complete()
    await tested.expect_completion("2.9")


@law(
    "2.10",
    "whitebox_subscriber",
    jvm=("required_spec210_mustBePreparedToReceiveAnOnErrorSignalWithPrecedingRequestCall",),
)
async def spec210_probed_takes_an_error_after_a_request(context: LawContext) -> None:
    """It requests; on_error comes instead of an element, and reaches the probe unchanged."""
    error = RuntimeError("broken")
    tested = await (await new_white_box(context)).start()
    await tested.trigger_demand()
    await tested.upstream.on_error(error)
    await tested.expect_error(error, "2.10")


@law(
    "2.10",
    "whitebox_subscriber",
    jvm=("required_spec210_mustBePreparedToReceiveAnOnErrorSignalWithoutPrecedingRequestCall",),
)
async def spec210_probed_takes_an_error_at_once(context: LawContext) -> None:
    """on_error follows on_subscribe immediately, and reaches the probe unchanged."""
    error = RuntimeError("broken")
    tested = await (await new_white_box(context)).start()
    await tested.upstream.on_error(error)
    await tested.expect_error(error, "2.10")


@law(
    "2.11",
    "whitebox_subscriber",
    jvm=(
        "untested_spec211_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessing"
        "OfTheRespectiveEvents",
    ),
)
async def spec211_receives_in_order(context: LawContext) -> None:
    """Each signal is received once, in the order in which it was sent."""
    tested = await (await new_white_box(context)).start()
    sent: list[object] = []
    while len(sent) < 6:
        await tested.trigger_demand(3)
        for _ in range(min(3, tested.upstream.outstanding)):
            sent += [await tested.upstream.on_next()]
    await context.wait_until(
        lambda: tested.received >= len(sent),
        "2.11",
        f"{len(sent)} elements were sent and have not all reached the probe",
        tested.upstream.journal,
    )
    await tested.upstream.on_complete()
    await tested.expect_completion("2.11")
    await context.settle()
    assert tested.probe is not None
    received, ends = tested.probe.elements, tested.probe.completions + len(tested.probe.errors)
    tested.upstream.require(
        all_same(received, sent),
        "2.11",
        f"{safe_repr(sent, 80)} were sent, {safe_repr(received, 80)} received",
    )
    tested.upstream.require(
        ends == 1, "2.11", f"one terminal signal was sent, {ends} were received"
    )


@law(
    "2.12",
    "whitebox_subscriber",
    jvm=("untested_spec212_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality_specViolation",),
)
async def spec212_probed_compares_subscriptions_by_identity(context: LawContext) -> None:
    """A second subscription that equals the first is cancelled as well."""
    await scenarios.cancel_second_subscription(
        await new_white_box(context, EqualSubscription), EqualSubscription
    )
    await scenarios.receive_same_subscription_again(await new_white_box(context))


@law(
    "2.13",
    "whitebox_subscriber",
    jvm=("required_spec213_onSubscribe_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_probed_refuses_none_in_on_subscribe(context: LawContext) -> None:
    """on_subscribe(None) raises TypeError to the caller, before a subscription and after it."""
    for is_started in (False, True):
        await scenarios.refuse_none(await new_white_box(context), "on_subscribe", is_started)


@law(
    "2.13",
    "whitebox_subscriber",
    jvm=("required_spec213_onNext_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_probed_refuses_none_in_on_next(context: LawContext) -> None:
    """on_next(None) raises TypeError to the caller, and nothing reaches the probe."""
    await scenarios.refuse_none(await new_white_box(context), "on_next", is_started=True)


@law(
    "2.13",
    "whitebox_subscriber",
    jvm=("required_spec213_onError_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_probed_refuses_none_in_on_error(context: LawContext) -> None:
    """on_error(None) raises TypeError to the caller, and nothing reaches the probe."""
    await scenarios.refuse_none(await new_white_box(context), "on_error", is_started=True)


@law("2.13", "whitebox_subscriber", jvm=("untested_spec213_failingOnSignalInvocation",))
async def spec213_probed_returns_normally(context: LawContext) -> None:
    """No signal raises or runs forever, whatever the error that on_error brings."""
    for error in scenarios.errors():
        tested = await (await new_white_box(context)).start()
        await tested.trigger_demand(2)
        await tested.send_requested(2)
        await tested.upstream.on_error(error)
        await tested.expect_error(error, "2.13")


@law(
    "3.1", "whitebox_subscriber", jvm=("untested_spec301_mustNotBeCalledOutsideSubscriberContext",)
)
async def spec301_probed_uses_its_own_subscription(context: LawContext) -> None:
    """One of two subscribers is served; it does not call the other one's subscription."""
    await scenarios.use_own_subscription(await new_white_box(context), await new_white_box(context))


@law(
    "3.8",
    "whitebox_subscriber",
    jvm=("required_spec308_requestMustRegisterGivenNumberElementsToBeProduced",),
)
async def spec308_requests_add_up(context: LawContext) -> None:
    """Commands to request two and then three elements amount to five requested upstream."""
    tested = await (await new_white_box(context)).start()
    for n in (2, 3):
        await tested.command("trigger_request", n)
        for _ in range(n):
            await tested.upstream.wait_for_demand("3.8")
            await tested.send_element()
    await context.settle()
    tested.upstream.require(
        tested.received == 5, "3.8", f"5 elements were sent, {tested.received} received"
    )


@law(
    "3.10",
    "whitebox_subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec310_requestMaySynchronouslyCallOnNextOnSubscriber",),
)
async def spec310_probed_takes_elements_inside_request(context: LawContext) -> None:
    """A publisher may send elements before request returns; they reach the probe."""
    await scenarios.receive_elements_inside_request(await new_white_box(context))


@law(
    "3.11",
    "whitebox_subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec311_requestMaySynchronouslyCallOnCompleteOrOnError",),
)
async def spec311_probed_takes_the_end_inside_request(context: LawContext) -> None:
    """A publisher may send the terminal signal before request returns; it reaches the probe."""
    await scenarios.receive_end_inside_request(await new_white_box(context), "on_complete")


@law(
    "3.14",
    "whitebox_subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec314_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists",),
)
async def spec314_probed_takes_the_end_after_cancel(context: LawContext) -> None:
    """A publisher that shuts down after cancel() sends on_complete; no signal raises."""
    await scenarios.receive_end_after_cancel(await new_white_box(context), None)


@law(
    "3.15",
    "whitebox_subscriber",
    jvm=("untested_spec315_cancelMustNotThrowExceptionAndMustSignalOnError",),
)
async def spec315_probed_takes_an_error_after_cancel(context: LawContext) -> None:
    """cancel() fails, returns normally and reports the failure by on_error; no signal raises."""
    await scenarios.receive_end_after_cancel(await new_white_box(context), RuntimeError("broken"))


@law(
    "3.16",
    "whitebox_subscriber",
    jvm=("untested_spec316_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber",),
)
async def spec316_probed_takes_an_error_inside_request(context: LawContext) -> None:
    """request() fails and reports it by on_error before it returns; it reaches the probe."""
    await scenarios.receive_end_inside_request(
        await new_white_box(context), "on_error", RuntimeError("broken")
    )
