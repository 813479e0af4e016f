"""Steps that the scenarios of several laws for subscribers share."""

import asyncio
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, Final

from ...testing.safe_repr import safe_repr
from ..law import NotJudged
from ..scenario.upstream import EqualSubscription, Upstream, UpstreamSubscription
from .subscriber_under_test import SubscriberUnderTest

MAX_SENT: Final = 64
"""The most elements that are sent until a subscriber cancels by itself."""


async def terminate(tested: SubscriberUnderTest, error: BaseException | None, sent: int) -> None:
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
    tested.upstream.require(not late or tested.context.rule == "2.3", what, "2.4")
    if not tested.upstream.is_waiting_for_subscriber:
        await tested.expect_end(error)


async def require_reported(tested: SubscriberUnderTest, error: BaseException | None) -> None:
    """Require that the terminal signal has reached the probe of a white box."""
    if tested.probe is not None:
        await tested.expect_end(error)


async def cancel_second_subscription(
    tested: SubscriberUnderTest, kind: type[UpstreamSubscription] = UpstreamSubscription
) -> None:
    """A second subscription is cancelled and never requested from; the first remains in use."""
    await tested.start()
    await tested.trigger_demand()
    second = Upstream(tested.context, tested.upstream.subscriber, "the second upstream", kind)
    await second.on_subscribe()
    what = "a second subscription was given, and has not been cancelled"
    if kind is EqualSubscription:
        what = "a second subscription that equals the first was given, and not cancelled"
    await second.wait_for_cancel(what)
    await tested.context.settle()
    requested = second.requested
    second.require(not requested, f"{requested} were requested from the second subscription")
    if tested.upstream.cancel_calls:
        return  # it may treat a publisher that subscribes twice as broken
    await tested.trigger_demand(2)
    await tested.send_requested(2)


async def bring_to_cancel(tested: SubscriberUnderTest) -> SubscriberUnderTest:
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
        await tested.upstream.wait_for_cancel(what, "2.6")
        return tested
    for _ in range(MAX_SENT):
        if tested.upstream.outstanding:
            await tested.upstream.on_next()
        await tested.context.turn()
        if tested.upstream.cancel_calls:
            return tested
    await tested.context.settle()
    if not tested.upstream.cancel_calls:
        raise NotJudged(f"the subscriber has not cancelled by itself within {MAX_SENT} elements")
    return tested


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
        tested.upstream.require(None not in reported, f"{signal}(None) was passed on to the probe")
    what = f"{signal}(None) returned normally; it must raise TypeError"
    tested.upstream.require(error is not None, what)
    what = f"{signal}(None) raised {safe_repr(error)}; it must raise TypeError"
    tested.upstream.require(isinstance(error, TypeError), what)


class Unusual(BaseException):
    """An error that is not an Exception."""


def unusual_errors() -> tuple[BaseException, ...]:
    """Errors of many kinds."""
    return (
        RuntimeError("broken"),
        Unusual("broken"),
        ExceptionGroup("several", [ValueError(1), ValueError(2)]),
        StopIteration("broken"),
        StopAsyncIteration("broken"),
        asyncio.CancelledError("broken"),
    )


async def answer_inside_request(
    tested: SubscriberUnderTest, n: int, answer: Callable[[], object]
) -> None:
    """Make the subscriber request, and call *answer* before request returns."""
    upstream = tested.upstream
    # Only ``def`` signals can be sent inside request: an ``async def`` one must be awaited.
    for name in ("on_subscribe", "on_next", "on_error", "on_complete"):
        if iscoroutinefunction(getattr(upstream.subscriber, name, None)):
            raise NotJudged(f"{name} is async def: it cannot be sent inside of request")
    upstream.on_request = answer
    await tested.start()
    if tested.probe is not None:
        await tested.command("trigger_request", n)
    else:
        await tested.trigger_request()
    await upstream.wait_until(
        lambda: upstream.sent or upstream.is_terminated or upstream.cancel_calls,
        "nothing is requested",
        "2.1",
    )
    await tested.context.settle()


async def receive_end_inside_request(
    tested: SubscriberUnderTest, error: BaseException | None
) -> None:
    """request sends the terminal signal before it returns."""
    upstream = tested.upstream

    def send_end() -> None:
        if upstream.is_terminated:
            return
        if error is None:
            upstream.signal_inside_request("on_complete")
        else:
            upstream.signal_inside_request("on_error", error)

    await answer_inside_request(tested, 1, send_end)
    if upstream.is_terminated:
        await tested.expect_end(error, "2.9" if error is None else "2.10")
