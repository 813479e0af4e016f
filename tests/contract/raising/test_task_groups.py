"""A task group around a source is left without an error, and fails the flow if a child fails."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.testing import SubscriberProbe


class ChildFailed(Exception):
    """Of a task that a source has started."""


async def in_a_task_group() -> AsyncIterator[int]:
    async with asyncio.TaskGroup():
        for number in range(100):
            await asyncio.sleep(0)
            yield number


async def with_a_child_that_fails() -> AsyncIterator[int]:
    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise ChildFailed

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        for number in range(100):
            await asyncio.sleep(0)
            yield number


LEAVING: dict[str, tuple[Callable[[Any], Any], object]] = {
    "take": (lambda flow: flow.take(3).to_list(), [0, 1, 2]),
    "first": (lambda flow: flow.first(), 0),
    "boundary": (lambda flow: flow.boundary(2).take(3).to_list(), [0, 1, 2]),
    "take before a boundary": (lambda flow: flow.take(3).boundary(2).to_list(), [0, 1, 2]),
    "merge": (lambda flow: flow.take(2).merge_with([7]).count(), 3),
    "concat": (lambda flow: flow.take(2).concat_with([7]).to_list(), [0, 1, 7]),
    "zip": (lambda flow: flow.zip_with([1]).to_list(), [(0, 1)]),
}


@pytest.mark.parametrize("way", LEAVING)
async def test_a_task_group_in_a_source_is_left_without_an_error(way: str) -> None:
    leave, result = LEAVING[way]
    assert await leave(r.from_aiter(in_a_task_group)) == result


async def test_the_failure_of_a_flow_is_not_hidden_by_the_end_of_its_task_group() -> None:
    with pytest.raises(ZeroDivisionError):
        await r.from_aiter(in_a_task_group).map(lambda x: 1 // (2 - x)).to_list()


async def test_a_child_that_fails_while_the_flow_waits_for_demand_fails_the_flow() -> None:
    for flow in (
        r.from_aiter(with_a_child_that_fails),
        r.from_aiter(with_a_child_that_fails).map(str),
    ):
        probe = SubscriberProbe[Any](2).subscribed_to(flow)
        error = (await probe.end())[-1]
        assert isinstance(error, ExceptionGroup)
        assert [type(each) for each in [*error.exceptions]] == [ChildFailed]
