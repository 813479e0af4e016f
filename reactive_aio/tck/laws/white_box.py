"""Laws for subscribers that tell a probe what they receive, and take orders."""

from typing import Final

from ...testing.safe_repr import safe_repr
from ..law import SETUP, NotJudged, law
from ..rules import Strength
from ..scenario.comparing import all_same
from ..scenario.trial import Trial
from ..scenario.upstream import Equal
from . import receiving
from .box import white

__all__ = ("UNTESTED_WHITE_BOX",)

UNTESTED_WHITE_BOX: Final[dict[str, str]] = {}
"""Tests of the JVM's kit for which there is no law, and why."""


@law(SETUP, "whitebox_subscriber", jvm=("required_exerciseWhiteboxHappyPath",))
async def setup_probe_and_puppet_work(trial: Trial) -> None:
    """What is requested by order arrives at the probe, and cancelling by order arrives above."""
    box = await (await white(trial)).begin()
    await box.ask(1)
    await box.order("trigger_request", 1)
    await box.pass_on()
    await box.up.asked()
    await box.pass_on()
    await box.ask(1)
    await box.pass_on()
    await box.order("signal_cancel")
    if trial.subject.processor is None:
        what = "the puppet was told to cancel, and cancel() has not come"
        await box.up.cancelled("2.6", what)
    box.up.demand(box.received == 3, "2.11", f"3 elements were sent, {box.received} received")


@law(
    "2.1",
    "whitebox_subscriber",
    jvm=("required_spec201_mustSignalDemandViaSubscriptionRequest",),
)
async def spec201_requests_when_told(trial: Trial) -> None:
    """What is requested by order is requested above; that many elements arrive at the probe."""
    await receiving.requests_and_takes(await white(trial))


@law(
    "2.2",
    "whitebox_subscriber",
    strength=Strength.SHOULD,
    jvm=("untested_spec202_shouldAsynchronouslyDispatch",),
)
async def spec202_probed_keeps_nobody_waiting(trial: Trial) -> None:
    """No signal, nor what it makes, holds up the loop: work that takes long is done elsewhere."""
    await receiving.keeps_nobody_waiting(white(trial) for _ in range(receiving.TRIES))


@law(
    "2.3",
    "whitebox_subscriber",
    jvm=("required_spec203_mustNotCallMethodsOnSubscriptionOrPublisherInOnComplete",),
)
async def spec203_probed_calls_nothing_in_on_complete(trial: Trial) -> None:
    """Neither on_complete nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await receiving.ends(await white(trial), None, sent, "2.3")


@law(
    "2.3",
    "whitebox_subscriber",
    jvm=("required_spec203_mustNotCallMethodsOnSubscriptionOrPublisherInOnError",),
)
async def spec203_probed_calls_nothing_in_on_error(trial: Trial) -> None:
    """Neither on_error nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await receiving.ends(await white(trial), RuntimeError("broken"), sent, "2.3")


@law(
    "2.4",
    "whitebox_subscriber",
    jvm=(
        "untested_spec204_mustConsiderTheSubscriptionAsCancelledInAfter"
        "RecievingOnCompleteOrOnError",
    ),
)
async def spec204_probed_requests_nothing_after_the_end(trial: Trial) -> None:
    """After a terminal signal nothing more is requested; to cancel would do no harm."""
    for end in (None, RuntimeError("broken")):
        await receiving.ends(await white(trial), end, 2, "2.4")


@law(
    "2.5",
    "whitebox_subscriber",
    jvm=(
        "required_spec205_mustCallSubscriptionCancelIfItAlreadyHasAnSubscription"
        "AndReceivesAnotherOnSubscribeSignal",
    ),
)
async def spec205_probed_cancels_a_second_subscription(trial: Trial) -> None:
    """A second subscription is cancelled, and never requested from; the first works on."""
    await receiving.has_enough_of_one(await white(trial))


@law(
    "2.6",
    "whitebox_subscriber",
    jvm=("untested_spec206_mustCallSubscriptionCancelIfItIsNoLongerValid",),
)
async def spec206_cancels_when_told(trial: Trial) -> None:
    """A subscription that is needed no longer is cancelled, with demand or without."""
    for ask in (True, False):
        box = await (await white(trial)).begin()
        if ask:
            await box.ask()
        await box.order("signal_cancel")
        await trial.quiet()
        if not box.up.cancels and trial.subject.processor is not None:
            raise NotJudged("the processor goes on when its subscriber cancels, as it may")
        what = "the puppet was told to cancel, and cancel() has not come"
        await box.up.cancelled("2.6", what)


