"""What the laws for subscribers try, the same for the black box and for the white one."""

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from inspect import iscoroutinefunction
from typing import Any, Final

from ...testing.safe_repr import safe_repr
from ..law import NotJudged
from ..scenario.heartbeat import Heartbeat
from ..scenario.upstream import Equal, Held, Upstream
from .box import Box

__all__ = ()

TRIES: Final = 3
MANY: Final = 64
"""The most elements that are sent to see a subscriber cancel by itself."""


# -- 2.1, 3.8 --------------------------------------------------------------------------------------
async def requests_and_takes(box: Box) -> None:
    """Three rounds of elements, as many as were requested."""
    await box.begin()
    await box.ask(3)
    for _ in range(3):
        await box.take_all()
        await box.trial.quiet()
        if box.up.cancels:
            return
        if not box.may_send and (box.probe or box.trial.subject.trigger_request):
            await box.ask(3)
    await box.up.on_complete()
    await box.told_completion("2.1")


# -- 2.2 -------------------------------------------------------------------------------------------
async def keeps_nobody_waiting(boxes: Iterator[Awaitable[Box]]) -> None:
    """Some signals, each with the turns of the loop behind it; what is too long is tried again."""
    with Heartbeat() as heart:
        for attempt in range(TRIES):
            box = await next(boxes)
            box.up.heart = heart
            await box.begin()
            await box.ask(2)
            await box.take_all(2)
            await box.up.on_complete()
            took, signal = box.up.held_up
            if took <= box.trial.terms.held_up:
                return
            if attempt == TRIES - 1:
                box.up.demand(False, "2.2", f"{signal} held up the loop for {took:.1f} s")


# -- 2.3, 2.4 --------------------------------------------------------------------------------------
async def ends(box: Box, error: BaseException | None, sent: int, rule: str) -> None:
    """A terminal signal, after *sent* elements if so many are wanted; then silence."""
    await box.begin()
    if sent:
        await box.ask(sent)
        await box.take_all(sent)
    await box.trial.quiet()  # requests may come later; they belong to what was sent before
    if error is None:
        await box.up.on_complete()
    else:
        await box.up.on_error(error)
    await box.trial.quiet()
    box.up.demand(
        not box.up.late or rule == "2.3",
        "2.4",
        f"{sum(box.up.late)} more were requested after the terminal signal",
    )
    if box.up.asleep:
        return
    if error is None:
        await box.told_completion(rule)
    else:
        await box.told_error(error, rule)


# -- 2.5, 2.12 -------------------------------------------------------------------------------------
async def has_enough_of_one(box: Box, kind: type[Held] = Held) -> None:
    """A second subscription is cancelled, never requested from; the first works as before."""
    rule = "2.12" if kind is Equal else "2.5"
    await box.begin()
    await box.ask()
    second = Upstream(box.trial, box.up.subscriber, "the second upstream", kind)
    await second.on_subscribe()
    what = "a second subscription was given, and has not been cancelled"
    if kind is Equal:
        what = "a second subscription that equals the first was given, and not cancelled"
    await second.cancelled(rule, what)
    await box.trial.quiet()
    asked = second.requested
    second.demand(not asked, rule, f"{asked} were requested from the second subscription")
    if box.up.cancels:
        return  # it takes the first one's publisher for broken, and may leave it as well
    await box.ask(2)
    await box.take_all(2)


async def gets_the_same_again(box: Box) -> None:
    """on_subscribe comes again with the very same subscription."""
    await box.begin()
    await box.ask(2)
    await box.up.on_subscribe()
    await box.trial.quiet()
    await box.take_all(2)


# -- 2.7 -------------------------------------------------------------------------------------------
async def calls_serially(box: Box) -> None:
    """Every call takes a moment, and elements come quickly."""
    box.up.linger = 0.001
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        await box.begin()
        await box.ask()
        for _ in range(12):
            if box.may_send:
                await box.up.on_next()
            await box.trial.turn()
            if box.probe is not None and not box.may_send:
                await box.ask()
        await box.trial.quiet()
    finally:
        sys.setswitchinterval(before)


# -- 2.8, 3.14, 3.15 -------------------------------------------------------------------------------
async def until_cancelled(box: Box) -> None:
    """Bring it to cancel: by order, or by elements if it is a black box."""
    await box.begin()
    await box.ask(4)
    if box.probe is not None:
        await box.order("signal_cancel")
        if box.trial.subject.processor is not None:
            await box.trial.quiet()
            if not box.up.cancels:
                raise NotJudged("the processor goes on when its subscriber cancels, as it may")
        await box.up.cancelled("2.6", "the puppet was told to cancel, and cancel() has not come")
        return
    for _ in range(MANY):
        if box.up.outstanding:
            await box.up.on_next()
        await box.trial.turn()
        if box.up.cancels:
            return
    await box.trial.quiet()
    if not box.up.cancels:
        raise NotJudged(f"the subscriber has not cancelled by itself within {MANY} elements")


