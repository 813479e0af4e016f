"""Laws for subscribers: as a black box, by their requests, and as a white box with a probe."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final

from ...testing.safe_repr import safe_repr
from ..law import Law, law
from ..rules import Strength
from ..scenario.equality import all_same
from ..scenario.heartbeat import Heartbeat
from ..scenario.law_context import LawContext, fast_thread_switches
from ..scenario.upstream import MAX_SENT, SubscriberUnderTest, new_subscriber

ATTEMPTS: Final = 3


NewSubscriber = Callable[[], Awaitable[SubscriberUnderTest]]
"""Makes the subscriber of a scenario, as a black box or as a white box."""
Scenario = Callable[[NewSubscriber], Coroutine[Any, Any, None]]


class Unusual(BaseException):
    """An error that is not an Exception."""


def subscriber_laws(strength: Strength = Strength.MUST) -> Callable[[Scenario], tuple[Law, Law]]:
    """Make two laws of a scenario: for a black box, and as ``spec…_probed_…`` for a white box."""

    def decorate(scenario: Scenario) -> tuple[Law, Law]:
        return make(scenario, "subscriber", ""), make(scenario, "whitebox_subscriber", "probed_")

    def make(scenario: Scenario, factory: str, infix: str) -> Law:
        async def on_context(context: LawContext) -> None:
            await scenario(partial(new_subscriber, context, factory))

        prefix, _, rest = scenario.__name__.partition("_")
        on_context.__name__, on_context.__doc__ = f"{prefix}_{infix}{rest}", scenario.__doc__
        return law(factory, strength=strength)(on_context)

    return decorate


# -- laws for both -------------------------------------------------------------------------------
@subscriber_laws()
async def spec201_requests_what_it_takes(new: NewSubscriber) -> None:
    """Elements arrive as requested, in three rounds."""
    tested = await (await new()).start()
    await tested.trigger_demand(3)
    for _ in range(3):
        await tested.send_requested()
        await tested.context.settle()
        if tested.upstream.cancel_calls:
            return
        if not tested.sendable and (tested.probe or tested.context.candidate.trigger_request):
            await tested.trigger_demand(3)
    await tested.upstream.end()
    await tested.expect_end()


@subscriber_laws(Strength.SHOULD)
async def spec202_does_not_block_the_loop(new: NewSubscriber) -> None:
    """No signal, and no task or callback that it makes, blocks the loop."""
    with Heartbeat() as heartbeat:
        for attempt in range(ATTEMPTS):
            tested = await new()
            tested.upstream.heartbeat = heartbeat
            await tested.start()
            await tested.trigger_demand(2)
            await tested.send_requested(2)
            await tested.upstream.end()
            took, signal = tested.upstream.longest_block
            if took <= tested.context.timeouts.max_block:
                return
            if attempt == ATTEMPTS - 1:
                tested.upstream.require(False, f"{signal} blocked the loop for {took:.1f} s")


@subscriber_laws()
async def spec203_calls_nothing_in_on_complete(new: NewSubscriber) -> None:
    """Neither on_complete nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await (await new()).terminate(None, sent)


@subscriber_laws()
async def spec203_calls_nothing_in_on_error(new: NewSubscriber) -> None:
    """Neither on_error nor a task or callback that it makes calls the subscription."""
    for sent in (0, 2):
        await (await new()).terminate(RuntimeError("broken"), sent)


@subscriber_laws()
async def spec204_requests_nothing_after_the_end(new: NewSubscriber) -> None:
    """After a terminal signal nothing more is requested; a cancellation is allowed."""
    for end in (None, RuntimeError("broken")):
        await (await new()).terminate(end, 2)


@subscriber_laws()
async def spec205_cancels_a_second_subscription(new: NewSubscriber) -> None:
    """A second subscription is cancelled and never requested from; the first remains in use."""
    await (await new()).cancel_second_subscription()


@subscriber_laws()
async def spec207_calls_one_at_a_time(new: NewSubscriber) -> None:
    """Calls of request and cancel take a moment, and do not overlap."""
    tested = await new()
    tested.upstream.call_seconds = 0.001
    with fast_thread_switches():
        await tested.start()
        await tested.trigger_demand()
        for _ in range(12):
            if tested.sendable:
                await tested.upstream.on_next()
            await tested.context.turn()
            if tested.probe is not None and not tested.sendable:
                await tested.trigger_demand()
        await tested.context.settle()