@law(
    "2.7",
    "whitebox_subscriber",
    jvm=(
        "untested_spec207_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSame"
        "ThreadOrTakeCareOfSynchronization",
    ),
)
async def spec207_probed_calls_one_at_a_time(trial: Trial) -> None:
    """Calls of request and cancel take a moment, and never overlap."""
    await receiving.calls_serially(await white(trial))


@law(
    "2.8",
    "whitebox_subscriber",
    jvm=(
        "required_spec208_mustBePreparedToReceiveOnNextSignalsAfterHavingCalledSubscriptionCancel",
    ),
)
async def spec208_probed_takes_elements_under_way(trial: Trial) -> None:
    """Elements that come after it has been told to cancel are no reason to raise."""
    await receiving.gets_more_after_cancel(await white(trial))


@law(
    "2.9",
    "whitebox_subscriber",
    jvm=("required_spec209_mustBePreparedToReceiveAnOnCompleteSignalWithPrecedingRequestCall",),
)
async def spec209_probed_takes_completion_after_a_request(trial: Trial) -> None:
    """It requests, on_complete comes instead of an element, and reaches the probe."""
    box = await (await white(trial)).begin()
    await box.ask()
    await box.up.on_complete()
    await box.told_completion("2.9")


@law(
    "2.9",
    "whitebox_subscriber",
    jvm=("required_spec209_mustBePreparedToReceiveAnOnCompleteSignalWithoutPrecedingRequestCall",),
)
async def spec209_probed_takes_completion_at_once(trial: Trial) -> None:
    """on_complete comes right behind on_subscribe, and reaches the probe."""
    box = await (await white(trial)).begin()
    await box.up.on_complete()
    await box.told_completion("2.9")


@law(
    "2.10",
    "whitebox_subscriber",
    jvm=("required_spec210_mustBePreparedToReceiveAnOnErrorSignalWithPrecedingRequestCall",),
)
async def spec210_probed_takes_an_error_after_a_request(trial: Trial) -> None:
    """It requests, on_error comes instead of an element, and reaches the probe as it is."""
    error = RuntimeError("broken")
    box = await (await white(trial)).begin()
    await box.ask()
    await box.up.on_error(error)
    await box.told_error(error, "2.10")


@law(
    "2.10",
    "whitebox_subscriber",
    jvm=("required_spec210_mustBePreparedToReceiveAnOnErrorSignalWithoutPrecedingRequestCall",),
)
async def spec210_probed_takes_an_error_at_once(trial: Trial) -> None:
    """on_error comes right behind on_subscribe, and reaches the probe as it is."""
    error = RuntimeError("broken")
    box = await (await white(trial)).begin()
    await box.up.on_error(error)
    await box.told_error(error, "2.10")


@law(
    "2.11",
    "whitebox_subscriber",
    jvm=(
        "untested_spec211_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessing"
        "OfTheRespectiveEvents",
    ),
)
async def spec211_receives_in_order(trial: Trial) -> None:
    """Each signal is received once, in the order in which it was sent."""
    box = await (await white(trial)).begin()
    sent: list[object] = []
    while len(sent) < 6:
        await box.ask(3)
        for _ in range(min(3, box.up.outstanding)):
            sent += [await box.up.on_next()]
    await trial.until(
        lambda: box.received >= len(sent),
        "2.11",
        f"{len(sent)} elements were sent and have not all reached the probe",
        box.up.journal,
    )
    await box.up.on_complete()
    await box.told_completion("2.11")
    await trial.quiet()
    assert box.probe is not None
    got, ends = box.probe.elements, box.probe.completions + len(box.probe.errors)
    box.up.demand(
        all_same(got, sent),
        "2.11",
        f"{safe_repr(sent, 80)} were sent, {safe_repr(got, 80)} received",
    )
    box.up.demand(ends == 1, "2.11", f"one terminal signal was sent, {ends} were received")


@law(
    "2.12",
    "whitebox_subscriber",
    jvm=("untested_spec212_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality_specViolation",),
)
async def spec212_probed_is_not_fooled_by_equality(trial: Trial) -> None:
    """A second subscription that equals the first is cancelled all the same."""
    await receiving.has_enough_of_one(await white(trial, Equal), Equal)
    await receiving.gets_the_same_again(await white(trial))


