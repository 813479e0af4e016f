"""Pipelines over the sources that clients of servers are: with task groups, and cleanups that fail.

Whatever the operators and however the consumer leaves: it ends, the elements are a part of the
sequence from its beginning, each source is closed once, no task remains, and an error is raised or
reported. A failure names its seed: ``SEED=7`` runs that one alone.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.testing import SubscriberProbe
from tests.contract.structured_sources import STRUCTURED, ChildError, CleanupError, Sources
from tests.harness.effort import scaled

COUNT = 12
PIPELINES = 400
"""For each source, in a run of normal effort less than that."""

pytestmark = pytest.mark.virtual_time


async def soon(x: int) -> int:
    await asyncio.sleep(0)
    return x


async def always(_: int) -> bool:
    return True


OPERATORS: dict[str, Callable[[Flow[int], Random], Flow[int]]] = {
    "map": lambda flow, _: flow.map(lambda x: x),
    "filter": lambda flow, _: flow.filter(lambda _: True),
    "boundary": lambda flow, random: flow.boundary(random.choice((1, 2, 5))),
    "map_async": lambda flow, _: flow.map_async(soon),
    "workers": lambda flow, random: flow.map_async(soon, concurrency=random.choice((2, 5))),
    "filter_async": lambda flow, _: flow.filter_async(always, concurrency=2),
    "flat_map": lambda flow, _: flow.flat_map(lambda x: [x], concurrency=1, prefetch=2),
    "inner flows": lambda flow, _: flow.flat_map(lambda x: r.just(x).boundary(1), concurrency=1),
    "in flat_map": lambda flow, _: r.just(0).flat_map(lambda _: flow, prefetch=3),
    "concat": lambda flow, _: r.concat([], flow, r.empty()),
    "merge": lambda flow, random: flow.merge_with(r.empty(), prefetch=random.choice((1, 4))),
    "zip": lambda flow, _: flow.zip_with(r.range(10**6), prefetch=2).map(lambda pair: pair[0]),
    "timeout": lambda flow, _: flow.timeout(60),
    "buffer_timeout": lambda flow, _: flow.buffer_timeout(3, 1).flat_map(lambda each: each),
    "retry": lambda flow, _: flow.retry(1),
    "resume": lambda flow, _: flow.on_error_resume([1], only=LookupError),
    "using": lambda flow, _: r.using(lambda: Nothing(), lambda _: flow),
    "defer": lambda flow, _: r.defer(lambda: flow),
    "buffer": lambda flow, _: flow.on_backpressure_buffer(COUNT),
    "take": lambda flow, random: flow.take(random.randrange(1, COUNT)),
    "from_aiter": lambda flow, _: r.from_aiter(flow),
}


class Nothing:
    async def __aenter__(self) -> None:
        await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)


Elements = list[int]
Consumer = Callable[[Flow[int], Random, Elements], Awaitable[object]]


async def collect(flow: Flow[int], _: Random, elements: Elements) -> None:
    await flow.for_each(elements.append)


async def first(flow: Flow[int], _: Random, elements: Elements) -> None:
    found = await flow.first(default=None)
    elements += [] if found is None else [found]


async def leave(flow: Flow[int], random: Random, elements: Elements) -> None:
    last = random.randrange(1, COUNT)
    async for x in flow:
        elements.append(x)
        if len(elements) == last:
            break


async def stream(flow: Flow[int], random: Random, elements: Elements) -> None:
    last = random.randrange(1, COUNT)
    async with flow.stream(prefetch=random.choice((1, 3))) as received:
        async for x in received:
            elements.append(x)
            if len(elements) == last:
                break


async def cancelled(flow: Flow[int], random: Random, elements: Elements) -> None:
    task = asyncio.ensure_future(collect(flow, random, elements))
    for _ in range(random.randrange(40)):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        await task


async def timed_out(flow: Flow[int], _: Random, elements: Elements) -> None:
    async def wait(x: int) -> None:
        elements.append(x)
        await asyncio.sleep(60)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(61):
            await flow.for_each(wait)


async def subscribe(flow: Flow[int], random: Random, elements: Elements) -> None:
    probe = SubscriberProbe[int](random.randrange(1, COUNT)).subscribed_to(flow)
    await asyncio.sleep(1)
    probe.cancel()
    elements += [x for x in probe.signals if isinstance(x, int)]
    for error in probe.signals:
        if isinstance(error, Exception):
            raise error


CONSUMERS: tuple[Consumer, ...] = (
    collect,
    first,
    leave,
    stream,
    cancelled,
    timed_out,
    subscribe,
)


def seeds() -> Iterable[int]:
    only = os.environ.get("SEED")
    return range(scaled(PIPELINES)) if only is None else (int(only),)


def leaves(error: BaseException) -> list[BaseException]:
    """The errors in a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for each in group.exceptions for leaf in leaves(each)]
    return [error]


@pytest.mark.parametrize("name", STRUCTURED)
async def test_a_random_pipeline_ends_cleanly(
    name: str, expects_loop_errors: list[dict[str, Any]]
) -> None:
    make, errors = STRUCTURED[name]
    for seed in seeds():
        random = Random(seed)
        operators = [random.choice([*OPERATORS]) for _ in range(random.randrange(5))]
        consume = random.choice(CONSUMERS)
        try:
            await check(make, errors, operators, consume, random, expects_loop_errors)
        except BaseException as error:
            error.add_note(f"SEED={seed}: {name} → {operators} → {consume.__name__}")
            raise


async def check(
    make: Callable[[Sources], Any],
    errors: tuple[type[BaseException], ...],
    operators: list[str],
    consume: Consumer,
    random: Random,
    reported: list[dict[str, Any]],
) -> None:
    sources = Sources(COUNT)
    flow: Flow[int] = r.from_aiter(lambda: make(sources))
    for operator in operators:
        flow = OPERATORS[operator](flow, random)
    elements: Elements = []
    found: list[BaseException] = []
    try:
        async with asyncio.timeout(10_000):
            await consume(flow, random, elements)
    except errors as error:
        found = leaves(error)
    await asyncio.sleep(100)
    found += [leaf for each in reported for leaf in leaves(each["exception"])]
    assert elements == [*range(len(elements))]
    assert {type(error) for error in found} <= {ChildError, CleanupError}
    assert sources.closed == sources.opened
    assert asyncio.all_tasks() == {asyncio.current_task()}
    # Then the flow has failed, perhaps before the consumer cancelled it.
    has_failed = sources.finished_count or "take" in operators
    if errors == (CleanupError,) and not has_failed:
        assert len(found) == sources.opened
    if not errors:
        assert found == []
        assert consume is not collect or "take" in operators or len(elements) == COUNT
    reported.clear()