@subscriber_laws()
async def spec208_accepts_elements_after_cancel(new: NewSubscriber) -> None:
    """Elements that arrive after it has cancelled do not make it raise."""
    tested = await (await new()).bring_to_cancel()
    for _ in range(max(0, min(3, tested.upstream.requested - tested.upstream.sent))):
        await tested.upstream.on_next()
    if tested.probe is not None:
        for _ in range(2):
            await tested.command("trigger_request", 1)
    await tested.context.settle()


@subscriber_laws()
async def spec209_takes_completion_after_a_request(new: NewSubscriber) -> None:
    """It requests, and receives on_complete instead of an element."""
    tested = await (await new()).start()
    await tested.trigger_demand()
    await tested.upstream.end()
    await tested.expect_end()


@subscriber_laws()
async def spec209_takes_completion_at_once(new: NewSubscriber) -> None:
    """on_complete follows on_subscribe immediately."""
    tested = await (await new()).start()
    await tested.upstream.end()
    await tested.expect_end()


@subscriber_laws()
async def spec210_takes_an_error_after_a_request(new: NewSubscriber) -> None:
    """It requests, and receives on_error instead of an element."""
    error = RuntimeError("broken")
    tested = await (await new()).start()
    await tested.trigger_demand()
    await tested.upstream.end(error)
    await tested.expect_end(error)


@subscriber_laws()
async def spec210_takes_an_error_at_once(new: NewSubscriber) -> None:
    """on_error follows on_subscribe immediately."""
    error = RuntimeError("broken")
    tested = await (await new()).start()
    await tested.upstream.end(error)
    await tested.expect_end(error)


@subscriber_laws()
async def spec212_compares_subscriptions_by_identity(new: NewSubscriber) -> None:
    """A second subscription that equals the first is cancelled as well."""
    await (await new()).cancel_second_subscription(is_equal=True)
    tested = await (await new()).start()
    await tested.trigger_demand(2)
    await tested.upstream.on_subscribe()
    await tested.context.settle()
    await tested.send_requested(2)


@subscriber_laws()
async def spec213_refuses_none_in_on_subscribe(new: NewSubscriber) -> None:
    """on_subscribe(None) raises TypeError to the caller."""
    tested = await new()
    await tested.refuse_none("on_subscribe", is_started=False)
    if tested.probe is not None:
        await (await new()).refuse_none("on_subscribe", is_started=True)


@subscriber_laws()
async def spec213_refuses_none_in_on_next(new: NewSubscriber) -> None:
    """on_next(None) raises TypeError to the caller."""
    await (await new()).refuse_none("on_next", is_started=True)


@subscriber_laws()
async def spec213_refuses_none_in_on_error(new: NewSubscriber) -> None:
    """on_error(None) raises TypeError to the caller."""
    await (await new()).refuse_none("on_error", is_started=True)


@subscriber_laws()
async def spec213_returns_normally(new: NewSubscriber) -> None:
    """No signal raises or runs forever, whatever the error that on_error brings."""
    errors = (
        RuntimeError("broken"),
        Unusual("broken"),
        ExceptionGroup("several", [ValueError(1), ValueError(2)]),
        StopIteration("broken"),
        StopAsyncIteration("broken"),
        asyncio.CancelledError("broken"),
    )
    for error in errors:
        tested = await (await new()).start()
        await tested.trigger_demand(2)
        await tested.send_requested(2)
        await tested.upstream.end(error)
        await tested.context.turn()
        await tested.expect_end(error)


@subscriber_laws()
async def spec301_uses_its_own_subscription(new: NewSubscriber) -> None:
    """One of two subscribers is served; it does not call the other one's subscription."""
    one, other = await new(), await new()
    for tested in (one, other):
        await tested.start()
        await tested.trigger_demand()
    await one.context.settle()
    before = other.upstream.request_calls, other.upstream.cancel_calls
    await one.trigger_demand(4)
    await one.send_requested(4)
    if one.probe is not None and not one.upstream.cancel_calls:
        await one.command("trigger_request", 3)
    await one.context.settle()
    after = other.upstream.request_calls, other.upstream.cancel_calls
    what = "one subscriber was served, and the subscription of another one was called"
    other.upstream.require(before == after, what)


@subscriber_laws(Strength.MAY)
async def spec310_takes_elements_inside_request(new: NewSubscriber) -> None:
    """A publisher may send elements before request returns; no signal raises."""
    tested = await new()
    upstream = tested.upstream

    def send_elements() -> None:
        while upstream.outstanding > 0 and upstream.sent < MAX_SENT:
            upstream.signal_inside_request("on_next", upstream.next_element())

    await tested.answer_inside_request(3, send_elements)
    probe = tested.probe
    if probe is not None:
        sent = upstream.sent
        what = f"{sent} elements were sent inside of request, {len(probe.elements)} received"
        upstream.require(len(probe.elements) <= sent, what, "2.11")
        received = safe_repr(probe.elements, 80)
        what = f"3 elements were requested and sent inside of request: {received}"
        upstream.require(len(probe.elements) >= min(sent, 3), what, "2.11")


