"""A log: positions are committed in order, and none before all elements up to it are done."""

import asyncio
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio.delivery import Delivery, log_deliveries
from reactive_aio.errors import NotAnElement, TimedOut
from tests.delivery.brokers import live_timers
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time


class Log:
    """A log of numbers in two partitions, odd and even, and what was committed of it."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.commits: list[dict[int, int]] = []
        self._seconds = seconds
        self._is_committing = False

    async def commit(self, positions: dict[int, int]) -> None:
        assert not self._is_committing
        self._is_committing = True
        await asyncio.sleep(self._seconds)
        self._is_committing = False
        for partition, position in positions.items():
            assert position > self.committed.get(partition, -1)
        self.commits.append(positions)

    @property
    def committed(self) -> dict[int, int]:
        return {key: at for positions in self.commits for key, at in positions.items()}

    def deliveries(self, source: r.Flow[int], **options: Any) -> Any:
        return log_deliveries(
            source, self.commit, position=int, partition=lambda x: x % 2, **options
        )


def nothing(_: object) -> None:
    """Work that is done at once."""


async def test_work_that_ends_in_any_order_is_committed_in_order() -> None:
    done: set[int] = set()

    async def work(value: int) -> int:
        await asyncio.sleep((value * 7) % 11)
        done.add(value)
        return value

    class Checked(Log):
        async def commit(self, positions: dict[int, int]) -> None:
            for partition, position in positions.items():
                assert {*range(partition, position + 1, 2)} <= done
            await super().commit(positions)

    log = Checked(seconds=3)
    flow = log.deliveries(r.range(40), every=3).map_async(work, concurrency=9, ordered=False)
    assert await flow.ack_after(nothing).count() == 40
    assert log.committed == {0: 38, 1: 39}
    assert len(log.commits) > 3


async def test_positions_are_committed_after_a_number_of_elements() -> None:
    commits: list[dict[int, int]] = []
    flow = log_deliveries(
        r.range(10), commits.append, position=int, partition=lambda x: x % 2, every=4, within=100
    )
    await flow.ack_after(nothing).run()
    assert commits == [{0: 2, 1: 3}, {0: 6, 1: 7}, {0: 8, 1: 9}]


async def test_positions_are_committed_after_a_time() -> None:
    log = Log()
    source = r.interval(4).take(5)
    began = asyncio.get_running_loop().time()
    task = asyncio.ensure_future(log.deliveries(source, within=5).ack_after(nothing).run())
    await asyncio.sleep(9.5)
    assert log.commits == [{0: 0, 1: 1}], "five seconds after the first"
    await task
    assert asyncio.get_running_loop().time() - began == pytest.approx(20)
    assert log.commits == [{0: 0, 1: 1}, {0: 2, 1: 3}, {0: 4}]


async def test_an_element_that_is_not_done_holds_back_its_partition_only() -> None:
    log, open_ = Log(), asyncio.Event()

    async def work(value: int) -> int:
        if value == 2:
            await open_.wait()
        return value

    flow = log.deliveries(r.range(8), every=1).map_async(work, concurrency=8, ordered=False)
    task = asyncio.ensure_future(flow.ack_after(nothing).run())
    await asyncio.sleep(1)
    assert log.committed == {0: 0, 1: 7}
    open_.set()
    await task
    assert log.committed == {0: 6, 1: 7}


async def test_one_that_is_not_done_bounds_what_is_read_after_it() -> None:
    read: list[int] = []

    async def work(value: int) -> int:
        if not value:
            await asyncio.sleep(10)
            assert len(read) == 9, "those after it in its partition count, four of the other do not"
        return value

    source = r.range(20).do_on_next(read.append)
    flow = Log().deliveries(source, limit=5).map_async(work, concurrency=9, ordered=False)
    await flow.ack_after(nothing).run()
    assert len(read) == 20


async def test_a_failure_commits_what_was_done_before_it() -> None:
    log = Log()

    def work(value: int) -> None:
        if value == 5:
            raise Failed

    with pytest.raises(Failed):
        await log.deliveries(r.range(9), every=100).ack_after(work).run()
    await asyncio.sleep(1)
    assert log.committed == {0: 4, 1: 3}


async def test_leaving_early_commits_what_was_done() -> None:
    log = Log(seconds=5)
    async with log.deliveries(r.range(9)).as_flow().stream() as values:
        async for delivery in values:
            if delivery.value == 5:
                break
            delivery.ack()
    assert log.committed == {0: 4, 1: 3}


async def test_a_nack_without_a_policy_fails_the_flow() -> None:
    log = Log()

    def settle(delivery: Delivery[int]) -> None:
        delivery.nack(Failed()) if delivery.value == 2 else delivery.ack()

    with pytest.raises(Failed):
        await log.deliveries(r.range(9)).as_flow().for_each(settle)
    await asyncio.sleep(1)
    assert log.committed == {0: 0, 1: 1}


async def test_a_commit_that_fails_fails_the_flow_and_is_the_last() -> None:
    calls: list[object] = []

    def commit(positions: dict[int, int]) -> None:
        calls.append(positions)
        raise Failed("no connection")

    flow = log_deliveries(
        r.range(9), commit, position=int, partition=lambda x: x % 2, every=2
    ).ack_after(nothing)
    with pytest.raises(Failed, match="no connection"):
        await flow.run()
    await asyncio.sleep(1)
    assert len(calls) == 1


async def test_what_is_done_while_a_commit_fails_is_not_committed() -> None:
    """The log has refused a position: a later one would hide that."""
    calls: list[object] = []

    async def commit(positions: dict[int, int]) -> None:
        calls.append(positions)
        await asyncio.sleep(10)
        raise Failed("no connection")

    async def write(_: int) -> None:
        await asyncio.sleep(1)

    flow = log_deliveries(
        r.range(99), commit, position=int, partition=lambda x: x % 2, every=2
    ).ack_after(write)
    with pytest.raises(Failed, match="no connection"):
        await flow.run()
    await asyncio.sleep(100)
    assert calls == [{0: 0, 1: 1}]


async def test_what_was_read_before_a_partition_came_back_moves_no_commit_back() -> None:
    """Another reader has worked on 1 to 9 meanwhile, and has committed 9."""
    commits: list[dict[str, int]] = []
    first_may_end = asyncio.Event()

    async def work(element: tuple[int, int]) -> None:
        if element == (0, 0):
            await first_may_end.wait()
        elif element == (10, 1):
            first_may_end.set()

    read = [(0, 0), (1, 0), (10, 1), (11, 1)]
    flow = log_deliveries(
        read,
        commits.append,
        position=lambda element: element[0],
        partition=lambda _: "a",
        generation=lambda element: element[1],
        every=1,
    )
    await flow.ack_after(work, concurrency=9).run()
    assert commits == [{"a": 11}]


async def test_all_that_was_read_before_a_partition_came_back_is_settled() -> None:
    commits: list[dict[int, int]] = []
    generations = iter((0, 0, 1))
    flow = log_deliveries(
        range(3),
        commits.append,
        position=lambda n: n,
        partition=lambda n: 0,
        generation=lambda _: next(generations),
    )

    async def work(number: int) -> None:
        if number == 2:
            raise ValueError("not this one")

    with pytest.raises(ValueError, match="not this one"):
        await flow.ack_after(work, concurrency=3).run()
    assert commits == []


@pytest.mark.parametrize("operator", ["map", "map_async", "flat_map"])
async def test_a_null_value_fails_its_own_element(operator: str) -> None:
    """A tombstone of Kafka: the value of a record is None."""

    async def value(number: int) -> Any:
        return None if number == 1 else number

    def plain_value(number: int) -> Any:
        return None if number == 1 else number

    def values(number: int) -> list[Any]:
        return [number, plain_value(number)]

    def bury(number: int, error: Exception) -> None:
        buried.append((number, error))

    functions: dict[str, Any] = {"map": plain_value, "map_async": value, "flat_map": values}
    buried: list[tuple[int, Exception]] = []
    log, done = Log(), list[int]()
    flow = log.deliveries(r.range(4)).nack_on_error(2, dead_letter=bury)
    await getattr(flow, operator)(functions[operator]).ack_after(done.append).run()
    [(number, error)] = buried
    assert (number, type(error)) == (1, NotAnElement)
    assert {*done} == {0, 2, 3}
    assert log.committed == {0: 2, 1: 3}


async def test_no_timer_outlives_the_flow() -> None:
    flow = Log().deliveries(r.range(9), within=1000).as_flow()
    async for delivery in flow:
        if delivery.value == 5:
            break
        delivery.ack()
    await asyncio.sleep(1)
    assert live_timers() == []


async def test_a_commit_that_takes_too_long_fails_the_flow() -> None:
    log = Log(seconds=100)
    with pytest.raises(TimedOut, match="commit took longer than 30 s"):
        await log.deliveries(r.range(9)).ack_after(nothing).run()


@pytest.mark.parametrize("name", ["position", "partition"])
async def test_a_function_that_raises_fails_the_flow(name: str) -> None:
    def broken(value: int) -> int:
        if value == 3:
            raise Failed
        return 0

    functions: Any = {"position": int, "partition": int} | {name: broken}
    with pytest.raises(Failed):
        await log_deliveries(r.range(9), nothing, **functions).ack_after(nothing).run()


async def test_a_partition_is_hashable() -> None:
    def partition(_: int) -> Any:
        return []

    flow = log_deliveries(r.range(9), nothing, position=int, partition=partition)
    with pytest.raises(TypeError, match=r"log_deliveries: .* returned \[\], which cannot be hashe"):
        await flow.ack_after(nothing).run()
