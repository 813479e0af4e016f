"""group_by: groups open and end, demand, limits, idle groups and stalls."""

import asyncio
import gc
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from hypothesis import example, given, strategies as st

import reactive_aio as r
from reactive_aio import Flow, GroupedFlow, Publisher
from reactive_aio.errors import AlreadySubscribed, Overflow, Stalled
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed


def same(x: Any) -> Any:
    return x


def parity(x: int) -> int:
    return x % 2


def returns_a_coroutine(x: int) -> Any:
    return later(x)


Make = Callable[[int], Flow[int]]
MADE: dict[str, Make] = {"pulled": lambda n: r.range(n), "pushed": lambda n: slow(range(n))}


def paired(group: GroupedFlow[Any, Any]) -> Flow[Any]:
    return group.map(lambda x: (group.key, x))


OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "group_by": lambda n: r.range(n).group_by(same, max_groups=10**6),
    "group_by: asynchronous": lambda n: slow(range(n)).group_by(same, max_groups=10**6),
    "group_by: one group": lambda n: r.range(n).group_by(lambda _: 1).flat_map(same),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "group_by": lambda: slow([1], error=Failed()).group_by(same),
    "group_by: one group": lambda: slow([1], error=Failed()).group_by(same).flat_map(same),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "group_by": lambda: r.generate(lambda x: (x, x + 1), 0).group_by(same, on_full="evict"),
    "group_by: one group": lambda: (
        r.generate(lambda x: (x, x + 1), 0).group_by(lambda _: 1).flat_map(same)
    ),
}

IDENTITIES: Identities = {"group_by": lambda up: up.group_by(lambda _: 1).flat_map(same)}


async def by_key(flow: Flow[GroupedFlow[Any, Any]], concurrency: int = 16) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for key, x in await flow.flat_map(paired, concurrency=concurrency).to_list():
        found[key].append(x)
    return dict(found)


