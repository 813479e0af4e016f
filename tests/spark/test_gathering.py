"""What a commit has is bounded by rows and by bytes, and elements are requested accordingly."""

from typing import Any

import anyio
import anyio.lowlevel
import pyarrow
import pytest

import reactive_aio as rx
from reactive_aio.spark.gathering import Commits, Elements, Gathering
from reactive_aio.spark.rows import Decoded
from reactive_aio.spark.stepping import RowSubscription
from reactive_aio.stage import Downstream, from_push

untyped: Any = pyarrow
INF = float("inf")


def batch(rows: int, size: int = 8) -> Any:
    """Rows of *size* bytes each."""
    return untyped.RecordBatch.from_pydict({"x": untyped.array(["x" * (size - 4)] * rows)})


def test_a_commit_ends_at_its_rows_or_its_bytes() -> None:
    commits = Commits(rows=10, size=1000)
    commits.add([batch(4), batch(13), batch(5)])
    assert [sum(each.num_rows for each in commits.next()) for _ in range(3)] == [10, 10, 0]
    assert [each.num_rows for each in commits.rest()] == [2]
    assert commits.is_empty
    commits.add([batch(9, size=300)])
    sizes = [sum(each.num_rows for each in commits.next()) for _ in range(3)]
    assert sizes == [3, 3, 0], "four rows would have more than 1000 bytes"
    commits.add([batch(1, size=5000)])
    sizes = [sum(each.num_rows for each in commits.next()) for _ in range(3)]
    assert sizes == [3, 1, 0], "one that is larger is a commit of its own"


async def gather(gathering: Gathering, found: list[int]) -> list[int]:
    """Add the elements to *found*; return how many came together."""
    sizes = list[int]()
    while (elements := await gathering.next(INF)) is not None:
        found += elements
        sizes.append(len(elements))
        gathering.measure(len(elements), len(elements) * 1000, 0.0)
    return sizes


async def test_few_large_elements_are_gathered_at_a_time() -> None:
    async with Gathering("test", rx.range(20_000), 100_000) as gathering:
        sizes = await gather(gathering, [])
    assert sizes[:4] == [1, 1, 8, 64]
    assert max(sizes) == 4194, "4 MiB of rows of 1000 bytes"
    assert sum(sizes) == 20_000


async def test_whole_commits_are_handed_over_before_the_flow_fails() -> None:
    def fails(number: int) -> int:
        if number == 25:
            raise ValueError("no")
        return number

    found = list[int]()
    async with Gathering("test", rx.range(100).map(fails), 10) as gathering:
        with pytest.raises(ValueError, match="no"):
            await gather(gathering, found)
    assert found[:20] == [*range(20)]


@pytest.mark.virtual_time
async def test_what_has_arrived_is_returned_at_the_deadline() -> None:
    async with Gathering("test", rx.interval(10).map(lambda _: 1).take(3), 1000) as gathering:
        assert await gathering.next(anyio.current_time() + 5) == []
        assert await gathering.next(INF) == [1]
        gathering.measure(1, 8, 0.0)
        assert await gathering.next(INF) == [1]
        assert await gathering.next(anyio.current_time() + 15) == [1]
        assert await gathering.next(INF) is None


async def test_an_error_of_the_cleanup_is_raised() -> None:
    def source() -> Any:
        try:
            yield 1
            yield 2
        finally:
            raise OSError("the cleanup")

    with pytest.raises(OSError, match="the cleanup"):
        async with Gathering("test", rx.from_iterable(source()), 10) as gathering:
            assert await gathering.next(INF) == [1]


class Late:
    """A publisher of another library, which calls ``on_subscribe`` later."""

    def __init__(self) -> None:
        self.subscribers: list[Any] = []
        self.requested: list[int] = []

    def subscribe(self, subscriber: Any) -> None:
        self.subscribers.append(subscriber)

    def request(self, n: int) -> None:
        self.requested.append(n)

    def cancel(self) -> None:
        self.requested.append(-1)


async def test_what_was_asked_for_is_requested_of_a_publisher_that_is_late() -> None:
    late = Late()
    async with Elements("test", late) as elements:
        elements.ask(2)
        elements.ask(3)
        [subscriber] = late.subscribers
        subscriber.on_subscribe(late)
        subscriber.on_next("a")
        assert elements.take() == ["a"]
        elements.ask(4)
    assert late.requested == [3, 2, -1]


async def test_a_wait_ends_when_it_is_woken() -> None:
    async with Elements("test", rx.never()) as elements:
        elements.ask(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elements.wait)
            await anyio.lowlevel.checkpoint()
            elements.wake()
        assert elements.take() == []


async def test_a_batch_may_come_at_once_when_it_is_wanted() -> None:
    batches = iter([[1, 2], [], [3]])

    def open(downstream: Downstream[Any]) -> RowSubscription:
        def answer() -> None:
            rows = next(batches, None)
            if rows is None:
                subscription.end()
            else:
                parts = ((iter((row,)), 1) for row in rows)
                subscription.feed(Decoded(parts, len(rows), len(rows)))

        subscription = RowSubscription(downstream, "test", answer)
        return subscription

    assert await from_push(open, name="test").to_list() == [1, 2, 3]
