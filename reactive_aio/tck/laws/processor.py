"""Laws for processors, besides those of a publisher and of a white-box subscriber."""

from ...testing.safe_repr import safe_repr
from ..law import NotJudged, law
from ..scenario.comparing import all_same, same
from ..scenario.recorder import Recorder
from ..scenario.trial import Trial
from ..scenario.upstream import Upstream
from ..scenario.views import BUFFER

__all__ = ()


async def _between(trial: Trial, *first: int) -> tuple[Upstream, list[Recorder]]:
    """A processor, fed by hand, and one subscriber for each of *first*, what it requests."""
    most = trial.subject.max_subscribers
    if most is not None and most < len(first):
        raise NotJudged(f"the processor takes {most} subscribers at a time (max_subscribers)")
    processor = await trial.make("processor", BUFFER)
    up = Upstream(trial, processor, "upstream of the processor")
    tails = [trial.add(Recorder(trial, n)) for n in first]
    # A cold operator has no subscriber of its own before it is subscribed to, and a hot
    # processor gives its elements to who is there: so downstream comes first.
    for tail in tails:
        processor.subscribe(tail)
    await up.on_subscribe()
    for tail in tails:
        await _subscribed(trial, tail)
    return up, tails


async def _subscribed(trial: Trial, tail: Recorder) -> None:
    await trial.until(lambda: tail.subscriptions, "1.9", "on_subscribe has not come", tail.journal)


async def _through(trial: Trial, up: Upstream, *tails: Recorder) -> object:
    """Send an element when it is asked for; it arrives at all of *tails*."""
    before = [tail.received for tail in tails]
    await up.asked()
    sent = await up.on_next()
    for tail, count in zip(tails, before, strict=True):
        await tail.reached(
            count + 1, "4.1", f"{safe_repr(sent, 60)} was requested, sent, and did not arrive"
        )
        arrived = tail.received > count and same(tail.elements[-1], sent)
        tail.demand(
            arrived,
            "4.1",
            f"{safe_repr(sent, 60)} was sent; what came is another element or the end",
        )
    return sent


async def _fails_with(error: BaseException, tail: Recorder, rule: str) -> None:
    what = f"on_error({safe_repr(error)}) was received and not passed on"
    await tail.trial.until(lambda: tail.ended, rule, what, tail.journal)
    got = tail.error
    if got is None:
        raise NotJudged("the processor recovers from the error and completes, as it may")
    causes = (got, got.__cause__, got.__context__)
    passed = any(same(each, error) for each in causes)
    tail.demand(passed, rule, f"{what}: {safe_repr(got, 80)} came instead")


@law(
    "1.4",
    "processor",
    jvm=("required_spec104_mustCallOnErrorOnAllItsSubscribersIfItEncountersANonRecoverableError",),
)
async def spec104_fails_all_its_subscribers(trial: Trial) -> None:
    """An error from upstream reaches both of two subscribers, though one has requested nothing."""
    coordinated = trial.subject.coordinated_emission
    up, (one, other) = await _between(trial, 1, 1 if coordinated else 0)
    await _through(trial, up, one)
    one.request(1)
    error = RuntimeError("broken")
    await up.on_error(error)
    await _fails_with(error, one, "1.4")
    if not other.ended and up.sent and other.requested < up.sent:
        # What is held for it goes before the error.
        other.request(up.sent)
    await _fails_with(error, other, "1.4")


@law(
    "2.1",
    "processor",
    jvm=("required_mustRequestFromUpstreamForElementsThatHaveBeenRequestedLongAgo",),
)
async def spec201_remembers_demand_of_long_ago(trial: Trial) -> None:
    """Twenty were requested by one; another one that joins without demand does not hold it up."""
    most = trial.subject.max_subscribers
    if most is not None and most < 2:
        raise NotJudged(f"the processor takes {most} subscribers at a time (max_subscribers)")
    up, (one,) = await _between(trial, 20)
    for _ in range(2):
        await _through(trial, up, one)
    processor = up.subscriber
    other = await trial.watch(processor)
    if trial.subject.coordinated_emission:
        other.request(1)
        await _through(trial, up, one, other)
    else:
        sent = await _through(trial, up, one)
        other.request(1)
        await other.took(1, "2.1")
        got = other.elements[0]
        other.demand(
            same(got, sent),
            "4.1",
            f"{safe_repr(sent, 60)} was sent after it joined, {safe_repr(got, 60)} came",
        )
    await up.on_complete()
    for tail in (one, other):
        await tail.end("1.5")
        tail.demand(
            tail.completed, "1.5", f"upstream completed; it failed with {safe_repr(tail.error)}"
        )


@law("4.1", "processor")
async def spec401_passes_on_what_it_gets(trial: Trial) -> None:
    """As many elements are asked of upstream as downstream requests; they arrive, in order."""
    up, (tail,) = await _between(trial, 0)
    sent: list[object] = []
    for n in (1, 3, 20):
        tail.request(n)
        for _ in range(n):
            sent += [await _through(trial, up, tail)]
    tail.demand(
        all_same(tail.elements, sent),
        "4.1",
        f"{safe_repr(sent, 80)} were sent, {safe_repr(tail.elements, 80)} came",
    )
    await up.on_complete()
    await tail.end("1.5")
    tail.demand(
        tail.completed, "1.5", f"upstream completed; it failed with {safe_repr(tail.error)}"
    )


@law(
    "4.2",
    "processor",
    jvm=("mustImmediatelyPassOnOnErrorEventsReceivedFromItsUpstreamToItsDownstream",),
)
async def spec402_passes_an_error_on_at_once(trial: Trial) -> None:
    """An error from upstream reaches the subscriber without any demand."""
    up, (tail,) = await _between(trial, 0)
    error = RuntimeError("broken")
    await up.on_error(error)
    await up.reached_it()
    await _fails_with(error, tail, "4.2")


@law("4.2", "processor")
async def spec402_is_done_with_upstream_after_an_error(trial: Trial) -> None:
    """Recovered or not: after on_error nothing is requested of that upstream any more."""
    up, (tail,) = await _between(trial, 2)
    await _through(trial, up, tail)
    await trial.quiet()
    await up.on_error(RuntimeError("broken"))
    if not tail.ended:
        tail.request(3)
    await trial.quiet()
    up.demand(not up.late, "4.2", f"{sum(up.late)} more were requested after on_error")
