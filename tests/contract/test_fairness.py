"""An endless or heavy flow does not block the event loop."""

import asyncio
import itertools
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable, just, range as flow_range, timer
from reactive_aio._shared.coerce import WINDOW
from reactive_aio.stage import FlowSubscription, InlineStage, from_push
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe
from tests.cases import Case, cases
from tests.contract.subscribers import SHAPES, UNBOUNDED, Source, turns

Shape = Callable[[Source], Flow[int]]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())

# A slice is 2 ms of this thread's own time: what a busy machine takes does not count.
GENEROUS = 0.25
BEATS = 15


class Deaf(SubscriberProbe[int]):
    """Requests everything and keeps nothing."""

    def on_next(self, element: int, /) -> None:
        return None


class DeafAsync(AsyncSubscriberProbe[int]):
    """The same with a coroutine that never waits."""

    async def on_next(self, element: int, /) -> None:  # type: ignore[override]
        return None


async def longest_gap(beats: int = BEATS) -> float:
    """How long the loop kept a heartbeat waiting, at the most."""
    longest, last = 0.0, time.thread_time()
    for _ in range(beats):
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
    return longest


def slow(x: int) -> int:
    until = time.thread_time() + 0.001
    while time.thread_time() < until:
        pass
    return x


def never(x: int) -> bool:
    return False


_EACH = InlineStage("each", params=("of",), each="emit each $of(x)")


_LISTS = InlineStage(
    "lists", params=("of",), uses=(itertools.chain,), each="emit each chain.from_iterable($of(x))"
)


def endless(x: int) -> Any:
    return itertools.count()


def endless_lists(x: int) -> Any:
    return ([x] * n for n in itertools.cycle(range(2000)))


def long_lists(x: int) -> list[list[int]]:
    return [[x], [x] * 2000]


MANNERS: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "as it is": lambda chain: chain,
    "mapped": lambda chain: chain.map(abs),
    "all dropped": lambda chain: chain.filter(never),
    "heavy": lambda chain: chain.map(slow),
    "heavy behind a boundary": lambda chain: chain.boundary(64).map(slow),
    "one element of endless parts": lambda chain: chain.via(_EACH, endless),
    "one element of endless lists": lambda chain: chain.via(_LISTS, endless_lists),
    "long lists, heavy": lambda chain: chain.via(_LISTS, long_lists).map(slow),
}


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS.keys())
@every_shape
@pytest.mark.parametrize("kind", [Deaf, DeafAsync])
async def test_an_endless_flow_does_not_block_the_loop(
    shape: Shape, manner: Callable[[Flow[int]], Flow[int]], kind: type[Any]
) -> None:
    subscriber = kind()
    manner(shape(Source())).subscribe(subscriber)
    await turns(3)
    before = time.thread_time()
    subscriber.request(UNBOUNDED)
    assert time.thread_time() - before < GENEROUS
    assert await longest_gap() < GENEROUS
    subscriber.cancel()
    await turns(30)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "case", [each for each in cases() if each.candidate.infinite_publisher], ids=str
)
async def test_no_source_or_operator_blocks_the_loop(case: Case) -> None:
    assert case.candidate.infinite_publisher is not None
    made: Any = case.candidate.infinite_publisher()
    subscriber = Deaf()
    (await made if isawaitable(made) else made).subscribe(subscriber)
    await turns(3)
    subscriber.request(UNBOUNDED)
    assert await longest_gap() < GENEROUS
    subscriber.cancel()
    if isinstance(subscriber.subscription, FlowSubscription):
        await subscriber.subscription.aclose()
    await turns(30)


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS.keys())
@every_shape
async def test_an_endless_async_for_does_not_block_the_loop(
    shape: Shape, manner: Callable[[Flow[int]], Flow[int]]
) -> None:
    async def consume() -> None:
        async for _ in manner(shape(Source())):
            pass

    task = asyncio.create_task(consume())
    assert await longest_gap() < GENEROUS
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await turns(30)


@every_shape
async def test_requests_of_one_do_not_block_the_loop(shape: Shape) -> None:
    """A subscriber that requests one element inside each on_next keeps the flow running."""

    class Greedy(Deaf):
        def on_next(self, element: int, /) -> None:
            self.subscription.request(1)

    subscriber = Greedy(1)
    shape(Source()).subscribe(subscriber)
    assert await longest_gap() < GENEROUS
    subscriber.cancel()
    await turns(30)


def obliging(downstream: Any) -> Any:
    """Sends all requested elements at once."""

    class Obliging(FlowSubscription):
        def request(self, n: int, /) -> None:
            downstream.push(list(range(n)))

        def cancel(self) -> None: ...

    return Obliging()


@pytest.mark.parametrize("kind", [Deaf, DeafAsync])
@pytest.mark.parametrize("manner", ["as it is", "mapped", "all dropped", "heavy"])
async def test_a_source_that_sends_inside_request_does_not_block_the_loop(
    manner: str, kind: type[Any]
) -> None:
    """It always has more at hand, and never gives a turn of its own."""
    chain: Flow[int] = from_push(obliging, name="obliging", window=16)
    subscriber = kind(UNBOUNDED)
    MANNERS[manner](chain).subscribe(subscriber)
    assert await longest_gap() < GENEROUS
    subscriber.cancel()
    await turns(30)


async def test_a_cancelled_endless_flow_stops_within_its_slice() -> None:
    subscriber = Deaf()
    source = Source()
    source.pull().filter(never).subscribe(subscriber)
    subscriber.request(UNBOUNDED)
    subscriber.cancel()
    pulled = source.pulled
    await turns()
    assert source.pulled == pulled


@pytest.mark.timeout(20)
async def test_concurrent_work_that_leaves_out_everything_does_not_block_the_loop() -> None:
    async def nothing(x: int) -> bool:
        return False

    subscriber = Deaf()
    from_iterable(itertools.count()).filter_async(nothing, concurrency=4).subscribe(subscriber)
    subscriber.request(UNBOUNDED)
    assert await longest_gap() < GENEROUS
    subscriber.cancel()
    assert isinstance(subscriber.subscription, FlowSubscription)
    await subscriber.subscription.aclose()


@pytest.mark.parametrize(
    "flow",
    [
        flow_range(5_000_000).filter(never).map(abs),
        flow_range(5_000_000).take_last(1).map(abs),
        flow_range(5_000_000).skip(5_000_000).default_if_empty(1),
    ],
    ids=str,
)
async def test_an_async_for_that_waits_for_its_first_element_does_not_block_the_loop(
    flow: Flow[int],
) -> None:
    async def read() -> list[int]:
        return [element async for element in flow]

    reading = asyncio.create_task(read())
    assert await longest_gap() < GENEROUS
    reading.cancel()
    await asyncio.wait([reading])


SWITCHES: dict[str, Callable[[int], Any]] = {
    "to lists": lambda x: [x],
    "to timers": lambda x: timer(1, x),
    "by a slow function": lambda x: just(slow(x)),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("mapper", SWITCHES.values(), ids=SWITCHES)
@every_shape
async def test_a_source_that_is_faster_than_a_switch_does_not_block_the_loop(
    shape: Shape, mapper: Callable[[int], Any]
) -> None:
    made = 0

    def counted(x: int) -> Any:
        nonlocal made
        made += 1
        return mapper(x)

    source, subscriber = Source(), Deaf(UNBOUNDED)
    shape(source).switch_map(counted).subscribe(subscriber)
    assert await longest_gap() < GENEROUS
    assert made > 0
    assert source.pulled - made < 2 * WINDOW
    subscriber.cancel()
    await turns(30)
