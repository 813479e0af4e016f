"""Terminal operators: values, demand, empty flows, errors, cancellation."""

import asyncio
import operator
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import EmptyFlow, NotAnElement, TooManyElements
from reactive_aio.testing import PublisherProbe
from tests.cases import Needs, Sinks
from tests.harness.one_run import in_one_run


async def numbers(n: int) -> AsyncIterator[int]:
    for x in range(n):
        await asyncio.sleep(0)
        yield x


async def later(element: Any) -> Any:
    return element


SINKS: Sinks = {
    "first": lambda flow: flow.first(default=None),
    "last": lambda flow: flow.last(default=None),
    "single": lambda flow: flow.single(default=None),
    "element_at": lambda flow: flow.element_at(1_000_000, default=None),
    "min": lambda flow: flow.min(default=None),
    "max": lambda flow: flow.max(default=None),
    "reduce": lambda flow: flow.reduce(lambda _, new: new, 0),
    "count": lambda flow: flow.count(),
    "any": lambda flow: flow.any(lambda _: False),
    "all": lambda flow: flow.all(lambda _: True),
    "sum": lambda flow: flow.sum(),
    "run": lambda flow: flow.run(),
    "run: async": lambda flow: flow.map_async(later).run(),
}

KINDS: dict[str, Callable[[int], Flow[int]]] = {
    "pulled": lambda n: r.range(n),
    "boundary": lambda n: r.range(n).boundary(2),
    "asynchronous": lambda n: r.from_aiter(lambda: numbers(n)),
}
EVERY_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


@EVERY_KIND
class TestValues:
    async def test_reduce(self, make: Callable[[int], Flow[int]]) -> None:
        assert await make(5).reduce(lambda a, b: a + b) == 10
        assert await make(5).reduce(lambda a, b: a + str(b), "") == "01234"
        assert await make(0).reduce(lambda a, b: a + b, 7) == 7
        with pytest.raises(EmptyFlow, match=r"^reduce: the flow is empty; give a seed"):
            await make(0).reduce(lambda a, b: a + b)

    async def test_sum(self, make: Callable[[int], Flow[int]]) -> None:
        assert await make(5).sum() == 10
        assert await make(0).sum() == 0
        assert await make(2).map(str).sum("") == "01"

    async def test_any_and_all(self, make: Callable[[int], Flow[int]]) -> None:
        assert await make(3).any()
        assert not await make(0).any()
        assert not await make(3).any(lambda x: x > 2)
        assert await make(0).all()
        assert not await make(3).all()
        assert await make(3).all(lambda x: x < 3)

    async def test_the_original_exception_has_the_users_frames(
        self, make: Callable[[int], Flow[int]]
    ) -> None:
        def the_users_function(x: int) -> int:
            return 6 // (2 - x)

        with pytest.raises(ZeroDivisionError) as caught:
            await make(5).map(the_users_function).to_list()
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert "the_users_function" in frames
        assert frames[0] == "test_the_original_exception_has_the_users_frames"
        assert "map(" in caught.value.__notes__[0]


class TestDemand:
    async def test_any_stops_at_the_answer(self) -> None:
        seen: list[int] = []
        assert await r.range(9).do_on_next(seen.append).any(lambda x: x == 2)
        assert seen == [0, 1, 2]

    async def test_count_requests_everything_and_awaits_the_end(self) -> None:
        foreign = PublisherProbe[int]()
        task = asyncio.ensure_future(r.from_publisher(foreign).count())
        await asyncio.sleep(0)
        assert foreign.requested > 1
        foreign.emit(1, 2)
        await asyncio.sleep(0)
        assert not task.done()
        foreign.complete()
        assert await task == 2


