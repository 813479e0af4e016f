"""The scenarios of the laws for subscribers, which black box and white box share."""

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from inspect import iscoroutinefunction
from typing import Any, Final

from ...testing.safe_repr import safe_repr
from ..law import NotJudged
from ..scenario.heartbeat import Heartbeat
from ..scenario.upstream import EqualSubscription, Upstream, UpstreamSubscription
from .subscriber_under_test import SubscriberUnderTest

__all__ = ()

ATTEMPTS: Final = 3
MAX_SENT: Final = 64
"""The most elements that are sent until a subscriber cancels by itself."""


# -- 2.1, 3.8 --------------------------------------------------------------------------------------
async def request_and_take(tested: SubscriberUnderTest) -> None:
    """Send three rounds of elements, each as many as were requested."""
    await tested.start()
    await tested.trigger_demand(3)
    for _ in range(3):
        await tested.send_requested()
        await tested.context.settle()
        if tested.upstream.cancel_calls:
            return
        if not tested.sendable and (tested.probe or tested.context.candidate.trigger_request):
            await tested.trigger_demand(3)
    await tested.upstream.on_complete()
    await tested.expect_completion("2.1")


async def take_all_requested(tested: SubscriberUnderTest) -> None:
    """Send all that was requested, in however many calls, without a pause."""
    await tested.start()
    await tested.trigger_demand(2)
    await tested.context.settle()
    for _ in range(min(tested.upstream.outstanding, MAX_SENT)):
        if not tested.upstream.outstanding:
            break
        await tested.upstream.on_next()
    await tested.context.settle()


# -- 2.2 -------------------------------------------------------------------------------------------
async def return_quickly(subscribers: Iterator[Awaitable[SubscriberUnderTest]]) -> None:
    """Measure signals, each with the turns of the loop after it; repeat a slow attempt."""
    with Heartbeat() as heartbeat:
        for attempt in range(ATTEMPTS):
            tested = await next(subscribers)
            tested.upstream.heartbeat = heartbeat
            await tested.start()
            await tested.trigger_demand(2)
            await tested.send_requested(2)
            await tested.upstream.on_complete()
            took, signal = tested.upstream.longest_block
            if took <= tested.context.timeouts.max_block:
                return
            if attempt == ATTEMPTS - 1:
                tested.upstream.require(False, "2.2", f"{signal} blocked the loop for {took:.1f} s")


# -- 2.3, 2.4 --------------------------------------------------------------------------------------
async def terminate(
    tested: SubscriberUnderTest, error: BaseException | None, sent: int, rule: str
) -> None:
    """Send *sent* elements and a terminal signal; then the subscription is not called."""
    await tested.start()
    if sent:
        await tested.trigger_demand(sent)
        await tested.send_requested(sent)
    await tested.context.settle()  # a late request may answer the elements
    if error is None:
        await tested.upstream.on_complete()
    else:
        await tested.upstream.on_error(error)
    await tested.context.settle()
    late = tested.upstream.requests_after_end
    what = f"{sum(late)} more were requested after the terminal signal"
    tested.upstream.require(not late or rule == "2.3", "2.4", what)
    if tested.upstream.is_waiting_for_subscriber:
        return
    if error is None:
        await tested.expect_completion(rule)
    else:
        await tested.expect_error(error, rule)


# -- 2.5, 2.12 -------------------------------------------------------------------------------------
async def cancel_second_subscription(
    tested: SubscriberUnderTest, kind: type[UpstreamSubscription] = UpstreamSubscription
) -> None:
    """A second subscription is cancelled and never requested from; the first remains in use."""
    rule = "2.12" if kind is EqualSubscription else "2.5"
    await tested.start()
    await tested.trigger_demand()
    second = Upstream(tested.context, tested.upstream.subscriber, "the second upstream", kind)
    await second.on_subscribe()
    what = "a second subscription was given, and has not been cancelled"
    if kind is EqualSubscription:
        what = "a second subscription that equals the first was given, and not cancelled"
    await second.wait_for_cancel(rule, what)
    await tested.context.settle()
    requested = second.requested
    second.require(not requested, rule, f"{requested} were requested from the second subscription")
    if tested.upstream.cancel_calls:
        return  # it may treat a publisher that subscribes twice as broken
    await tested.trigger_demand(2)
    await tested.send_requested(2)


async def receive_same_subscription_again(tested: SubscriberUnderTest) -> None:
    """Send on_subscribe again with the same subscription."""
    await tested.start()
    await tested.trigger_demand(2)
    await tested.upstream.on_subscribe()
    await tested.context.settle()
    await tested.send_requested(2)


# -- 2.7 -------------------------------------------------------------------------------------------
async def call_serially(tested: SubscriberUnderTest) -> None:
    """Make every call slow, and send elements quickly."""
    tested.upstream.call_seconds = 0.001
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        await tested.start()
        await tested.trigger_demand()
        for _ in range(12):
            if tested.sendable:
                await tested.upstream.on_next()
            await tested.context.turn()
            if tested.probe is not None and not tested.sendable:
                await tested.trigger_demand()
        await tested.context.settle()
    finally:
        sys.setswitchinterval(before)


