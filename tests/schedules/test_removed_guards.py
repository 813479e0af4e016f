"""The explorer finds the race if a guard between threads and the loop is removed."""

import gc
from typing import Any

import pytest

from reactive_aio import Emitter, create, from_thread, range as numbers
from reactive_aio._core.queues.bounded_queue import Emission, ThreadMailbox
from reactive_aio._core.subscription.island import Island
from reactive_aio._core.subscription.lifecycle import Input, Phase
from reactive_aio._sources.thread import _PullState, _PullThread
from reactive_aio.testing.schedules import Schedule, ScheduleFailure, explore
from tests.schedules.checks import UNLIMITED, CheckedSubscriber

Broken = pytest.MonkeyPatch


async def requested_twice(schedule: Schedule) -> None:
    subscriber = CheckedSubscriber()
    numbers(10).subscribe(subscriber)
    schedule.thread(lambda: subscriber.request(2), "request(2)")
    subscriber.request(1)
    await schedule.wait_until_idle()
    assert len(subscriber.elements) == 3
    subscriber.cancel()


async def from_a_thread(schedule: Schedule) -> None:
    """The end would deliver forgotten elements too; so it does not end."""
    subscriber = CheckedSubscriber(2)
    from_thread([1, 2, 3]).subscribe(subscriber)
    await schedule.wait_until_idle()
    assert subscriber.elements == [1, 2]
    subscriber.cancel()


async def without_references(schedule: Schedule) -> None:
    """Garbage may be collected at any time."""
    subscriber = CheckedSubscriber(1, again=1)
    elements = subscriber.elements
    from_thread([1, 2]).subscribe(subscriber)
    del subscriber
    schedule.thread(gc.collect, "the collector")
    await schedule.wait_until_idle()
    assert elements == [1, 2]


async def emitted(schedule: Schedule) -> None:
    """It does not end either."""
    subscriber = CheckedSubscriber(UNLIMITED)
    emitters: list[Emitter[int]] = []
    create(emitters.append, capacity=4, overflow="wait").subscribe(subscriber)

    def work() -> None:
        for n in (1, 2):
            emitters[0].emit_threadsafe(n)

    schedule.thread(work, "the emitter")
    await schedule.wait_until_idle()
    assert subscriber.elements == [1, 2]
    subscriber.cancel()


def found(scenario: Any) -> ScheduleFailure:
    with pytest.raises(ScheduleFailure) as failure:
        explore(scenario, package=("reactive_aio", __name__), max_orders=20_000)
    return failure.value


@pytest.mark.thorough
@pytest.mark.parametrize("scenario", [requested_twice, from_a_thread, without_references, emitted])
def test_with_all_guards_no_failure_is_found(scenario: Any) -> None:
    explore(scenario, package=("reactive_aio", __name__), max_orders=400)


def test_a_drain_that_does_not_check_demand_after_it_is_idle(monkeypatch: Broken) -> None:
    def not_ready(_: object) -> bool:
        return False

    monkeypatch.setattr(Island, "_is_ready", not_ready)
    assert len(found(requested_twice).order.split()) == 1


def test_a_request_that_checks_the_phase_before_it_adds(monkeypatch: Broken) -> None:
    def request(self: Island, n: int, /) -> None:
        idle = self.phase is Phase.IDLE
        self.limit += n
        if idle:
            self._wake(Input.REQUEST)

    monkeypatch.setattr(Island, "request", request)
    failure = found(requested_twice)
    assert "is held up" in str(failure)
    assert len(failure.order.split()) <= 3


@pytest.mark.thorough
def test_a_loop_that_resets_is_posted_after_it_has_taken(monkeypatch: Broken) -> None:
    def take(self: "_PullState[Any]") -> tuple[list[Any], bool]:
        is_finished = self.is_finished
        elements = [self.ready.pop(0) for _ in range(len(self.ready))]
        self.is_posted = False
        return elements, is_finished

    monkeypatch.setattr(_PullState, "take", take)
    assert len(found(from_a_thread).order.split()) <= 2


def test_a_thread_that_drops_references_it_has_not_seen(monkeypatch: Broken) -> None:
    def wait_for_demand(self: "_PullThread[Any]") -> int:
        while True:
            self.event.clear()
            demand = self.state.demand()
            if demand is None:
                return 0
            self.owners.clear()
            if demand:
                return demand
            self.event.wait()

    monkeypatch.setattr(_PullThread, "_wait_for_demand", wait_for_demand)
    assert len(found(without_references).order.split()) <= 3


def test_a_mailbox_that_wakes_only_once(monkeypatch: Broken) -> None:
    def put(self: "ThreadMailbox[Any]", element: Any) -> tuple[Emission, bool]:
        wake = not self.held
        if wake:
            self.held.append(element)
            return Emission.ACCEPTED, True
        count = len(self.held)
        self.held.append(element)
        return Emission.ACCEPTED, count == 0

    monkeypatch.setattr(ThreadMailbox, "put", put)
    assert len(found(emitted).order.split()) <= 3
