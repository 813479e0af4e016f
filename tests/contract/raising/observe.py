"""Run a consumer of a flow in which code of the user raises, and see what follows from that.

Each runs on an event loop of its own, so that a ``KeyboardInterrupt`` stops that one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from reactive_aio.testing import SubscriberProbe
from tests.contract.raising.code import Code
from tests.contract.raising.places import Place

NOTHING: Final = "nothing"
"""The subscription was cancelled without a terminal signal."""
PATIENCE: Final = 5.0
"""Seconds for a consumer to end, and for what it leaves behind."""
TURNS: Final = 30
"""Turns of the loop for a cleanup after the end."""
STOPS_PROGRAM: Final = (KeyboardInterrupt, SystemExit)


@dataclass
class Outcome:
    """How one consumer ended."""

    code: Code = field(default_factory=lambda: Code(AssertionError))
    end: BaseException | str | None = None
    """The error that it received, `NOTHING`, or None if it completed."""
    stops: bool = False
    """Whether an exception left the event loop."""
    contexts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What the loop's exception handler was called with."""
    left: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    """The tasks that are still there after the end."""
    is_open: bool = False
    """Whether a source was not closed."""
    probe: SubscriberProbe[Any] | None = None
    """The subscriber, if the consumer is one."""

    @property
    def reported(self) -> list[BaseException]:
        """The errors that the loop's exception handler received."""
        return [each.get("exception") or RuntimeError(each["message"]) for each in self.contexts]


Consume = Callable[[Any, Outcome], Awaitable[object]]
MakeLoop = Callable[[], asyncio.AbstractEventLoop]


def observe(
    place: Place,
    consume: Consume,
    error: Callable[[], BaseException],
    make_loop: MakeLoop = asyncio.new_event_loop,
) -> Outcome:
    """Run *consume* with the flow of *place*, until it has ended and everything has settled."""
    outcome = Outcome(Code(error))
    loop = make_loop()
    loop.set_exception_handler(lambda _, context: outcome.contexts.append(context))

    async def consumer() -> None:
        try:
            await consume(place(outcome.code), outcome)
        except BaseException as error:
            outcome.end = error
            raise

    try:
        run(loop, loop.create_task(consumer()), outcome)
    finally:
        loop.close()
    if outcome.probe is not None:
        end = outcome.probe.signals[-1] if outcome.probe.is_terminated else NOTHING
        outcome.end = end if isinstance(end, BaseException) or end is NOTHING else None
    return outcome


def run(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None], outcome: Outcome) -> None:
    """Run *loop*, again if the program is stopped, until *task* and what it has left are over."""
    settling = loop.create_task(settle(task, outcome))
    while not settling.done():
        try:
            loop.run_until_complete(settling)
        except STOPS_PROGRAM:
            outcome.stops = True
    if not task.cancelled():
        task.exception()
    loop.run_until_complete(loop.shutdown_asyncgens())


async def settle(task: asyncio.Task[None], outcome: Outcome) -> None:
    """Wait until *task* is over and nothing of its flow is left; not for ever."""
    loop = asyncio.get_running_loop()
    await asyncio.wait([task], timeout=PATIENCE)
    task.cancel()
    await asyncio.wait([task])
    for _ in range(TURNS):
        await asyncio.sleep(0)
    end = loop.time() + PATIENCE
    while loop.time() < end:
        outcome.left = asyncio.all_tasks() - {asyncio.current_task()}
        outcome.is_open = outcome.code.opened != outcome.code.closed
        if not (outcome.left or outcome.is_open):
            break
        await asyncio.sleep(0.001)
