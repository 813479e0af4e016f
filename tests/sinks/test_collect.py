"""to_list and to_dict: what they collect, and their limits."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import TooManyElements
from reactive_aio.testing import PublisherProbe
from tests.cases import Needs, Sinks
from tests.sinks.test_terminal import EVERY_KIND

SINKS: Sinks = {
    "to_list": lambda flow: flow.to_list(),
    "to_dict": lambda flow: flow.to_dict(lambda x: x),
}


@EVERY_KIND
async def test_to_list(make: Callable[[int], Flow[int]]) -> None:
    assert await make(3).to_list() == [0, 1, 2]
    assert await make(3).to_list(limit=3) == [0, 1, 2]
    assert await make(0).to_list(limit=0) == []
    with pytest.raises(TooManyElements, match=r"limit=2 .* for_each"):
        await make(3).to_list(limit=2)


@EVERY_KIND
async def test_to_dict(make: Callable[[int], Flow[int]]) -> None:
    assert await make(3).to_dict(str) == {"0": 0, "1": 1, "2": 2}
    assert await make(4).to_dict(lambda x: x % 2, str) == {0: "2", 1: "3"}
    assert await make(9).to_dict(lambda x: x % 2, limit=2) == {0: 8, 1: 7}
    with pytest.raises(TooManyElements, match="limit=2 keys"):
        await make(3).to_dict(str, limit=2)


async def test_exceeding_a_limit_cancels_upstream() -> None:
    foreign = PublisherProbe[int]()
    task = asyncio.ensure_future(r.from_publisher(foreign).to_list(limit=1))
    await asyncio.sleep(0)
    foreign.emit(1, 2)
    with pytest.raises(TooManyElements):
        await task
    assert foreign.cancel_count == 1


async def test_a_limit_is_a_number() -> None:
    with pytest.raises(TypeError, match="to_list: limit"):
        await r.range(3).to_list(limit=cast("Any", None))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Groups": {
        "a dict by key, when the flow has ended": "to_dict",
    },
    "End a flow, get a result": {
        "everything, as a list or a dict": "to_list to_dict",
    },
}


async def example_to_list() -> None:
    print(await r.range(3).to_list())


async def example_to_dict() -> None:
    print(await r.just("tea", "milk").to_dict(key=str.upper, value=len))
