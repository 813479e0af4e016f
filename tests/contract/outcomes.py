"""What an error leads to: how a consumer ends, what is reported, whether the program stops.

Each consumer runs on an event loop of its own, so that a ``KeyboardInterrupt`` stops that one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from reactive_aio.testing import SubscriberProbe

__all__ = ("NOTHING", "Outcome", "collect", "first", "iterate", "observe", "subscribe", "use_probe")

NOTHING = "nothing"
"""The subscription was cancelled without a terminal signal."""
PATIENCE = 5.0
"""Seconds for a consumer to end."""
SETTLING_TURNS = 30
"""Turns of the loop for a cleanup after the end."""


@dataclass
class Outcome:
    """How one consumer ended."""

    end: BaseException | str | None = None
    """The error that it received, `NOTHING`, or None if it completed."""
    stops: bool = False
    """Whether an exception left the event loop."""
    reported: list[BaseException] = field(default_factory=list[BaseException])
    """The errors that the loop's exception handler received."""
    probe: SubscriberProbe[Any] | None = None


Consume = Callable[[Any, Outcome], Awaitable[None]]


async def iterate(flow: Any, outcome: Outcome) -> None:
    """An ``async for``."""
    try:
        async for _ in flow:
            pass
    except BaseException as error:
        outcome.end = error
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise


async def collect(flow: Any, outcome: Outcome) -> None:
    """A terminal operator."""
    try:
        await flow.to_list()
    except BaseException as error:
        outcome.end = error
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise


async def first(flow: Any, outcome: Outcome) -> None:
    """A terminal operator that leaves early, and awaits the cleanup."""
    await collect(_First(flow), outcome)


class _First:
    def __init__(self, flow: Any) -> None:
        self.to_list = flow.first


async def subscribe(flow: Any, outcome: Outcome) -> None:
    """A subscriber with unbounded demand."""
    await use_probe(SubscriberProbe[Any](10**6), flow, outcome)


async def use_probe(probe: SubscriberProbe[Any], flow: Any, outcome: Outcome) -> None:
    """Wait until the subscription of *probe* has ended."""
    outcome.probe = probe
    probe.subscribed_to(flow)
    await probe.end()


def observe(
    consume: Consume,
    make: Callable[[], Any],
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> Outcome:
    """Run a consumer of ``make()``, until it has ended and everything has settled."""
    outcome = Outcome()
    loop = make_loop()

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        outcome.reported.append(context.get("exception") or RuntimeError(context["message"]))

    async def consumer() -> None:
        await consume(make(), outcome)

    async def settle(work: asyncio.Task[None]) -> None:
        await asyncio.wait([work], timeout=PATIENCE)
        for _ in range(SETTLING_TURNS):
            await asyncio.sleep(0)

    loop.set_exception_handler(handle)
    task = loop.create_task(consumer())
    try:
        for _ in range(3):
            try:
                loop.run_until_complete(settle(task))
            except (KeyboardInterrupt, SystemExit):
                outcome.stops = True
        task.cancel()
        loop.run_until_complete(settle(task))
        if not task.cancelled():
            task.exception()
        for left in asyncio.all_tasks(loop):  # `settle`, as often as the program was stopped
            loop.run_until_complete(left)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
    if outcome.probe is not None:
        end = outcome.probe.signals[-1] if outcome.probe.is_terminated else NOTHING
        outcome.end = end if isinstance(end, BaseException) or end is NOTHING else None
    return outcome
