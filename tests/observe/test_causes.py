# pyright: reportUnknownLambdaType=false
"""A stall of every kind: the report names what is to blame, and the line of the user."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Any, cast

import anyio
import pytest

import reactive_aio as r
from reactive_aio import Flow, observe
from reactive_aio._core.observation import registry
from reactive_aio.connectors.common import awaits_messages
from reactive_aio.delivery import Outage, deliveries
from reactive_aio.errors import TimedOut
from reactive_aio.stage import Coordinator, from_push
from reactive_aio.testing import SubscriberProbe


@pytest.fixture(autouse=True)
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_names", {})


async def hangs(x: int) -> int:
    await asyncio.sleep(3600)
    return x


async def passes(x: int) -> int:
    return x


async def fails(x: int) -> int:
    raise OSError("down")


async def first_fails(x: int) -> int:
    return await fails(x) if x == 0 else await hangs(x)


async def first_hangs(x: int) -> int:
    return await hangs(x) if x == 0 else x


async def hanging_source() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(3600)


async def source_with_a_cleanup() -> AsyncIterator[int]:
    try:
        yield 1
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(3600)


def locked() -> Callable[[int], Awaitable[int]]:
    lock = asyncio.Lock()

    async def save(x: int) -> int:
        async with lock:
            return await hangs(x) if x == 0 else x

    return save


def fast() -> Flow[int]:
    return r.range(1_000_000).boundary(16)


SLOW = r.RetryPolicy(attempts=None, delay=3600, jitter=0, maximum=7200)

RUNS: dict[str, tuple[Callable[[], Flow[Any]], str]] = {
    "a call": (
        lambda: fast().map_async(hangs, concurrency=2),
        "map_async(hangs, concurrency=2), in hangs (",
    ),
    "a call of one at a time": (lambda: fast().map_async(hangs), "map_async(hangs), in hangs ("),
    "the oldest of ordered calls": (
        lambda: fast().map_async(first_hangs, concurrency=4),
        "map_async(first_hangs, concurrency=4), in hangs (",
    ),
    "a predicate": (lambda: fast().filter_async(hangs), "filter_async(hangs), in hangs ("),
    "a lock": (lambda: fast().map_async(locked(), concurrency=3), "concurrency=3), in hangs ("),
    "a rate limit": (
        lambda: fast().map_async(passes, limiter=r.RateLimit(1, per=3600)),
        "map_async(passes), which waits for the limiter RateLimit(1, per=3600)",
    ),
    "a limit of several": (
        lambda: fast().map_async(passes, concurrency=4, limiter=r.RateLimit(1, per=3600)),
        "which waits for the limiter RateLimit(1, per=3600)",
    ),
    "a concurrency limit": (
        lambda: fast().map_async(hangs, concurrency=4, limiter=r.ConcurrencyLimit(1)),
        "; others wait for the limiter ConcurrencyLimit(1)",
    ),
    "an open breaker": (
        lambda: fast().map_async(
            fails, on_error="skip", limiter=r.CircuitBreaker(failures=1, reset=3600)
        ),
        "which waits for the limiter CircuitBreaker(open)",
    ),
    "a retry of a call": (
        lambda: fast().map_async(fails, concurrency=2, retry=SLOW),
        "concurrency=2), which waits for the delay before attempt 2, after OSError",
    ),
    "a retry of one of several calls": (
        lambda: fast().map_async(first_fails, concurrency=2, retry=SLOW),
        "which waits for the delay before attempt 2, after OSError; others are in hangs (",
    ),
    "calls that have no line of the user": (
        lambda: fast().map_async(lambda _: asyncio.Event().wait(), concurrency=2),
        "map_async(<lambda>, concurrency=2), whose 2 calls have not returned",
    ),
    "a key": (
        lambda: fast().map_async(hangs, concurrency=2, key=lambda _: "one"),
        "in hangs (",
    ),
    "a retry": (
        lambda: r.error(OSError("down")).retry(SLOW),
        "retry(unlimited), which waits for the delay before attempt 2, after OSError",
    ),
    "a restart": (
        lambda: r.just(1).restart(SLOW),
        "which waits for the delay before attempt 2, after its end",
    ),
    "a repetition": (
        lambda: r.just(1).repeat(SLOW),
        "which waits for the delay before the next run",
    ),
    "rate_limit": (lambda: fast().rate_limit(1, per=3600), "which waits for the end of its period"),
    "a shared rate": (
        lambda: fast().rate_limit(limiter=r.RateLimit(1, per=3600)),
        "which waits for the limiter RateLimit(1, per=3600)",
    ),
    "an inner flow": (
        lambda: fast().flat_map(lambda _: r.just(1).map_async(hangs, concurrency=2)),
        "map_async(hangs, concurrency=2), in hangs (",
    ),
    "an awaitable": (
        lambda: fast().flat_map(lambda _: r.from_awaitable(lambda: hangs(1))),
        "in hangs (",
    ),
    "one of several sources": (
        lambda: r.merge(r.never(), fast().map_async(hangs, concurrency=2)),
        "map_async(hangs, concurrency=2), in hangs (",
    ),
    "the one that holds elements, beside a quiet source": (
        lambda: r.merge(r.from_aiter(hanging_source), fast().map_async(hangs, concurrency=2)),
        "map_async(hangs, concurrency=2), in hangs (",
    ),
    "the silent one of a zip": (
        lambda: r.zip(fast(), r.never()),
        "never(), which sends nothing",
    ),
    "an asynchronous generator": (
        lambda: r.from_aiter(hanging_source),
        "from_aiter(hanging_source), in hanging_source (",
    ),
    "a generator above a boundary": (
        lambda: r.from_aiter(hanging_source).boundary(4).map(abs),
        "from_aiter(hanging_source), in hanging_source (",
    ),
    "a cleanup": (
        lambda: r.from_aiter(source_with_a_cleanup).timeout(1, fallback=[2]),
        "which waits for the cleanup of from_aiter(source_with_a_cleanup)",
    ),
    "a group that nothing reads": (
        lambda: (
            fast()
            .group_by(lambda n: n % 4, stalled_after=None)
            .flat_map(lambda group: group, concurrency=2)
        ),
        "group_by(<lambda>), which requests nothing",
    ),
    "groups that nothing reads, below the name": (
        lambda: (
            fast()
            .name("orders")
            .group_by(lambda n: n % 4, stalled_after=None)
            .flat_map(lambda group: group, concurrency=2)
        ),
        "flat_map(<lambda>, concurrency=2), which requests nothing",
    ),
    "a group that is read slowly": (
        lambda: (
            fast()
            .group_by(lambda n: n % 2)
            .flat_map(lambda group: group.map_async(hangs, concurrency=2))
        ),
        "map_async(hangs, concurrency=2), in hangs (",
    ),
    "what follows the name": (
        lambda: fast().name("orders").boundary(4).map_async(hangs, concurrency=2),
        "map_async(hangs, concurrency=2), in hangs (",
    ),
    "what follows the name, one at a time": (
        lambda: fast().name("orders").boundary(4).map_async(hangs),
        "map_async(hangs), in hangs (",
    ),
    "a delivery that is tried again": (
        lambda: (
            deliveries(fast(), ack=passes, limit=8)
            .nack_on_error(SLOW, dead_letter=lambda x, _: hangs(x))
            .ack_after(fails)
        ),
        "which waits for the delay before attempt 2, after OSError",
    ),
    "the function of for_each": (lambda: fast(), "in hangs ("),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", RUNS)
async def test_the_report_names_what_a_flow_is_stuck_at(kind: str) -> None:
    make, expected = RUNS[kind]
    flow = make()
    if "orders" not in flow.chain.trail():
        flow = flow.name("orders")
    running = flow.running(hangs) if kind == "the function of for_each" else flow.running()
    async with watched() as reports, running:
        await asyncio.sleep(60)
    assert expected in stuck_at(reports)
    assert "in None" not in stuck_at(reports)


@pytest.mark.virtual_time
@pytest.mark.parametrize("write", [passes, fails])
async def test_an_acknowledgement_or_dead_letter_that_hangs_is_named(
    write: Callable[[int], Awaitable[int]],
) -> None:
    held = deliveries(fast(), ack=hangs, limit=8)
    orders = held.nack_on_error(1, dead_letter=lambda x, _: hangs(x)).ack_after(write)
    async with watched() as reports:
        with pytest.raises(TimedOut):
            async with orders.name("orders").running():
                await asyncio.sleep(20)
    expected = "deliveries(limit=8).nack_on_error(attempts=1, dead_letter=<lambda>), in hangs ("
    assert expected in stuck_at(reports)


async def test_a_thread_that_does_not_return_is_named_with_its_line() -> None:
    loop, entered, released = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def blocks() -> Iterator[int]:
        yield 1
        loop.call_soon_threadsafe(entered.set)
        released.wait()

    orders = r.from_thread(blocks).name("orders")
    calls = r.just(1).map_async(lambda _: asyncio.to_thread(released.wait), concurrency=2)
    both = r.merge(orders, calls).name("both")
    async with both.running() as run:
        await entered.wait()
        [stats] = orders.stats().subscriptions
        [of_both] = both.stats().subscriptions
        released.set()
        await run.wait()
    assert of_both.cause.startswith("map_async("), "a source may be quiet"
    assert (stats.waits_on, stats.cause.partition(" (")[0]) == (
        "elements",
        "from_thread, in test_a_thread_that_does_not_return_is_named_with_its_line.<locals>.blocks",
    )


@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", [r.UnicastProcessor, r.MulticastProcessor])
async def test_the_slow_reader_of_a_processor_is_named(kind: Callable[[int], Any]) -> None:
    processor = kind(4)

    async def read() -> None:
        async for element in processor:
            await hangs(element)

    async with watched() as reports:
        reading = asyncio.create_task(read())
        await asyncio.sleep(1)
        fast().name("orders").into(processor)
        await asyncio.sleep(60)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert stuck_at(reports).startswith("its subscriber, in hangs (")


@asynccontextmanager
async def watched() -> AsyncGenerator[list[str]]:
    reports: list[str] = []
    async with observe.watch(stall=5, block=None, on_report=reports.append):
        yield reports


def stuck_at(reports: list[str], name: str = "orders") -> str:
    """What the first report on a flow blames."""
    report = next(each for each in reports if each.startswith(f"{name}: "))
    return report.splitlines()[0].partition(": stuck at ")[2]


QUIET: dict[str, Callable[[], Flow[Any]]] = {
    "a quiet source": lambda: r.never().boundary(4),
    "a source that is slow": lambda: r.interval(3600).map(abs),
    "a queue": lambda: r.from_queue(asyncio.Queue[int]()).map_async(passes),
    "a list that is collected": lambda: r.interval(1).buffer_timeout(1000, 3600),
    "a delay": lambda: r.interval(1).delay(3600),
    "a sample": lambda: r.interval(1).sample(3600),
    "silence": lambda: r.interval(1).debounce(3600),
    "sources that are quiet": lambda: r.merge(r.never(), r.never()),
    "a shared source that is quiet": lambda: r.never().share(),
    "a broker without messages": lambda: r.from_aiter(messages(late=False)),
}


async def messages(*, late: bool) -> AsyncGenerator[int]:
    """A reader of a broker: the server should have answered by a time, unless it is frozen."""

    @awaits_messages
    async def wait_for_one(until: float) -> int:
        await asyncio.Event().wait()
        return 1

    until = 0 if late else asyncio.get_running_loop().time() + 3600
    yield await Outage("Broker (queue)", r.RetryPolicy()).call(wait_for_one, until)


@pytest.mark.virtual_time
async def test_a_broker_that_should_have_answered_is_to_blame() -> None:
    flow = r.from_aiter(messages(late=True)).name("orders")
    async with watched() as reports, flow.running():
        await asyncio.sleep(600)
    told = "which waits for an answer of Broker (queue), in messages.<locals>.wait_for_one ("
    assert told in stuck_at(reports)


@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", QUIET)
async def test_what_waits_for_its_source_or_its_time_does_not_stall(kind: str) -> None:
    async with watched() as reports, QUIET[kind]().name("orders").running():
        await asyncio.sleep(600)
    assert not reports


@pytest.mark.virtual_time
class TestConsumers:
    """A flow is not to blame for what reads it."""

    @pytest.mark.parametrize(
        "flow",
        [
            fast(),
            r.interval(0.01).boundary(16).map(abs),
            fast().map_async(passes, concurrency=4),
            r.merge(fast(), fast()),
            fast().name("orders").map(abs).boundary(2),
            fast().name("orders").flat_map(lambda x: [x, x]).buffer_timeout(4, 1),
        ],
        ids=lambda flow: flow.chain.trail(),
    )
    async def test_a_slow_loop_body_is_named_with_its_line(self, flow: Flow[Any]) -> None:
        named = flow if "orders" in flow.chain.trail() else flow.name("orders")
        async with watched() as reports:
            async for _ in named:
                await asyncio.sleep(60)
                break
        assert "its subscriber, in TestConsumers.test_a_slow_loop_body" in stuck_at(reports)
        assert reports[0].splitlines()[2].count("waits for demand of its subscriber") == 1

    async def test_a_stream_that_another_task_reads_is_not_searched_in_the_first(self) -> None:
        async with watched() as reports, fast().name("orders").stream() as elements:
            await anext(elements)
            await asyncio.sleep(60)
        assert "its subscriber" in stuck_at(reports)
        assert "another_task" in stuck_at(reports)

    async def test_a_subscriber_that_requests_nothing(self) -> None:
        async with watched() as reports:
            probe = SubscriberProbe[int](1).subscribed_to(fast().name("orders"))
            await asyncio.sleep(60)
            probe.cancel()
        assert stuck_at(reports) == "its subscriber SubscriberProbe, which requests nothing"

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_a_subscriber_that_is_slow_in_a_signal(self, is_async: bool) -> None:
        class Slow(SubscriberProbe[int]):
            def on_next(self, element: int, /) -> Any:
                super().on_next(element)
                return asyncio.sleep(3600)

        async def on_next(element: int) -> None:
            await asyncio.sleep(3600)

        probe = SubscriberProbe[int](9) if is_async else Slow(9)
        if is_async:
            cast("Any", probe).on_next = on_next
        async with watched() as reports:
            fast().name("orders").subscribe(probe)
            await asyncio.sleep(60)
            probe.cancel()
            await asyncio.sleep(3600)
        line = "<locals>.on_next (" if is_async else "in on_next of "
        assert stuck_at(reports).startswith("its subscriber, in ")
        assert line in stuck_at(reports)

    async def test_a_slow_reader_of_a_generator_that_reads_the_flow(self) -> None:
        async def read(flow: Flow[int]) -> AsyncIterator[int]:
            async for x in flow:
                yield x

        async with watched() as reports:
            async for _ in read(fast().name("orders")):
                await asyncio.sleep(60)
                break
            await asyncio.sleep(0)
        assert "TestConsumers.test_a_slow_reader_of_a_generator" in stuck_at(reports)

    async def test_a_full_queue(self) -> None:
        queue = asyncio.Queue[int](1)
        async with watched() as reports:
            task = asyncio.ensure_future(fast().name("orders").to_queue(queue))
            await asyncio.sleep(60)
            task.cancel()
            await asyncio.wait([task])
        assert "Queue.put" in stuck_at(reports)
        assert "the call for an element" in stuck_at(reports)

    async def test_a_slow_reader_of_a_shared_flow(self) -> None:
        shared = fast().name("source").share(capacity=4)

        async def slow() -> None:
            async for _ in shared.map(abs):
                await asyncio.sleep(3600)

        async with watched() as reports:
            task = asyncio.create_task(slow())
            await asyncio.sleep(0)
            async with shared.name("orders").running():
                await asyncio.sleep(60)
            task.cancel()
        assert "its slowest subscriber" in stuck_at(reports)
        for name in ("orders", "source"):
            assert "test_a_slow_reader_of_a_shared_flow.<locals>.slow (" in stuck_at(reports, name)

    async def test_a_slow_reader_of_a_processor(self) -> None:
        news = r.MulticastProcessor[int](capacity=4)
        slow = news.map_async(hangs, concurrency=2).running()
        async with watched() as reports, slow, news.name("orders").running():
            fast().name("source").subscribe(news)
            await asyncio.sleep(60)
        assert "map_async(hangs, concurrency=2), in hangs (" in stuck_at(reports)
        assert "map_async(hangs, concurrency=2), in hangs (" in stuck_at(reports, "source")

    async def test_a_processor_that_nobody_reads(self) -> None:
        orders = fast().name("orders")
        orders.subscribe(r.MulticastProcessor[int](capacity=4))
        [subscription] = orders.stats().subscriptions
        assert subscription.cause == "its subscriber, which requests nothing"

    async def test_an_operator_whose_reader_is_not_known(self) -> None:
        class Wrapped:
            """A downstream that passes everything on, as a user may write one."""

            def __init__(self, downstream: object) -> None:
                self._downstream = downstream

            def __getattr__(self, name: str) -> Any:
                return getattr(self._downstream, name)

        class Keeps(Coordinator[int]):
            def on_start(self) -> None:
                self.subscribe_to(orders, request=1)

        orders = fast().name("orders")

        def keep(downstream: object) -> Keeps:
            return Keeps(cast("Any", Wrapped(downstream)))

        flow: Flow[int] = from_push(keep, name="keeps")
        async with flow.running():
            await asyncio.sleep(1)
            [subscription] = orders.stats().subscriptions
        assert subscription.cause == "its subscriber"


async def test_what_runs_waits_for_nothing() -> None:
    busy = r.generate(lambda n: (n, n + 1), 0).filter(lambda _: False)
    for flow, waits_for in (
        (busy.name("orders"), "nothing: it runs"),
        (busy.boundary(4).name("orders"), "elements of boundary(4)"),
    ):
        async with flow.running():
            for _ in range(3):
                await asyncio.sleep(0)
            [subscription] = flow.stats().subscriptions
        assert (subscription.waits_for, subscription.cause) == (waits_for, "nothing: it runs")


@pytest.mark.parametrize("is_of_python", [False, True])
async def test_a_call_in_a_thread_is_named(is_of_python: bool) -> None:
    is_over, results = threading.Event(), SimpleQueue[int]()
    function: Callable[[Any], Any] = results.get if is_of_python else lambda _: is_over.wait(10)
    flow = r.just(True).map_in_thread(function, concurrency=1).name("orders")
    reports: list[str] = []
    watching = observe.watch(stall=0.05, block=None, on_report=reports.append)
    async with watching, flow.running():
        while not reports:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0.01)
        is_over.set()
        results.put(1)
    name = "SimpleQueue.get" if is_of_python else "<locals>.<lambda> ("
    assert "map_in_thread(" in stuck_at(reports)
    assert name in stuck_at(reports).partition("), in ")[2]
    assert stuck_at(reports).endswith(", in a thread")


@pytest.mark.virtual_time
async def test_the_report_has_the_retries_and_the_last_error() -> None:
    flow = fast().map_async(fails, concurrency=2, retry=SLOW).name("orders")
    async with watched() as reports, flow.running():
        await asyncio.sleep(60)
    assert "\n  2 retries\n  last error: OSError (and was tried again)" in reports[0]


async def test_the_line_is_that_of_the_user_with_that_of_a_library_beside_it() -> None:
    async def look_up(_: int) -> int:
        sending, receiving = anyio.create_memory_object_stream[int]()
        async with sending, receiving:
            return await receiving.receive()

    flow = r.just(1).map_async(look_up).name("orders")
    async with flow.running():
        await asyncio.sleep(0.01)
        [subscription] = flow.stats().subscriptions
    mine, _, theirs = subscription.waits_for.partition(", in ")
    assert "look_up (" in mine
    assert "test_causes.py:" in mine
    assert "anyio" in theirs
