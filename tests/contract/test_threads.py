"""request and cancel from any thread: no lost demand, no lost wake-up, signals on the loop only."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.stage import FlowSubscription
from tests.contract.subscribers import (
    SHAPES,
    UNBOUNDED,
    Acting,
    AsyncActing,
    Source,
    itself,
    pushed,
    turns,
)

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


@pytest.fixture
def nervous() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


async def in_threads(*work: Callable[[], object]) -> None:
    await asyncio.gather(*(asyncio.to_thread(each) for each in work))


@pytest.mark.usefixtures("nervous")
@every_shape
@pytest.mark.parametrize("kind", [Acting, AsyncActing])
async def test_no_demand_is_lost(shape: Shape, kind: type[Acting]) -> None:
    """3.8: four threads request 250 each, one by one, while elements flow."""
    here = threading.get_ident()
    elsewhere: list[int] = []

    def look(_: Acting) -> None:
        if threading.get_ident() != here:
            elsewhere.append(threading.get_ident())

    subscriber = kind(on_next=look)
    shape(Source()).subscribe(subscriber)
    await turns()

    def ask() -> None:
        for _ in range(250):
            subscriber.request(1)

    await in_threads(ask, ask, ask, ask)
    await asyncio.wait_for(subscriber.wait_for_signals(1000), 20)
    await turns(30)
    assert subscriber.signals == list(range(1000))
    assert elsewhere == []
    subscriber.cancel()
    await turns(20)


@pytest.mark.usefixtures("nervous")
@every_shape
async def test_no_wake_up_is_lost(shape: Shape) -> None:
    """One at a time, each request just as the flow comes to rest."""
    loop = asyncio.get_running_loop()
    arrived = threading.Semaphore(0)
    subscriber = Acting(on_next=lambda self: arrived.release())
    shape(Source()).subscribe(subscriber)
    await turns()
    stuck: list[int] = []

    def ask() -> None:
        for number in range(400):
            subscriber.request(1)
            if not arrived.acquire(timeout=10):
                stuck.append(number)
                return

    await loop.run_in_executor(None, ask)
    assert stuck == []
    subscriber.cancel()
    await turns(20)


@pytest.mark.usefixtures("nervous")
@every_shape
async def test_cancel_from_a_thread_stops_and_cleans_up(shape: Shape) -> None:
    """3.5, 3.12: at any moment of a stream in full flow."""
    for delay in range(8):
        source = Source()
        subscriber = Acting(UNBOUNDED)
        shape(source).subscribe(subscriber)
        await turns(delay)
        await in_threads(subscriber.subscription.cancel, subscriber.subscription.cancel)
        await turns(30)
        count = len(subscriber.signals)
        await turns(10)
        assert len(subscriber.signals) == count
        assert not subscriber.is_terminated
        assert source.closed == source.opened


@every_shape
async def test_cancel_from_a_thread_releases_an_idle_flow(shape: Shape) -> None:
    """3.5, 3.12, 3.13: nothing else would ever wake it."""
    source, subscriber = Source(), Acting(2)
    shape(source).subscribe(subscriber)
    await subscriber.wait_for_signals(2)
    await turns(30)
    assert source.opened == 1
    await in_threads(subscriber.subscription.cancel)
    await turns(30)
    assert source.closed == 1
    assert not subscriber.is_terminated


@pytest.mark.usefixtures("nervous")
async def test_a_wrong_request_from_a_thread_is_answered_on_the_loop() -> None:
    """3.9."""
    here = threading.get_ident()
    where: list[int] = []
    subscriber = Acting(1, on_error=lambda self: where.append(threading.get_ident()))
    Source().push().subscribe(subscriber)
    await asyncio.to_thread(subscriber.request, 0)
    await subscriber.end()
    assert isinstance(subscriber.error, ValueError)
    assert where == [here]


async def test_a_request_during_the_request_to_upstream_is_not_lost() -> None:
    """The narrowest window, made wide: upstream's own request() lets another thread ask."""
    subscriber = Acting()
    asked: list[int] = []

    def open(inlet: Any) -> Any:
        class Upstream(FlowSubscription):
            def request(self, n: int, /) -> None:
                asked.append(n)
                inlet.push(list(range(n)))
                if len(asked) == 1:
                    # As a thread does it: an addition, and a look at the phase.
                    thread = threading.Thread(target=subscriber.request, args=(2,))
                    thread.start()
                    thread.join()

            def cancel(self) -> None: ...

        return Upstream()

    pushed(open).subscribe(subscriber)
    subscriber.request(1)
    await turns()
    assert len(subscriber.signals) == 3


async def test_a_request_during_a_request_to_an_empty_upstream_is_not_lost() -> None:
    """The same where upstream has nothing to send yet: it is asked again, for the rest."""
    subscriber = Acting()
    asked: list[int] = []

    def open(inlet: Any) -> Any:
        class Upstream(FlowSubscription):
            def request(self, n: int, /) -> None:
                asked.append(n)
                if len(asked) == 1:
                    thread = threading.Thread(target=subscriber.request, args=(2,))
                    thread.start()
                    thread.join()

            def cancel(self) -> None: ...

        return Upstream()

    for made in (
        pushed(open),
        pushed(open).map_async(itself),
    ):
        asked.clear()
        subscriber = Acting()
        made.subscribe(subscriber)
        await turns()
        subscriber.request(1)
        await turns()
        assert sum(asked) == 3
        subscriber.cancel()
        await turns()


async def test_calls_from_a_thread_after_the_loop_has_closed_have_no_effect() -> None:
    """3.16: no loop is left to call."""
    kept: list[Acting] = []

    def other_loop() -> None:
        async def main() -> None:
            subscriber = Acting(1)
            from_iterable(range(9)).boundary(2).subscribe(subscriber)
            await turns()
            kept.append(subscriber)

        asyncio.run(main())

    await asyncio.to_thread(other_loop)
    (subscriber,) = kept
    count = len(subscriber.signals)
    subscriber.request(5)
    subscriber.request(0)
    subscriber.cancel()
    assert len(subscriber.signals) == count


async def test_elements_flow_between_two_loops() -> None:
    """A subscription belongs to its loop: two loops, two threads, one flow description."""
    chain = from_iterable(range(200)).boundary(8).map(abs)
    outcome: list[list[Any]] = []

    def other_loop() -> None:
        async def main() -> None:
            subscriber = Acting(1, again=1)
            chain.subscribe(subscriber)
            outcome.append(await subscriber.end())

        asyncio.run(main())

    await in_threads(other_loop, other_loop)
    assert outcome == [[*range(200), "|"]] * 2
