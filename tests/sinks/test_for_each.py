"""for_each: the number of calls, one after another or several at a time, and their errors."""

import asyncio
from collections.abc import Callable

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import NotAnElement
from tests.cases import Needs, Sinks
from tests.sinks.test_terminal import EVERY_KIND, later

SINKS: Sinks = {
    "for_each": lambda flow: flow.for_each(lambda _: None),
    "for_each: async": lambda flow: flow.for_each(later),
    "for_each: concurrent": lambda flow: flow.for_each(later, concurrency=3),
    "for_each: retried": lambda flow: flow.for_each(later, concurrency=3, retry=2, ordered=True),
}


class TestMistakes:
    async def test_map_async_names_it_for_a_function_without_a_result(self) -> None:
        async def write(_: int) -> None:
            pass

        for concurrency in (1, 3):
            with pytest.raises(NotAnElement, match=r"for_each\(function, concurrency=n\)"):
                await r.range(3).map_async(write, concurrency=concurrency).run()

    async def test_a_function_may_return_an_awaitable(self) -> None:
        assert await r.range(3).for_each(lambda x: later(x), concurrency=2) == 3

    async def test_a_plain_function_is_refused_with_concurrency(self) -> None:
        with pytest.raises(TypeError, match=r"for_each: .* leave out concurrency"):
            await r.range(3).for_each(str, concurrency=2)
        with pytest.raises(ValueError, match="concurrency must be at least 1"):
            await r.range(3).for_each(later, concurrency=0)

    async def test_the_error_of_the_function_itself_is_not_replaced(self) -> None:
        async def fails(_: int) -> None:
            raise TypeError("its own")

        with pytest.raises(TypeError, match=r"^its own\n"):
            await r.range(3).for_each(fails, concurrency=2)


@EVERY_KIND
class TestCalls:
    async def test_for_each_returns_the_number_of_calls(
        self, make: Callable[[int], Flow[int]]
    ) -> None:
        seen: list[int] = []
        assert await make(3).for_each(seen.append) == 3
        assert seen == [0, 1, 2]

    async def test_for_each_awaits_a_coroutine_function_rule_1_3(
        self, make: Callable[[int], Flow[int]]
    ) -> None:
        log: list[str] = []

        async def work(x: int) -> None:
            log.append(f"begin {x}")
            await asyncio.sleep(0)
            log.append(f"end {x}")

        assert await make(2).for_each(work) == 2
        assert log == ["begin 0", "end 0", "begin 1", "end 1"]

    async def test_for_each_runs_calls_concurrently_rule_1_3(
        self, make: Callable[[int], Flow[int]]
    ) -> None:
        running: list[int] = []
        most: list[int] = []

        async def write(x: int) -> None:
            running.append(x)
            most.append(len(running))
            for _ in range(5):
                await asyncio.sleep(0)
            running.remove(x)

        assert await make(9).for_each(write, concurrency=3) == 9
        assert max(most) == 3
        assert not running

    async def test_for_each_with_concurrency_fails_at_once_and_ends_the_other_calls(
        self, make: Callable[[int], Flow[int]]
    ) -> None:
        log: list[object] = []

        async def write(x: int) -> None:
            try:
                if x == 1:
                    raise OSError("disk full")
                await asyncio.Event().wait()
            finally:
                log.append(x)

        with pytest.raises(OSError, match="disk full") as caught:
            await make(9).for_each(write, concurrency=2)
        assert sorted(map(str, log)) == ["0", "1"]
        assert "with the element 1" in caught.value.__notes__[0]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "End a flow, get a result": {
        "call a function with each element": "for_each",
    },
}


async def example_for_each() -> None:
    async def send(name: str) -> None:
        await asyncio.sleep(0.1)
        print("sent to", name)

    print(await r.just("Ada", "Alan").for_each(send))
