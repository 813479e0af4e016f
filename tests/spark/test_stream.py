"""from_stream and from_micro_batches: a streaming query under demand."""

import asyncio
import gc
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from blockbuster import BlockBuster
from pyspark import errors

from reactive_aio import Subscription
from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import (
    BatchNotRead,
    JobCancelled,
    MicroBatch,
    StreamStopped,
    UnsupportedDataFrame,
    from_micro_batches,
    from_stream,
)
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import wait_collected, wait_for_elements, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]

ROWS = 10
"""Rows of a file, and files of a micro-batch: one."""


class Lake:
    """A directory that a query reads, one file for each micro-batch, and its checkpoint."""

    def __init__(self, spark: "SparkSession", path: Path) -> None:
        self.checkpoint = path / "checkpoint"
        self._spark = spark
        self._files = path / "files"
        self._files.mkdir()
        self._written = 0

    def write(self, files: int = 1) -> None:
        for _ in range(files):
            rows = range(self._written * ROWS, (self._written + 1) * ROWS)
            path = self._files / f"{self._written:03}.json"
            part = path.with_suffix(".part")  # a query must not find an incomplete file
            part.write_text("".join(json.dumps({"id": row}) + "\n" for row in rows))
            os.utime(part, (self._written + 1, self._written + 1))  # the order in which it is read
            part.rename(path)
            self._written += 1

    def read(self) -> "DataFrame":
        reader = self._spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        return reader.option("pathGlobFilter", "*.json").json(str(self._files))

    async def flow(
        self,
        make: Callable[..., Any] = from_stream,
        *,
        change: "Callable[[DataFrame], DataFrame]" = lambda df: df,
        **arguments: Any,
    ) -> Any:
        """Return a flow of the files, after *change*. On a thread: it calls the JVM and blocks."""
        arguments = {"checkpoint": self.checkpoint, **arguments}
        return await asyncio.to_thread(lambda: make(change(self.read()), **arguments))

    def committed(self) -> list[int]:
        """Return the micro-batches that are committed in the checkpoint."""
        return _numbers(self.checkpoint / "commits")

    def planned(self) -> list[int]:
        return _numbers(self.checkpoint / "offsets")


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return sorted(int(each.name) for each in directory.iterdir() if each.name.isdecimal())


@pytest.fixture
def lake(spark: "SparkSession", tmp_path: Path) -> Lake:
    made = Lake(spark, tmp_path)
    made.write(3)
    return made


@pytest.fixture(autouse=True)
def may_block(blocking_calls_fail: BlockBuster) -> None:
    """The tests list directories on the loop."""
    for function in blocking_calls_fail.functions.values():
        function.can_block_in("spark/test_stream.py", {"_numbers", "write"})


@pytest.fixture(autouse=True)
async def nothing_is_left(spark: "SparkSession") -> AsyncIterator[None]:
    yield
    try:
        await wait_until(lambda: not query_threads())
    finally:
        left = await asyncio.to_thread(lambda: spark.streams.active)
        for query in left:
            await asyncio.to_thread(query.stop)
    assert left == []


def query_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if "reactive_aio" in each.name]


# -- rows --------------------------------------------------------------------------------------
async def test_rows_come_in_order_with_the_number_of_their_micro_batch(lake: Lake) -> None:
    flow = await lake.flow(trigger="available_now")
    rows = await flow.to_list()
    assert sorted(row.id for _, row in rows) == [*range(30)]
    assert [batch for batch, _ in rows] == [0] * 10 + [1] * 10 + [2] * 10
    assert flow.schema.simpleString() == "struct<id:bigint>"


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "first"), [("tuple", (0,)), ("dict", {"id": 0})])
async def test_the_kind_of_row_can_be_chosen(lake: Lake, kind: Any, first: object) -> None:
    flow = await lake.flow(change=lambda df: df.where("id = 0"), rows=kind, trigger="once")
    assert await flow.to_list() == [(0, first)]


