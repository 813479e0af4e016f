"""Laws for processors, in addition to those of a publisher and of a white-box subscriber."""

from ...testing.safe_repr import safe_repr
from ..law import NotJudged, law
from ..scenario.equality import all_same, same
from ..scenario.law_context import LawContext
from ..scenario.processor_views import BUFFER_SIZE
from ..scenario.recorder import Recorder
from ..scenario.upstream import Upstream


async def _subscribed_processor(
    context: LawContext, *initial: int
) -> tuple[Upstream, list[Recorder]]:
    """A processor with an upstream, and one subscriber for each number of *initial* demand."""
    _require_subscribers(context, len(initial))
    processor = await context.create("processor", BUFFER_SIZE)
    upstream = Upstream(context, processor, "upstream of the processor")
    subscribers = [context.track(Recorder(context, n)) for n in initial]
    # Downstream first: a cold operator subscribes upstream only when it is subscribed to, and a hot
    # processor sends its elements to the subscribers that it has.
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    await upstream.on_subscribe()
    what = "on_subscribe has not come"
    await context.wait_until(lambda: all(each.subscriptions for each in subscribers), what, "1.9")
    return upstream, subscribers


def _require_subscribers(context: LawContext, count: int) -> None:
    limit = context.candidate.max_subscribers
    if limit is not None and limit < count:
        raise NotJudged(f"the processor accepts {limit} subscribers at a time (max_subscribers)")


async def _pass_element(context: LawContext, upstream: Upstream, *subscribers: Recorder) -> object:
    """Send an element once it is requested; it must arrive at all of *subscribers*."""
    before = [subscriber.received for subscriber in subscribers]
    await upstream.wait_for_demand()
    sent = await upstream.on_next()
    for subscriber, count in zip(subscribers, before, strict=True):
        what = f"{safe_repr(sent, 60)} was requested, sent, and did not arrive"
        await subscriber.wait_for_elements_or_end(count + 1, what, "4.1")
        arrived = subscriber.received > count and same(subscriber.elements[-1], sent)
        what = f"{safe_repr(sent, 60)} was sent; what came is another element or the end"
        subscriber.require(arrived, what, "4.1")
    return sent


async def _pass_completion(upstream: Upstream, *subscribers: Recorder) -> None:
    await upstream.end()
    for subscriber in subscribers:
        await subscriber.wait_for_end("1.5")
        what = f"upstream completed; it failed with {safe_repr(subscriber.error)}"
        subscriber.require(subscriber.is_completed, what, "1.5")


async def _require_failure(error: BaseException, subscriber: Recorder) -> None:
    """The error arrives unchanged, and no element that the processor holds delays it."""
    what = f"on_error({safe_repr(error)}) was received and not passed on"
    if subscriber.requested <= subscriber.received:
        what += " to a subscriber without demand"
    await subscriber.wait_until(lambda: subscriber.is_terminated, what)
    received = subscriber.error
    if received is None:
        raise NotJudged("the processor recovers from the error and completes, as it may")
    what = f"{what}: {safe_repr(received, 80)} came instead"
    subscriber.require(same(received, error), what)


@law("processor")
async def spec104_fails_all_its_subscribers(context: LawContext) -> None:
    """An error from upstream reaches both of two subscribers, also one without any demand.

    The element before it was not requested by that one, and does not hold the error back (4.2).
    """
    coordinated = context.candidate.coordinated_emission
    upstream, (one, other) = await _subscribed_processor(context, 1, 1 if coordinated else 0)
    await _pass_element(context, upstream, one)
    one.request(1)
    error = RuntimeError("broken")
    await upstream.end(error)
    await _require_failure(error, one)
    await _require_failure(error, other)


@law("processor")
async def spec201_keeps_earlier_demand(context: LawContext) -> None:
    """A subscriber that joins without demand does not delay one that requested before."""
    _require_subscribers(context, 2)
    upstream, (one,) = await _subscribed_processor(context, 20)
    for _ in range(2):
        await _pass_element(context, upstream, one)
    processor = upstream.subscriber
    other = await context.watch(processor)
    if context.candidate.coordinated_emission:
        other.request(1)
        await _pass_element(context, upstream, one, other)
    else:
        sent = await _pass_element(context, upstream, one)
        other.request(1)
        await other.wait_for_elements(1, "2.1")
        received = other.elements[0]
        what = f"{safe_repr(sent, 60)} was sent after it joined, {safe_repr(received, 60)} came"
        other.require(same(received, sent), what, "4.1")
    await _pass_completion(upstream, one, other)


@law("processor")
async def spec401_passes_on_what_it_receives(context: LawContext) -> None:
    """Upstream is requested for what downstream requests; the elements arrive in order."""
    upstream, (subscriber,) = await _subscribed_processor(context, 0)
    sent: list[object] = []
    for n in (1, 3, 20):
        subscriber.request(n)
        for _ in range(n):
            sent += [await _pass_element(context, upstream, subscriber)]
    what = f"{safe_repr(sent, 80)} were sent, {safe_repr(subscriber.elements, 80)} came"
    subscriber.require(all_same(subscriber.elements, sent), what)
    await _pass_completion(upstream, subscriber)


@law("processor")
async def spec402_passes_an_error_on_at_once(context: LawContext) -> None:
    """An error from upstream reaches the subscriber without any demand."""
    upstream, (subscriber,) = await _subscribed_processor(context, 0)
    error = RuntimeError("broken")
    await upstream.end(error)
    await upstream.require_inner_subscriber()
    await _require_failure(error, subscriber)


@law("processor")
async def spec402_requests_nothing_after_an_error(context: LawContext) -> None:
    """After on_error nothing more is requested from that upstream, even on recovery."""
    upstream, (subscriber,) = await _subscribed_processor(context, 2)
    await _pass_element(context, upstream, subscriber)
    await context.settle()
    await upstream.end(RuntimeError("broken"))
    if not subscriber.is_terminated:
        subscriber.request(3)
    await context.settle()
    what = f"{sum(upstream.requests_after_end)} more were requested after on_error"
    upstream.require(not upstream.requests_after_end, what)
