"""A subscriber under test, the upstream that drives it, and its probe if it is a white box."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final

from ...errors import RuleViolation
from ...testing.safe_repr import safe_repr
from ..law import SETUP, NotJudged, StopCandidate
from ..scenario.equality import same
from ..scenario.law_context import LawContext
from ..scenario.recorder import SIGNALS
from ..scenario.upstream import Upstream
from ..whitebox import WhiteboxProbe

__all__ = ("MAX_SENT", "SubscriberUnderTest", "new_black_box", "new_white_box")

MAX_SENT: Final = 64
"""The most elements that are sent until a subscriber cancels by itself."""


@dataclass
class SubscriberUnderTest:
    """A black box has no *probe*: only its requests are observed."""

    context: LawContext
    upstream: Upstream
    probe: WhiteboxProbe | None = None
    _triggered: int = 0

    @property
    def sendable(self) -> int:
        """How many elements to send: requested, and triggered if a processor prefetches."""
        outstanding = self.upstream.outstanding
        if self.probe is None:
            return outstanding
        return min(outstanding, self._triggered - self.upstream.sent)

    @property
    def received(self) -> int:
        """How many elements have been reported to the probe."""
        return 0 if self.probe is None else len(self.probe.elements)

    async def start(self) -> "SubscriberUnderTest":
        await self.upstream.on_subscribe()
        probe = self.probe
        if probe is not None:
            what = "after on_subscribe the subscriber has not called register_on_subscribe"
            await self.upstream.wait_until(lambda: probe.puppet, what, SETUP)
        return self

    async def trigger_demand(self, n: int = 1, rule: str = "2.1") -> None:
        """Make the subscriber request, and wait for its demand."""
        trigger = self.context.candidate.trigger_request
        if self.probe is not None:
            await self.command("trigger_request", n)
            self._triggered += n
        elif trigger is not None and not self.upstream.outstanding:
            await self.trigger_request()
        await self.upstream.wait_for_demand(rule)

    async def trigger_request(self) -> None:
        """Call the candidate's ``trigger_request``, if there is one."""
        trigger = self.context.candidate.trigger_request
        if trigger is not None:
            await self._call("trigger_request()", "2.1", lambda: trigger(self.upstream.subscriber))

    async def command(self, name: str, *args: int) -> None:
        assert self.probe is not None
        puppet: Any = self.probe.puppet
        await self._call(f"the puppet's {name}()", "2.13", lambda: getattr(puppet, name)(*args))

    async def _call(self, what: str, rule: str, call: Any) -> None:
        """Call code of the candidate's author, and wait for its end."""
        with self.context.calling(what):
            try:
                returned = call()
                if not isawaitable(returned):
                    return
                task = asyncio.ensure_future(returned)
                journal = self.upstream.journal
                await self.context.wait_until(task.done, f"{what} does not end", rule, journal)
                task.result()
            except (RuleViolation, StopCandidate):
                raise
            except BaseException as error:
                raised = f"{what} raised {safe_repr(error)}"
                raise self.context.violation(raised, rule, self.upstream.journal) from error

    # -- what must reach the probe ----------------------------------------------------------------
    async def send_element(self) -> Any:
        """Send an element, and wait until it has been reported to the probe of a white box."""
        before = 0 if self.probe is None else len(self.probe.elements)
        sent = await self.upstream.on_next()
        probe = self.probe
        if probe is not None:
            what = f"on_next({safe_repr(sent, 60)}) was sent and has not reached the probe"
            await self.upstream.wait_until(lambda: len(probe.elements) > before, what, "2.11")
            received = probe.elements[before]
            what = f"{safe_repr(sent, 60)} was sent, {safe_repr(received, 60)} was received"
            self.upstream.require(same(received, sent), what, "2.11")
        return sent

    async def send_requested(self, most: int = 8) -> int:
        """Send what has been requested, up to *most* elements; return how many."""
        count = 0
        while count < most and self.sendable > 0:
            await self.send_element()
            count += 1
        return count

    async def expect_end(self, error: BaseException | None, rule: str = "") -> None:
        """Wait until on_complete, or on_error with *error* itself, has reached the probe."""
        await self.upstream.require_inner_subscriber()
        probe = self.probe
        if probe is None:
            return
        signal = "on_complete" if error is None else f"on_error({safe_repr(error)})"
        what = f"{signal} was sent and has not reached the probe"
        await self.upstream.wait_until(lambda: probe.completions or probe.errors, what, rule)
        if error is None:
            errors = safe_repr(probe.errors, 80)
            what = f"{signal} was sent, {errors} was received"
            self.upstream.require(not probe.errors, what, rule)
            return
        received = probe.errors[0] if probe.errors else "a completion"
        what = f"{signal} was sent, {safe_repr(received, 80)} was received"
        self.upstream.require(received is error, what, rule)

    # -- steps that several laws share -----------------------------------------------------------
    async def terminate(self, error: BaseException | None, sent: int) -> None:
        """Send *sent* elements and a terminal signal; then the subscription is not called."""
        await self.start()
        if sent:
            await self.trigger_demand(sent)
            await self.send_requested(sent)
        await self.context.settle()  # a late request may answer the elements
        if error is None:
            await self.upstream.on_complete()
        else:
            await self.upstream.on_error(error)
        await self.context.settle()
        late = self.upstream.requests_after_end
        what = f"{sum(late)} more were requested after the terminal signal"
        self.upstream.require(not late or self.context.rule == "2.3", what, "2.4")
        if not self.upstream.is_waiting_for_subscriber:
            await self.expect_end(error)

    async def require_reported(self, error: BaseException | None) -> None:
        """Require that the terminal signal has reached the probe of a white box."""
        if self.probe is not None:
            await self.expect_end(error)

    async def cancel_second_subscription(self, is_equal: bool = False) -> None:
        """A second subscription is cancelled and never requested from; the first remains in use."""
        second = Upstream(self.context, self.upstream.subscriber, "the second upstream")
        self.upstream.equals_others = second.equals_others = is_equal
        await self.start()
        await self.trigger_demand()
        await second.on_subscribe()
        what = "a second subscription was given, and has not been cancelled"
        if is_equal:
            what = "a second subscription that equals the first was given, and not cancelled"
        await second.wait_for_cancel(what)
        await self.context.settle()
        requested = second.requested
        second.require(not requested, f"{requested} were requested from the second subscription")
        if self.upstream.cancel_calls:
            return  # it may treat a publisher that subscribes twice as broken
        await self.trigger_demand(2)
        await self.send_requested(2)

    async def cancel_on_command(self) -> None:
        """Command a white box to cancel, and wait for cancel()."""
        await self.command("signal_cancel")
        if self.context.candidate.processor is not None:
            await self.context.settle()
            if not self.upstream.cancel_calls:
                raise NotJudged("the processor continues when its subscriber cancels, as it may")
        what = "the puppet was commanded to cancel, and cancel() has not come"
        await self.upstream.wait_for_cancel(what, "2.6")

    async def bring_to_cancel(self) -> "SubscriberUnderTest":
        """Command a white box to cancel; send a black box elements until it cancels by itself."""
        await self.start()
        await self.trigger_demand(4)
        if self.probe is not None:
            await self.cancel_on_command()
            return self
        for _ in range(MAX_SENT):
            if self.upstream.outstanding:
                await self.upstream.on_next()
            await self.context.turn()
            if self.upstream.cancel_calls:
                return self
        await self.context.settle()
        if not self.upstream.cancel_calls:
            raise NotJudged(
                f"the subscriber has not cancelled by itself within {MAX_SENT} elements"
            )
        return self

    async def refuse_none(self, signal: str, is_started: bool) -> None:
        """None raises TypeError to the caller, possibly when the signal is awaited."""
        if is_started:
            await self.start()
            if signal == "on_next":
                await self.trigger_demand()
        error = await self.upstream.try_signal(signal, None)
        await self.context.settle()
        if self.probe is not None:
            reported: list[Any] = self.probe.elements if signal == "on_next" else self.probe.errors
            what = f"{signal}(None) was passed on to the probe"
            self.upstream.require(None not in reported, what)
        what = f"{signal}(None) returned normally; it must raise TypeError"
        self.upstream.require(error is not None, what)
        what = f"{signal}(None) raised {safe_repr(error)}; it must raise TypeError"
        self.upstream.require(isinstance(error, TypeError), what)

    async def answer_inside_request(self, n: int, answer: Callable[[], object]) -> None:
        """Make the subscriber request, and call *answer* before request returns."""
        upstream = self.upstream
        # Only ``def`` signals can be sent inside request: an ``async def`` one must be awaited.
        for name in SIGNALS:
            if iscoroutinefunction(getattr(upstream.subscriber, name, None)):
                raise NotJudged(f"{name} is async def: it cannot be sent inside of request")
        upstream.on_request = answer
        await self.start()
        if self.probe is not None:
            await self.command("trigger_request", n)
        else:
            await self.trigger_request()
        await upstream.wait_until(
            lambda: upstream.sent or upstream.is_terminated or upstream.cancel_calls,
            "nothing is requested",
            "2.1",
        )
        await self.context.settle()

    async def receive_end_inside_request(self, error: BaseException | None) -> None:
        """request sends the terminal signal before it returns."""
        upstream = self.upstream

        def send_end() -> None:
            if upstream.is_terminated:
                return
            if error is None:
                upstream.signal_inside_request("on_complete")
            else:
                upstream.signal_inside_request("on_error", error)

        await self.answer_inside_request(1, send_end)
        if upstream.is_terminated:
            await self.expect_end(error, "2.9" if error is None else "2.10")


async def new_black_box(context: LawContext) -> SubscriberUnderTest:
    """A new subscriber of which only the requests are observed."""
    subscriber = await context.create("subscriber")
    return SubscriberUnderTest(context, Upstream(context, subscriber))


async def new_white_box(context: LawContext) -> SubscriberUnderTest:
    """A new subscriber that reports its signals to a probe."""
    probe = WhiteboxProbe()
    subscriber = await context.create("whitebox_subscriber", probe)
    return SubscriberUnderTest(context, Upstream(context, subscriber), probe)