class TestArguments:
    async def test_a_coroutine_function_is_refused_as_a_reducer(self) -> None:
        async def add(a: int, b: int) -> int:
            return a + b

        with pytest.raises(TypeError, match="reduce: reducer"):
            await r.range(3).reduce(cast("Any", add))

    async def test_a_function_that_returns_a_coroutine_fails_with_the_remedy(self) -> None:
        async def work(_: int) -> None:
            """Never runs."""

        with pytest.raises(TypeError, match="async def"):
            await r.range(3).for_each(lambda x: work(x))

    async def test_for_each_requires_a_function(self) -> None:
        with pytest.raises(TypeError, match="for_each: function"):
            await r.range(3).for_each(cast("Any", 5))

    async def test_a_reducer_must_not_return_none(self) -> None:
        def nothing(_a: int, _b: int) -> Any:
            return None

        with pytest.raises(NotAnElement, match="reduce"):
            await r.range(3).reduce(nothing)


@EVERY_KIND
class TestOneElement:
    async def test_first_and_last(self, make: Callable[[int], Flow[int]]) -> None:
        assert (await make(3).first(), await make(3).last()) == (0, 2)

    async def test_single(self, make: Callable[[int], Flow[int]]) -> None:
        assert await make(1).single() == 0
        with pytest.raises(TooManyElements, match="single"):
            await make(2).single()

    async def test_element_at(self, make: Callable[[int], Flow[int]]) -> None:
        assert [await make(3).element_at(x) for x in range(3)] == [0, 1, 2]
        message = r"^element_at\(3\): the flow has fewer than 4 elements; give default="
        with pytest.raises(EmptyFlow, match=message):
            await make(3).element_at(3)

    async def test_min_and_max(self, make: Callable[[int], Flow[int]]) -> None:
        assert (await make(5).min(), await make(5).max()) == (0, 4)
        assert await make(5).min(key=lambda x: -x) == 4
        assert await make(5).max(key=lambda x: x % 2) == 1

    @in_one_run
    @pytest.mark.parametrize("name", ["first", "last", "single", "min", "max"])
    async def test_an_empty_flow(self, make: Callable[[int], Flow[int]], name: str) -> None:
        with pytest.raises(EmptyFlow, match=f"^{name}: the flow is empty; give default="):
            await getattr(make(0), name)()
        assert await getattr(make(0), name)(default=None) is None

    async def test_an_empty_flow_is_said_to_lack_what_the_terminal_operator_needs(
        self, make: Callable[[int], Flow[int]]
    ) -> None:
        with pytest.raises(EmptyFlow) as caught:
            await make(0).map(abs).first()
        (note,) = caught.value.__notes__
        assert note.endswith(" → map(abs) → >>first()<<")

    async def test_element_at_has_a_default_too(self, make: Callable[[int], Flow[int]]) -> None:
        assert await make(2).element_at(2, default="none") == "none"


class TestDemandForOneElement:
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

    async def test_a_bad_index_is_refused(self) -> None:
        with pytest.raises(ValueError, match="element_at: index"):
            await r.range(3).element_at(-1)
        with pytest.raises(TypeError, match="element_at: index"):
            await r.range(3).element_at(cast("Any", "1"))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "End a flow, get a result": {
        "run it for its side effects": "run",
        "one element: the first, the last, the only one, the n-th": "first last single element_at",
        "one value of all elements": "reduce",
        "how many, the sum, the smallest, the greatest": "count sum min max",
        "whether one, or every one, satisfies a condition": "any all",
    },
}


async def example_first() -> None:
    print(await r.just("a", "b").first(), await r.empty().first(default="none"))


async def example_last() -> None:
    print(await r.just("a", "b").last())


async def example_single() -> None:
    print(await r.just("Ada", "Alan").filter(lambda name: len(name) == 3).single())


async def example_element_at() -> None:
    print(await r.just("gold", "silver", "bronze").element_at(1))


async def example_min() -> None:
    print(await r.just("tea", "milk", "coffee").min(key=len))


async def example_max() -> None:
    print(await r.just(2, 3, 1).max())


async def example_reduce() -> None:
    print(await r.range(1, 6).reduce(operator.mul))


async def example_count() -> None:
    print(await r.just("tea", "milk").count())


async def example_any() -> None:
    print(await r.just(1, 4, 9).any(lambda n: n % 2 == 0))


async def example_all() -> None:
    print(await r.just(1, 4, 9).all(lambda n: n % 2 == 0))


async def example_sum() -> None:
    print(await r.range(5).sum())


async def example_run() -> None:
    await r.just("a", "b").do_on_next(print).run()
