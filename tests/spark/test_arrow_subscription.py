"""Mode "arrow": which jobs are launched, where rows wait, and how a subscription ends."""

import asyncio
import gc
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.delivery import Delivery
from reactive_aio.spark import SparkSessionLost, from_dataframe
from reactive_aio.spark.arrow.jvm_socket import FrameReader
from reactive_aio.spark.arrow.subscription import WindowJobs
from reactive_aio.testing.probes import AsyncSubscriberProbe, SubscriberProbe

from .conftest import (
    Trace,
    flow_threads,
    wait_collected,
    wait_for_elements,
    wait_until,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark

CHECKPOINT = pytest.mark.parametrize("resumes", [False, True])
SETTLING_TIME = 0.3  # seconds in which a job that must not be started would be


@pytest.fixture
def mode() -> "ReadMode":
    return "arrow"


def many(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, 640, 1, 64)


def heavy(spark: "SparkSession") -> "DataFrame":
    """Far more than fits the buffers of a socket."""
    return spark.range(0, 200_000, 1, 2).selectExpr("id", "repeat('x', 200) as text")


# -- windows ------------------------------------------------------------------------------------
def row_of(element: Any) -> Any:
    value: Any = getattr(element, "value", None)
    return value if isinstance(element, Delivery) else element


@pytest.mark.thorough
@CHECKPOINT
async def test_jobs_grow_with_unbounded_demand(
    trace: Trace, tmp_path: Path, *, resumes: bool
) -> None:
    traced = await trace(many, checkpoint=tmp_path if resumes else None)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await probe.end()
    assert [row_of(each).id for each in probe.elements] == [*range(640)]
    sizes = await traced.partitions()
    assert sorted(sizes) == [1, 1, 2, 4, 4, 4, 8, 8, 16, 16]


@pytest.mark.thorough
@CHECKPOINT
async def test_a_job_covers_demand_and_what_is_expected_of_it(
    trace: Trace, tmp_path: Path, *, resumes: bool
) -> None:
    traced = await trace(many, checkpoint=tmp_path if resumes else None)
    probe = SubscriberProbe[Any]().subscribed_to(traced.flow)
    requested = 0
    # Ten rows in a partition. At the request for 8, one row more than these is under way.
    for demand, sizes in [(1, [1]), (9, [1]), (1, [1, 1]), (8, [1, 1, 1]), (31, [1, 1, 1, 4])]:
        probe.request(demand)
        requested += demand
        await wait_for_elements(probe, requested)
        await asyncio.sleep(SETTLING_TIME)
        assert sorted(await traced.partitions()) == sizes, demand
    assert len(probe.elements) == 50
    probe.cancel()


async def test_it_completes_directly_after_the_last_row(trace: Trace) -> None:
    """Without one more request."""
    traced = await trace(lambda s: s.range(0, 20, 1, 2))
    probe = SubscriberProbe[Any](20).subscribed_to(traced.flow)
    assert (await probe.end())[-1] == "|"


async def test_empty_partitions_are_computed_in_growing_jobs(trace: Trace) -> None:
    traced = await trace(lambda s: s.range(0, 64, 1, 64).where("id = 62"))
    probe = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await wait_for_elements(probe, 1)
    assert len(await traced.jobs()) <= 8
    probe.cancel()


@pytest.mark.parametrize("ordered", [True, False])
async def test_every_row_comes_once(spark: "SparkSession", ordered: bool) -> None:
    def build() -> Any:
        df = spark.range(0, 5000, 1, 37)
        return from_dataframe(df, rows="tuple", window=5, batch=64, ordered=ordered)

    rows = await (await asyncio.to_thread(build)).to_list(limit=5000)
    numbers = [number for (number,) in rows]
    assert (numbers if ordered else sorted(numbers)) == [*range(5000)]


async def test_an_unordered_window_does_not_wait_for_a_slow_one(spark: "SparkSession") -> None:
    slow = "if(id = 5, reflect('java.lang.Thread', 'sleep', 700L), '') as slept"

    def build() -> Any:
        df = spark.range(0, 40, 1, 4).selectExpr("id", slow)
        return from_dataframe(df, ordered=False, window=1)

    rows = await (await asyncio.to_thread(build)).to_list(limit=40)
    assert rows[0].id >= 10, "not a row of the first window"
    assert sorted(row.id for row in rows) == [*range(40)]


# -- a consumer that pauses ------------------------------------------------------------------------
async def test_a_paused_reader_blocks_no_other_job(trace: Trace, spark: "SparkSession") -> None:
    """Its rows wait in the JVM. A paused reader of toArrow() blocks Spark's scheduler."""
    traced = await trace(heavy)
    probe = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await wait_for_elements(probe, 1)
    await asyncio.sleep(SETTLING_TIME)
    assert await traced.active() == [], "no task waits for the reader"
    began = time.perf_counter()
    assert await asyncio.to_thread(lambda: spark.range(0, 1000, 1, 4).count()) == 1000
    assert time.perf_counter() - began < 5
    assert len(probe.elements) == 1
    probe.request(UNBOUNDED)
    await probe.end()
    assert [row.id for row in probe.elements] == [*range(200_000)]


async def test_a_slow_subscriber_gets_a_batch_at_a_time(trace: Trace) -> None:
    traced = await trace(lambda s: s.range(0, 1000, 1, 4), batch=100)
    probe = AsyncSubscriberProbe[Any](UNBOUNDED)
    traced.flow.subscribe(probe)
    await probe.end()
    assert len(probe.elements) == 1000
    assert probe.overlaps == 0


async def test_a_window_that_waits_long_is_still_served(trace: Trace) -> None:
    """The JVM waits 15 s for a connection, so it is made before the rows are read."""
    traced = await trace(heavy)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow.boundary(8).take(9))
    await probe.end()
    assert len(probe.elements) == 9


