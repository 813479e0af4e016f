"""Tasks cancelled from outside, loops that close, and nothing that outlives its subscription."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.errors import Interrupted
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe
from tests.contract.subscribers import (
    BOTH,
    SHAPES,
    UNBOUNDED,
    Acting,
    Source,
    flow,
    itself,
    tasks,
    turns,
)
from tests.harness.one_run import in_one_run

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
both = pytest.mark.parametrize("kind", BOTH)


# -- cancelled from outside, and loops that close --------------------------------------------------
@in_one_run
@pytest.mark.parametrize("shape", ["task", "asynchronous", "mixed"])
@both
@pytest.mark.parametrize("begun", [0, 1, 2, 3, 6])
async def test_a_task_cancelled_from_outside_is_reported(
    shape: str, kind: type[Acting], begun: int
) -> None:
    """errors.Interrupted: the subscriber learns that no more will come."""
    source = Source()
    subscriber = kind(UNBOUNDED)
    SHAPES[shape](source).subscribe(subscriber)
    await turns(begun)
    cut = tasks()
    for task in cut:
        task.cancel()
    await turns(60)
    assert subscriber.is_terminated
    assert isinstance(subscriber.error, Interrupted)
    assert source.closed == source.opened
    assert tasks() == set()
    # CancelledError is never swallowed; in a chain of tasks one may have ended the other before.
    assert any(task.cancelled() for task in cut)


@pytest.mark.parametrize("order", [1, -1])
async def test_calls_that_are_cancelled_together_are_one_failure(order: int) -> None:
    """As at the end of a program, which cancels all tasks, in any order."""
    started: list[asyncio.Task[Any]] = []

    async def rest(x: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        started.append(task)
        await asyncio.Event().wait()
        return x

    subscriber = SubscriberProbe[int](UNBOUNDED)
    from_iterable([1, 2, 3]).map_async(rest, concurrency=3).subscribe(subscriber)
    await turns(3)
    assert len(started) == 3
    for task in started[::order]:
        task.cancel()
    await turns(10)
    assert isinstance(subscriber.error, Interrupted)


@both
@pytest.mark.parametrize("begun", [0, 1, 2])
async def test_a_signal_cancelled_from_outside_is_reported(kind: type[Acting], begun: int) -> None:
    """errors.Interrupted: the first on_next, a coroutine, rests in a task."""

    def rest(self: Acting) -> Any:
        return asyncio.sleep(3600) if len(self.signals) == 1 else None

    source = Source()
    subscriber = kind(3, on_next=rest)
    source.pull().subscribe(subscriber)
    await turns(begun)
    for task in tasks():
        task.cancel()
    await turns()
    assert isinstance(subscriber.error, Interrupted)
    assert source.closed == source.opened


async def test_an_on_subscribe_cancelled_from_outside_is_reported() -> None:
    for begun in (0, 1):
        subscriber = Acting(3, on_subscribe=lambda self: asyncio.sleep(3600))
        flow().subscribe(subscriber)
        await turns(begun)
        for task in tasks():
            task.cancel()
        await turns()
        assert isinstance(subscriber.error, Interrupted)


async def test_a_cancelled_subscriber_receives_no_interruption() -> None:
    """1.8."""
    subscriber = Acting(3, on_subscribe=lambda self: asyncio.sleep(3600))
    flow().subscribe(subscriber)
    await turns()
    subscriber.cancel()
    for task in tasks():
        task.cancel()
    await turns()
    assert subscriber.signals == []


@every_shape
@both
def test_closing_the_loop_leaves_nothing_open(shape: Shape, kind: type[Acting]) -> None:
    """asyncio.run() cancels all tasks at its end; nothing hangs, nothing is left unawaited."""
    source = Source()

    async def main() -> Acting:
        subscriber = kind(2)
        shape(source).subscribe(subscriber)
        await turns(3)
        return subscriber

    subscriber = asyncio.run(main())
    ended = subscriber.is_terminated
    subscriber.subscription.request(1)  # 3.16
    subscriber.subscription.cancel()
    gc.collect()
    assert source.closed == source.opened
    if kind is Acting and not ended:
        assert isinstance(subscriber.error, Interrupted)


# -- no task outlives its subscription -------------------------------------------------------------
@every_shape
@both
async def test_no_task_outlives_its_subscription(shape: Shape, kind: type[Acting]) -> None:
    for ending in ("complete", "cancel", "fail", "raise"):

        def wrong(x: int, ending: str = ending) -> int:
            if x == 2 and ending == "fail":
                raise ValueError(x)
            return x

        def act(self: Acting, ending: str = ending) -> None:
            if len(self.signals) == 2 and ending == "cancel":
                self.cancel()

        subscriber = kind(UNBOUNDED, on_next=act)
        shape(Source(4)).map(wrong).subscribe(subscriber)
        await turns(60)
        assert tasks() == set()


async def test_abandoned_subscriptions_are_collected() -> None:
    """No registry keeps an unreferenced subscription: sources without a task of their own."""
    source = Source()
    gone: list[weakref.ref[Acting]] = []
    for shape in ("pulled", "boundary"):
        subscriber = Acting(1)
        SHAPES[shape](source).subscribe(subscriber)
        await turns()
        gone.append(weakref.ref(subscriber))
        del subscriber
    gc.collect()
    assert [each() for each in gone] == [None, None]
    assert source.closed == source.opened


async def test_a_flow_that_ran_is_as_small_as_one_that_did_not() -> None:
    """Nothing of a subscription stays with the flow it was made of."""
    chain = from_iterable(range(3)).map(abs).boundary(2).map_async(itself)
    subscriber = AsyncSubscriberProbe[int](9).subscribed_to(chain)
    await subscriber.end()
    gone = weakref.ref(subscriber)
    del subscriber
    await turns()
    gc.collect()
    assert gone() is None
