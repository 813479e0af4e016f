"""from_dataframe: rows under demand, jobs, and cancellation."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import UnsupportedDataFrame, from_dataframe
from reactive_aio.spark.arrow.jvm_socket import FrameReader
from reactive_aio.testing.probes import AsyncSubscriberProbe, SubscriberProbe

from .conftest import (
    Make,
    Trace,
    TracedFlow,
    flow_threads,
    wait_for_elements,
    wait_released,
    wait_until,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark

SETTLING_TIME = 0.3  # seconds in which a job that must not be started would be


def four_by_ten(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, 40, 1, 4)


def endless_second_half(spark: "SparkSession") -> "DataFrame":
    """Two partitions of ten rows; the second one never ends."""
    return spark.range(0, 20, 1, 2).selectExpr(
        "id", "if(id < 10, '', reflect('java.lang.Thread', 'sleep', 600000L)) as slept"
    )


def endless(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, 10**13, 1, 2).selectExpr("sum(id % 7)")


# -- elements -------------------------------------------------------------------------------------
async def test_the_rows_are_those_of_collect(spark: "SparkSession", mode: "ReadMode") -> None:
    def build() -> "tuple[Any, list[Row]]":
        df = spark.range(0, 3000, 1, 3).selectExpr(
            "id",
            "if(id % 3 = 0, null, id * 0.5) as half",
            "array(id, null) as several",
            "named_struct('a', id, 'b', 'x') as inner",
            "map('k', id) as mapping",
            "date_add(date'2013-01-01', cast(id as int)) as day",
            "timestamp'2013-01-01 10:00:00' as moment",
            "cast(id as decimal(20, 3)) as exact",
            "cast('b' as binary) as raw",
        )
        return from_dataframe(df, mode=mode), df.collect()

    flow, expected = await asyncio.to_thread(build)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    assert await probe.end() == [*expected, "|"]
    assert probe.elements[1].inner.b == "x"


EMPTY: list[Make] = [lambda s: s.range(0), lambda s: s.range(0, 9, 1, 3).where("id > 9")]


@pytest.mark.parametrize("empty", EMPTY, ids=["no row", "empty partitions"])
async def test_an_empty_dataframe_completes(trace: Trace, empty: Make) -> None:
    traced = await trace(empty)
    assert await SubscriberProbe[Any](1).subscribed_to(traced.flow).end() == ["|"]


ODD: list[tuple[Make, tuple[Any, ...]]] = [
    (lambda s: s.range(1).select(), ()),
    (lambda s: s.sql("select 1 as a, 2 as a"), (1, 2)),
    (lambda s: s.sql("select null as a"), (None,)),
]


@pytest.mark.parametrize(("odd", "row"), ODD, ids=["no column", "two of a name", "null"])
async def test_rows_without_columns_with_duplicate_names_and_with_null(
    trace: Trace, odd: Make, row: tuple[Any, ...]
) -> None:
    traced = await trace(odd)
    assert await SubscriberProbe[Any](9).subscribed_to(traced.flow).end() == [row, "|"]


async def test_order_is_kept_through_a_shuffle(trace: Trace) -> None:
    traced = await trace(lambda s: s.range(0, 500, 1, 4).orderBy("id", ascending=False))
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await probe.end()
    assert [row.id for row in probe.elements] == [*reversed(range(500))]


async def test_a_slow_subscriber_gets_every_row(trace: Trace) -> None:
    traced = await trace(lambda s: s.range(0, 1000, 1, 2), batch=64)
    probe = AsyncSubscriberProbe[Any](UNBOUNDED)
    traced.flow.subscribe(probe)
    await probe.end()
    assert len(probe.elements) == 1000
    assert probe.overlaps == 0


# -- demand ---------------------------------------------------------------------------------------
async def test_no_job_runs_without_demand(trace: Trace) -> None:
    traced = await trace(four_by_ten)
    probe = SubscriberProbe[Any]().subscribed_to(traced.flow)
    await asyncio.sleep(SETTLING_TIME)
    assert await traced.jobs() == []
    assert flow_threads() == []
    probe.cancel()


async def test_a_partition_is_computed_when_its_first_row_is_requested(trace: Trace) -> None:
    traced = await trace(four_by_ten, window=1)
    probe = SubscriberProbe[Any]().subscribed_to(traced.flow)
    for demand, jobs in [(1, 1), (9, 1), (1, 2), (9, 2)]:
        seen = len(probe.elements)
        probe.request(demand)
        await wait_for_elements(probe, seen + demand)
        await asyncio.sleep(SETTLING_TIME)
        assert len(await traced.jobs()) == jobs
    probe.cancel()
    await wait_released(traced)
    assert len(await traced.jobs()) == 2, "partitions 3 and 4 were not requested"


async def test_requests_of_one_row_each(trace: Trace) -> None:
    traced = await trace(four_by_ten)
    probe = SubscriberProbe[Any](1, again=1).subscribed_to(traced.flow)
    await probe.end()
    assert [row.id for row in probe.elements] == [*range(40)]


async def test_bound_reports_the_rows_of_a_batch(trace: Trace, mode: "ReadMode") -> None:
    """The rest of a batch, or the rows that a thread hands over at a time."""
    flow = (await trace(four_by_ten, batch=8)).flow
    assert flow.bound().total == (7 if mode == "arrow" else 8)


@pytest.mark.thorough
@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_the_jvm_does_not_keep_rows_that_have_been_read(
    spark: "SparkSession", trace: Trace
) -> None:
    """As they are by DataFrame.toLocalIterator of Spark 4.3: this would add about 90 MB."""

    def used() -> float:
        lang: Any = spark.sparkContext._jvm
        for _ in range(2):
            lang.java.lang.System.gc()
            time.sleep(0.2)
        runtime = lang.java.lang.Runtime.getRuntime()
        return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20

    columns = ("id", "repeat('x', 500)")
    traced = await trace(lambda s: s.range(0, 50_000, 1, 4).selectExpr(*columns))
    growth = list[float]()
    for _ in range(5):
        probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
        await probe.end()
        assert len(probe.elements) == 50_000
        growth.append(await asyncio.to_thread(used))
    # Rows that are kept would stay; other garbage of the JVM comes and goes.
    assert min(growth[2:]) - growth[0] < 30


# -- cancellation ---------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [endless, endless_second_half])
async def test_cancelling_frees_the_running_job(trace: Trace, make: Make) -> None:
    traced = await trace(make)
    probe = SubscriberProbe[Any](11).subscribed_to(traced.flow)
    await wait_until(traced.active)
    began = time.perf_counter()
    probe.cancel()
    assert time.perf_counter() - began < 10, "cancel() does not wait for the job"
    await wait_released(traced)
    assert not probe.is_terminated


async def test_break_frees_the_running_job(trace: Trace) -> None:
    traced = await trace(endless_second_half)
    async for row in traced.flow:
        if row.id == 8:
            break
    await wait_released(traced)


async def test_an_exception_in_the_consumer_frees_the_running_job(trace: Trace) -> None:
    traced = await trace(endless_second_half)

    async def consume() -> None:
        async for row in traced.flow.boundary(16):  # which requests the second partition
            assert row.id < 5

    with pytest.raises(AssertionError):
        await consume()
    await wait_released(traced)


async def test_cancelling_the_task_frees_the_running_job(trace: Trace) -> None:
    traced = await trace(endless_second_half)

    async def consume() -> None:
        async for _ in traced.flow:
            pass

    task = asyncio.create_task(consume())
    await wait_until(traced.active)
    await asyncio.sleep(SETTLING_TIME)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_released(traced)


async def test_the_jvm_is_not_asked_about_the_error_of_a_cancelled_job(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark asks eighty questions about it, in vain: 200 cancels took seconds."""
    from py4j.clientserver import ClientServerConnection

    untyped: Any = ClientServerConnection
    send, asked = untyped.send_command, list[str]()

    def counted(connection: Any, command: str) -> Any:
        # Py4J releases each collected object of any test by a command of its own ("m", "d").
        is_release = command.startswith("m\nd\n")
        if flow_threads() and "cancelJobsWithTag" not in command and not is_release:
            asked.append(command)
        return send(connection, command)

    traced = await trace(endless_second_half)
    probe = SubscriberProbe[Any](11).subscribed_to(traced.flow)
    await wait_for_elements(probe, 10)
    await wait_until(traced.active)
    monkeypatch.setattr(untyped, "send_command", counted)
    probe.cancel()
    await wait_until(lambda: not flow_threads())
    assert not [each for each in asked if "isInstanceOf" in each]
    assert len(asked) < 20, asked