# -- memory ---------------------------------------------------------------------------------------
@CHECKPOINT
async def test_the_jvm_releases_rows_as_they_are_read(
    spark: "SparkSession", tmp_path: Path, *, resumes: bool
) -> None:
    """Rule 3.13 in the JVM: Py4J itself would wait for the garbage collector, and a second."""

    def heap() -> int:
        jvm: Any = spark.sparkContext._jvm
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())

    def build() -> "Flow[Any]":
        df = spark.range(0, 64_000, 1, 64).selectExpr("repeat(string(id % 10), 1000) as text")
        options: Any = {"checkpoint": tmp_path} if resumes else {}
        return from_dataframe(df, rows="batch", window=8, **options)

    probe = SubscriberProbe[Any]().subscribed_to(await asyncio.to_thread(build))
    gc.disable()
    try:
        probe.request(1)
        await wait_for_elements(probe, 1)
        before = await asyncio.to_thread(heap)
        probe.request(62)
        await wait_for_elements(probe, 63)
        # Other threads of the JVM are running: the least of several measurements counts.
        heaps = [await asyncio.to_thread(heap) for _ in range(5)]
        assert min(heaps) - before < 20_000_000, "of 63 MB that were read"
    finally:
        gc.enable()
        probe.cancel()


# -- terminal signals and cancellation ------------------------------------------------------------
async def test_the_rows_of_the_windows_before_an_error_are_delivered(trace: Trace) -> None:
    """Jobs over one RDD fail together in Spark; those of a flow do not."""
    traced = await trace(lambda s: s.range(0, 30, 1, 3).selectExpr("1 / (id - 15)"))
    for _ in range(10):
        probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
        await probe.end()
        assert len(probe.elements) == 10


async def test_an_unconfirmed_end_of_the_connection_does_not_complete(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: WindowJobs, start: int, error: Exception | None = None) -> None:
        raise SparkSessionLost("not confirmed")

    monkeypatch.setattr(WindowJobs, "confirm", refuse)
    traced = await trace(lambda s: s.range(0, 20, 1, 2))
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await probe.end()
    assert len(probe.elements) == 10
    assert isinstance(probe.error, SparkSessionLost)


async def test_a_closed_loop_leaves_no_thread(spark: "SparkSession") -> None:
    def forget() -> None:
        flow = from_dataframe(many(spark))

        async def begin() -> SubscriberProbe[Any]:
            probe = SubscriberProbe[Any](5).subscribed_to(flow)
            await wait_for_elements(probe, 5)
            return probe

        with asyncio.Runner() as runner:
            runner.run(begin())

    await asyncio.to_thread(forget)
    await wait_collected(flow_threads)


async def test_a_loop_closed_during_a_job_leaves_no_thread(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pending call, which may take hours, does not keep the subscription alive."""
    computing, forgotten = threading.Event(), threading.Event()
    run = WindowJobs.run

    def slow(self: WindowJobs, start: int, stop: int, batch: int) -> FrameReader:
        computing.set()
        assert forgotten.wait(10)
        return run(self, start, stop, batch)

    def forget() -> None:
        flow = from_dataframe(many(spark))

        async def begin() -> SubscriberProbe[Any]:
            probe = SubscriberProbe[Any](5).subscribed_to(flow)
            await asyncio.to_thread(computing.wait, 10)
            return probe

        with asyncio.Runner() as runner:
            runner.run(begin())

    monkeypatch.setattr(WindowJobs, "run", slow)
    await asyncio.to_thread(forget)
    forgotten.set()
    await wait_collected(flow_threads)


async def test_cancelling_frees_the_slot_of_a_python_function(trace: Trace) -> None:
    """Spark kills the Python process of a cancelled task after some seconds."""

    def build(spark: "SparkSession") -> "DataFrame":
        def sleep(number: int) -> int:
            import time

            time.sleep(600)
            return number

        spark.udf.register("sleep", sleep, "long")
        return spark.range(0, 2, 1, 2).selectExpr("sleep(id)")

    traced = await trace(build)
    probe = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await wait_until(traced.active)
    await asyncio.sleep(1)
    probe.cancel()

    async def free() -> bool:
        return not flow_threads() and not await traced.active()

    assert await wait_until(free) < 8  # 5, and a busy machine