async def test_nothing_runs_without_demand_and_demand_is_not_exceeded(lake: Lake) -> None:
    """Rule 1.1."""
    flow = await lake.flow(rows="tuple")
    probe = SubscriberProbe[Any](0).subscribed_to(flow)
    assert not query_threads(), "the first request starts the query"
    probe.request(ROWS)
    await wait_for_elements(probe, ROWS)
    assert lake.planned() == [0], "the query waits at the end of its micro-batch"
    assert lake.committed() == []
    probe.request(1)
    await wait_for_elements(probe, ROWS + 1)
    assert lake.planned() == [0, 1]
    assert lake.committed() == [0]
    probe.request(5)
    await wait_for_elements(probe, ROWS + 6)
    assert lake.planned() == [0, 1], "the query waits inside a micro-batch as well"
    probe.cancel()


async def test_data_that_arrives_later_is_found(lake: Lake) -> None:
    stream = await lake.flow(rows="tuple")
    probe = SubscriberProbe[Any](100).subscribed_to(stream)
    await wait_for_elements(probe, 30)
    lake.write()
    await wait_for_elements(probe, 40)
    probe.cancel()


async def test_an_error_of_a_row_is_typed_and_follows_the_batches_before(lake: Lake) -> None:
    failing = "if(id < 10, id, raise_error('no')) as id"
    flow = await lake.flow(change=lambda df: df.selectExpr(failing))
    probe = SubscriberProbe[Any](100).subscribed_to(flow)
    await probe.end()
    assert isinstance(probe.error, errors.SparkRuntimeException)
    assert "[USER_RAISED_EXCEPTION] no" in str(probe.error)
    assert len(probe.elements) == 10
    await wait_until(lambda: not query_threads())
    assert lake.committed() == [0], "the micro-batch with the error is repeated"


async def test_a_query_that_cannot_run_fails_typed(lake: Lake) -> None:
    flow = await lake.flow(change=lambda df: df.groupBy("id").count())  # without a watermark
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await probe.end()
    assert isinstance(probe.error, errors.AnalysisException)
    assert "watermark" in str(probe.error)


@pytest.mark.thorough
async def test_a_stateful_query_continues_from_its_state(lake: Lake) -> None:
    flow = await lake.flow(
        change=lambda df: df.groupBy().count(), output_mode="complete", rows="tuple",
        trigger="available_now",
    )  # fmt: skip
    assert await flow.to_list() == [(0, (10,)), (1, (20,)), (2, (30,))]
    lake.write()
    assert await flow.to_list() == [(3, (40,))]


# -- restarting --------------------------------------------------------------------------------
async def test_a_batch_is_repeated_after_a_cancellation_inside_it(lake: Lake) -> None:
    flow = await lake.flow(rows="tuple", trigger="available_now")
    first = await flow.take(15).to_list()
    assert [batch for batch, _ in first] == [0] * 10 + [1] * 5
    again = await flow.to_list()
    assert [batch for batch, _ in again] == [1] * 10 + [2] * 10
    assert sorted({row for _, row in first + again}) == [(number,) for number in range(30)]


async def test_a_batch_whose_last_row_is_being_processed_is_not_in_the_checkpoint(
    lake: Lake,
) -> None:
    stream = await lake.flow(trigger="available_now")
    seen = list[tuple[int, list[int]]]()
    async for batch, row in stream:
        if row.id % ROWS == ROWS - 1:
            await asyncio.sleep(0)
            seen.append((batch, lake.committed()))
    assert [batch in committed for batch, committed in seen] == [False] * 3