async def test_aclose_waits_until_the_jobs_have_ended(trace: Trace) -> None:
    traced = await trace(endless_second_half)
    async with traced.flow.stream(prefetch=16) as rows:
        async for row in rows:
            if row.id == 9:
                break
    assert await wait_released(traced) < 0.5


async def test_cancelling_before_demand_starts_nothing(trace: Trace) -> None:
    traced = await trace(four_by_ten)
    probe = SubscriberProbe[Any]().subscribed_to(traced.flow)
    probe.cancel()
    probe.request(5)
    await asyncio.sleep(SETTLING_TIME)
    assert await traced.jobs() == []
    assert flow_threads() == []


@pytest.mark.parametrize("wait", [0, 0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16])
async def test_cancelling_while_the_job_starts(trace: Trace, wait: float) -> None:
    traced = await trace(endless)
    probe = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await asyncio.sleep(wait)
    probe.cancel()
    await wait_released(traced)
    await asyncio.sleep(SETTLING_TIME)
    await wait_released(traced)  # a job that was started after the cancellation would never end


async def test_the_rest_of_a_large_partition_is_not_read(
    trace: Trace, read_sizes: list[int]
) -> None:
    """PySpark itself would unpickle it: a million rows take seconds."""
    traced = await trace(lambda s: s.range(0, 100_000, 1, 1).selectExpr("id", "repeat('x', 50)"))
    probe = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await wait_for_elements(probe, 1)
    probe.cancel()
    await wait_released(traced)
    assert 0 < sum(read_sizes) < 1_000_000, "the partition has more than 5 MB"


