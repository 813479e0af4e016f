"""The elements of one key are worked on one after another, in the order of the source.

For each way to read a group, whatever ends groups; and for ``key=`` of what works on elements.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import reactive_aio as r
from reactive_aio import Flow, GroupedFlow
from reactive_aio.testing import SubscriberProbe
from tests.cases import identities
from tests.harness.effort import scaled
from tests.harness.one_run import in_one_run
from tests.operators.ways import Failed

Element = tuple[str, int]
Group = GroupedFlow[str, Element]

Work = Callable[[Element], Awaitable[Element]]


def key_of(element: Element) -> str:
    return element[0]


pytestmark = pytest.mark.virtual_time


@dataclass
class Worker:
    """Works on elements for some time, and records what it did of each key."""

    seconds: Mapping[str, float]
    done: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    busy: dict[str, Any] = field(default_factory=dict[str, Any])
    wrong: list[str] = field(default_factory=list[str])

    async def one(self, element: Element) -> Element:
        await self.all([element])
        return element

    async def all(self, elements: list[Element]) -> list[Element]:
        key = elements[0][0]
        if key in self.busy:
            self.wrong.append(f"{elements} while {self.busy[key]}")
        self.busy[key] = elements
        try:
            await asyncio.sleep(self.seconds[key])
        finally:
            self.busy.pop(key, None)
        self.done[key] += [number for _, number in elements]
        return elements


Plan = list[tuple[float, str]]


async def arrivals(plan: Plan) -> AsyncIterator[Element]:
    for number, (pause, key) in enumerate(plan):
        if pause:
            await asyncio.sleep(pause)
        yield (key, number)


Read = Callable[[Flow[Group], Worker], Awaitable[object]]


def by_flat_map(read: Callable[[Group, Worker], Flow[Any]]) -> Read:
    return lambda groups, worker: groups.flat_map(
        lambda group: read(group, worker), concurrency=1024
    ).run()


def by_call(read: Callable[[Group, Worker], Awaitable[object]]) -> Read:
    async def call(group: Group, worker: Worker) -> bool:
        await read(group, worker)
        return True

    return lambda groups, worker: groups.map_async(
        lambda group: call(group, worker), concurrency=1024
    ).run()


async def in_a_loop(group: Group, worker: Worker) -> None:
    async for element in group:
        await worker.one(element)


async def in_a_stream(group: Group, worker: Worker) -> None:
    async with group.stream(prefetch=2) as elements:
        async for element in elements:
            await worker.one(element)


async def as_a_list(group: Group, worker: Worker) -> None:
    """It has read the group before it works with the elements."""
    await worker.all(await group.to_list())


async def collected(group: Group, worker: Worker) -> None:
    elements = [element async for element in group]
    await worker.all(elements)


async def in_windows(group: Group, worker: Worker) -> None:
    async for window in group.window_timeout(3, 2):
        await worker.all(await window.to_list())


def by_for_each(read: Callable[[Group, Worker], Awaitable[object]]) -> Read:
    return lambda groups, worker: groups.for_each(
        lambda group: read(group, worker), concurrency=1024
    )


def by_awaitables(read: Callable[[Group, Worker], Awaitable[object]]) -> Read:
    async def call(group: Group, worker: Worker) -> bool:
        await read(group, worker)
        return True

    return by_flat_map(lambda group, worker: r.from_awaitable(lambda: call(group, worker)))


async def one_by_one(group: Group, worker: Worker) -> None:
    """A subscriber whose on_next awaits, and which requests one after each."""
    ended = asyncio.get_running_loop().create_future()

    class Subscriber:
        def on_subscribe(self, subscription: r.Subscription) -> None:
            self.subscription = subscription
            subscription.request(1)

        async def on_next(self, element: Element) -> None:
            await worker.one(element)
            self.subscription.request(1)

        def on_error(self, error: BaseException) -> None:
            ended.set_exception(error)

        def on_complete(self) -> None:
            ended.set_result(None)

    group.subscribe(Subscriber())
    await ended


READERS: Mapping[str, Read] = {
    "map_async": by_flat_map(lambda group, worker: group.map_async(worker.one)),
    "boundary": by_flat_map(lambda group, worker: group.boundary(2).map_async(worker.one)),
    "two boundaries": by_flat_map(
        lambda group, worker: group.boundary(2).map(lambda x: x).boundary().map_async(worker.one)
    ),
    "concat_map": by_flat_map(
        lambda group, worker: group.concat_map(
            lambda element: r.from_awaitable(lambda: worker.one(element))
        )
    ),
    "buffer": by_flat_map(lambda group, worker: group.buffer(2).map_async(worker.all)),
    "buffer_timeout": by_flat_map(
        lambda group, worker: group.buffer_timeout(3, 2).map_async(worker.all)
    ),
    "delay": by_flat_map(lambda group, worker: group.delay(2).map_async(worker.one)),
    "key=": by_flat_map(
        lambda group, worker: group.map_async(worker.one, concurrency=4, key=key_of)
    ),
    "async for": by_call(in_a_loop),
    "stream(prefetch=2)": by_call(in_a_stream),
    "for_each": by_call(lambda group, worker: group.for_each(worker.one)),
    "run": by_call(lambda group, worker: group.map_async(worker.one).run()),
    "to_list": by_call(lambda group, worker: group.map_async(worker.one).to_list()),
    "request(1)": by_call(one_by_one),
    "a list, map_async": by_call(as_a_list),
    "a list, for_each": by_for_each(as_a_list),
    "a list, from_awaitable": by_awaitables(as_a_list),
    "async for, then": by_call(collected),
    "async for, then, for_each": by_for_each(collected),
    "windows, map_async": by_flat_map(
        lambda group, worker: (
            group.window_timeout(3, 2).map_async(lambda each: each.to_list()).map_async(worker.all)
        )
    ),
    "windows, for_each": by_for_each(in_windows),
    "windows, concurrently": by_flat_map(
        lambda group, worker: (
            group.window(2)
            .map_async(lambda each: each.to_list(), concurrency=3)
            .map_async(worker.all)
        )
    ),
    "groups of a group": by_flat_map(
        lambda group, worker: (
            group.group_by(key_of, idle=1)
            .map_async(lambda each: each.to_list())
            .map_async(worker.all)
        )
    ),
    "boundary, async for": by_call(
        lambda group, worker: in_a_loop(group.boundary(), worker)  # type: ignore[arg-type]
    ),
}

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "idle": {"idle": 3},
    "idle, prefetch=1": {"idle": 1, "prefetch": 1},
    "evict": {"on_full": "evict", "max_groups": 2},
    "evict, one group": {"on_full": "evict", "max_groups": 1, "prefetch": 2},
    "evict, idle": {"on_full": "evict", "max_groups": 2, "idle": 4},
    "wait": {"on_full": "wait", "max_groups": 2, "idle": 2},
}

PLANS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0.5, 1, 3, 7, 20]), st.sampled_from("abcd")), max_size=14
)
PACES = st.fixed_dictionaries({key: st.sampled_from([0, 0.5, 4, 15]) for key in "abcd"})


def expected(plan: Plan) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, (_, key) in enumerate(plan):
        found[key].append(number)
    return found


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@settings(max_examples=scaled(240))
@given(plan=PLANS, seconds=PACES)
async def test_a_key_is_worked_on_in_order(
    read: Read, options: Mapping[str, Any], plan: Plan, seconds: dict[str, float]
) -> None:
    worker = Worker(seconds)
    flow: Flow[Element] = r.from_aiter(lambda: arrivals(plan))
    await read(flow.group_by(key_of, stalled_after=1000, **options), worker)
    assert not worker.wrong
    assert worker.done == expected(plan)


PASSING = identities(["share", "replay", "cache"])
"""Not those with several readers: there, a group is processed when it has been handed over."""


@in_one_run
@pytest.mark.parametrize("apply", PASSING.values(), ids=PASSING)
async def test_a_key_opens_again_whatever_its_group_passes_through(
    apply: Callable[[Flow[Any]], Flow[Any]],
) -> None:
    worker = Worker({"a": 10, "b": 0.0})
    plan = [(0.1, "a"), (0.1, "b"), (0.1, "a"), (0.1, "a"), (0.1, "b"), (0.1, "a"), (50, "b")]
    flow: Flow[Element] = r.from_aiter(lambda: arrivals(plan))
    groups = flow.group_by(key_of, max_groups=1, on_full="evict")
    await groups.flat_map(lambda group: apply(group).map_async(worker.one), concurrency=64).run()
    assert not worker.wrong
    assert worker.done == expected(plan)


async def break_a_loop(group: Group) -> None:
    async for _ in group:
        break


async def break_a_stream(group: Group) -> None:
    async with group.stream(prefetch=2) as elements:
        async for _ in elements:
            break


async def is_cancelled(group: Group) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(group.map_async(lambda _: asyncio.sleep(99)).run(), 1)


async def hold_and_fail(_: Element) -> Element:
    await asyncio.sleep(1)
    raise Failed


async def fails(group: Group) -> None:
    with contextlib.suppress(Failed):
        await group.map_async(hold_and_fail).run()


async def cancels(group: Group) -> None:
    probe = SubscriberProbe[Element](1).subscribed_to(group)
    await probe.wait_for_signals(1)
    probe.cancel()


async def leaves_a_window(group: Group) -> None:
    await group.window(9).flat_map(lambda window: window.take(1)).first()


CALLS = (break_a_loop, break_a_stream, is_cancelled, fails, cancels, leaves_a_window)


def in_calls(call: Callable[[Group], Awaitable[None]]) -> Callable[[Flow[Group]], Awaitable[Any]]:
    return lambda groups: groups.for_each(call, concurrency=64)


def in_sources(make: Callable[[Group], Flow[Any]]) -> Callable[[Flow[Group]], Awaitable[Any]]:
    return lambda groups: groups.flat_map(make).run()


LEFT: Mapping[str, Callable[[Flow[Group]], Awaitable[Any]]] = {
    **{call.__name__: in_calls(call) for call in CALLS},
    "not read": in_sources(lambda _: r.timer(1)),
    "take": in_sources(lambda group: group.take(1)),
    "take, later": in_sources(lambda group: group.boundary(2).take(1)),
    "timeout": in_sources(lambda group: group.skip(1).timeout(1, fallback=r.empty())),
    "take_until": in_sources(lambda group: group.take_until(r.timer(1))),
    "race": in_sources(lambda group: r.race(group.skip(9), r.timer(1))),
    "on_error_resume": in_sources(
        lambda group: group.map_async(hold_and_fail).on_error_resume(r.empty())
    ),
    "share": in_sources(lambda group: group.share().take(1)),
}


@pytest.mark.parametrize("leave", LEFT.values(), ids=LEFT)
async def test_a_key_opens_again_when_its_group_was_left(
    leave: Callable[[Flow[Group]], Awaitable[Any]],
) -> None:
    flow: Flow[Element] = r.from_aiter(lambda: arrivals([(3, "a")] * 4))
    opened: list[str] = []
    await leave(flow.group_by(key_of, idle=100).do_on_next(lambda group: opened.append(group.key)))
    assert opened == ["a"] * 4


@dataclass
class Failing(Worker):
    """Fails at each first attempt, and always for every third element."""

    attempts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    begun: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    async def one(self, element: Element) -> Element:
        key, number = element
        if not self.attempts[number]:
            self.begun[key].append(number)
        self.attempts[number] += 1
        await super().one(element)
        if self.attempts[number] == 1 or number % 3 == 0:
            raise Failed
        return element


async def hold(_: Element, error: Exception) -> None:
    assert isinstance(error, Failed)
    await asyncio.sleep(3)


WORK: Mapping[str, Mapping[str, Any]] = {
    "retry": {"retry": r.RetryPolicy(attempts=3, delay=2), "on_error": "skip"},
    "on_error": {"on_error": "skip"},
    "on_error, a coroutine function": {"on_error": hold},
    "limiter": {"limiter": r.RateLimit(2, per=3), "on_error": "skip"},
    "timeout": {"timeout": 5, "on_error": "skip"},
}
WORKERS: Mapping[str, Callable[[Flow[Element], Work, Mapping[str, Any]], Awaitable[object]]] = {
    "map_async": lambda flow, work, options: flow.map_async(work, **options).run(),
    "map_async, unordered": lambda flow, work, options: flow.map_async(
        work, ordered=False, **options
    ).run(),
    "for_each": lambda flow, work, options: flow.for_each(work, **options),
}


@pytest.mark.parametrize("options", WORK.values(), ids=WORK)
@pytest.mark.parametrize("work_on", WORKERS.values(), ids=WORKERS)
@given(plan=PLANS, seconds=PACES)
async def test_work_with_a_key_is_in_order(
    work_on: Callable[[Flow[Element], Work, Mapping[str, Any]], Awaitable[object]],
    options: Mapping[str, Any],
    plan: Plan,
    seconds: dict[str, float],
) -> None:
    worker = Failing(seconds)
    flow: Flow[Element] = r.from_aiter(lambda: arrivals(plan))
    await work_on(flow, worker.one, {"key": key_of, "concurrency": 3, **options})
    assert not worker.wrong
    assert worker.begun == expected(plan)