@law(
    "2.13",
    "whitebox_subscriber",
    jvm=("required_spec213_onSubscribe_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_probed_refuses_none_in_on_subscribe(trial: Trial) -> None:
    """on_subscribe(None) raises TypeError to the caller, before a subscription and after it."""
    for begun in (False, True):
        await receiving.refuses_none(await white(trial), "on_subscribe", begun)


@law(
    "2.13",
    "whitebox_subscriber",
    jvm=("required_spec213_onNext_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_probed_refuses_none_in_on_next(trial: Trial) -> None:
    """on_next(None) raises TypeError to the caller, and the probe is told of nothing."""
    await receiving.refuses_none(await white(trial), "on_next", begun=True)


@law(
    "2.13",
    "whitebox_subscriber",
    jvm=("required_spec213_onError_mustThrowNullPointerExceptionWhenParametersAreNull",),
)
async def spec213_probed_refuses_none_in_on_error(trial: Trial) -> None:
    """on_error(None) raises TypeError to the caller, and the probe is told of nothing."""
    await receiving.refuses_none(await white(trial), "on_error", begun=True)


@law("2.13", "whitebox_subscriber", jvm=("untested_spec213_failingOnSignalInvocation",))
async def spec213_probed_returns_normally(trial: Trial) -> None:
    """No signal raises, whatever the error is that on_error brings, nor goes on for ever."""
    for error in receiving.errors():
        box = await (await white(trial)).begin()
        await box.ask(2)
        await box.take_all(2)
        await box.up.on_error(error)
        await box.told_error(error, "2.13")


@law(
    "3.1", "whitebox_subscriber", jvm=("untested_spec301_mustNotBeCalledOutsideSubscriberContext",)
)
async def spec301_probed_uses_its_own_subscription(trial: Trial) -> None:
    """Of two subscribers one is served; the other one's subscription is not called for it."""
    await receiving.uses_its_own(await white(trial), await white(trial))


@law(
    "3.8",
    "whitebox_subscriber",
    jvm=("required_spec308_requestMustRegisterGivenNumberElementsToBeProduced",),
)
async def spec308_requests_add_up(trial: Trial) -> None:
    """Two, and then three more, are requested by order: so many are requested above, in the end."""
    box = await (await white(trial)).begin()
    for n in (2, 3):
        await box.order("trigger_request", n)
        for _ in range(n):
            await box.up.asked("3.8")
            await box.pass_on()
    await trial.quiet()
    box.up.demand(box.received == 5, "3.8", f"5 elements were sent, {box.received} received")


@law(
    "3.10",
    "whitebox_subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec310_requestMaySynchronouslyCallOnNextOnSubscriber",),
)
async def spec310_probed_takes_elements_inside_request(trial: Trial) -> None:
    """A publisher may send elements before request returns: they reach the probe."""
    await receiving.is_answered_at_once(await white(trial))


@law(
    "3.11",
    "whitebox_subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec311_requestMaySynchronouslyCallOnCompleteOrOnError",),
)
async def spec311_probed_takes_the_end_inside_request(trial: Trial) -> None:
    """A publisher may send the terminal signal before request returns: it reaches the probe."""
    await receiving.is_ended_at_once(await white(trial), "on_complete")


@law(
    "3.14",
    "whitebox_subscriber",
    strength=Strength.MAY,
    jvm=("untested_spec314_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists",),
)
async def spec314_probed_takes_the_end_after_cancel(trial: Trial) -> None:
    """A publisher that shuts down as it was cancelled may say so; that is no reason to raise."""
    await receiving.gets_the_end_after_cancel(await white(trial), None)


@law(
    "3.15",
    "whitebox_subscriber",
    jvm=("untested_spec315_cancelMustNotThrowExceptionAndMustSignalOnError",),
)
async def spec315_probed_takes_an_error_after_cancel(trial: Trial) -> None:
    """cancel() goes wrong, returns normally, and on_error says it: that is no reason to raise."""
    await receiving.gets_the_end_after_cancel(await white(trial), RuntimeError("broken"))


@law(
    "3.16",
    "whitebox_subscriber",
    jvm=("untested_spec316_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber",),
)
async def spec316_probed_takes_an_error_inside_request(trial: Trial) -> None:
    """request() goes wrong, and says so by on_error before it returns: it reaches the probe."""
    await receiving.is_ended_at_once(await white(trial), "on_error", RuntimeError("broken"))
