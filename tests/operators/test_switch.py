"""switch_map and expand: which source is active, what follows, demand and ends."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.errors import Overflow
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed, collected


def nothing(_: object) -> list[Any]:
    return []


def busy(seconds: float) -> None:
    until = time.thread_time() + seconds  # the clock of the time slices in tests
    while time.thread_time() < until:
        pass


OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "switch_map": lambda n: r.just(1).switch_map(lambda _: r.range(n)),
    "switch_map: asynchronous": lambda n: r.just(1).switch_map(lambda _: slow(range(n))),
    "expand": lambda n: r.range(n).expand(nothing),
    "expand: a chain": lambda n: r.range(min(n, 1)).expand(lambda x: [x + 1] if x < n - 1 else []),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "switch_map": lambda: slow([1], error=Failed()).switch_map(lambda x: [x]),
    "switch_map: inner": lambda: r.just(1).switch_map(lambda x: slow([x], error=Failed())),
    "expand": lambda: slow([1], error=Failed()).expand(nothing),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "switch_map": lambda: r.just(1).switch_map(lambda _: r.generate(lambda x: (x, x + 1), 0)),
    "expand": lambda: r.just(1).expand(lambda x: [x]),
}

IDENTITIES: Identities = {
    "switch_map": lambda up: r.just(1).switch_map(lambda _: up),
    "expand": lambda up: up.expand(nothing),
}


@pytest.mark.virtual_time
class TestSwitchMap:
    async def test_a_new_element_cancels_the_source_of_the_one_before(self) -> None:
        log: list[str] = []
        flow = slow("ab", every=5).switch_map(
            lambda x: slow([x + "1", x + "2", x + "3"], every=2, log=log)
        )
        assert await flow.to_list() == ["a1", "a2", "b1", "b2", "b3"]
        assert log == ["opened", "opened", "closed", "closed"] or log.count("closed") == 2

    async def test_the_active_source_gets_the_demand_and_the_next_one_what_is_left(self) -> None:
        outer = PublisherProbe[int]()
        inner = [PublisherProbe[str]() for _ in range(2)]
        flow = r.from_publisher(outer).switch_map(lambda i: r.from_publisher(inner[i]))
        probe = SubscriberProbe[str](3).subscribed_to(flow)
        outer.emit(0)
        assert inner[0].requested == 3
        inner[0].emit("a")
        outer.emit(1)
        assert inner[0].cancel_count == 1
        assert inner[1].requested == 2
        inner[1].emit("b")
        assert probe.elements == ["a", "b"]
        probe.cancel()
        assert (outer.cancel_count, inner[1].cancel_count) == (1, 1)

    @pytest.mark.parametrize("last", ["the source", "the one made of its last element"])
    async def test_it_completes_after_both(self, last: str) -> None:
        outer, inner = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.from_publisher(outer).switch_map(lambda _: r.from_publisher(inner))
        probe = SubscriberProbe[int](3).subscribed_to(flow)
        outer.emit(0)
        first, second = (inner, outer) if last == "the source" else (outer, inner)
        first.complete()
        await asyncio.sleep(0)
        assert probe.signals == []
        second.complete()
        assert await probe.end() == ["|"]

    async def test_a_failing_source_fails_it_and_cancels_the_other(self) -> None:
        outer, inner = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.from_publisher(outer).switch_map(lambda _: r.from_publisher(inner))
        probe = SubscriberProbe[int](3).subscribed_to(flow)
        outer.emit(0)
        outer.fail(Failed())
        await probe.end()
        assert isinstance(probe.error, Failed)
        assert inner.cancel_count == 1

    async def test_an_empty_source_completes_it(self) -> None:
        assert await r.empty().switch_map(nothing).to_list() == []

    async def test_an_error_of_the_mapper_fails_it(self) -> None:
        with pytest.raises(ZeroDivisionError):
            await r.just(0).switch_map(lambda x: [1 // x]).to_list()

    @pytest.mark.parametrize("work", [0, 0.0005])
    async def test_a_fast_source_is_mapped_whole_and_its_last_element_wins(
        self, work: float
    ) -> None:
        made: list[int] = []

        def mapper(x: int) -> Flow[int]:
            made.append(x)
            busy(work)
            return r.timer(1, x)

        assert await r.range(300).switch_map(mapper).to_list() == [299]
        assert made == [*range(300)]

    @pytest.mark.parametrize("work", [0.0, 0.0005])
    async def test_of_elements_that_arrive_together_only_the_last_one_counts(
        self, work: float
    ) -> None:
        def mapper(x: int) -> Flow[int]:
            busy(work)
            return r.just(x, -x)

        assert await r.range(300).switch_map(mapper).to_list() == [299, -299]
        seen = [x async for x in r.range(300).switch_map(mapper)]
        assert seen == [299, -299]

    async def test_elements_that_wait_for_a_switch_are_discarded_when_it_is_cancelled(self) -> None:
        read, made, discarded = list[int](), list[int](), list[int]()

        def mapper(x: int) -> Flow[int]:
            made.append(x)
            busy(0.0005)
            return r.never()

        flow = r.range(10**9).do_on_next(read.append).switch_map(mapper)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow.do_on_discard(discarded.append))
        await asyncio.sleep(0)
        assert len(made) < 100
        probe.cancel()
        assert sorted(discarded) == read, "each source was cut before it had sent anything"

    @pytest.mark.parametrize("n", [200, 10**9])
    async def test_a_drain_makes_the_sources_of_the_elements_that_wait_for_a_switch(
        self, n: int
    ) -> None:
        read, made, received = list[int](), list[int](), list[int]()

        def mapper(x: int) -> list[int]:
            made.append(x)
            busy(0.0005)
            return [x]

        flow = r.range(n).do_on_next(read.append).switch_map(mapper)
        async with flow.running(received.append) as run:
            await asyncio.sleep(0)
            assert len(made) < len(read)
            await run.drain(timeout=60)
        assert made == read
        assert received[-1] == read[-1]

    def test_a_coroutine_function_is_refused(self) -> None:
        async def mapper(_: int) -> list[int]:
            return []

        with pytest.raises(TypeError, match="switch_map"):
            r.just(1).switch_map(mapper)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


TREE = {"": ["a", "b"], "a": ["c", "d"], "b": ["e"], "d": ["f"]}


def children(name: str) -> list[str]:
    return TREE.get(name, [])


class TestExpand:
    @pytest.mark.parametrize("demand", ["unbounded", "one by one", "coroutines", "async for"])
    @pytest.mark.parametrize("kind", ["lists", "asynchronous"])
    async def test_a_tree_is_emitted_level_by_level(self, demand: str, kind: str) -> None:
        made: Callable[[str], Any] = children if kind == "lists" else lambda x: slow(children(x))
        flow: Flow[str] = r.just("a", "b").expand(made)
        assert await collected(flow, demand) == ["a", "b", "c", "d", "e", "f", "|"]

    async def test_more_than_the_capacity_fails_by_name(self) -> None:
        probe = SubscriberProbe[int](MANY).subscribed_to(
            r.just(1).expand(lambda x: [x, x], capacity=10)
        )
        await probe.end()
        assert isinstance(probe.error, Overflow)
        assert "expand" in str(probe.error)

    async def test_a_long_chain_does_not_recurse(self) -> None:
        flow = r.just(0).expand(lambda x: [x + 1] if x < 3000 else [])
        assert await flow.count() == 3001

    async def test_a_source_that_fails_fails_it_after_the_elements_before(self) -> None:
        flow = r.just(1).expand(lambda x: slow([x + 1], error=Failed()))
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await probe.end()
        assert probe.elements == [1, 2]
        assert isinstance(probe.error, Failed)

    def test_options_are_checked(self) -> None:
        with pytest.raises(ValueError, match="expand: capacity must be at least 1"):
            r.just(1).expand(nothing, capacity=0)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow of each element": {
        "only that of the latest element": "switch_map",
        "and of its elements, and so on: trees, pages that name the next one": "expand",
    },
}


async def example_switch_map() -> None:
    def search(text: str) -> r.Flow[str]:
        return r.timer(0.2, f"results for {text}")

    typed = r.just("r", "re", "rea").rate_limit(1, 0.1)
    print(await typed.switch_map(search).to_list())


async def example_expand() -> None:
    folders = {"/": ["/etc", "/home"], "/home": ["/home/ada"]}
    print(await r.just("/").expand(lambda path: folders.get(path, [])).to_list())
