"""Timer: it calls a decision of its owner once, unless it is stopped before."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from reactive_aio.stage import Coordinator, Timer, from_push
from reactive_aio.testing import SubscriberProbe


@pytest.mark.virtual_time
async def test_a_decision_that_waits_for_others_is_not_called_if_one_of_them_stops_it() -> None:
    waiting: list[Callable[[], object]] = []
    timers: list[Timer] = []
    fired: list[float] = []
    loop = asyncio.get_running_loop()
    began = loop.time()

    def wait(decision: Callable[..., object], *arguments: object) -> None:
        waiting.append(partial(decision, *arguments))

    class Busy(Coordinator[Any]):
        def on_start(self) -> None:
            timers.append(Timer(self, lambda: fired.append(loop.time() - began)))
            self.submit = wait  # as while others run

    from_push(Busy, name="busy").subscribe(probe := SubscriberProbe[Any](request=1))
    (timer,) = timers
    timer.start(1)
    await asyncio.sleep(1.5)
    timer.start(1)
    waiting.pop()()
    assert (fired, timer.is_running) == ([], True)
    await asyncio.sleep(1.5)
    waiting.pop()()
    assert (fired, timer.is_running) == ([3.0], False)
    timer.start(1)
    await asyncio.sleep(1.5)
    probe.cancel()
    waiting.pop()()
    assert fired == [3.0]
