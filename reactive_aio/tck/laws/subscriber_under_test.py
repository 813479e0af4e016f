"""A subscriber under test, the upstream that drives it, and its probe if it is a white box."""

import asyncio
from inspect import isawaitable
from typing import Any

from ...errors import RuleViolation
from ...testing.safe_repr import safe_repr
from ..law import SETUP
from ..scenario.equality import same
from ..scenario.law_context import LawContext
from ..scenario.stop_candidate import StopCandidate
from ..scenario.upstream import Upstream, UpstreamSubscription
from ..whitebox import WhiteboxProbe


class SubscriberUnderTest:
    """A black box has no *probe*: only its requests are observed."""

    def __init__(
        self, context: LawContext, upstream: Upstream, probe: WhiteboxProbe | None = None
    ) -> None:
        self.context = context
        self.upstream = upstream
        self.probe = probe
        self._triggered = 0

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
        """Send on_subscribe."""
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
        """Call a method of the puppet."""
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


async def new_black_box(
    context: LawContext, kind: type[UpstreamSubscription] = UpstreamSubscription
) -> SubscriberUnderTest:
    """A new subscriber of which only the requests are observed."""
    subscriber = await context.create("subscriber")
    return SubscriberUnderTest(context, Upstream(context, subscriber, kind=kind))


async def new_white_box(
    context: LawContext, kind: type[UpstreamSubscription] = UpstreamSubscription
) -> SubscriberUnderTest:
    """A new subscriber that reports its signals to a probe."""
    probe = WhiteboxProbe()
    subscriber = await context.create("whitebox_subscriber", probe)
    return SubscriberUnderTest(context, Upstream(context, subscriber, kind=kind), probe)