@pytest.fixture
def read_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each part of a partition that was read to make rows, in both modes."""
    from pyspark.serializers import CPickleSerializer

    sizes = list[int]()

    def count(module: Any, name: str, size: Callable[[tuple[Any, ...], Any], int]) -> None:
        original = getattr(module, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            sizes.append(size(arguments, result))
            return result

        monkeypatch.setattr(module, name, counted)

    count(CPickleSerializer, "loads", lambda arguments, _: len(arguments[1]))
    count(FrameReader, "read", lambda _, frame: len(frame or b""))
    return sizes


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_no_socket_is_left(trace: Trace) -> None:
    def sockets() -> int:
        return sum("socket" in target for target in _open_files())

    traced = await trace(four_by_ten)
    before = await asyncio.to_thread(sockets)
    for demand in (1, 10, 11, 99):
        probe = SubscriberProbe[Any](demand).subscribed_to(traced.flow)
        await wait_for_elements(probe, min(demand, 40))
        probe.cancel()
        # Not `wait_released`: it calls the JVM on other threads, which keep their connections.
        await wait_until(lambda: not flow_threads())

    async def all_closed() -> bool:  # a thread's connection closes a moment after it has ended
        return await asyncio.to_thread(sockets) <= before

    await wait_until(all_closed)


def _open_files() -> list[str]:
    """What the open files of this process are."""
    folder, targets = f"/proc/{os.getpid()}/fd", list[str]()
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):  # another thread has closed it meanwhile
            targets.append(os.readlink(f"{folder}/{name}"))
    return targets


# -- several subscriptions, and the rest of the application ---------------------------------------
async def test_two_subscriptions_at_once(trace: Trace) -> None:
    traced = await trace(lambda s: s.range(0, 1000, 1, 2).repartition(3))
    probes = [SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow) for _ in range(2)]
    for probe in probes:
        await probe.end()
        assert sorted(row.id for row in probe.elements) == [*range(1000)]


async def test_cancelling_one_subscription_leaves_the_other(trace: Trace) -> None:
    traced = await trace(endless)
    one, other = (SubscriberProbe[Any](1).subscribed_to(traced.flow) for _ in range(2))
    await wait_until(lambda: _count_is(traced, 2))
    one.cancel()
    await wait_until(lambda: _count_is(traced, 1))
    await asyncio.sleep(SETTLING_TIME)
    assert len(await traced.active()) == 1
    assert not other.is_terminated
    other.cancel()
    await wait_released(traced)


async def _count_is(traced: TracedFlow, count: int) -> bool:
    return len(await traced.active()) == count


async def test_a_cancelled_flow_can_be_subscribed_to_again(trace: Trace) -> None:
    """A DataFrame remembers that the job of its shuffle was cancelled; a flow does not."""
    slept = "if(id = 3, reflect('java.lang.Thread', 'sleep', 400L), '') as slept"

    def shuffled(spark: "SparkSession") -> "DataFrame":
        return spark.range(0, 10, 1, 2).selectExpr("id", slept).groupBy("id", "slept").count()

    traced = await trace(shuffled)
    first = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await wait_until(traced.active)
    first.cancel()
    await wait_released(traced)
    again = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await again.end()
    assert sorted(row.id for row in again.elements) == [*range(10)]


async def test_no_local_property_leaks(spark: "SparkSession", trace: Trace) -> None:
    def properties() -> list[str | None]:
        names = ("spark.job.tags", "spark.job.interruptOnCancel")
        return [spark.sparkContext.getLocalProperty(name) for name in names]

    def as_seen_by_a_new_thread() -> list[str | None]:
        found = list[str | None]()
        thread = threading.Thread(target=lambda: found.extend(properties()))
        thread.start()
        thread.join()
        return found

    traced = await trace(four_by_ten)
    await SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow).end()
    await wait_until(lambda: not flow_threads())
    assert await asyncio.to_thread(as_seen_by_a_new_thread) == [None, None]


# -- unsupported DataFrames -----------------------------------------------------------------------
def test_a_streaming_dataframe_is_refused(spark: "SparkSession") -> None:
    df = spark.readStream.format("rate").load()
    with pytest.raises(UnsupportedDataFrame, match="from_stream"):
        from_dataframe(df)


def test_anything_else_is_refused(spark: "SparkSession") -> None:
    wrong: Any = [1, 2]
    with pytest.raises(UnsupportedDataFrame, match="from_iterable"):
        from_dataframe(wrong)
