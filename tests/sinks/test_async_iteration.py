"""``async for`` and ``stream``: demand, prefetch, one consumer. Leaving early: tests/contract."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from itertools import count, pairwise
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.testing import PublisherProbe
from tests.cases import Needs, Sinks
from tests.harness.one_run import in_one_run


async def iterate(flow: Flow[Any]) -> None:
    async for _ in flow:
        pass


async def stream(flow: Flow[Any]) -> None:
    async with flow.stream(prefetch=3) as elements:
        async for _ in elements:
            pass


SINKS: Sinks = {"async for": iterate, "stream": stream}


async def test_the_first_request_of_async_for_is_one_element() -> None:
    foreign = PublisherProbe[int]()
    elements = aiter(r.from_publisher(foreign))
    first = asyncio.ensure_future(anext(elements))
    await asyncio.sleep(0)
    foreign.emit(1)
    assert await first == 1
    assert foreign.requests == [1]


async def test_stream_keeps_prefetch_elements_requested() -> None:
    foreign = PublisherProbe[int]()
    async with r.from_publisher(foreign).stream(prefetch=3) as elements:
        for number in range(2):
            next_element = asyncio.ensure_future(anext(elements))
            await asyncio.sleep(0)
            assert foreign.requested == number + 3
            foreign.emit(number)
            assert await next_element == number


async def test_the_element_of_an_iterator_without_references_is_received() -> None:
    foreign = PublisherProbe[int]()
    first = asyncio.ensure_future(anext(aiter(r.from_publisher(foreign).map(str))))
    await asyncio.sleep(0)
    foreign.emit(1)
    assert await first == "1"
    assert foreign.cancel_count == 1
    assert foreign.requests == [1]


async def test_an_iterator_without_references_is_cancelled_with_its_task() -> None:
    foreign = PublisherProbe[int]()
    first = asyncio.ensure_future(anext(aiter(r.from_publisher(foreign))))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert foreign.cancel_count == 1


# -- two tasks on one iterator ---------------------------------------------------------------------
class Gated:
    """Numbers that wait until they are let through."""

    def __init__(self) -> None:
        self.gate = asyncio.Semaphore(0)

    async def __call__(self) -> AsyncIterator[int]:
        for number in range(5):
            await self.gate.acquire()
            yield number

    async def emit(self, emitter: r.Emitter[int]) -> None:
        async for number in self():
            await emitter.emit(number)

    async def wait(self, number: int) -> int:
        await self.gate.acquire()
        return number


WAITING: dict[str, Callable[[Gated], Flow[int]]] = {
    "from_aiter": lambda gated: r.from_aiter(gated),
    "map_async": lambda gated: r.range(5).map_async(gated.wait),
    "concurrency": lambda gated: r.range(5).map_async(gated.wait, concurrency=2),
    "boundary": lambda gated: r.from_aiter(gated).boundary(2),
    "merge": lambda gated: r.from_aiter(gated).merge_with([]),
    "create": lambda gated: r.create(gated.emit),
    "share": lambda gated: r.from_aiter(gated).share(),
    "do_on_discard": lambda gated: r.from_aiter(gated).do_on_discard(lambda _: None),
}
ITERATED: dict[str, Callable[[Flow[int]], AsyncIterator[int]]] = {
    "async for": aiter,
    "stream": lambda flow: flow.stream(),
    "prefetch=1": lambda flow: flow.stream(prefetch=1),
    "prefetch=5": lambda flow: flow.stream(prefetch=5),
}


@in_one_run
@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("iterated", ITERATED.values(), ids=ITERATED)
@pytest.mark.parametrize("make", WAITING.values(), ids=WAITING)
async def test_a_second_task_that_waits_for_an_element_fails_at_once(
    make: Callable[[Gated], Flow[int]],
    iterated: Callable[[Flow[int]], AsyncIterator[int]],
    before: int,
) -> None:
    gated = Gated()
    elements = iterated(make(gated))
    for number in range(before):
        gated.gate.release()
        assert await anext(elements) == number
    first = asyncio.ensure_future(anext(elements))
    second = asyncio.ensure_future(anext(elements))  # made before the first has begun
    with pytest.raises(RuntimeError, match=r"one consumer|already running"):
        await second
    with pytest.raises(RuntimeError, match="one consumer"):
        await anext(elements)
    assert not first.done()
    for _ in range(5):
        gated.gate.release()
    assert [await first, *[number async for number in elements]] == [*range(before, 5)]


@in_one_run
@pytest.mark.parametrize("iterated", ITERATED.values(), ids=ITERATED)
@pytest.mark.parametrize("make", WAITING.values(), ids=WAITING)
async def test_tasks_that_take_turns_receive_each_element_once(
    make: Callable[[Gated], Flow[int]], iterated: Callable[[Flow[int]], AsyncIterator[int]]
) -> None:
    gated = Gated()
    for _ in range(5):
        gated.gate.release()
    elements = iterated(make(gated))
    assert [await asyncio.create_task(take(elements)) for _ in range(5)] == [*range(5)]
    with pytest.raises(StopAsyncIteration):
        await anext(elements)


async def take(elements: AsyncIterator[int]) -> int:
    return await anext(elements)


@pytest.mark.parametrize("iterated", ITERATED.values(), ids=ITERATED)
@pytest.mark.parametrize("asked", [1, 3])
async def test_elements_that_are_there_are_given_to_all_that_have_asked(
    iterated: Callable[[Flow[int]], AsyncIterator[int]], asked: int
) -> None:
    elements = iterated(r.range(5))
    taken = await asyncio.gather(*(anext(elements) for _ in range(asked)))
    assert [*taken, *[number async for number in elements]] == [*range(5)]


@pytest.mark.parametrize("iterated", ITERATED.values(), ids=ITERATED)
async def test_a_second_task_fails_while_the_first_leaves_the_loop_a_turn(
    iterated: Callable[[Flow[int]], AsyncIterator[int]],
) -> None:
    elements = iterated(r.range(10**5 + 2).skip(10**5))
    first, second = (asyncio.ensure_future(anext(elements)) for _ in range(2))
    with pytest.raises(RuntimeError, match=r"one consumer|already running"):
        await second
    assert [await first, *[number async for number in elements]] == [10**5, 10**5 + 1]


class Numbers:
    """Counts the elements that were read of it."""

    def __init__(self, delay: float | None = None) -> None:
        self.read = 0
        self._delay = delay

    async def __call__(self) -> AsyncIterator[int]:
        for number in count():
            self.read += 1
            if self._delay is not None:
                await asyncio.sleep(self._delay)
            yield number


class Iterator:
    """An asynchronous iterator that others may continue to read."""

    def __init__(self) -> None:
        self.read = 0

    def __aiter__(self) -> "Iterator":
        return self

    async def __anext__(self) -> int:
        self.read += 1
        return self.read


WAYS: dict[str, Callable[[Numbers], Flow[int]]] = {
    "from_aiter": r.from_aiter,
    "map_async": lambda numbers: r.from_aiter(numbers).map_async(same),
    "timeout": lambda numbers: r.from_aiter(numbers).timeout(60),
    "concat": lambda numbers: r.concat(r.from_aiter(numbers), [1]),
}


async def same(x: int) -> int:
    return x


def bounded(elements: Iterable[int]) -> Flow[int]:
    return r.from_iterable(elements).boundary(2)


@pytest.mark.parametrize("flow", [r.from_iterable, bounded])
def test_a_cleanup_that_stops_the_program_does_so_after_a_break(
    flow: Callable[[Any], Flow[int]],
) -> None:
    """A destructor runs the cleanup: what it raises would be ignored."""

    class Source:
        def __iter__(self) -> Generator[int]:
            try:
                yield from range(10)
            finally:
                raise KeyboardInterrupt

    async def leave() -> None:
        async for _ in flow(Source()):
            break
        await asyncio.sleep(0)
        pytest.fail("the program goes on")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(leave())


class TestWindow:
    """How far ``async for`` reads ahead of its consumer."""

    @pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
    async def test_leaving_after_the_first_element_has_cost_one_element(
        self, way: Callable[[Numbers], Flow[int]]
    ) -> None:
        numbers = Numbers()
        async for _ in way(numbers):
            break
        assert numbers.read == 1

    @pytest.mark.virtual_time
    async def test_the_window_doubles_up_to_256(self) -> None:
        log: list[int] = []
        async for number in r.range(2000).do_on_request(log.append).map_async(same):
            assert number < 2000
        assert log[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
        assert max(log) == 256

    async def test_a_stream_with_a_prefetch_has_a_window_of_that_size(self) -> None:
        log: list[int] = []
        async with r.range(12).do_on_request(log.append).stream(prefetch=4) as elements:
            assert [x async for x in elements] == [*range(12)]
        assert log == [4, 4, 4]

    @pytest.mark.virtual_time
    async def test_the_window_stays_small_where_elements_take_long(self) -> None:
        numbers = Numbers(delay=1)
        async for number in r.from_aiter(numbers):
            assert numbers.read <= number + 2
            if number == 50:
                break

    @pytest.mark.virtual_time
    async def test_it_reads_no_element_ahead_of_a_slow_consumer(self) -> None:
        numbers = Numbers()
        async for number in r.from_aiter(numbers):
            await asyncio.sleep(1)
            if number == 20:
                break
        assert numbers.read == 21

    async def test_leaving_loses_no_element_of_a_queue(self) -> None:
        queue = asyncio.Queue[int]()
        for number in range(100):
            queue.put_nowait(number)
        for flow in (r.from_queue(queue), r.from_queue(queue).timeout(60).map(abs)):
            async for number in flow:
                if number % 30 == 29:
                    break
        assert queue.get_nowait() == 60

    async def test_leaving_loses_no_element_of_a_queue_that_is_known_only_at_subscription(
        self,
    ) -> None:
        queue = asyncio.Queue[int]()
        for number in range(100):
            queue.put_nowait(number)
        async for number in r.defer(lambda: r.from_queue(queue)):
            if number == 30:
                break
        assert queue.get_nowait() == 31

    async def test_leaving_loses_no_element_of_an_iterator(self) -> None:
        numbers = Iterator()
        async for number in r.from_aiter(numbers).map_async(same):
            if number == 30:
                break
        assert numbers.read == 30

    @pytest.mark.virtual_time
    async def test_a_slow_consumer_sees_the_latest_element(self) -> None:
        seen: list[int] = []
        flow = r.from_aiter(Numbers(delay=1)).on_backpressure_latest()
        async for number in flow:
            seen.append(number)
            await asyncio.sleep(10.5)
            if len(seen) == 4:
                break
        assert seen == [0, 10, 20, 31]

    @pytest.mark.virtual_time
    async def test_a_slow_consumer_of_a_clock_receives_no_burst(self) -> None:
        seen: list[int] = []
        async for tick in r.interval(1):
            seen.append(tick)
            await asyncio.sleep(0 if tick < 20 else 5.5)
            if tick > 40:
                break
        assert seen[:21] == [*range(21)]
        assert all(later - earlier >= 5 for earlier, later in pairwise(seen[20:]))

    def test_a_stream_reports_its_window(self) -> None:
        assert r.range(3).boundary(4).stream().bound().total == 4 + 256
        assert r.range(3).boundary(4).stream(prefetch=8).bound().total == 4 + 8
        assert r.interval(1).stream().bound().total == 1 + 1

    def test_a_list_counts_its_elements(self) -> None:
        assert r.range(3).buffer(100).stream().bound().total == 100 + 2 * 100
        assert r.range(3).buffer(1000).stream().bound().total == 1000 + 1000

    async def test_closing_a_stream_ends_the_wait_of_its_consumer(self) -> None:
        elements = r.never().stream()
        waiting = asyncio.ensure_future(anext(elements, "ended"))
        await asyncio.sleep(0)
        await elements.aclose()
        assert await waiting == "ended"

    async def test_closing_a_stream_discards_what_it_has_read_ahead(self) -> None:
        elements = r.from_aiter(Numbers()).stream(prefetch=10)
        assert await anext(elements) == 0
        await elements.aclose()
        assert await anext(elements, "ended") == "ended"


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "End a flow, get a result": {
        "iterate it, and wait for its cleanup": "stream",
    },
}


async def example_stream() -> None:
    async with r.interval(0.1).stream() as ticks:
        async for n in ticks:
            print(n)
            if n == 1:
                break
    print("the source is closed")