async def gets_more_after_cancel(box: Box) -> None:
    """Elements were under way when it cancelled: they come, and are no reason to raise."""
    await until_cancelled(box)
    for _ in range(max(0, min(3, box.up.requested - box.up.sent))):
        await box.up.on_next()
    if box.probe is not None:
        for _ in range(2):
            await box.order("trigger_request", 1)
    await box.trial.quiet()


async def gets_the_end_after_cancel(box: Box, error: BaseException | None) -> None:
    """The publisher shuts down because of the cancellation, and says so."""
    await until_cancelled(box)
    if error is None:
        await box.up.on_complete()
    else:
        await box.up.on_error(error)
    await box.trial.quiet()


# -- 2.13 ------------------------------------------------------------------------------------------
async def refuses_none(box: Box, signal: str, begun: bool) -> None:
    """None raises TypeError to the caller, also when that comes of awaiting the signal."""
    if begun:
        await box.begin()
        if signal == "on_next":
            await box.ask()
    error = await box.up.attempt(signal, None)
    await box.trial.quiet()
    if box.probe is not None:
        told: list[Any] = box.probe.elements if signal == "on_next" else box.probe.errors
        box.up.demand(None not in told, "2.13", f"{signal}(None) was passed on to the probe")
    what = f"{signal}(None) returned normally; it must raise TypeError"
    box.up.demand(error is not None, "2.13", what)
    what = f"{signal}(None) raised {safe_repr(error)}; it must raise TypeError"
    box.up.demand(isinstance(error, TypeError), "2.13", what)


class Unusual(BaseException):
    """An error that is no Exception."""


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
async def uses_its_own(one: Box, other: Box) -> None:
    """Of two subscribers one is served; the other one's subscription is not called for it."""
    for box in (one, other):
        await box.begin()
        await box.ask()
    await one.trial.quiet()
    before = other.up.requests, other.up.cancels
    await one.ask(4)
    await one.take_all(4)
    if one.probe is not None and not one.up.cancels:
        await one.order("trigger_request", 3)
    await one.trial.quiet()
    after = other.up.requests, other.up.cancels
    what = "one subscriber was served, and the subscription of another one was called"
    other.up.demand(before == after, "3.1", what)


# -- 3.8 -------------------------------------------------------------------------------------------
async def takes_all_it_requested(box: Box) -> None:
    """All that was requested, in however many calls, comes without a pause."""
    await box.begin()
    await box.ask(2)
    await box.trial.quiet()
    for _ in range(min(box.up.outstanding, MANY)):
        if not box.up.outstanding:
            break
        await box.up.on_next()
    await box.trial.quiet()


# -- 3.10, 3.11, 3.16 ------------------------------------------------------------------------------
def only_plain(box: Box) -> None:
    """Inside request only ``def`` signals can be sent: an ``async def`` one has to be awaited."""
    names = ("on_subscribe", "on_next", "on_error", "on_complete")
    waits = [n for n in names if iscoroutinefunction(getattr(box.up.subscriber, n, None))]
    if waits:
        raise NotJudged(f"{waits[0]} is async def: it cannot be sent inside of request")


async def is_answered_at_once(box: Box) -> None:
    """request sends all that it may send before it returns."""
    only_plain(box)

    def answer() -> None:
        while box.up.outstanding > 0 and box.up.sent < MANY:
            box.up.now("on_next", box.up.next())

    box.up.answer = answer
    await box.begin()
    if box.probe is not None:
        await box.order("trigger_request", 3)
    else:
        await _trigger(box)
    await box.trial.until(
        lambda: box.up.sent or box.up.cancels, "2.1", "nothing is requested", box.up.journal
    )
    await box.trial.quiet()
    probe = box.probe
    if probe is not None:
        sent = box.up.sent
        what = f"{sent} elements were sent inside of request, {len(probe.elements)} received"
        box.up.demand(len(probe.elements) <= sent, "2.11", what)
        what = (
            f"3 elements were requested and sent inside of request: {safe_repr(probe.elements, 80)}"
        )
        box.up.demand(len(probe.elements) >= min(sent, 3), "2.11", what)


async def is_ended_at_once(box: Box, *end: Any) -> None:
    """request sends the terminal signal before it returns."""
    only_plain(box)

    def answer() -> None:
        if not box.up.ended:
            box.up.now(*end)

    box.up.answer = answer
    await box.begin()
    if box.probe is not None:
        await box.order("trigger_request", 1)
    else:
        await _trigger(box)
    await box.trial.until(
        lambda: box.up.ended or box.up.cancels, "2.1", "nothing is requested", box.up.journal
    )
    await box.trial.quiet()
    if box.up.ended and len(end) == 1:
        await box.told_completion("2.9")
    elif box.up.ended:
        await box.told_error(end[1], "2.10")


async def _trigger(box: Box) -> None:
    trigger = box.trial.subject.trigger_request
    if trigger is not None:
        await box.call("trigger_request()", "2.1", lambda: trigger(box.up.subscriber))
