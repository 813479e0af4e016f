"""A subscription is released when its event loop is closed, even if a task of it is suspended."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any
from weakref import ref

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import Interrupted
from reactive_aio.testing import SubscriberProbe
from tests.contract.subscribers import Acting, AsyncActing, turns

UNLIMITED = 10**9


async def endless() -> AsyncIterator[int]:
    while True:
        yield 1
        await asyncio.sleep(0)


async def slow(x: int) -> int:
    await asyncio.sleep(0)
    return x


async def emitter(to: r.Emitter[int]) -> None:
    for number in range(UNLIMITED):
        await to.emit(number)


FLOWS: dict[str, Callable[[], Flow[int]]] = {
    "from_aiter": lambda: r.from_aiter(endless),
    "map_async": lambda: r.range(UNLIMITED).map_async(slow),
    "workers": lambda: r.range(UNLIMITED).map_async(slow, concurrency=3),
    "create": lambda: r.create(emitter),
    "boundary": lambda: r.from_aiter(endless).boundary(2),
    "flat_map": lambda: r.just(1).flat_map(lambda _: r.from_aiter(endless)),
}


class Subscriber(SubscriberProbe[int]):
    """Referred to by its subscription only."""


def subscribed_on_a_closed_loop(make: Callable[[], Flow[int]], cancels: bool) -> "ref[Subscriber]":
    async def subscribe() -> Subscriber:
        subscriber = Subscriber(UNLIMITED)
        make().subscribe(subscriber)
        await asyncio.sleep(0)
        return subscriber

    loop = asyncio.new_event_loop()
    try:
        subscriber = loop.run_until_complete(subscribe())
    finally:
        loop.close()
    if cancels:
        subscriber.cancel()
        assert not any(isinstance(signal, BaseException) for signal in subscriber.signals)
    return ref(subscriber)


@pytest.mark.parametrize("name", FLOWS)
def test_a_cancelled_subscription_is_released(name: str, caplog: pytest.LogCaptureFixture) -> None:
    subscriber = subscribed_on_a_closed_loop(FLOWS[name], cancels=True)
    gc.collect()
    assert subscriber() is None
    assert not caplog.records


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", FLOWS)
def test_any_other_is_released_when_the_next_loop_starts_a_task(
    name: str, expects_error_logs: list[logging.LogRecord]
) -> None:
    subscriber = subscribed_on_a_closed_loop(FLOWS[name], cancels=False)
    asyncio.run(r.range(3).map_async(slow).run())
    gc.collect()
    assert subscriber() is None
    # asyncio's own word for a task that its loop has abandoned, if the collector meets it first.
    assert {each.getMessage()[:22] for each in expects_error_logs} <= {"Task was destroyed but"}


@pytest.mark.parametrize("name", ["from_aiter", "map_async", "create"])
def test_its_end_is_not_counted_when_its_figures_have_let_go_of_it(
    name: str, expects_error_logs: list[logging.LogRecord]
) -> None:
    """The collector clears weak references before it closes the coroutine of a task."""
    flow = FLOWS[name]().name("on a closed loop")
    before = flow.stats()
    subscribed_on_a_closed_loop(lambda: flow, cancels=False)
    asyncio.run(r.range(3).map_async(slow).run())
    gc.collect()
    after = flow.stats()
    assert (after.started, after.subscriptions) == (before.started + 1, ())
    assert (after.failed, after.cancelled) == (before.failed, before.cancelled)
    assert {each.getMessage()[:22] for each in expects_error_logs} <= {"Task was destroyed but"}


@pytest.mark.filterwarnings("error")
def test_its_coroutines_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    """That of an on_next that is suspended, and one that a signal returns now: 3.16."""

    def interrupted(self: Acting) -> Any:
        return asyncio.sleep(0)

    async def subscribe(subscriber: Acting) -> Acting:
        r.range(3).subscribe(subscriber)
        await turns()
        return subscriber

    loop = asyncio.new_event_loop()
    resting = AsyncActing(3, on_next=lambda _: asyncio.sleep(3600))
    idle = Acting(on_error=interrupted)
    for subscriber in (resting, idle):
        loop.run_until_complete(subscribe(subscriber))
    loop.close()
    resting.cancel()
    idle.request(1)
    assert isinstance(idle.error, Interrupted)
    del resting, idle, subscriber
    gc.collect()
    assert not caplog.records


def test_it_receives_interrupted_then() -> None:
    received: list[object] = []

    class Recording(Subscriber):
        def on_error(self, error: BaseException, /) -> None:
            received.append(error)

    async def subscribe() -> None:
        r.from_aiter(endless).subscribe(Recording(UNLIMITED))
        await asyncio.sleep(0)

    loop: Any = asyncio.new_event_loop()
    loop.run_until_complete(subscribe())
    loop.close()
    asyncio.run(r.range(3).map_async(slow).run())
    gc.collect()
    assert [type(error) for error in received] == [Interrupted]