# -- 2.8, 3.14, 3.15 -------------------------------------------------------------------------------
async def bring_to_cancel(tested: SubscriberUnderTest) -> None:
    """Command a white box to cancel; send a black box elements until it cancels by itself."""
    await tested.start()
    await tested.trigger_demand(4)
    if tested.probe is not None:
        await tested.command("signal_cancel")
        if tested.context.candidate.processor is not None:
            await tested.context.settle()
            if not tested.upstream.cancel_calls:
                raise NotJudged("the processor continues when its subscriber cancels, as it may")
        what = "the puppet was commanded to cancel, and cancel() has not come"
        await tested.upstream.wait_for_cancel("2.6", what)
        return
    for _ in range(MAX_SENT):
        if tested.upstream.outstanding:
            await tested.upstream.on_next()
        await tested.context.turn()
        if tested.upstream.cancel_calls:
            return
    await tested.context.settle()
    if not tested.upstream.cancel_calls:
        raise NotJudged(f"the subscriber has not cancelled by itself within {MAX_SENT} elements")


async def receive_elements_after_cancel(tested: SubscriberUnderTest) -> None:
    """Elements that were under way at the cancellation arrive; the subscriber does not raise."""
    await bring_to_cancel(tested)
    for _ in range(max(0, min(3, tested.upstream.requested - tested.upstream.sent))):
        await tested.upstream.on_next()
    if tested.probe is not None:
        for _ in range(2):
            await tested.command("trigger_request", 1)
    await tested.context.settle()


async def receive_end_after_cancel(
    tested: SubscriberUnderTest, error: BaseException | None
) -> None:
    """The publisher shuts down because of the cancellation, and signals it."""
    await bring_to_cancel(tested)
    if error is None:
        await tested.upstream.on_complete()
    else:
        await tested.upstream.on_error(error)
    await tested.context.settle()


# -- 2.13 ------------------------------------------------------------------------------------------
async def refuse_none(tested: SubscriberUnderTest, signal: str, is_started: bool) -> None:
    """None raises TypeError to the caller, possibly when the signal is awaited."""
    if is_started:
        await tested.start()
        if signal == "on_next":
            await tested.trigger_demand()
    error = await tested.upstream.try_signal(signal, None)
    await tested.context.settle()
    if tested.probe is not None:
        reported: list[Any] = tested.probe.elements if signal == "on_next" else tested.probe.errors
        what = f"{signal}(None) was passed on to the probe"
        tested.upstream.require(None not in reported, "2.13", what)
    what = f"{signal}(None) returned normally; it must raise TypeError"
    tested.upstream.require(error is not None, "2.13", what)
    what = f"{signal}(None) raised {safe_repr(error)}; it must raise TypeError"
    tested.upstream.require(isinstance(error, TypeError), "2.13", what)


class Unusual(BaseException):
    """An error that is not an Exception."""


def errors() -> tuple[BaseException, ...]:
    """Errors of many kinds."""
    return (
        RuntimeError("broken"),
        Unusual("broken"),
        ExceptionGroup("several", [ValueError(1), ValueError(2)]),
        StopIteration("broken"),
        StopAsyncIteration("broken"),
        asyncio.CancelledError("broken"),
    )


# -- 3.1 -------------------------------------------------------------------------------------------
async def use_own_subscription(one: SubscriberUnderTest, other: SubscriberUnderTest) -> None:
    """One of two subscribers is served; it does not call the other one's subscription."""
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
    other.upstream.require(before == after, "3.1", what)


# -- 3.10, 3.11, 3.16 ------------------------------------------------------------------------------
def _require_sync_signals(tested: SubscriberUnderTest) -> None:
    """Only ``def`` signals can be sent inside request: an ``async def`` one must be awaited."""
    names = ("on_subscribe", "on_next", "on_error", "on_complete")
    subscriber = tested.upstream.subscriber
    awaited = [name for name in names if iscoroutinefunction(getattr(subscriber, name, None))]
    if awaited:
        raise NotJudged(f"{awaited[0]} is async def: it cannot be sent inside of request")


async def _start_requesting(tested: SubscriberUnderTest, n: int) -> None:
    await tested.start()
    if tested.probe is not None:
        await tested.command("trigger_request", n)
    else:
        await tested.trigger_request()


async def receive_elements_inside_request(tested: SubscriberUnderTest) -> None:
    """request sends all requested elements before it returns."""
    _require_sync_signals(tested)
    upstream = tested.upstream

    def send_elements() -> None:
        while upstream.outstanding > 0 and upstream.sent < MAX_SENT:
            upstream.signal_inside_request("on_next", upstream.next_element())

    upstream.on_request = send_elements
    await _start_requesting(tested, 3)
    await tested.context.wait_until(
        lambda: upstream.sent or upstream.cancel_calls,
        "2.1",
        "nothing is requested",
        upstream.journal,
    )
    await tested.context.settle()
    probe = tested.probe
    if probe is not None:
        sent = upstream.sent
        what = f"{sent} elements were sent inside of request, {len(probe.elements)} received"
        upstream.require(len(probe.elements) <= sent, "2.11", what)
        what = (
            f"3 elements were requested and sent inside of request: {safe_repr(probe.elements, 80)}"
        )
        upstream.require(len(probe.elements) >= min(sent, 3), "2.11", what)


async def receive_end_inside_request(tested: SubscriberUnderTest, *end: Any) -> None:
    """request sends the terminal signal before it returns."""
    _require_sync_signals(tested)
    upstream = tested.upstream

    def send_end() -> None:
        if not upstream.is_terminated:
            upstream.signal_inside_request(*end)

    upstream.on_request = send_end
    await _start_requesting(tested, 1)
    await tested.context.wait_until(
        lambda: upstream.is_terminated or upstream.cancel_calls,
        "2.1",
        "nothing is requested",
        upstream.journal,
    )
    await tested.context.settle()
    if upstream.is_terminated and len(end) == 1:
        await tested.expect_completion("2.9")
    elif upstream.is_terminated:
        await tested.expect_error(end[1], "2.10")
