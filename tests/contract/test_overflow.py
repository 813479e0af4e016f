"""Overflow policies act on all that has not been processed, whoever reads, and from every source.

The model is a deque: what arrives while the reader is busy waits in it, and the policy decides when
it is full. An element that is processed is in the deque no more.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from typing import Any, get_args

import pytest

import reactive_aio as r
from reactive_aio import Emitter, Flow, MulticastProcessor, UnicastProcessor
from reactive_aio._core import flow_subscription
from reactive_aio._core.queues.bounded_queue import LOSSY, OverflowPolicy
from reactive_aio.errors import Overflow
from reactive_aio.spec import Subscription
from tests.cases import identities, names
from tests.harness.one_run import in_one_run

pytestmark = pytest.mark.virtual_time

WORK = 1.0
"""The seconds that the reader needs for an element."""
POLICIES: tuple[OverflowPolicy, ...] = get_args(OverflowPolicy)
MANY = 2**63 - 1
Emissions = list[tuple[float, int]]
Emit = Callable[[int], object]


# -- the model -------------------------------------------------------------------------------------
@dataclass
class Model:
    """A reader, and the elements that wait for it."""

    policy: OverflowPolicy
    capacity: int
    waiting: deque[int] = field(default_factory=deque[int])
    received: list[int] = field(default_factory=list[int])
    lost: list[int] = field(default_factory=list[int])
    free_at: float = 0.0
    has_overflowed: bool = False

    def __post_init__(self) -> None:
        if self.policy == "latest":
            self.capacity = 1

    def run_until(self, now: float) -> None:
        while self.waiting and self.free_at <= now:
            self.received.append(self.waiting.popleft())
            self.free_at += WORK

    def emit(self, now: float, element: int) -> None:
        self.run_until(now)
        if self.has_overflowed:
            return
        if self.free_at <= now:
            self.received.append(element)
            self.free_at = now + WORK
        elif len(self.waiting) < self.capacity:
            self.waiting.append(element)
        elif self.policy in ("drop_oldest", "latest"):
            self.lost.append(self.waiting.popleft())
            self.waiting.append(element)
        else:
            self.lost.append(element)
            self.has_overflowed = self.policy == "fail"


def drawn(
    seed: int, policy: OverflowPolicy, capacity: int
) -> tuple[list[tuple[float, int]], Model]:
    """When each of some elements is emitted, and what the model makes of it.

    They come alone or several at a time; but alone where the reader waits for one.
    """
    random, model, now = Random(seed), Model(policy, capacity), 0.0
    emissions: Emissions = []
    for _ in range(12):
        now += random.choice((0.1, 0.3, 0.3, 2.7)) + 0.001
        model.run_until(now)
        at_once = 1 if model.free_at <= now else random.choice((1, 1, 2, 7))
        for _ in range(at_once):
            emissions.append((now, len(emissions)))
            model.emit(*emissions[-1])
    model.run_until(MANY)
    return emissions, model


# -- the readers: each calls *work* with an element, and awaits it ---------------------------------
Work = Callable[[int], Awaitable[Any]]


class Reading:
    """A subscriber with unbounded demand, or one that requests when it has processed an element."""

    def __init__(self, work: Work, request: int) -> None:
        self.work = work
        self.demand = request
        self.task: asyncio.Future[Any] | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(self.demand)

    async def on_next(self, element: int) -> None:
        await self.work(element)
        if self.demand < MANY:
            self.subscription.request(1)

    def on_error(self, error: BaseException) -> None:
        self.over.set_exception(error)

    def on_complete(self) -> None:
        self.over.set_result(None)


class Returning(Reading):
    """Its `on_next` is a plain function that returns what is to be awaited."""

    def on_next(self, element: int) -> Any:
        return asyncio.ensure_future(super().on_next(element))


class Requesting(Reading):
    """Its `on_next` only starts the work: it requests one more when that is done."""

    def on_next(self, element: int) -> None:  # type: ignore[override]
        self.task = asyncio.ensure_future(super().on_next(element))


async def subscribe(flow: Flow[int], reader: Reading) -> None:
    flow.subscribe(reader)
    await reader.over
    if reader.task is not None:
        await reader.task


async def iterate(elements: Any, work: Work) -> None:
    async for element in elements:
        await work(element)


async def stream(flow: Flow[int], work: Work, prefetch: int) -> None:
    async with flow.stream(prefetch=prefetch) as elements:
        await iterate(elements, work)


READERS: dict[str, Callable[[Flow[int], Work], Awaitable[Any]]] = {
    "async for": iterate,
    "async for, map": lambda flow, work: iterate(flow.map(lambda x: x + 0), work),
    "stream(prefetch=1)": lambda flow, work: stream(flow, work, 1),
    "stream(prefetch=8)": lambda flow, work: stream(flow, work, 8),
    "for_each": lambda flow, work: flow.for_each(work),
    "for_each, filter": lambda flow, work: flow.filter(lambda x: x >= 0).for_each(work),
    "map_async, to_list": lambda flow, work: flow.map_async(work).to_list(),
    "map_async, run": lambda flow, work: flow.map_async(work).run(),
    "map_async, first": lambda flow, work: (
        flow.map_async(work).filter(lambda x: x < 0).first(default=-1)
    ),
    "filter_async, count": lambda flow, work: flow.filter_async(work).count(),
    "timeout": lambda flow, work: flow.timeout(9 * WORK).for_each(work),
    "retry": lambda flow, work: flow.retry(2).for_each(work),
    "concat": lambda flow, work: flow.concat_with(r.empty()).for_each(work),
    "defer": lambda flow, work: r.defer(lambda: flow).for_each(work),
    "switch_map": lambda flow, work: r.just(1).switch_map(lambda _: flow).for_each(work),
    "async on_next": lambda flow, work: subscribe(flow, Reading(work, MANY)),
    "async on_next, request(1)": lambda flow, work: subscribe(flow, Reading(work, 1)),
    "on_next": lambda flow, work: subscribe(flow, Returning(work, MANY)),
    "on_next, map": lambda flow, work: subscribe(flow.map(lambda x: x + 0), Returning(work, MANY)),
    "on_next, request(1)": lambda flow, work: subscribe(flow, Requesting(work, 1)),
}


READ_AHEAD = {"stream(prefetch=8)", "timeout", "retry", "concat", "defer", "switch_map"}
"""Those that read ahead where nothing is dropped."""


# -- operators that pass demand on -----------------------------------------------------------------
PASSING: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "timeout": lambda flow: flow.timeout(99 * WORK),
    "retry": lambda flow: flow.retry(2),
    "restart": lambda flow: flow.restart(1),
    "repeat": lambda flow: flow.repeat(1),
    "concat_with": lambda flow: flow.concat_with(r.empty()),
    "start_with": lambda flow: flow.start_with(),
    "on_error_resume": lambda flow: flow.on_error_resume([]),
    "on_error_resume(f)": lambda flow: flow.on_error_resume(lambda _: []),
    "switch_if_empty": lambda flow: flow.switch_if_empty([]),
    "take_until": lambda flow: flow.take_until(r.never()),
    "delay_subscription": lambda flow: flow.delay_subscription(0.001),
    "progress": lambda flow: flow.progress(),
    "with_latest_from": lambda flow: flow.with_latest_from(r.just(0)).map(lambda pair: pair[0]),
    "race": lambda flow: r.race(flow, r.never()),
    "then": lambda flow: r.empty().then(flow),
    "using": lambda flow: r.using(nullcontext, lambda _: flow),
    "defer": lambda flow: r.defer(lambda: flow),
    "switch_map": lambda flow: r.just(1).switch_map(lambda _: flow),
    "expand": lambda flow: flow.expand(lambda _: []),
    "limit_rate": lambda flow: flow.limit_rate(8),
    "rate_limit": lambda flow: flow.rate_limit(999),
    "rate_limit: by a limiter": lambda flow: flow.rate_limit(limiter=r.RateLimit(999)),
}


# -- the sources -----------------------------------------------------------------------------------
@dataclass
class Source:
    flow: Flow[int]
    emit: Emit
    complete: Callable[[], object]
    emits_from_threads: bool = False


def processor(kind: Any) -> Callable[[OverflowPolicy, int], Source]:
    def make(policy: OverflowPolicy, capacity: int) -> Source:
        hot = kind(capacity, overflow=policy)
        return Source(hot, hot.try_emit, hot.complete)

    return make


def by_threads(policy: OverflowPolicy, capacity: int) -> Source:
    hot = MulticastProcessor[int](capacity, overflow=policy)
    return Source(hot, hot.emit_threadsafe, hot.complete, emits_from_threads=True)


def created(emits_from_threads: bool) -> Callable[[OverflowPolicy, int], Source]:
    def make(policy: OverflowPolicy, capacity: int) -> Source:
        emitters: list[Emitter[int]] = []

        def emit(x: int) -> object:
            to = emitters[0]
            return to.emit_threadsafe(x) if emits_from_threads else to.try_emit(x)

        flow = r.create(emitters.append, capacity=capacity, overflow=policy)
        return Source(flow, emit, lambda: emitters[0].complete(), emits_from_threads)

    return make


def behind(operator: Callable[[Flow[int], OverflowPolicy, int], Flow[int]]) -> Any:
    def make(policy: OverflowPolicy, capacity: int) -> Source:
        hot = MulticastProcessor[int](999)
        return Source(operator(hot, policy, capacity), hot.try_emit, hot.complete)

    return make


def replaying(capacity: int, overflow: OverflowPolicy) -> r.ReplayProcessor[int]:
    return r.ReplayProcessor[int](1, capacity=capacity, overflow=overflow)


SOURCES: dict[str, Callable[[OverflowPolicy, int], Source]] = {
    "UnicastProcessor": processor(UnicastProcessor[int]),
    "MulticastProcessor": processor(MulticastProcessor[int]),
    "ReplayProcessor": processor(replaying),
    "MulticastProcessor, by threads": by_threads,
    "create": created(emits_from_threads=False),
    "create, by threads": created(emits_from_threads=True),
    "on_backpressure_buffer": behind(
        lambda flow, policy, capacity: flow.on_backpressure_buffer(capacity, overflow=policy)
    ),
    "on_backpressure_latest": behind(lambda flow, policy, capacity: flow.on_backpressure_latest()),
    "share": behind(lambda flow, policy, capacity: flow.share(overflow=policy, capacity=capacity)),
}


def is_exact(source: str, reader: str, policy: OverflowPolicy) -> bool:
    """Whether the model is one of *source* with *policy*, read by *reader*."""
    if source == "on_backpressure_latest":
        return policy == "latest"
    if policy in LOSSY:
        return True
    if "threads" in source or reader in READ_AHEAD:
        return False  # more elements wait, and none of them has to be dropped
    return policy == "fail" or source not in ("on_backpressure_buffer", "share")


async def read(
    source: Source, emissions: Emissions, read: Callable[[Flow[int], Work], Any]
) -> tuple[list[int], BaseException | None]:
    """Emit as *emissions* say, and return what the reader was called with."""
    loop, received = asyncio.get_running_loop(), list[int]()

    async def work(x: int) -> int:
        received.append(x)
        await asyncio.sleep(WORK)
        return x + 1

    reading = asyncio.ensure_future(read(source.flow, work))
    await asyncio.sleep(0.01)
    began = loop.time()
    for at, x in emissions:
        if (wait := began + at - loop.time()) > 0:
            await asyncio.sleep(wait)
        source.emit(x)
    await asyncio.sleep(0.01)  # what threads have emitted comes first
    source.complete()
    await asyncio.wait([reading])
    return received, reading.exception()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("reader", READERS)
async def test_a_policy_acts_on_all_that_has_not_been_processed(source: str, reader: str) -> None:
    for policy in POLICIES:
        if not is_exact(source, reader, policy):
            continue
        for seed in range(3):
            capacity = seed + 1
            emissions, model = drawn(seed, policy, capacity)
            made = SOURCES[source](policy, capacity)
            before = r.losses()
            received, error = await read(made, emissions, READERS[reader])
            assert (policy, received) == (policy, model.received)
            assert isinstance(error, Overflow) == model.has_overflowed
            lost = (r.losses() - before).elements
            if policy != "fail":  # then those that follow reach no subscriber
                assert sum(lost.values()) == len(model.lost), lost


POLICED = ("create", "MulticastProcessor", "share", "on_backpressure_latest", "UnicastProcessor")


@in_one_run
@pytest.mark.parametrize("inner", PASSING)
async def test_it_acts_below_several_operators_that_pass_demand_on(inner: str) -> None:
    for outer, kind in zip(PASSING.values(), cycle(POLICED), strict=False):
        received: list[int] = []

        async def work(x: int, received: list[int] = received) -> None:
            received.append(x)
            await asyncio.sleep(WORK)

        source = SOURCES[kind]("latest", 1)
        unknown = PASSING["defer"](source.flow)
        reading = asyncio.ensure_future(outer(PASSING[inner](unknown)).for_each(work))
        await asyncio.sleep(0.01)
        for x in range(20):
            source.emit(x)
        await asyncio.sleep(9 * WORK)
        source.complete()
        await asyncio.wait([reading])
        assert received[-1] == 19
        assert len(received) <= 2


@in_one_run
@pytest.mark.parametrize("passing", PASSING)
async def test_nothing_is_read_ahead_by_a_stream_below_them(passing: str) -> None:
    source = SOURCES["create"]("drop_oldest", 2)
    received: list[int] = []
    async with PASSING[passing](source.flow).stream(prefetch=8) as elements:
        reading = asyncio.ensure_future(anext(aiter(elements)))
        await asyncio.sleep(0.01)
        for x in range(20):
            source.emit(x)
        received.append(await reading)
        source.complete()
        await asyncio.sleep(0.01)
        received += [x async for x in elements]
    assert received == [0, 18, 19]


# -- what waits is replaced, whatever stands in between --------------------------------------------
TICK = 0.3 * WORK
CURRENT: dict[str, Callable[[], Flow[int]]] = {
    "interval": lambda: r.interval(TICK),
    "interval, drop_newest": lambda: r.interval(TICK, overflow="drop_newest"),
    "sample": lambda: r.interval(TICK / 3.77).sample(TICK),
    "throttle_latest": lambda: r.interval(TICK / 3.77).throttle_latest(TICK),
    "throttle_first": lambda: r.interval(TICK / 3.77).throttle_first(TICK),
    "debounce": lambda: r.interval(TICK).debounce(TICK / 10),
    "on_backpressure_latest": lambda: r.interval(TICK).on_backpressure_latest(),
}
FORMS = identities()
_QUEUES = """
boundary buffer_timeout combine_latest concat_map delay flat_map group_by map_in_thread merge
merge_with on_backpressure_buffer share window window_reduce window_timeout zip zip_with
"""
QUEUES = frozenset(_QUEUES.split())
"""Operators in whose queues elements wait for a slow reader; so do they in that of `map_async` with
*concurrency*."""


async def read_slowly(flow: Flow[int]) -> list[int]:
    received: list[int] = []

    async def work(x: int) -> None:
        received.append(x)
        await asyncio.sleep(WORK + 0.001)  # no tick is due when it ends

    await flow.take(3).for_each(work)
    return received


async def test_only_an_operator_with_a_queue_keeps_current_elements_from_a_slow_reader() -> None:
    currents = [(make, await read_slowly(make())) for make in CURRENT.values()]
    for (key, form), (make, current) in zip(FORMS.items(), cycle(currents), strict=False):
        received = await read_slowly(form(make()))
        if names([key]).isdisjoint(QUEUES) and key != "map_async: three at a time":
            assert (key, received) == (key, current)
        elif key != "boundary: of one":
            assert received != current, key


async def test_flows_of_any_depth_ask_without_recursion() -> None:
    for flow in (r.just(0), r.from_aiter(just_one)):
        deep = flow
        for _ in range(400):
            deep = deep.concat_with(r.just(1)) if flow.chain.is_pullable else deep.retry(1)
        assert await deep.count() == (401 if flow.chain.is_pullable else 1)
        assert await anext(aiter(deep)) == 0


PAGES = 30


async def test_they_do_not_ask_all_above_them_at_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    def counted(subscription: Any) -> Iterator[Any]:
        nonlocal looks
        for each in passed_on(subscription):
            looks += 1
            yield each

    passed_on = flow_subscription._passed_on
    monkeypatch.setattr(flow_subscription, "_passed_on", counted)

    def page(number: int) -> Flow[int]:
        rest = r.defer(lambda: page(number + 1)) if number < PAGES else r.empty()
        return r.just(number).concat_with(rest)

    assert await page(1).count() == PAGES
    assert looks < 8 * PAGES**2  # each of them passes on the elements of all that follow


async def test_they_learn_that_another_source_has_followed() -> None:
    expected = await read_slowly(r.interval(TICK))
    for defer in (PASSING["defer"], PASSING["retry"]):
        flow = defer(r.from_aiter(just_one)).concat_with(PASSING["defer"](r.interval(TICK)))
        followed = PASSING["defer"](flow).retry(2).timeout(99)
        received = await read_slowly(followed.skip(1))
        assert received[-1] == expected[-1]  # one that was requested before may come between


async def just_one() -> AsyncIterator[int]:
    yield 0


async def test_a_timeout_does_not_count_the_time_that_the_reader_needs() -> None:
    hot = MulticastProcessor[int](2, overflow="drop_oldest")
    received: list[int] = []

    async def work(x: int) -> None:
        received.append(x)
        await asyncio.sleep(9 * WORK)

    reading = asyncio.ensure_future(hot.timeout(WORK).for_each(work))
    await hot.wait_for_subscribers()
    for x in range(50):
        hot.try_emit(x)
        await asyncio.sleep(WORK / 2)
    hot.complete()
    await reading
    assert received == [0, 16, 34, 48, 49]
