"""The box: a subscriber under test, what feeds it, and the probe that it tells, if it does."""

import asyncio
from inspect import isawaitable
from typing import Any

from ...errors import RuleViolation
from ...testing.safe_repr import safe_repr
from ..law import SETUP
from ..scenario.brake import Brake
from ..scenario.comparing import same
from ..scenario.trial import Trial
from ..scenario.upstream import Held, Upstream
from ..whitebox import Probe

__all__ = ("Box", "black", "white")


class Box:
    """A subscriber, what feeds it, and the probe that it tells, if it does."""

    def __init__(self, trial: Trial, up: Upstream, probe: Probe | None = None) -> None:
        self.trial = trial
        self.up = up
        self.probe = probe
        self._ordered = 0

    @property
    def may_send(self) -> int:
        """What has been requested; behind a processor that asks ahead, not more than by order."""
        asked = self.up.outstanding
        return asked if self.probe is None else min(asked, self._ordered - self.up.sent)

    @property
    def received(self) -> int:
        """How many elements the probe has been told of."""
        return 0 if self.probe is None else len(self.probe.elements)

    async def begin(self) -> "Box":
        """Send on_subscribe."""
        await self.up.on_subscribe()
        probe = self.probe
        if probe is not None:
            what = "after on_subscribe the subscriber has not called register_on_subscribe"
            await self.trial.until(lambda: probe.puppet, SETUP, what, self.up.journal)
        return self

    async def ask(self, n: int = 1, rule: str = "2.1") -> None:
        """Make it request, and wait for demand."""
        trigger = self.trial.subject.trigger_request
        if self.probe is not None:
            await self.order("trigger_request", n)
            self._ordered += n
        elif trigger is not None and not self.up.outstanding:
            await self.call("trigger_request()", "2.1", lambda: trigger(self.up.subscriber))
        await self.up.asked(rule)

    async def order(self, name: str, *args: int) -> None:
        """Tell the puppet of the white box what to do."""
        assert self.probe is not None
        puppet: Any = self.probe.puppet
        await self.call(f"the puppet's {name}()", "2.13", lambda: getattr(puppet, name)(*args))

    async def call(self, what: str, rule: str, call: Any) -> None:
        """Call what the subject's author has written, and wait for its end."""
        with self.trial.calling(what):
            try:
                returned = call()
                if not isawaitable(returned):
                    return
                task = asyncio.ensure_future(returned)
                await self.trial.until(task.done, rule, f"{what} does not end", self.up.journal)
                task.result()
            except (RuleViolation, Brake):
                raise
            except BaseException as error:
                told = f"{what} raised {safe_repr(error)}"
                raise self.trial.violation(rule, told, self.up.journal) from error

    # -- what the white box must have been told ---------------------------------------------------
    async def pass_on(self) -> Any:
        """Send an element, and wait until the probe, if there is one, has been told of it."""
        before = 0 if self.probe is None else len(self.probe.elements)
        sent = await self.up.on_next()
        probe = self.probe
        if probe is not None:
            what = f"on_next({safe_repr(sent, 60)}) was sent and has not reached the probe"
            await self.trial.until(
                lambda: len(probe.elements) > before, "2.11", what, self.up.journal
            )
            got = probe.elements[before]
            self.up.demand(
                same(got, sent),
                "2.11",
                f"{safe_repr(sent, 60)} was sent, {safe_repr(got, 60)} was received",
            )
        return sent

    async def told_completion(self, rule: str) -> None:
        """on_complete has reached the probe, once."""
        await self.up.reached_it()
        probe = self.probe
        if probe is not None:
            what = "on_complete was sent and has not reached the probe"
            await self.trial.until(
                lambda: probe.completions or probe.errors, rule, what, self.up.journal
            )
            errors = probe.errors
            self.up.demand(
                not errors, rule, f"on_complete was sent, {safe_repr(errors, 80)} was received"
            )

    async def told_error(self, error: BaseException, rule: str) -> None:
        """That very error has reached the probe."""
        await self.up.reached_it()
        probe = self.probe
        if probe is not None:
            what = f"on_error({safe_repr(error)}) was sent and has not reached the probe"
            await self.trial.until(
                lambda: probe.completions or probe.errors, rule, what, self.up.journal
            )
            got = probe.errors[0] if probe.errors else "a completion"
            is_it = got is error
            self.up.demand(
                is_it,
                rule,
                f"on_error({safe_repr(error)}) was sent, {safe_repr(got, 80)} was received",
            )

    async def take_all(self, most: int = 8) -> int:
        """Send what has been requested, up to *most*; how much that was."""
        count = 0
        while count < most and self.may_send > 0:
            await self.pass_on()
            count += 1
        return count


async def black(trial: Trial, kind: type[Held] = Held) -> Box:
    """A subscriber of which no more is seen than what it requests."""
    return Box(trial, Upstream(trial, await trial.make("subscriber"), kind=kind))


async def white(trial: Trial, kind: type[Held] = Held) -> Box:
    """A subscriber that tells a probe what it receives."""
    probe = Probe()
    subscriber = await trial.make("whitebox_subscriber", probe)
    return Box(trial, Upstream(trial, subscriber, kind=kind), probe)
