"""A window or a group never keeps the source open after its flow has failed or was cancelled."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import Interrupted
from reactive_aio.testing import SubscriberProbe
from tests.harness.one_run import in_one_run

pytestmark = pytest.mark.virtual_time

SPLITS: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "group_by": lambda flow: flow.group_by(lambda x: x % 2),
    "window": lambda flow: flow.window(5),
    "window_timeout": lambda flow: flow.window_timeout(5, 1),
}
Split = Callable[[Flow[int]], Flow[Any]]
every_split = pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Source:
    """Numbers, one a millisecond."""

    def __init__(self) -> None:
        self.closed = 0

    @property
    def flow(self) -> Flow[int]:
        return r.from_aiter(self._numbers)

    async def _numbers(self) -> AsyncIterator[int]:
        try:
            for number in range(10**6):
                await asyncio.sleep(0.001)
                yield number
        finally:
            self.closed += 1


def fails(_: Any) -> Any:
    raise KeyError


async def fails_later(_: Any) -> Any:
    await asyncio.sleep(0.01)
    raise KeyError


async def forever(_: Any) -> Any:
    await asyncio.sleep(10**9)


async def raised(work: Awaitable[Any]) -> BaseException:
    try:
        await work
    except KeyError as error:
        return error
    raise AssertionError("it has not failed")


async def failed_in_a_loop(flow: Flow[Any]) -> BaseException:
    async def loop() -> None:
        async for _ in flow:
            raise KeyError

    return await raised(loop())


async def probed(flow: Flow[Any]) -> SubscriberProbe[Any]:
    probe = SubscriberProbe[Any](100).subscribed_to(flow)
    await asyncio.sleep(0.05)
    probe.cancel()
    return probe


async def left_by_break(flow: Flow[Any]) -> Any:
    async for each in flow:
        return each
    raise AssertionError("there is none")


async def cancelled(flow: Flow[Any]) -> None:
    task = asyncio.ensure_future(flow.run())
    await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def timed_out(flow: Flow[Any]) -> BaseException | None:
    try:
        await asyncio.wait_for(flow.to_list(), 0.05)
    except TimeoutError as error:
        return error
    return None


ENDS: dict[str, Callable[[Flow[Any]], Awaitable[Any]]] = {
    # each returns what its caller keeps
    "map fails": lambda flow: raised(flow.map(fails).run()),
    "flat_map fails": lambda flow: raised(flow.flat_map(fails).run()),
    "flat_map fails behind a boundary": lambda flow: raised(flow.boundary(3).flat_map(fails).run()),
    "concat_map fails": lambda flow: raised(flow.concat_map(fails).run()),
    "switch_map fails": lambda flow: raised(flow.switch_map(fails).run()),
    "map_async fails": lambda flow: raised(flow.map_async(fails_later).run()),
    "map_async fails: workers": lambda flow: raised(
        flow.map_async(fails_later, concurrency=3).run()
    ),
    "for_each fails": lambda flow: raised(flow.for_each(fails_later)),
    "for_each fails: workers": lambda flow: raised(flow.for_each(fails_later, concurrency=3)),
    "an inner flow fails": lambda flow: raised(flow.flat_map(lambda each: each.map(fails)).run()),
    "a loop fails": failed_in_a_loop,
    "break": left_by_break,
    "cancel": probed,
    "cancel, behind a boundary": lambda flow: probed(flow.boundary(3)),
    "cancel, with subscribers": lambda flow: probed(flow.flat_map(lambda each: each)),
    "cancel, with one subscriber": lambda flow: probed(flow.concat_map(lambda each: each)),
    "the task is cancelled": cancelled,
    "the task of a call is cancelled": lambda flow: cancelled(flow.map_async(forever)),
    "the tasks of calls are cancelled": lambda flow: cancelled(
        flow.map_async(forever, concurrency=3)
    ),
    "a list is timed out": timed_out,
}


@in_one_run
@every_split
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_the_source_is_closed_although_the_error_or_the_flow_is_kept(
    split: Split, end: Callable[[Flow[Any]], Awaitable[Any]]
) -> None:
    source = Source()
    kept = await end(split(source.flow))
    for _ in range(5):
        await asyncio.sleep(0)
    assert source.closed == 1
    del kept


@every_split
async def test_what_is_over_says_so(split: Split) -> None:
    source = Source()
    left = await left_by_break(split(source.flow))
    with pytest.raises(Interrupted, match="failed or was cancelled before this one was subscribed"):
        await left.to_list()


@every_split
async def test_after_a_completion_it_can_be_read(split: Split) -> None:
    source = Source()
    ways: list[Awaitable[Any]] = [
        split(source.flow).first(),
        split(source.flow).take(1).single(),
        split(source.flow).boundary(2).take(1).first(),
        split(source.flow).take_until(r.timer(0.0015)).first(),
    ]
    for way in ways:
        kept = await way
        assert await kept.take(3).count() == 3
    await asyncio.sleep(0)
    assert source.closed == len(ways)