@subscriber_laws(Strength.MAY)
async def spec311_takes_the_end_inside_request(new: NewSubscriber) -> None:
    """A publisher may send on_complete before request returns; it does not raise."""
    await (await new()).receive_end_inside_request(None)


@subscriber_laws(Strength.MAY)
async def spec314_takes_the_end_after_cancel(new: NewSubscriber) -> None:
    """A publisher that shuts down after cancel() sends on_complete; no signal raises."""
    tested = await (await new()).bring_to_cancel()
    await tested.upstream.end()
    await tested.context.settle()


@subscriber_laws()
async def spec315_takes_an_error_after_cancel(new: NewSubscriber) -> None:
    """cancel() fails, returns normally and reports the failure by on_error; no signal raises."""
    tested = await (await new()).bring_to_cancel()
    await tested.upstream.end(RuntimeError("broken"))
    await tested.context.settle()


@subscriber_laws()
async def spec316_takes_an_error_inside_request(new: NewSubscriber) -> None:
    """request() fails and reports it by on_error before it returns; no signal raises."""
    await (await new()).receive_end_inside_request(RuntimeError("broken"))


# -- laws for one of them -------------------------------------------------------------------------
@law("subscriber")
async def spec308_takes_all_it_has_requested(context: LawContext) -> None:
    """All requested elements arrive without a pause, and it accepts them."""
    tested = await (await new_subscriber(context, "subscriber")).start()
    await tested.trigger_demand(2)
    await context.settle()
    for _ in range(min(tested.upstream.outstanding, MAX_SENT)):
        if not tested.upstream.outstanding:
            break
        await tested.upstream.on_next()
    await context.settle()


@law("whitebox_subscriber")
async def setup_probe_and_puppet_work(context: LawContext) -> None:
    """Elements requested on command reach the probe, and a cancel on command goes upstream."""
    tested = await (await new_subscriber(context, "whitebox_subscriber")).start()
    await tested.trigger_demand(1)
    await tested.command("trigger_request", 1)
    await tested.send_element()
    await tested.upstream.wait_for_demand()
    await tested.send_element()
    await tested.trigger_demand(1)
    await tested.send_element()
    await tested.cancel_on_command()
    what = f"3 elements were sent, {tested.received} received"
    tested.upstream.require(tested.received == 3, what, "2.11")


@law("whitebox_subscriber")
async def spec206_cancels_on_command(context: LawContext) -> None:
    """A subscription that is no longer needed is cancelled, with demand or without."""
    for has_demand in (True, False):
        tested = await (await new_subscriber(context, "whitebox_subscriber")).start()
        if has_demand:
            await tested.trigger_demand()
        elif tested.upstream.is_waiting_for_subscriber:
            return  # an operator that does not subscribe before something is requested
        await tested.cancel_on_command()


@law("whitebox_subscriber")
async def spec211_receives_in_order(context: LawContext) -> None:
    """Each signal is received once, in the order in which it was sent."""
    tested = await (await new_subscriber(context, "whitebox_subscriber")).start()
    sent: list[object] = []
    while len(sent) < 6:
        await tested.trigger_demand(3)
        for _ in range(min(3, tested.upstream.outstanding)):
            sent += [await tested.upstream.on_next()]
    what = f"{len(sent)} elements were sent and have not all reached the probe"
    await tested.upstream.wait_until(lambda: tested.received >= len(sent), what)
    await tested.upstream.end()
    await tested.expect_end()
    await context.settle()
    assert tested.probe is not None
    received, ends = tested.probe.elements, tested.probe.completions + len(tested.probe.errors)
    what = f"{safe_repr(sent, 80)} were sent, {safe_repr(received, 80)} received"
    tested.upstream.require(all_same(received, sent), what)
    tested.upstream.require(ends == 1, f"one terminal signal was sent, {ends} were received")


@law("whitebox_subscriber")
async def spec308_requests_add_up(context: LawContext) -> None:
    """Commands to request two and then three elements amount to five requested upstream."""
    tested = await (await new_subscriber(context, "whitebox_subscriber")).start()
    for n in (2, 3):
        await tested.command("trigger_request", n)
        for _ in range(n):
            await tested.upstream.wait_for_demand("3.8")
            await tested.send_element()
    await context.settle()
    what = f"5 elements were sent, {tested.received} received"
    tested.upstream.require(tested.received == 5, what)