class Eager:
    """A subscriber that requests the next element before it processes the current one."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.committed = dict[int, list[int]]()
        self.done_event = asyncio.Event()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(2)

    async def on_next(self, batch: MicroBatch[Any]) -> None:
        self.subscription.request(1)
        await batch.rows.count()
        self.committed[batch.id] = self.lake.committed()

    def on_error(self, error: BaseException) -> None:
        raise AssertionError(repr(error))

    def on_complete(self) -> None:
        self.done_event.set()


async def test_a_request_during_processing_does_not_end_the_batch(
    lake: Lake,
) -> None:
    flow = await lake.flow(from_micro_batches, trigger="available_now")
    eager = Eager(lake)
    flow.subscribe(eager)
    await eager.done_event.wait()
    assert eager.committed == {0: [], 1: [0], 2: [0, 1]}


# -- micro-batches -----------------------------------------------------------------------------
async def test_micro_batches_have_their_rows_as_a_flow_and_as_a_dataframe(lake: Lake) -> None:
    flow = await lake.flow(from_micro_batches, rows="tuple", trigger="available_now")
    sums = dict[int, int]()
    async for batch in flow:
        assert repr(batch) == f"<MicroBatch {batch.id}>"
        few = await asyncio.to_thread(batch.rows.where, "id % 10 < 3")
        assert await few.count() == 3
        assert await asyncio.to_thread(batch.df.count) == ROWS
        sums[batch.id] = sum([row[0] async for row in batch.rows])
    assert sums == {0: 45, 1: 145, 2: 245}
    assert lake.committed() == [0, 1, 2]


# -- cancellation ------------------------------------------------------------------------------
async def test_cancelling_while_the_query_waits_for_demand_returns_at_once(lake: Lake) -> None:
    flow = await lake.flow()
    probe = SubscriberProbe[Any](3).subscribed_to(flow)
    await wait_for_elements(probe, 3)
    loop = asyncio.get_running_loop()
    began = loop.time()
    probe.cancel()
    assert loop.time() - began < 0.5, "cancel() returns at once"
    await wait_until(lambda: not query_threads(), seconds=5)
    assert lake.committed() == []


async def test_closing_the_stream_waits_until_the_query_has_stopped(
    spark: "SparkSession", lake: Lake
) -> None:
    flow = await lake.flow()
    async with flow.stream() as rows:
        await anext(rows)
    assert await asyncio.to_thread(lambda: spark.streams.active) == []


def endless(df: "DataFrame") -> "DataFrame":
    """Return a DataFrame whose first row takes very long."""
    many = df.selectExpr("explode(sequence(id, id + 1000000)) as n")
    return many.selectExpr("n", "explode(sequence(n, n + 1000000)) as m").where("n + m < 0")


async def test_cancelling_while_a_job_runs_cancels_the_job(
    spark: "SparkSession", lake: Lake
) -> None:
    flow = await lake.flow(change=endless)
    tracker = await asyncio.to_thread(spark.sparkContext.statusTracker)
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_until(lambda: asyncio.to_thread(tracker.getActiveJobsIds))
    probe.cancel()

    async def idle() -> bool:
        return not await asyncio.to_thread(tracker.getActiveJobsIds)

    await wait_until(idle)


async def test_a_query_stopped_elsewhere_while_it_waits_is_an_error(
    spark: "SparkSession", lake: Lake
) -> None:
    flow = await lake.flow()
    probe = SubscriberProbe[Any](3).subscribed_to(flow)
    await wait_for_elements(probe, 3)
    [query] = await asyncio.to_thread(lambda: spark.streams.active)
    await asyncio.wait_for(asyncio.to_thread(query.stop), 10)
    await probe.end()
    assert isinstance(probe.error, StreamStopped)
    assert "Subscribe again" in str(probe.error)


async def stop_all(spark: "SparkSession") -> None:
    """Stop the queries that run, as other code may."""
    for query in await asyncio.to_thread(lambda: spark.streams.active):
        await asyncio.wait_for(asyncio.to_thread(query.stop), 30)


@pytest.mark.parametrize("make", [from_stream, from_micro_batches])
async def test_a_query_stopped_elsewhere_while_it_waits_for_data_is_an_error(
    spark: "SparkSession", lake: Lake, make: Any
) -> None:
    flow = await lake.flow(make)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    await wait_until(lambda: lake.committed() == [0, 1, 2])
    await stop_all(spark)
    await probe.end()
    assert isinstance(probe.error, StreamStopped)


async def test_a_query_stopped_elsewhere_before_all_is_read_is_an_error(
    spark: "SparkSession", lake: Lake
) -> None:
    """With trigger ``"available_now"``, a query also ends by itself; Spark tells no difference."""
    flow = await lake.flow(from_micro_batches, trigger="available_now")
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_for_elements(probe, 1)
    probe.request(1)
    await stop_all(spark)
    await probe.end()
    assert isinstance(probe.error, StreamStopped)


async def test_a_query_stopped_elsewhere_while_a_job_of_a_row_runs_is_an_error(
    spark: "SparkSession", lake: Lake
) -> None:
    """Spark cancels the jobs of a query that is stopped."""
    flow = await lake.flow(change=endless)
    tracker = await asyncio.to_thread(spark.sparkContext.statusTracker)
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_until(lambda: asyncio.to_thread(tracker.getActiveJobsIds))
    await stop_all(spark)
    await probe.end()
    assert isinstance(probe.error, StreamStopped)


async def test_a_job_of_a_row_that_is_cancelled_elsewhere_is_told(
    spark: "SparkSession", lake: Lake
) -> None:
    """Its query runs: nobody has stopped that."""
    flow = await lake.flow(change=endless)
    tracker = await asyncio.to_thread(spark.sparkContext.statusTracker)
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_until(lambda: asyncio.to_thread(tracker.getActiveJobsIds))
    await asyncio.to_thread(spark.sparkContext.cancelAllJobs)
    await probe.end()
    assert isinstance(probe.error, JobCancelled)


@pytest.mark.thorough
async def test_a_stateful_micro_batch_that_is_not_read_is_an_error(lake: Lake) -> None:
    """Its next one would lack the state of the partitions that were not computed."""
    flow = await lake.flow(
        from_micro_batches, change=lambda df: df.groupBy("id").count(), output_mode="update",
        trigger="available_now",
    )  # fmt: skip
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    for rows in (100, 1):
        await wait_for_elements(probe, 1)
        [batch] = probe.elements
        probe.elements.clear()
        await batch.rows.take(rows).to_list()
        probe.request(1)
    await probe.end()
    assert isinstance(probe.error, BatchNotRead)
    assert "micro-batch 1 of a stateful query was left" in str(probe.error)
    assert lake.committed() == [0]
    assert [await batch.rows.count() async for batch in flow] == [10, 10]


@pytest.mark.thorough
async def test_requested_rows_arrive_without_a_reference_to_the_subscription(
    lake: Lake,
) -> None:
    flow = await lake.flow(trigger="available_now")
    rows: list[Any] = []
    SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow.do_on_next(rows.append))
    del flow

    def all_here() -> bool:
        gc.collect()
        return len(rows) == 3 * ROWS

    await wait_until(all_here)


@pytest.mark.thorough
@pytest.mark.parametrize("demand", [1, 100])
async def test_a_closed_loop_leaves_no_query(
    spark: "SparkSession", lake: Lake, demand: int
) -> None:
    """The subscription of a closed loop waits for demand, or for rows."""
    flow = await lake.flow()

    def run() -> None:
        async def main() -> None:
            probe = SubscriberProbe[Any](demand).subscribed_to(flow)
            await wait_for_elements(probe, 1 if demand == 1 else 3 * ROWS)

        asyncio.run(main())

    await asyncio.to_thread(run)
    await wait_collected(query_threads)


# -- arguments ---------------------------------------------------------------------------------
def wrong() -> Iterator[tuple[dict[str, Any], type[Exception], str]]:
    yield {"rows": "list"}, ValueError, "rows must be one of"
    yield {"mode": "fast"}, ValueError, "mode must be one of"
    yield {"output_mode": "all"}, ValueError, "output_mode must be one of"
    yield {"trigger": "now"}, ValueError, "trigger must be a duration"
    yield {"trigger": -1}, ValueError, "trigger must be more than 0"
    yield {"window": 0}, ValueError, "window must be at least 1"
    yield {"batch": "big"}, TypeError, "batch must be an int"


@pytest.mark.parametrize(("arguments", "kind", "words"), [*wrong()])
def test_wrong_arguments_raise_at_once(
    lake: Lake, arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        from_stream(lake.read(), checkpoint=None, **arguments)


def test_only_a_streaming_dataframe_is_accepted(spark: "SparkSession") -> None:
    with pytest.raises(UnsupportedDataFrame, match=r"from_dataframe\(df\) reads it"):
        from_stream(spark.range(1), checkpoint=None)
    with pytest.raises(UnsupportedDataFrame, match="needs a streaming DataFrame"):
        from_micro_batches(cast("Any", [1]), checkpoint=None)
    months = spark.readStream.format("rate").load().selectExpr("interval '1' month as m")
    with pytest.raises(UnsupportedDataFrame, match="column 'm' of type interval month"):
        from_stream(months, checkpoint=None)


def test_a_trigger_is_a_duration_or_a_name(lake: Lake) -> None:
    from datetime import timedelta

    from reactive_aio.spark.streaming import trigger_options

    assert trigger_options("f", None) == {}
    assert trigger_options("f", 1.5) == {"processingTime": "1500 milliseconds"}
    assert trigger_options("f", timedelta(minutes=1)) == {"processingTime": "60000 milliseconds"}
    assert trigger_options("f", "available_now") == {"availableNow": True}