@pytest.mark.virtual_time
class TestGroups:
    @pytest.mark.parametrize("prefetch", [1, 2, 32])
    @pytest.mark.parametrize("make", MADE.values(), ids=MADE)
    async def test_each_element_is_in_its_group_in_order(self, prefetch: int, make: Make) -> None:
        flow = make(50).group_by(lambda x: x % 3, prefetch=prefetch)
        assert await by_key(flow) == {i: list(range(50))[i::3] for i in range(3)}

    async def test_an_empty_source_has_no_groups(self) -> None:
        assert await r.empty().group_by(same).to_list() == []

    async def test_groups_can_be_read_later(self) -> None:
        groups = await r.range(10).group_by(parity).to_list()
        assert [group.key for group in groups] == [0, 1]
        assert [await group.to_list() for group in groups] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
        with pytest.raises(AlreadySubscribed, match="the group of 0"):
            await groups[0].to_list()

    async def test_a_group_names_its_key(self) -> None:
        [group] = await r.just("a").group_by(same).to_list()
        assert repr(group) == "<Flow the group of 'a'>"
        assert isinstance(group, GroupedFlow)
        assert await group.map(str.upper).to_list() == ["A"]

    async def test_a_key_is_computed_once(self) -> None:
        keys: list[int] = []

        def key(x: int) -> int:
            keys.append(x)
            return 0

        flow = r.range(20).group_by(key, prefetch=2)
        assert await flow.flat_map(lambda group: group.map_async(later)).count() == 20
        assert keys == [*range(20)]

    async def test_a_failing_key_fails_all_after_the_elements_before_it(self) -> None:
        probe = SubscriberProbe[GroupedFlow[int, int]](MANY)
        probe.subscribed_to(r.just(1, 0).group_by(lambda x: 1 // x))
        await probe.end()
        assert isinstance(probe.error, ZeroDivisionError)
        elements: list[int] = []
        with pytest.raises(ZeroDivisionError):
            await probe.elements[0].for_each(elements.append)
        assert elements == [1]

    async def test_a_failing_source_fails_all_once(self) -> None:
        with pytest.raises(Failed):
            await slow([1, 2], error=Failed()).group_by(parity).flat_map(same).run()

    async def test_an_unhashable_key_is_named(self) -> None:
        with pytest.raises(TypeError, match=r"group_by: .* cannot be hashed; return a key such as"):
            await r.just([1]).group_by(same).run()
        with pytest.raises(TypeError, match=r"group_by: .* cannot be hashed"):
            await r.just(1).group_by(lambda _: (1, [2])).run()

    async def test_a_coroutine_as_key_is_refused(self) -> None:
        async def key(_: int) -> int:
            return 1

        with pytest.raises(TypeError, match="group_by: key must be a plain function"):
            r.just(1).group_by(cast("Any", key))
        with pytest.raises(TypeError, match=r"group_by: .* which nothing would await"):
            await r.just(1).group_by(returns_a_coroutine).run()


async def later(x: Any) -> Any:
    await asyncio.sleep(1)
    return x


async def very_late(x: Any) -> Any:
    await asyncio.sleep(10)
    return x


def grouped(
    key: Callable[[Any], Any], **options: Any
) -> tuple[PublisherProbe[Any], SubscriberProbe[GroupedFlow[Any, Any]]]:
    """A source, and the subscriber that has requested all of its groups."""
    source = PublisherProbe[Any]()
    flow = r.from_publisher(source).group_by(key, **options)
    return source, SubscriberProbe[GroupedFlow[Any, Any]](MANY).subscribed_to(flow)


class TestDemandAndCancellation:
    async def test_a_full_group_makes_the_source_wait(self) -> None:
        source, outer = grouped(parity, prefetch=2)
        assert source.outstanding == 8
        source.emit(0, 2)
        assert source.outstanding == 8
        source.emit(*range(4, 20, 2))
        assert source.outstanding == 0
        inner = SubscriberProbe[int](1).subscribed_to(outer.elements[0])
        assert inner.elements == [0]
        assert source.outstanding == 0
        inner.request(1)
        assert inner.elements == [0, 2]
        assert source.outstanding == 2
        outer.cancel()
        inner.cancel()
        assert source.cancel_count == 1

    async def test_without_demand_no_group_opens(self) -> None:
        source = PublisherProbe[int]()
        outer = SubscriberProbe[GroupedFlow[int, int]](1)
        outer.subscribed_to(r.from_publisher(source).group_by(same, prefetch=4))
        source.emit(1, 2, 1)
        assert [group.key for group in outer.elements] == [1]
        outer.request(1)
        assert [group.key for group in outer.elements] == [1, 2]
        first, second = outer.elements
        source.complete()
        assert outer.is_completed
        assert [await first.to_list(), await second.to_list()] == [[1, 1], [2]]

    async def test_after_the_subscriber_cancels_open_groups_go_on(self) -> None:
        dropped: list[int] = []
        source, outer = grouped(same, on_drop=dropped.append)
        source.emit(1)
        inner = SubscriberProbe[int](MANY).subscribed_to(outer.elements[0])
        outer.cancel()
        source.emit(2, 1)
        assert (inner.elements, dropped) == ([1, 1], [2])
        assert source.cancel_count == 0
        inner.cancel()
        assert source.cancel_count == 1

    async def test_take_reads_its_groups_to_the_end(self) -> None:
        flow = slow(range(12)).group_by(lambda x: x % 4).take(2)
        assert await by_key(flow) == {0: [0, 4, 8], 1: [1, 5, 9]}

    async def test_a_cancelled_group_opens_again(self) -> None:
        flow = slow([1, 1, 1]).group_by(same).map(lambda group: group.take(1))
        assert await flow.flat_map(same).to_list() == [1, 1, 1]

    async def test_a_freed_group_does_not_hold_the_others_back(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).group_by(parity, prefetch=1)
        keys = SubscriberProbe[int](MANY).subscribed_to(flow.map(lambda group: group.key))
        for element in (0, 1, 2, 3):
            source.emit(element)
            gc.collect()
            await asyncio.sleep(0)
        assert keys.elements == [0, 1, 0, 1]
        source.complete()
        assert keys.is_completed

    async def test_groups_that_a_pipeline_leaves_out_are_over(self) -> None:
        groups = r.range(30).group_by(lambda x: x % 3, prefetch=2)
        kept = groups.filter(lambda group: group.key == 1).flat_map(same)
        assert await kept.to_list() == [*range(1, 30, 3)]

    async def test_groups_that_a_task_leaves_out_are_over(self) -> None:
        async def key(group: GroupedFlow[int, int]) -> int:
            return group.key

        keys = slow([0] * 30).group_by(same, prefetch=2).map_async(key)
        assert await keys.count() > 2

    async def test_groups_that_a_loop_leaves_out_are_over(self) -> None:
        count = 0
        async for group in slow([0] * 30).group_by(same, prefetch=2):
            del group
            count += 1
        assert count > 2


def groups_one_by_one(keys: list[int], max_groups: int) -> list[tuple[int, int]]:
    """The key and the length of each group, with ``evict``."""
    open_groups: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    for key in keys:
        if key not in open_groups and len(open_groups) == max_groups:
            oldest = next(iter(open_groups))
            found.append((oldest, open_groups.pop(oldest)))
        open_groups[key] = open_groups.pop(key, 0) + 1  # the latest comes last
    return [*found, *open_groups.items()]


class TestLimits:
    async def test_another_group_than_allowed_fails_it(self) -> None:
        with pytest.raises(Overflow, match=r"group_by holds 2 .* max_groups=\.\.\., end idle"):
            await r.range(3).group_by(same, max_groups=2).flat_map(same).run()

    async def test_the_least_recently_active_group_is_evicted(self) -> None:
        source, outer = grouped(same, max_groups=2, on_full="evict")
        for x in "abac":
            source.emit(x)
        assert [group.key for group in outer.elements] == ["a", "b", "c"]
        assert await outer.elements[1].to_list() == ["b"]
        source.emit("b")
        assert [group.key for group in outer.elements] == ["a", "b", "c", "b"]
        assert await outer.elements[0].to_list() == ["a", "a"]
        source.complete()
        assert [await each.to_list() for each in outer.elements[2:]] == [["c"], ["b"]]

    @given(
        batches=st.lists(st.lists(st.integers(0, 5), max_size=20), max_size=8),
        max_groups=st.integers(1, 4),
        prefetch=st.integers(1, 5),
        idle=st.sampled_from([None, 60]),
    )
    @example(batches=[[0, 1, 0, 2, 0]], max_groups=2, prefetch=32, idle=None)
    async def test_elements_that_arrive_together_evict_as_those_that_arrive_one_by_one_do(
        self, batches: list[list[int]], max_groups: int, prefetch: int, idle: int | None
    ) -> None:
        together = slow(batches).flat_map(same, concurrency=1)
        flow = together.group_by(
            same, max_groups=max_groups, prefetch=prefetch, on_full="evict", idle=idle
        )
        lengths = flow.flat_map(
            lambda group: group.buffer(MANY).map(lambda each: (group.key, len(each))),
            concurrency=1000,
        )
        expected = groups_one_by_one([key for batch in batches for key in batch], max_groups)
        assert sorted(await lengths.to_list()) == sorted(expected)

    @pytest.mark.virtual_time
    @pytest.mark.parametrize("make", MADE.values(), ids=MADE)
    async def test_as_many_groups_as_are_read_at_the_same_time_are_evicted(
        self, make: Make
    ) -> None:
        flow = make(300).group_by(lambda x: x % 7, max_groups=3, on_full="evict")
        assert sorted(await flow.flat_map(same, concurrency=3).to_list()) == [*range(300)]

    @pytest.mark.virtual_time
    async def test_a_key_opens_again_when_its_group_and_what_was_made_of_it_has_ended(self) -> None:
        flow = slow("aba").group_by(same, max_groups=1, on_full="evict").flat_map(paired)
        assert await flow.to_list() == [("a", "a"), ("b", "b"), ("a", "a")]

    async def test_no_element_is_lost_by_an_eviction(self) -> None:
        flow = r.range(300).group_by(lambda x: x % 7, max_groups=3, on_full="evict")
        assert sorted(await flow.flat_map(same).to_list()) == [*range(300)]

    async def test_elements_of_further_groups_are_dropped(self) -> None:
        dropped: list[int] = []
        flow = r.range(6).group_by(
            lambda x: x % 3, max_groups=2, on_full="drop", on_drop=dropped.append
        )
        assert await by_key(flow) == {0: [0, 3], 1: [1, 4]}
        assert dropped == [2, 5]

    async def test_an_empty_group_is_evicted_first(self) -> None:
        source, outer = grouped(same, max_groups=2, on_full="evict")
        source.emit("a")
        source.emit("b")
        first, second = (SubscriberProbe[str]().subscribed_to(each) for each in outer.elements)
        second.request(MANY)
        source.emit("c")
        assert (first.is_completed, second.is_completed) == (False, True)
        assert second.elements == ["b"]

    async def test_the_next_element_of_a_key_waits_for_the_group_before(self) -> None:
        source, outer = grouped(same, max_groups=1, on_full="evict")
        source.emit("a")
        source.emit("b")
        source.emit("a")
        assert [group.key for group in outer.elements] == ["a", "b"]
        assert await outer.elements[0].to_list() == ["a"]
        assert [group.key for group in outer.elements] == ["a", "b", "a"]

    @pytest.mark.virtual_time
    async def test_a_key_waits_until_a_group_ends(self) -> None:
        source = r.concat(slow("ab", every=1), r.timer(1, "c"), r.timer(1, "a"))
        groups = source.group_by(same, max_groups=2, on_full="wait", idle=5)
        found = groups.flat_map(lambda group: group.map(lambda x: (group.key, x)).timestamp())
        began = asyncio.get_running_loop().time()
        times = [(x[0], at - began) for at, x in await found.to_list()]
        assert times == [("a", 1), ("b", 2), ("c", pytest.approx(6)), ("a", pytest.approx(7))]

    @pytest.mark.virtual_time
    async def test_a_key_waits_until_the_subscriber_of_a_group_cancels(self) -> None:
        groups = r.range(12).group_by(lambda x: x % 4, max_groups=2, on_full="wait")
        assert await groups.flat_map(lambda group: group.take(1)).to_list() == [*range(12)]

    @pytest.mark.virtual_time
    async def test_an_idle_group_ends_when_it_is_empty(self) -> None:
        ends: list[float] = []
        loop = asyncio.get_running_loop()
        began = loop.time()
        groups = r.concat(r.just(1, 1), r.timer(100, 2)).group_by(same, idle=5)
        read = groups.flat_map(
            lambda group: group.do_on_complete(lambda: ends.append(loop.time() - began)).map_async(
                very_late
            )
        )
        await read.run()
        assert ends == pytest.approx([20, 110])

    @pytest.mark.virtual_time
    async def test_an_idle_group_completes_and_opens_again(self) -> None:
        source = r.concat(slow("ab", every=1), r.timer(10, "a"))
        flow = source.group_by(same, idle=5).concat_map(lambda group: group.buffer(9))
        assert await flow.to_list() == [["a"], ["b"], ["a"]]
        ends: list[float] = []
        loop = asyncio.get_running_loop()
        began = loop.time()
        timed = source.group_by(same, idle=5).flat_map(
            lambda group: group.do_on_complete(lambda: ends.append(loop.time() - began))
        )
        assert await timed.count() == 3
        assert ends == pytest.approx([6, 7, 12])

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"max_groups": 0}, "max_groups must be at least 1"),
            ({"prefetch": 0}, "prefetch must be at least 1"),
            ({"on_full": "block"}, "on_full must be one of fail, evict, drop, wait"),
            ({"idle": 0}, "idle must be more than 0"),
            ({"stalled_after": -1}, "stalled_after must be more than 0"),
            ({"on_drop": 1}, "on_drop must be a function"),
        ],
    )
    def test_wrong_arguments_are_refused(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.raises((TypeError, ValueError), match=f"group_by: {words}"):
            r.range(1).group_by(same, **arguments)


@pytest.mark.virtual_time
class TestStalls:
    async def test_more_groups_than_are_read_at_the_same_time(self) -> None:
        flow = r.range(100).group_by(lambda x: x % 5).flat_map(same, concurrency=4)
        with pytest.raises(Stalled, match=r"next key is 4, while all 4 groups.*concurrency="):
            await flow.run()

    async def test_a_full_group_without_a_subscriber(self) -> None:
        groups: list[GroupedFlow[int, int]] = []
        flow = r.range(100).group_by(parity, prefetch=4)
        with pytest.raises(Stalled, match="the group of 0 is full, and has never been subscribed"):
            await flow.for_each(groups.append)

    async def test_keys_that_wait_for_groups_which_never_end(self) -> None:
        flow = r.range(9).group_by(same, max_groups=3, on_full="wait").flat_map(same)
        with pytest.raises(Stalled, match="3 groups are open, and the next key is 3, while all 3"):
            await flow.run()

    async def test_a_key_whose_last_group_is_not_read(self) -> None:
        groups: list[GroupedFlow[int, int]] = []
        flow = r.just(0, 1, 0).group_by(same, max_groups=1, on_full="evict")
        with pytest.raises(Stalled, match=r"next key is 0, and its last group, .* never been subs"):
            await flow.for_each(groups.append)

    async def test_groups_that_are_going_to_be_idle_do_not_stall_it(self) -> None:
        flow = slow(range(9)).group_by(same, max_groups=2, on_full="wait", idle=100)
        assert await flow.flat_map(same).to_list() == [*range(9)]

    async def test_enough_places_do_not_stall_it(self) -> None:
        flow = r.range(100).group_by(lambda x: x % 5).flat_map(same, concurrency=5)
        assert await flow.count() == 100

    @pytest.mark.parametrize("prefetch", [1, 32])
    async def test_a_slow_subscriber_does_not_stall_it(self, prefetch: int) -> None:
        async def very_late(x: int) -> int:
            await asyncio.sleep(100)
            return x

        flow = r.range(20).group_by(parity, prefetch=prefetch, stalled_after=1)
        assert await flow.flat_map(lambda group: group.map_async(very_late)).count() == 20

    async def test_a_place_that_becomes_free_ends_it(self) -> None:
        flow = slow(range(40), every=1).group_by(lambda x: x // 10, idle=20, stalled_after=30)
        assert await flow.flat_map(same, concurrency=1).count() == 40

    async def test_it_can_be_switched_off(self) -> None:
        flow = r.range(9).group_by(same, stalled_after=None).flat_map(same, concurrency=1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10**6):
                await flow.run()


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Groups": {
        "a flow for each key": "group_by",
        "work in order for each key, without flows": "map_async for_each",
    },
}


async def example_group_by() -> None:
    def longest(group: r.GroupedFlow[str, str]) -> r.Flow[str]:
        return r.from_awaitable(lambda: group.max(key=len))

    names = r.just("Ada", "Alan", "Grace", "Guido van Rossum")
    longest_names = names.group_by(lambda name: name[0]).flat_map(longest)
    print(await longest_names.to_list())
