"""map_async and filter_async: order, concurrency, demand, errors, cancellation, context."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import ConcurrencyLimit, Flow, Publisher
from reactive_aio.errors import NotAnElement
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed

NAME: ContextVar[str] = ContextVar("NAME", default="unset")


async def same(x: int) -> int:
    await asyncio.sleep(0)
    return x


async def prompt(x: int) -> int:
    return x


async def fails_at_two(x: int) -> int:
    await asyncio.sleep(0)
    if x == 2:
        raise Failed
    return x


async def even(x: int) -> bool:
    await asyncio.sleep(0)
    return x % 2 == 0


def endless() -> Flow[int]:
    return r.generate(lambda x: (x, x + 1), 0)


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "map_async": lambda n: r.range(n).map_async(same),
    "map_async: prompt": lambda n: r.range(n).map_async(prompt, concurrency=3),
    "map_async: ordered": lambda n: r.range(n).map_async(same, concurrency=3),
    "map_async: unordered": lambda n: r.range(n).map_async(same, concurrency=3, ordered=False),
    "map_async: asynchronous": lambda n: slow(range(n)).map_async(same, concurrency=2),
    "map_async: by key": lambda n: r.range(n).map_async(
        same, concurrency=3, key=lambda x: x % 2, retry=2, timeout=60, on_error="skip"
    ),
    "map_async: limited": lambda n: slow(range(n)).map_async(
        same, concurrency=3, limiter=ConcurrencyLimit(2)
    ),
    "map_async: boundary": lambda n: r.range(n).boundary(2).map_async(same, concurrency=16),
    "filter_async": lambda n: r.range(2 * n).filter_async(even),
    "filter_async: ordered": lambda n: r.range(2 * n).filter_async(even, concurrency=3),
    "filter_async: unordered": lambda n: slow(range(2 * n)).filter_async(
        even, concurrency=3, ordered=False
    ),
}

FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "map_async": lambda: r.range(9).map_async(fails_at_two),
    "map_async: ordered": lambda: r.range(9).map_async(fails_at_two, concurrency=3),
    "map_async: unordered": lambda: r.range(9).map_async(
        fails_at_two, concurrency=3, ordered=False
    ),
    "map_async: retried": lambda: r.range(9).map_async(fails_at_two, retry=3),
    "map_async: a handler fails": lambda: r.range(9).map_async(
        fails_at_two, concurrency=2, on_error=lambda x, _: 1 // (x - 2)
    ),
    "map_async: source": lambda: slow([1], error=Failed()).map_async(same, concurrency=3),
    "filter_async": lambda: r.range(9).filter_async(fails_at_two),
    "filter_async: ordered": lambda: r.range(9).filter_async(fails_at_two, concurrency=2),
}

INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "map_async": lambda: endless().map_async(same),
    "map_async: by key": lambda: endless().map_async(same, concurrency=4, key=lambda x: x % 2),
    "map_async: prompt": lambda: endless().map_async(prompt, concurrency=4),
    "map_async: unordered": lambda: endless().map_async(same, concurrency=4, ordered=False),
    "filter_async": lambda: endless().filter_async(even),
    "filter_async: ordered": lambda: endless().boundary(4).filter_async(even, concurrency=4),
}


async def always(_: Any) -> bool:
    return True


IDENTITIES: Identities = {
    "map_async": lambda up: up.map_async(same),
    "map_async: three at a time": lambda up: up.map_async(same, concurrency=3),
    "filter_async": lambda up: up.filter_async(always),
}

UNORDERED = {"map_async: unordered", "filter_async: unordered"}


class Gates:
    """A function whose calls end when the test ends them."""

    def __init__(self) -> None:
        self.open: dict[int, asyncio.Future[int]] = {}
        self.started: list[int] = []
        self.cancelled: list[int] = []

    async def __call__(self, x: int) -> int:
        self.started.append(x)
        self.open[x] = asyncio.get_running_loop().create_future()
        try:
            return await self.open[x]
        except asyncio.CancelledError:
            self.cancelled.append(x)
            raise

    async def pass_(self, *elements: int) -> None:
        for x in elements:
            self.open[x].set_result(x)
        await turns()


async def turns(n: int = 6) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


def fail() -> int:
    raise Failed


def sources() -> list[Flow[int]]:
    return [r.range(100), r.range(100).boundary(8), slow(range(100))]


@pytest.mark.parametrize("feed", [0, 1, 2], ids=["pulled", "boundary", "asynchronous"])
class TestAtOnce:
    async def test_as_many_sources_are_active_as_allowed(self, feed: int) -> None:
        gates = Gates()
        flow = sources()[feed].map_async(gates, concurrency=3)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await turns(12)
        assert gates.started == [0, 1, 2]
        await gates.pass_(1)
        await turns(12)
        assert gates.started == [0, 1, 2], "1 waits for 0, and counts"
        await gates.pass_(0)
        await turns(12)
        assert gates.started == [0, 1, 2, 3, 4]
        assert probe.elements == [0, 1]
        probe.cancel()
        await turns()

    async def test_unordered_results_are_emitted_as_they_arrive(self, feed: int) -> None:
        gates = Gates()
        flow = sources()[feed].map_async(gates, concurrency=3, ordered=False)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await turns(12)
        await gates.pass_(2, 0)
        assert probe.elements == [2, 0]
        await turns(12)
        assert sorted(gates.started) == [0, 1, 2, 3, 4]
        probe.cancel()
        await turns()

    @pytest.mark.parametrize("ordered", [True, False])
    async def test_without_demand_calls_and_results_are_limited_together(
        self, feed: int, ordered: bool
    ) -> None:
        gates = Gates()
        flow = sources()[feed].map_async(gates, concurrency=3, ordered=ordered)
        probe = SubscriberProbe[int]().subscribed_to(flow)
        await turns(12)
        assert gates.started == [], "nothing starts before the first request"
        probe.request(1)
        await turns(12)
        await gates.pass_(0, 1, 2)
        await turns(12)
        assert probe.elements == [0]
        assert gates.started == [0, 1, 2, 3], "two wait, one is running"
        await gates.pass_(3)
        await turns(12)
        assert gates.started == [0, 1, 2, 3]
        probe.request(3)
        await turns(12)
        assert probe.elements == [0, 1, 2, 3]
        assert gates.started == [0, 1, 2, 3, 4, 5, 6]
        probe.cancel()
        await turns()

    async def test_an_error_cancels_the_calls_for_later_elements_only(self, feed: int) -> None:
        gates = Gates()
        flow = sources()[feed].map_async(gates, concurrency=4)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await turns(12)
        gates.open[2].set_exception(Failed())
        await turns()
        assert gates.cancelled == [3]
        assert probe.signals == []
        await gates.pass_(1, 0)
        await probe.end()
        assert probe.elements == [0, 1]
        assert isinstance(probe.error, Failed)
        assert "map_async" in "".join(probe.error.__notes__)

    async def test_unordered_an_error_cancels_all_others_and_follows_the_results(
        self, feed: int
    ) -> None:
        gates = Gates()
        flow = sources()[feed].map_async(gates, concurrency=3, ordered=False)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await turns(12)
        await gates.pass_(0, 1)
        gates.open[2].set_exception(Failed())
        await turns()
        assert probe.signals == [0], "1 waits for demand, and the error follows it"
        probe.request(1)
        await probe.end()
        assert probe.elements == [0, 1]
        assert isinstance(probe.error, Failed)

    @pytest.mark.parametrize("ordered", [True, False])
    async def test_a_failing_source_lets_the_running_calls_end(
        self, feed: int, ordered: bool
    ) -> None:
        gates = Gates()
        source = r.range(3).map(lambda x: x if x < 2 else fail())
        source = [source, source.boundary(8), slow(range(2), error=Failed())][feed]
        flow = source.map_async(gates, concurrency=4, ordered=ordered)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await turns(12)
        assert gates.started == [0, 1]
        await gates.pass_(1)
        assert gates.cancelled == []
        await gates.pass_(0)
        assert await probe.end() == [*([0, 1] if ordered else [1, 0]), probe.error]
        assert isinstance(probe.error, Failed)

    async def test_cancelling_cancels_the_running_calls(self, feed: int) -> None:
        gates = Gates()
        flow = sources()[feed].map_async(gates, concurrency=3)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await turns(12)
        probe.cancel()
        await turns()
        assert sorted(gates.cancelled) == [0, 1, 2]
        assert probe.signals == []


class TestTasks:
    async def test_leaving_a_stream_waits_for_the_cleanup_of_running_calls(self) -> None:
        log: list[str] = []

        async def work(x: int) -> int:
            try:
                await asyncio.sleep(0 if x == 0 else 60)
            finally:
                await asyncio.sleep(0)
                log.append("clean")
            return x + 1

        async with r.range(9).map_async(work, concurrency=3).stream() as elements:
            async for _ in elements:
                break
        assert len(log) >= 3
        assert len(asyncio.all_tasks()) == 1

    @pytest.mark.parametrize("concurrency", [1, 2])
    async def test_none_is_refused_as_a_result(self, concurrency: int) -> None:
        async def nothing(_: int) -> None:
            await asyncio.sleep(0)

        with pytest.raises(NotAnElement, match="map_async produced None"):
            await r.just(0).map_async(nothing, concurrency=concurrency).run()

    @pytest.mark.virtual_time
    @pytest.mark.parametrize("concurrency", [1, 4])
    async def test_a_timeout_inside_the_function_works(self, concurrency: int) -> None:
        async def hasty(x: int) -> int:
            try:
                async with asyncio.timeout(1):
                    await asyncio.sleep(x)
            except TimeoutError:
                return -x
            return x

        flow = r.just(0.5, 5.0, 0.25).map_async(hasty, concurrency=concurrency)  # type: ignore[arg-type]
        assert await flow.to_list(limit=3) == [0.5, -5.0, 0.25]

    @pytest.mark.virtual_time
    async def test_n_concurrent_calls_take_an_nth_of_the_time(self) -> None:
        async def second(x: int) -> int:
            await asyncio.sleep(1)
            return x

        assert await r.range(32).map_async(second, concurrency=8).count() == 32
        assert asyncio.get_running_loop().time() == pytest.approx(4)

    async def test_an_element_needs_no_task(self) -> None:
        seen: set[asyncio.Task[Any] | None] = set()

        async def work(x: int) -> int:
            seen.add(asyncio.current_task())
            await asyncio.sleep(0)
            return x

        await r.range(100).map_async(work, concurrency=4).run()
        assert len(seen) == 4

    async def test_no_more_is_requested_of_the_source_than_there_is_room_for(self) -> None:
        source, gates = PublisherProbe[int](), Gates()
        flow = r.from_publisher(source).map_async(gates, concurrency=3)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        assert source.requested == 3
        source.emit(0, 1, 2)
        await turns()
        await gates.pass_(1)
        assert source.requested == 3
        await gates.pass_(0)
        assert source.requested == 5
        probe.cancel()
        await turns()

    async def test_a_worker_cancelled_from_outside_fails_the_flow(self) -> None:
        gates = Gates()
        flow = r.range(9).map_async(gates, concurrency=2, ordered=False)
        probe = SubscriberProbe[int](9).subscribed_to(flow)
        await turns()
        next(task for task in asyncio.all_tasks() if "worker" in task.get_name()).cancel()
        await probe.end()
        assert "cancelled from outside" in str(probe.error)

    def test_bound_and_arguments(self) -> None:
        assert r.range(9).map_async(same, concurrency=4).bound().total == 8
        with pytest.raises(ValueError, match="map_async: concurrency must be at least 1"):
            r.range(9).map_async(same, concurrency=0)


@pytest.mark.virtual_time
class TestAhead:
    """How far the calls run ahead, apart from how many run at a time."""

    async def test_calls_go_on_while_one_is_late(self) -> None:
        begun: list[int] = []
        running: list[int] = [0, 0]

        async def work(x: int) -> int:
            begun.append(x)
            running[0] += 1
            running[1] = max(running)
            await asyncio.sleep(100 if x == 0 else 1)
            running[0] -= 1
            return x

        task = asyncio.ensure_future(
            r.range(100).map_async(work, concurrency=4, ahead=40).to_list()
        )
        await asyncio.sleep(50)
        assert len(begun) == 40
        assert await task == [*range(100)]
        assert running[1] == 4

    async def test_an_element_that_waits_for_its_retry_keeps_no_place(self) -> None:
        attempts: Counter[int] = Counter()

        async def work(x: int) -> int:
            attempts[x] += 1
            if x < 4 and attempts[x] == 1:
                raise OSError
            await asyncio.sleep(1)
            return x

        policy = r.RetryPolicy(attempts=2, delay=50, jitter=0)
        task = asyncio.ensure_future(
            r.range(20).map_async(work, concurrency=2, ahead=20, retry=policy).to_list()
        )
        await asyncio.sleep(20)
        assert attempts.total() == 20, "16 succeed in 8 s, beside four that wait"
        assert await task == [*range(20)]

    async def test_it_holds_what_it_says(self) -> None:
        async def work(x: int) -> int:
            return x

        flow = r.range(9).map_async(work, concurrency=4, ahead=40)
        assert flow.bound().total == 80
        assert "map_async(work, concurrency=4, ahead=40)" in flow.explain()
        with pytest.raises(ValueError, match="map_async: ahead must be at least 4, not 3"):
            r.range(9).map_async(work, concurrency=4, ahead=3)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Change each element": {
        "into the result of a coroutine function": "map_async",
    },
    "Wait, or work concurrently": {
        "await a call for each element, several at a time": "map_async for_each",
        "with retries, a time limit, a rate, or in order for each key": "map_async for_each",
    },
}


async def example_map_async() -> None:
    async def fetch(page: int) -> str:
        await asyncio.sleep(0.1)
        return f"page {page}"

    pages = r.range(1, 4).map_async(fetch, concurrency=3)  # takes 0.1 s in all
    print(await pages.to_list())


async def example_filter_async() -> None:
    async def is_free(name: str) -> bool:
        await asyncio.sleep(0.1)
        return name != "ada"

    print(await r.just("ada", "alan").filter_async(is_free).to_list())


@pytest.mark.virtual_time
async def test_a_source_that_fails_beside_a_call_is_reported(
    expects_loop_errors: list[dict[str, Any]],
) -> None:
    """The first failure is the one that is raised; the other one does not disappear."""
    source_error, call_error = OSError("of the source"), ValueError("of the call")

    async def source() -> AsyncIterator[int]:
        yield 1
        raise source_error

    async def call(_: int) -> int:
        await asyncio.sleep(1)
        raise call_error

    with pytest.raises(ValueError, match="of the call"):
        await r.from_aiter(source).map_async(call, concurrency=2).to_list()
    assert [each["exception"] for each in expects_loop_errors] == [source_error]


async def one_then_waiting(n: int = 1) -> AsyncIterator[int]:
    for x in range(n):
        yield x
    await asyncio.sleep(900)


@pytest.mark.virtual_time
async def test_a_failure_leaves_the_results_of_earlier_calls_to_come() -> None:
    """While a worker waits for its next element, and has no place in the order."""

    async def work(x: int) -> int:
        await asyncio.sleep((2, 0, 1)[x])
        if x == 2:
            raise Failed
        return x

    flow = r.from_aiter(one_then_waiting(3)).boundary(4).map_async(work, concurrency=4)
    probe = SubscriberProbe[int](9).subscribed_to(flow)
    await probe.end()
    assert probe.elements == [0, 1]
    assert isinstance(probe.error, Failed)


@pytest.mark.virtual_time
async def test_a_cancelled_call_gives_its_element_back_and_an_idle_worker_none() -> None:
    given: list[object] = []
    flow = r.from_aiter(one_then_waiting).boundary(4)
    flow = flow.map_async(lambda x: asyncio.sleep(900, x), concurrency=3)
    probe = SubscriberProbe[int](9).subscribed_to(flow.do_on_discard(given.append))
    await asyncio.sleep(1)
    probe.cancel()
    await asyncio.sleep(1)
    assert given == [0]


@pytest.mark.virtual_time
async def test_a_filter_that_never_waits_leaves_out_what_it_should() -> None:
    async def is_odd(x: int) -> bool:
        return x % 2 == 1

    assert await r.range(6).filter_async(is_odd, concurrency=2).to_list() == [1, 3, 5]


async def test_elements_may_be_flows_that_are_no_parts_of_another_one() -> None:
    flows = r.from_iterable([r.just(1), r.just(2)]).boundary(2)
    assert await flows.map_async(lambda each: each.to_list(), concurrency=2).to_list() == [[1], [2]]
