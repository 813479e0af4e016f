"""A drain completes the sources of a run: what they have emitted is delivered, and nothing else is.

Every operator is run in the form that passes its elements on, and every publisher that never ends
is drained. The kinds of sources and of inner sources follow one by one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from threading import Event, Semaphore
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import DrainReport, Flow, Subscriber, to_flow
from reactive_aio._core.run_control import DrainTimes
from reactive_aio.stage import Coordinator, FlowSubscription, InnerSubscriber, from_push
from reactive_aio.testing import PublisherProbe
from tests.cases import cases, identities
from tests.harness.one_run import in_one_run

ENDLESS_WORK = "flat_map: inner", "switch_map"
"""Their endless source is made of an element; see `TestInnerSources`."""
ENDLESS = [
    case
    for case in cases()
    if case.candidate.infinite_publisher is not None
    and not case.in_real_time
    and case.key not in ENDLESS_WORK
]
IDENTITIES = identities()
NOT_RUN = (
    "map_in_thread",  # a virtual clock would not wait for it
    "map_in_process",
    "switch_map",  # drops a source when the next element arrives
)


async def drained(
    flow: Flow[Any], after: float, timeout: float | None = None
) -> tuple[list[Any], DrainReport]:
    """What *flow* delivers to a slow function when it is drained after some time."""
    received: list[Any] = []

    async def slow(element: Any) -> None:
        await asyncio.sleep(0.03)
        received.append(element)

    async with flow.running(slow) as run:
        await asyncio.sleep(after)
        report = await run.drain(timeout)
    assert report.delivered == len(received)
    return received, report


def given(flow: Flow[Any], _: object) -> Flow[Any]:
    return flow


def complete(report: DrainReport) -> bool:
    return report.is_complete and not (report.in_flight or report.discarded)


class Counting:
    """A source that never ends, and what it has emitted."""

    def __init__(self) -> None:
        self.emitted: list[int] = []
        self.is_closed = False

    async def asynchronous(self) -> AsyncIterator[int]:
        try:
            while True:
                await asyncio.sleep(0.01)
                yield self._next()
        finally:
            self.is_closed = True

    def pulled(self) -> Iterator[int]:
        try:
            while True:
                yield self._next()
        finally:
            self.is_closed = True

    def pushed(self) -> Flow[int]:
        async def emit(to: r.Emitter[int]) -> None:
            while await to.emit(len(self.emitted)):
                self._next()
                await asyncio.sleep(0.01)

        return r.create(emit, capacity=4, overflow="wait")

    def _next(self) -> int:
        self.emitted.append(len(self.emitted))
        return self.emitted[-1]


class LateAnswer:
    """A foreign publisher that accepts its subscriber when it is told to."""

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._subscriber = subscriber

    def answer(self, calls: list[str]) -> None:
        """Accept the subscriber; note what it calls."""

        class Noting:
            def request(self, n: int, /) -> None:
                calls.append(f"request {n}")

            def cancel(self) -> None:
                calls.append("cancel")

        self._subscriber.on_subscribe(Noting())


# -- every operator, every source ------------------------------------------------------------------
@in_one_run
@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", ["asynchronous", "pushed"])
@pytest.mark.parametrize("key", [key for key in IDENTITIES if not key.startswith(NOT_RUN)])
async def test_what_the_source_has_emitted_passes_each_operator(key: str, kind: str) -> None:
    source = Counting()
    flow = r.from_aiter(source.asynchronous) if kind == "asynchronous" else source.pushed()
    received, report = await drained(IDENTITIES[key](flow), after=0.2, timeout=600)
    assert sorted(received) == source.emitted
    assert report.is_complete
    if not key.startswith("zip"):  # its other source has read ahead
        assert complete(report)


@in_one_run
@pytest.mark.virtual_time
@pytest.mark.parametrize("case", ENDLESS, ids=str)
async def test_every_endless_publisher_completes(case: Any) -> None:
    flow = to_flow(case.candidate.infinite_publisher())
    async with flow.running() as run:
        for _ in range(5):
            await asyncio.sleep(0)
        report = await run.drain(timeout=60)
    assert report.is_complete


# -- kinds of sources ------------------------------------------------------------------------------
@pytest.mark.virtual_time
class TestSources:
    async def test_no_more_is_pulled(self) -> None:
        source = Counting()
        received, report = await drained(r.from_iterable(source.pulled()), after=0.1)
        assert received == source.emitted == [0, 1, 2, 3]
        assert source.is_closed
        assert complete(report)

    async def test_an_asynchronous_source_is_interrupted_while_it_waits(self) -> None:
        closed: list[str] = []

        async def waits() -> AsyncIterator[int]:
            yield 1
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
                closed.append("closed")

        received, report = await drained(r.from_aiter(waits), after=0.1)
        assert received == [1]
        assert closed == ["closed"]
        assert report.seconds == pytest.approx(1)

    async def test_an_element_that_a_source_emits_when_it_is_interrupted_is_delivered(self) -> None:
        async def last_words() -> AsyncIterator[int]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield 1
            await asyncio.Event().wait()

        received, report = await drained(r.from_aiter(last_words), after=0.1)
        assert received == [1]
        assert complete(report)

    async def test_a_stage_in_the_task_of_its_source_is_not_interrupted(self) -> None:
        source = Counting()
        received, report = await drained(r.from_aiter(source.asynchronous), after=0.055)
        assert received == source.emitted == [0, 1]
        assert complete(report)

    async def test_an_error_that_interrupting_a_source_causes_fails_the_flow(self) -> None:
        async def fails() -> AsyncIterator[int]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise OSError("lost") from None
            yield 1

        with pytest.raises(OSError, match="lost") as caught:
            await drained(r.from_aiter(fails), after=0.1)
        assert "drained in" in caught.value.__notes__[-1]

    async def test_elements_stay_in_a_queue_that_others_read(self) -> None:
        queue: asyncio.Queue[int] = asyncio.Queue()
        for i in range(5):
            queue.put_nowait(i)
        received, _ = await drained(r.from_queue(queue), after=0.04)
        assert received == [0, 1]
        assert queue.get_nowait() == 2

    async def test_what_a_processor_holds_for_the_run_is_delivered(self) -> None:
        hub = r.UnicastProcessor[int](capacity=9)
        for i in range(5):
            hub.try_emit(i)
        received, report = await drained(hub, after=0.01)
        assert received == [0, 1, 2, 3, 4]
        assert complete(report)
        assert not hub.try_emit(5)

    async def test_other_subscribers_of_a_processor_are_left_alone(self) -> None:
        hub = r.MulticastProcessor[int]()
        async with hub.running() as other:
            async with hub.running() as run:
                hub.try_emit(1)
                assert (await run.drain()).delivered == 1
            hub.try_emit(2)
            await asyncio.sleep(0)
            assert other.delivered == 2

    async def test_the_source_of_share_is_cancelled_with_its_last_subscriber(self) -> None:
        source = Counting()
        shared = r.from_aiter(source.asynchronous).share()
        async with shared.running() as other:
            _, report = await drained(shared, after=0.1)
            assert complete(report)
            assert not source.is_closed
            await other.drain()
            await asyncio.sleep(0)
        assert source.is_closed

    async def test_a_producer_that_waits_keeps_its_element(self) -> None:
        outcomes: list[bool] = []

        async def emit(to: r.Emitter[int]) -> None:
            for i in range(9):
                outcomes.append(bool(await to.emit(i)))  # noqa: PERF401 - the list stays as it is

        received, report = await drained(r.create(emit, capacity=2, overflow="wait"), after=0.04)
        assert received == list(range(len(received)))
        assert outcomes.count(True) == len(received) < 9
        assert complete(report)

    async def test_a_foreign_publisher_is_cancelled_after_what_it_has_sent(self) -> None:
        source = PublisherProbe[int]()
        async with r.from_publisher(source).running() as run:
            source.emit(1)
            source.emit(2)
            report = await run.drain()
            assert source.cancel_count == 1
        assert report.delivered == 2

    async def test_a_foreign_publisher_that_answers_during_the_drain_is_cancelled(self) -> None:
        source, calls = LateAnswer(), list[str]()
        async with r.from_publisher(source).merge_with(r.empty()).running() as run:
            drain = asyncio.ensure_future(run.drain(timeout=60))
            await asyncio.sleep(1)
            source.answer(calls)
            report = await drain
        assert report.is_complete
        assert calls == ["cancel"]

    async def test_a_source_that_an_operator_subscribes_to_during_the_drain_is_not_opened(
        self,
    ) -> None:
        class Following(Coordinator[int]):
            def on_start(self) -> None:
                self.subscribe_to(r.never(), tag="first")

            def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
                completed.append(inner.tag)
                if inner.tag == "first":
                    second: Flow[int] = from_push(opened, name="second")
                    self.subscribe_to(second, tag="second", request=1)
                else:
                    self.complete()

        def opened(_: object) -> FlowSubscription:
            raise OSError("opened")

        completed: list[str] = []
        _, report = await drained(from_push(Following, name="following"), after=0, timeout=60)
        assert completed == ["first", "second"]
        assert complete(report)

    async def test_a_source_that_raises_when_it_is_cancelled_fails_the_flow(self) -> None:
        class Raising(FlowSubscription):
            def request(self, n: int, /) -> None:
                pass

            def cancel(self) -> None:
                if not cancelled:
                    cancelled.append(self)
                    raise OSError("cannot stop")

        cancelled: list[FlowSubscription] = []

        with pytest.raises(OSError, match="cannot stop"):
            await drained(from_push(lambda _: Raising(), name="raising"), after=0)

    async def test_every_source_of_a_flow_completes(self) -> None:
        sources = [Counting() for _ in range(3)]
        flow = r.merge(*(r.from_aiter(each.asynchronous) for each in sources))
        received, report = await drained(flow, after=0.2)
        assert len(received) == sum(len(each.emitted) for each in sources)
        assert complete(report)

    async def test_a_source_inside_an_iterator_of_several_completes(self) -> None:
        opened: list[object] = []

        class Following:
            def __iter__(self) -> Iterator[list[int]]:
                opened.append(self)
                return iter([[-1]])

        source = Counting()
        flow = r.concat(r.from_iterable(source.pulled()).buffer(10), Following())
        received, _ = await drained(flow, after=0.1)
        assert [*chain.from_iterable(received)] == source.emitted
        assert source.is_closed
        assert not opened


async def test_a_thread_delivers_the_element_of_the_call_that_runs() -> None:
    emitted: list[int] = []
    waiting = asyncio.Event()
    loop = asyncio.get_running_loop()

    def numbers() -> Iterator[int]:
        while True:
            emitted.append(len(emitted))
            yield emitted[-1]
            loop.call_soon_threadsafe(waiting.set)

    async with r.from_thread(numbers).running() as run:
        await waiting.wait()
        report = await run.drain(timeout=60)
    assert report.delivered == len(emitted)
    assert complete(report)


@pytest.mark.virtual_time
async def test_a_task_without_demand_delivers_what_its_source_still_holds() -> None:
    def emit(to: r.Emitter[int]) -> None:
        for x in range(6):
            to.try_emit(x)

    flow = r.create(emit, capacity=8).map_async(partial(asyncio.sleep, 0)).buffer(2).boundary(1)
    received, report = await drained(flow, after=0.01)
    assert received == [[0, 1], [2, 3], [4, 5]]
    assert complete(report)


async def test_a_thread_that_sleeps_without_demand_ends() -> None:
    source = r.from_thread(lambda: iter(range(1000)), chunk=1)
    async with source.running(lambda _: asyncio.Event().wait(), concurrency=2) as run:
        await asyncio.sleep(0)
        report = await run.drain(timeout=0)
    assert not report.is_complete


# -- sources that several flows share --------------------------------------------------------------
SHARED: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "share": lambda flow: flow.share(),
    "share, with a grace": lambda flow: flow.share(grace=60, replay=2),
    "share of share": lambda flow: flow.share().boundary(2).share(),
    "replay": lambda flow: flow.replay(2),
    "cache": lambda flow: flow.cache(),
}


async def takes_long(x: Any) -> Any:
    await asyncio.sleep(0.2)
    return x


ABOVE: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "delay": lambda flow: flow.delay(0.5),
    "map_async": lambda flow: flow.map_async(takes_long, concurrency=4),
    "boundary, map_async": lambda flow: flow.boundary(8).map_async(takes_long),
    "buffer": lambda flow: flow.buffer(15).flat_map(list),
    "flat_map": lambda flow: flow.flat_map(lambda x: r.timer(0.2, x)),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("shared", SHARED)
class TestSharedSources:
    async def test_what_is_above_reaches_the_only_subscriber(self, shared: str, above: str) -> None:
        source = Counting()
        flow = SHARED[shared](ABOVE[above](r.from_aiter(source.asynchronous)))
        received, report = await drained(flow, after=0.105)
        assert received == source.emitted
        assert complete(report)
        assert source.is_closed

    async def test_what_is_left_there_is_counted_and_handed_over(
        self, shared: str, above: str
    ) -> None:
        source, discarded = Counting(), list[int]()
        flow = SHARED[shared](ABOVE[above](r.from_aiter(source.asynchronous)))
        async with flow.do_on_discard(discarded.append).running() as run:
            await asyncio.sleep(0.105)
            report = await run.drain(timeout=0)
        lost = report.in_flight + report.discarded
        assert report.delivered + lost == len(source.emitted)
        assert lost == len(discarded)
        assert source.is_closed

    async def test_it_goes_on_for_another_subscriber(self, shared: str, above: str) -> None:
        source = Counting()
        flow = SHARED[shared](ABOVE[above](r.from_aiter(source.asynchronous)))
        async with flow.running() as other:
            _, report = await drained(flow, after=1)
            assert complete(report)
            assert not source.is_closed
            before = other.delivered
            await asyncio.sleep(1)
            assert other.delivered > before
            await other.drain(timeout=0)  # otherwise what is kept goes on

    async def test_the_next_subscriber_starts_it_afresh(self, shared: str, above: str) -> None:
        sources: list[Counting] = []

        def opened() -> AsyncIterator[int]:
            sources.append(Counting())
            return sources[-1].asynchronous()

        flow = SHARED[shared](ABOVE[above](r.from_aiter(opened)))
        for timeout in (60, 0, 60):
            await drained(flow, after=0.105, timeout=timeout)
        assert len(sources) == 3


@pytest.mark.virtual_time
@pytest.mark.parametrize("shared", SHARED)
async def test_a_run_that_is_drained_alone_after_others_have_left_stops_the_source(
    shared: str,
) -> None:
    source = Counting()
    flow = SHARED[shared](r.from_aiter(source.asynchronous).delay(0.1))
    async with flow.running() as run:
        async with flow.running():
            await asyncio.sleep(0.205)
        report = await run.drain(timeout=60)
        assert report.delivered == len(source.emitted)
        assert source.is_closed


# -- sources made of elements ----------------------------------------------------------------------
@pytest.mark.virtual_time
class TestInnerSources:
    async def test_the_work_on_an_element_runs_to_its_end(self) -> None:
        source = Counting()

        async def lines(x: int) -> AsyncIterator[str]:
            for i in range(3):
                await asyncio.sleep(1)
                yield f"{x}.{i}"

        flow = r.from_aiter(source.asynchronous).flat_map(lines, concurrency=2)
        received, report = await drained(flow, after=0.1)
        assert sorted(received) == [f"{x}.{i}" for x in source.emitted for i in range(3)]
        assert complete(report)

    async def test_a_list_made_of_an_element_is_delivered_whole(self) -> None:
        source = Counting()
        flow = r.from_iterable(source.pulled()).flat_map(lambda x: [x] * 3)
        received, report = await drained(flow.limit_rate(4), after=0.2)
        assert received == [x for x in source.emitted for _ in range(3)]
        assert complete(report)

    async def test_the_element_that_ends_the_flattening_of_lists_is_not_lost(self) -> None:
        source = Counting()
        flow = r.from_iterable(source.pulled()).flat_map(
            lambda x: [x] if x < 2 else r.timer(1, x), concurrency=1
        )
        received, _ = await drained(flow, after=0.2)
        assert received == source.emitted

    @pytest.mark.parametrize("operator", ["flat_map", "concat_map"])
    @pytest.mark.parametrize("shared", SHARED)
    async def test_one_that_shares_a_source_with_an_end_runs_to_it(
        self, shared: str, operator: str
    ) -> None:
        source = Counting()

        def made(x: int) -> Flow[int]:
            return SHARED[shared](r.just(x).map_async(takes_long))

        flow = getattr(r.from_aiter(source.asynchronous).boundary(8), operator)(made)
        received, report = await drained(flow, after=0.1)
        assert received == source.emitted
        assert complete(report)

    @pytest.mark.parametrize("operator", ["flat_map", "concat_map", "switch_map"])
    async def test_one_without_an_end_completes(self, operator: str) -> None:
        hub = r.MulticastProcessor[int]()
        queue: asyncio.Queue[int] = asyncio.Queue()
        for endless in (r.interval(1), hub, r.from_queue(queue), r.never(), r.interval(1).share()):
            flow = getattr(r.just(1), operator)(partial(given, endless))
            _, report = await drained(flow, after=0.1, timeout=60)
            assert report.is_complete

    async def test_a_flow_that_a_function_awaits_does_not_belong_to_the_run(self) -> None:
        async def whole(x: int) -> list[int]:
            return await r.interval(0.1).take(3).to_list()

        source = Counting()
        flow = r.from_aiter(source.asynchronous).map_async(whole, concurrency=2)
        received, _ = await drained(flow, after=0.15)
        assert received
        assert all(each == [0, 1, 2] for each in received)

    async def test_open_windows_and_groups_complete(self) -> None:
        source = Counting()
        flow = r.from_aiter(source.asynchronous)
        windows = flow.window(100).concat_map(lambda window: window.buffer(100))
        received, _ = await drained(windows, after=0.2)
        assert received == [source.emitted]
        groups = r.from_aiter(Counting().asynchronous).group_by(lambda x: x % 3, max_groups=3)
        received, _ = await drained(groups.flat_map(lambda group: group.buffer(100)), after=0.2)
        assert len(received) == 3


AGAIN: list[Callable[[Flow[int]], Flow[int]]] = [
    lambda flow: r.concat(flow, flow),
    lambda flow: flow.repeat(),
    lambda flow: flow.restart(),
    lambda flow: flow.then(r.just(-1)),
    lambda flow: flow.take_last(0).switch_if_empty([-1]),
]


# -- operators that hold, wait or start again ------------------------------------------------------
@pytest.mark.virtual_time
class TestOperators:
    async def test_what_waits_in_boundaries_and_workers_is_delivered(self) -> None:
        source = Counting()

        async def work(x: int) -> int:
            await asyncio.sleep(0.5)
            return x

        flow = r.from_aiter(source.asynchronous).boundary(8).map_async(work, concurrency=2)
        received, report = await drained(flow, after=0.3)
        assert sorted(received) == source.emitted
        assert len(received) == 8
        assert complete(report)

    async def test_operators_that_emit_at_completion_emit(self) -> None:
        async def found(change: Callable[[Flow[int]], Flow[Any]]) -> tuple[list[Any], list[int]]:
            source = Counting()
            received, _ = await drained(change(r.from_aiter(source.asynchronous)), after=0.105)
            return received, source.emitted

        assert await found(lambda flow: flow.buffer(100)) == ([[*range(10)]], [*range(10)])
        assert await found(lambda flow: flow.take_last(2)) == ([8, 9], [*range(10)])
        assert await found(lambda flow: flow.buffer_timeout(99, 60)) == (
            [[*range(10)]],
            [*range(10)],
        )
        assert await found(lambda flow: flow.debounce(60)) == ([9], [*range(10)])
        assert (await found(lambda flow: flow.filter(lambda _: False).default_if_empty(-1)))[0] == [
            -1
        ]

    async def test_a_moment_that_ends_a_flow_is_left_alone(self) -> None:
        source = Counting()
        flow = r.from_aiter(source.asynchronous).boundary(9).take_until(r.never())
        received, report = await drained(flow, after=0.2)
        assert received == source.emitted
        assert complete(report)

    @pytest.mark.parametrize("again", AGAIN)
    async def test_no_source_follows(self, again: Callable[[Flow[int]], Flow[int]]) -> None:
        opened: list[Counting] = []

        def source() -> AsyncIterator[int]:
            opened.append(Counting())
            return opened[-1].asynchronous()

        received, report = await drained(again(r.from_aiter(source)), after=0.1)
        assert len(opened) == 1
        assert -1 not in received
        assert complete(report)

    @pytest.mark.parametrize(
        "waiting",
        [
            lambda: r.just(1).repeat(r.RetryPolicy(attempts=None, delay=900)),
            lambda: r.just(1).restart(r.RetryPolicy(attempts=None, delay=900)),
            lambda: r.error(OSError).retry(r.RetryPolicy(delay=900, maximum=900)),
            lambda: r.just(1).delay_subscription(900),
        ],
    )
    async def test_a_wait_to_subscribe_ends(self, waiting: Callable[[], Flow[Any]]) -> None:
        _, report = await drained(waiting(), after=0.1, timeout=60)
        assert report.is_complete
        assert report.seconds < 1

    async def test_a_failure_of_an_element_is_not_retried(self) -> None:
        opened: list[int] = []

        async def source() -> AsyncIterator[int]:
            opened.append(len(opened))
            yield 1
            await asyncio.Event().wait()

        async def fails(_: int) -> int:
            await asyncio.sleep(1)
            raise OSError("lost")

        with pytest.raises(OSError, match="lost"):
            await drained(r.from_aiter(source).map_async(fails).retry(3), after=0.1)
        assert opened == [0]

    async def test_a_resource_that_is_being_entered_is_released(self) -> None:
        log: list[str] = []

        class Resource:
            async def __aenter__(self) -> None:
                try:
                    await asyncio.sleep(900)
                finally:
                    log.append("left")

            async def __aexit__(self, *_: object) -> None: ...

        _, report = await drained(r.using(Resource, lambda _: [1]), after=0.1, timeout=60)
        assert report.is_complete
        assert log == ["left"]


# -- the rest --------------------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_what_is_left_after_the_time_is_cancelled_and_counted() -> None:
    source = Counting()
    received, report = await drained(r.from_aiter(source.asynchronous).boundary(8), 0.2, 0.05)
    assert not report.is_complete
    assert report.in_flight == 1
    assert len(received) + report.in_flight + report.discarded == len(source.emitted)


@pytest.mark.virtual_time
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_calls_that_are_cancelled_are_in_flight(concurrency: int) -> None:
    async def hangs(_: int) -> int:
        await asyncio.Event().wait()
        return 1

    source = Counting()
    flow = r.from_aiter(source.asynchronous).boundary(8)
    async with flow.map_async(hangs, concurrency=concurrency).running() as run:
        await asyncio.sleep(1)
        report = await run.drain(timeout=1)
    assert report.in_flight == concurrency
    assert report.in_flight + report.discarded == len(source.emitted)


@pytest.mark.virtual_time
async def test_an_element_counts_once_whatever_the_publisher_made_of_it_has_sent() -> None:
    """One has sent two elements, one has completed without any, and one has sent nothing."""
    given: list[Any] = []
    sources = [PublisherProbe[str]() for _ in range(3)]
    flow = r.range(3).flat_map(lambda x: r.from_publisher(sources[x]))

    async def work(_: str) -> None:
        await asyncio.sleep(900)

    async with flow.do_on_discard(given.append).running(work) as run:
        await asyncio.sleep(1)
        sources[0].emit("a", "b")
        sources[1].complete()
        await asyncio.sleep(1)
        report = await run.drain(timeout=0)
    assert (report.in_flight, report.discarded, given) == (2, 1, [2, "b"])


class Held:
    """Calls in threads that return when the test lets them."""

    pool: ThreadPoolExecutor
    may_return: Event
    begun: Semaphore


def held(number: int) -> int:
    Held.begun.release()
    Held.may_return.wait()
    return 100 + number


HELD_CALLS: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "one at a time": lambda flow: flow.map_in_thread(held, concurrency=2),
    "in chunks": lambda flow: flow.map_in_thread(held, concurrency=2, chunk=2),
    "above others": lambda flow: flow.map_in_thread(held, concurrency=2).boundary(2),
    # A pool of processes would be the same for the operator, but slow to start.
    "in a process": lambda flow: flow.map_in_process(held, concurrency=2, pool=Held.pool),
    "shared": lambda flow: flow.map_in_thread(held, concurrency=2).share(),
    "in an inner flow": lambda flow: flow.flat_map(
        lambda number: r.just(number).map_in_thread(held), concurrency=2
    ),
}


@pytest.mark.parametrize("make", HELD_CALLS.values(), ids=HELD_CALLS)
async def test_a_call_that_cannot_be_cancelled_is_in_flight_and_named(
    make: Callable[[Flow[int]], Flow[int]],
) -> None:
    Held.may_return, Held.begun = Event(), Semaphore(0)
    given: list[int] = []
    source = Counting()
    with ThreadPoolExecutor(2) as Held.pool:
        flow = make(r.from_aiter(source.asynchronous)).do_on_discard(given.append)
        async with flow.name("orders").running() as run:
            for _ in range(2):
                await asyncio.to_thread(Held.begun.acquire)
            report = await run.drain_within(DrainTimes(0, 0))
            assert report.in_flight == 2
            assert report.in_flight + report.discarded == len(source.emitted)
            if make is not HELD_CALLS["shared"]:  # that is no part of this run
                assert "map_in_" in report.waits_for, report
                assert f"held ({__file__}:" in report.waits_for
            assert not any(each >= 100 for each in given), "they are in use"
            Held.may_return.set()
            await run.drain(timeout=None)
            again = await run.drain()
        assert (again.in_flight, again.discarded) == (report.in_flight, report.discarded)
        assert sum(each >= 100 for each in given) == 2
        assert len(given) == len({*given})


class One:
    """A foreign publisher of one element."""

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self._subscriber.on_next(1)
        self._subscriber.on_complete()

    def cancel(self) -> None: ...


async def test_a_run_leaves_nothing_at_its_control() -> None:
    source = r.range(50).flat_map(lambda x: r.from_publisher(One()), concurrency=4)
    async with (
        r.merge(source, r.from_publisher(One()), r.from_aiter(r.range(9).stream))
        .repeat(3)
        .running() as run
    ):
        await run.wait()
    assert run._subscriber is not None
    assert not run._subscriber.control._sources


class CommitFailed(Exception):
    pass


def commit() -> None:
    raise CommitFailed


@contextmanager
def transaction() -> Generator[Flow[int], None, None]:
    yield r.interval(0.01)
    commit()


async def three_then_a_failure() -> AsyncIterator[int]:
    for number in range(3):
        yield number
    commit()


async def fails_at_the_second(number: int) -> int:
    await asyncio.sleep(0 if number else 60)
    if number == 1:
        commit()
    return number


FAILURES_BEHIND_ELEMENTS: dict[str, Callable[[], Flow[int]]] = {
    "the exit of using": lambda: r.using(transaction, lambda numbers: numbers),
    "in a stage": lambda: r.interval(0.01).do_on_complete(commit).boundary(8),
    "of the source": lambda: r.from_aiter(three_then_a_failure).boundary(8),
    "in front of merge": lambda: r.merge(r.from_aiter(three_then_a_failure), r.never()),
    "in front of concat": lambda: r.concat(r.from_aiter(three_then_a_failure), r.never()),
    "shared": lambda: r.from_aiter(three_then_a_failure).share(),
    "cached": lambda: r.from_aiter(three_then_a_failure).cache(),
    "of a later call": lambda: r.range(2).map_async(fails_at_the_second, concurrency=2),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("make", FAILURES_BEHIND_ELEMENTS.values(), ids=FAILURES_BEHIND_ELEMENTS)
async def test_a_failure_that_the_time_has_not_reached_is_raised(
    make: Callable[[], Flow[int]],
) -> None:
    async def slow(_: int) -> None:
        await asyncio.sleep(10)

    async with make().running(slow) as run:
        await asyncio.sleep(0.3)
        with pytest.raises(CommitFailed) as caught:
            await run.drain(timeout=1)
        assert caught.value.__notes__[-1].startswith("not drained in 0.9 s: 0 delivered")


ABOVE_A_PROCESSOR: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "nothing": lambda flow: flow,
    "boundary": lambda flow: flow.boundary(8),
    "buffer": lambda flow: flow.buffer(4).concat_map(lambda each: each),
    "calls": lambda flow: flow.map_async(slowly, concurrency=3),
    "delay": lambda flow: flow.delay(0.2),
}


async def slowly(number: int) -> int:
    await asyncio.sleep(0.1)
    return number


@pytest.mark.virtual_time
@pytest.mark.parametrize("timeout", [None, 0.01])
@pytest.mark.parametrize("processor", [r.UnicastProcessor, r.MulticastProcessor])
@pytest.mark.parametrize("above", ABOVE_A_PROCESSOR.values(), ids=ABOVE_A_PROCESSOR)
async def test_a_flow_that_feeds_a_processor_is_completed_with_its_only_reader(
    above: Callable[[Flow[int]], Flow[int]], processor: Any, timeout: float | None
) -> None:
    source = Counting()
    flow: Flow[int] = above(r.from_aiter(source.asynchronous)).into(processor(capacity=4))
    received, report = await drained(flow, 0.3, timeout)
    assert report.delivered + report.in_flight + report.discarded == len(source.emitted)
    assert received == source.emitted[: len(received)]
    assert report.is_complete == (timeout is None)
    assert timeout is not None or received == source.emitted


@pytest.mark.virtual_time
@pytest.mark.parametrize("auto_cancel", [True, False])
async def test_a_flow_that_feeds_a_processor_goes_on_for_others(auto_cancel: bool) -> None:
    source = Counting()
    processor = r.MulticastProcessor[int](capacity=4, auto_cancel=auto_cancel)
    flow = r.from_aiter(source.asynchronous).into(processor)
    other = asyncio.ensure_future(flow.take(50).to_list()) if auto_cancel else None
    _, report = await drained(flow, 0.3)
    assert report.is_complete
    assert not flow.stats().is_done
    if other is not None:
        assert await other == list(range(50))
    processor.complete()
