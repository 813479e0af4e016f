"""A drain of deliveries: what was read is worked on and settled, and the report counts the rest."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import DrainReport, RetryPolicy
from reactive_aio.delivery import Delivery, deliveries, log_deliveries
from reactive_aio.testing import PublisherProbe
from tests.delivery.brokers import Broker
from tests.delivery.test_log import Log
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time


async def ticks() -> AsyncIterator[int]:
    """A source that never ends."""
    n = 0
    while True:
        yield n
        n += 1
        await asyncio.sleep(1)


async def drained(flow: r.Flow[Any], after: float, timeout: float) -> DrainReport:
    async with flow.running() as run:
        await asyncio.sleep(after)
        return await run.drain(timeout)


def for_seconds(seconds: float) -> Any:
    async def work(value: int) -> int:
        await asyncio.sleep(seconds)
        return value

    return work


def nothing(_: object) -> None:
    """Work that is done at once."""


class TestInTime:
    async def test_what_was_read_is_written_and_acknowledged(self) -> None:
        broker = Broker(seconds=0.25)
        flow = broker.deliveries(r.from_aiter(ticks)).map_async(for_seconds(7), concurrency=4)
        report = await drained(flow.buffer(3).ack_after(nothing), after=9.5, timeout=60)
        assert broker.acked == broker.sent
        assert report.is_complete
        assert (report.in_flight, report.discarded, report.unacknowledged) == (0, 0, 0)

    async def test_a_log_is_committed_up_to_its_last_element(self) -> None:
        log = Log(seconds=2)
        flow = log.deliveries(r.from_aiter(ticks), every=100, within=1000)
        report = await drained(flow.ack_after(for_seconds(3)), after=10.5, timeout=60)
        assert report.is_complete
        assert report.unacknowledged == 0
        assert sum(log.committed.values()) == 2 * report.delivered - 3

    async def test_an_element_that_is_tried_again_is_waited_for(self) -> None:
        broker, failures = Broker(), [Failed("once")]

        def work(value: int) -> int:
            if value == 2 and failures:
                raise failures.pop()
            return value

        flow = broker.deliveries(r.from_aiter(ticks)).nack_on_error(RetryPolicy(delay=20, jitter=0))
        report = await drained(flow.map(work).ack_after(nothing), after=3.5, timeout=60)
        assert sorted(broker.acked) == [0, 1, 2, 3]
        assert report.is_complete
        assert report.seconds > 15

    async def test_no_source_is_read_any_more(self) -> None:
        read: list[int] = []
        source = r.from_aiter(ticks).do_on_next(read.append).boundary(8)
        flow = deliveries(source, nothing, limit=2).ack_after(for_seconds(4))
        report = await drained(flow, after=8.5, timeout=600)
        assert report.delivered == len(read) < 12


class TestOutOfTime:
    async def test_what_is_given_back_is_not_unacknowledged(self) -> None:
        broker = Broker()
        flow = broker.deliveries(r.from_aiter(ticks)).map_async(for_seconds(100), concurrency=2)
        report = await drained(flow.ack_after(nothing), after=9.5, timeout=1)
        assert not report.is_complete
        assert broker.is_consistent()
        assert len(broker.nacked) == report.in_flight + report.discarded == 2
        assert report.unacknowledged == 0

    async def test_without_nack_nothing_is_given_back(self) -> None:
        acked: list[int] = []
        flow = deliveries(ticks(), acked.append).map_async(for_seconds(4), concurrency=2)
        report = await drained(flow.ack_after(nothing), after=9.5, timeout=0.1)
        assert report.delivered == len(acked) > 0
        assert report.unacknowledged == report.in_flight + report.discarded > 0

    async def test_a_log_counts_what_is_not_committed(self) -> None:
        log = Log()
        flow = log.deliveries(r.range(8), every=2)

        async def work(value: int) -> int:
            await asyncio.sleep(1000 if value == 3 else 1)
            return value

        written = flow.map_async(work, concurrency=8, ordered=False).ack_after(nothing)
        report = await drained(written, after=5, timeout=1)
        assert log.committed == {0: 6, 1: 1}
        assert report.unacknowledged == 3, "3 is not done, and holds back 5 and 7"
        assert (report.delivered, report.in_flight) == (7, 1)

    async def test_a_commit_that_fails_leaves_its_elements(self) -> None:
        def commit(positions: dict[int, int]) -> None:
            raise Failed("no connection")

        source = r.range(5).concat_with(r.never())
        flow = log_deliveries(source, commit, position=int, partition=lambda _: 0, within=50)
        with pytest.raises(Failed) as caught:
            await drained(flow.ack_after(nothing), after=1, timeout=1)
        [note] = [each for each in caught.value.__notes__ if "unacknowledged" in each]
        assert note.endswith("5 unacknowledged")

    async def test_what_a_publisher_sends_too_late_is_given_back(self) -> None:
        """It may send what was requested before it sees the cancellation (2.8)."""
        probe, broker = PublisherProbe[Delivery[int]](), Broker(seconds=9.5)
        flow = deliveries(r.from_publisher(probe)).ack_after(nothing)
        async with flow.running() as run:
            await asyncio.sleep(0)
            probe.emit(broker.delivery(0))
            drained = asyncio.ensure_future(run.drain(timeout=10))
            await asyncio.sleep(9.2)
            broker.seconds = 0.1
            probe.emit(broker.delivery(1))
            report = await drained
        assert (broker.acked, [*broker.nacked]) == ([0], [1])
        assert (report.discarded, report.unacknowledged) == (1, 0)

    async def test_a_consumer_that_settles_nothing_has_its_deliveries_back(self) -> None:
        taken: list[Delivery[int]] = []
        flow = deliveries(ticks(), nothing).as_flow().do_on_next(taken.append)
        report = await drained(flow, after=4.5, timeout=1)
        assert (report.delivered, report.unacknowledged) == (5, 5)
        assert len(taken) == 5

    async def test_an_acknowledgement_that_fails_is_counted(
        self, expects_loop_errors: list[Any]
    ) -> None:
        async def nack(value: int, error: Exception) -> None:
            raise Failed("no connection")

        flow = deliveries(ticks(), nothing, nack).ack_after(for_seconds(100))
        with pytest.raises(Failed, match="no connection") as caught:
            await drained(flow, after=3.5, timeout=1)
        [note] = [each for each in caught.value.__notes__ if "unacknowledged" in each]
        assert "4 unacknowledged" in note
        expects_loop_errors.clear()

    async def test_hooks_below_receive_none_of_it(self) -> None:
        seen: list[Any] = []
        flow = deliveries(ticks(), nothing).map_async(for_seconds(100), concurrency=2)
        written = flow.ack_after(nothing).do_on_discard(seen.append)
        report = await drained(written, after=4.5, timeout=1)
        assert report.in_flight + report.discarded == report.unacknowledged > 0
        assert seen == []


async def test_a_source_that_is_started_again_does_not_add_to_what_is_kept() -> None:
    """The count is a number: no subscription that has ended is kept for it."""
    flow = deliveries(r.range(3), nothing).ack_after(nothing)
    restarted = flow.restart(RetryPolicy(attempts=None, delay=1, factor=1, jitter=0))
    report = await drained(restarted, after=99.5, timeout=60)
    assert report.unacknowledged == 0
    assert report.delivered >= 297
