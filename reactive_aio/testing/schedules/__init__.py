"""A schedule explorer: a small scenario under every legal order of its callbacks and threads.

::

    async def scenario(schedule):
        processor = UnicastProcessor[int]()
        probe = SubscriberProbe(10).subscribed_to(processor)
        schedule.thread(lambda: processor.emit_threadsafe(1))
        schedule.thread(probe.cancel)
        await schedule.wait_until_idle()
        assert probe.signals in ([], [1])

    explore(scenario, package="reactive_aio")

`explore` runs the scenario again and again on its own loop with virtual time: first in asyncio's
order, then in all orders that depart from it once, twice, and so on; beyond the budget in random
orders. An order fails with an exception, a call of the loop's exception handler, a deadlock, a
task or thread that has not ended, or an exception that was never retrieved. The first order that
fails is reduced to as few departures as possible and reported as `ScheduleFailure`, whose message
lists the steps and the call of `replay` that repeats them.

docs/decisions/0034 defines which orders are legal. A scenario creates its objects itself, and
depends on nothing but the order: no wall clock, no sockets, no random numbers.
"""

from .explorer import Exploration, NotDeterministic, ScheduleFailure, explore, replay
from .run import Scenario, Schedule

__all__ = ("Exploration", "NotDeterministic", "Scenario", "Schedule", "ScheduleFailure", "explore",
           "replay")  # fmt: skip
