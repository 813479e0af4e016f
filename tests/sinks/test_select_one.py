"""Terminal operators that return one element: which one, their demand, and empty flows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import EmptyFlow, TooManyElements
from reactive_aio.testing import PublisherProbe
from tests.cases import Sinks
from tests.sinks.test_terminal import EVERY_KIND

SINKS: Sinks = {
    "first": lambda flow: flow.first(default=None),
    "last": lambda flow: flow.last(default=None),
    "single": lambda flow: flow.single(default=None),
    "element_at": lambda flow: flow.element_at(1_000_000, default=None),
    "min": lambda flow: flow.min(default=None),
    "max": lambda flow: flow.max(default=None),
}


@EVERY_KIND
class TestValues:
    async def test_first_and_last(self, make: Callable[[int], Flow[int]]) -> None:
        assert (await make(3).first(), await make(3).last()) == (0, 2)

    async def test_single(self, make: Callable[[int], Flow[int]]) -> None:
        assert await make(1).single() == 0
        with pytest.raises(TooManyElements, match="single"):
            await make(2).single()

    async def test_element_at(self, make: Callable[[int], Flow[int]]) -> None:
        assert [await make(3).element_at(x) for x in range(3)] == [0, 1, 2]
        with pytest.raises(EmptyFlow, match=r"element_at\(3\)"):
            await make(3).element_at(3)

    async def test_min_and_max(self, make: Callable[[int], Flow[int]]) -> None:
        assert (await make(5).min(), await make(5).max()) == (0, 4)
        assert await make(5).min(key=lambda x: -x) == 4
        assert await make(5).max(key=lambda x: x % 2) == 1

    @pytest.mark.parametrize("name", ["first", "last", "single", "min", "max"])
    async def test_an_empty_flow(self, make: Callable[[int], Flow[int]], name: str) -> None:
        with pytest.raises(EmptyFlow, match=f"{name}: .*default"):
            await getattr(make(0), name)()
        assert await getattr(make(0), name)(default=None) is None

    async def test_element_at_has_a_default_too(self, make: Callable[[int], Flow[int]]) -> None:
        assert await make(2).element_at(2, default="none") == "none"


class TestDemand:
    async def test_first_requests_exactly_one_and_cancels_rule_2_1(self) -> None:
        foreign = PublisherProbe[int]()
        task = asyncio.ensure_future(r.from_publisher(foreign).first())
        await asyncio.sleep(0)
        assert foreign.requests == [1]
        foreign.emit(7)
        assert foreign.cancel_count == 1
        assert await task == 7

    async def test_first_of_a_filtered_flow_requests_one_at_a_time(self) -> None:
        foreign = PublisherProbe[int]()
        flow = r.from_publisher(foreign).filter(lambda x: x > 1)
        task = asyncio.ensure_future(flow.first())
        await asyncio.sleep(0)
        foreign.emit(1)
        assert foreign.requests == [1, 1]
        foreign.emit(2)
        assert await task == 2

    async def test_element_at_requests_no_more_than_it_needs(self) -> None:
        foreign = PublisherProbe[int]()
        task = asyncio.ensure_future(r.from_publisher(foreign).element_at(2))
        await asyncio.sleep(0)
        for x in range(3):
            foreign.emit(x)
        assert await task == 2
        assert foreign.requested == 3

    async def test_first_pulls_one_element(self) -> None:
        pulled: list[int] = []
        assert await r.range(9).do_on_next(pulled.append).first() == 0
        assert pulled == [0]

    async def test_first_waits_for_the_cleanup_of_the_source(self) -> None:
        log: list[str] = []

        async def elements() -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                await asyncio.sleep(0)
                log.append("clean")

        assert await r.from_aiter(elements).first() == 1
        assert log == ["clean"]

    async def test_cancelling_the_task_cancels_upstream(self) -> None:
        foreign = PublisherProbe[int]()
        task = asyncio.ensure_future(r.from_publisher(foreign).first())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert foreign.cancel_count == 1

    async def test_an_error_before_the_element_is_raised(self) -> None:
        with pytest.raises(OSError, match="no"):
            await r.error(OSError("no")).first(default=1)

    async def test_a_bad_index_is_refused(self) -> None:
        with pytest.raises(ValueError, match="element_at: index"):
            await r.range(3).element_at(-1)
        with pytest.raises(TypeError, match="element_at: index"):
            await r.range(3).element_at(cast("Any", "1"))
