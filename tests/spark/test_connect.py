"""A DataFrame of Spark Connect: demand, cancellation and errors."""

import asyncio
import gc
import logging
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest
from pyspark import errors

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import (
    JobCancelled,
    ModeUnavailable,
    SparkSessionLost,
    UnsupportedDataFrame,
    _internals,
    connect,
    errors as spark_errors,
    from_dataframe,
)
from reactive_aio.testing.probes import AsyncSubscriberProbe, SubscriberProbe

from .conftest import flow_threads, service_of, wait_for_elements, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow

pytestmark = pytest.mark.spark

SETTLING_TIME = 0.3  # seconds in which a job that must not be started would be
Make = Callable[["SparkSession"], "DataFrame"]


@pytest.fixture(params=["connect", "rows"])
def mode(request: pytest.FixtureRequest) -> str:
    """Both modes: Arrow batches, and the public local iterator."""
    return cast("str", request.param)


class Flowing(Protocol):
    """Build a DataFrame, and the flow of it."""

    def __call__(self, make: Make, **options: Any) -> "Awaitable[Flow[Any]]": ...


@pytest.fixture
def flowing(remote: "SparkSession", mode: str) -> Flowing:
    """``await flowing(make)``: the flow of the DataFrame that ``make(remote)`` builds."""

    async def build(make: Make, **options: Any) -> "Flow[Any]":
        return await asyncio.to_thread(
            lambda: cast("Any", from_dataframe)(make(remote), mode=mode, **options)
        )

    return build


class Server:
    """The state of the server, seen from inside its JVM."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark: Any = spark

    async def active(self) -> list[int]:
        """The jobs that run."""
        context = self._spark.sparkContext
        return await asyncio.to_thread(lambda: context.statusTracker().getActiveJobsIds())

    async def operations(self) -> int:
        """Return the number of operations that it keeps."""

        def count() -> int:
            manager = service_of(self._spark).executionManager()
            return cast("int", manager.listExecuteHolders().size())

        return await asyncio.to_thread(count)

    async def jobs(self) -> list[tuple[int, set[str]]]:
        """Return the number of completed tasks of each job, and its tags; the latest first."""

        def look() -> Iterator[tuple[int, set[str]]]:
            found = self._spark._jsparkSession.sparkContext().statusStore().jobsList(None)
            for place in range(found.size()):
                job = found.apply(place)
                tags = job.jobTags().mkString("\n")
                yield job.numCompletedTasks(), set(tags.split("\n"))

        return await asyncio.to_thread(lambda: [*look()])

    async def freed(self) -> float:
        """Wait until no job, no operation and no thread of a flow is left."""

        async def free() -> bool:
            left = flow_threads() or await self.active() or await self.operations()
            return not left

        return await wait_until(free)


@pytest.fixture
def server(spark: "SparkSession") -> Server:
    return Server(spark)


def four_by_ten(remote: "SparkSession") -> "DataFrame":
    return remote.range(0, 40, 1, 4)


def endless_second_half(remote: "SparkSession") -> "DataFrame":
    """Two partitions of ten rows; the second one never ends."""
    return remote.range(0, 20, 1, 2).selectExpr(
        "id", "if(id < 10, '', reflect('java.lang.Thread', 'sleep', 600000L)) as slept"
    )


# -- the mode -------------------------------------------------------------------------------------
def test_connect_is_the_mode_for_a_session_of_spark_connect(remote: "SparkSession") -> None:
    flow = from_dataframe(remote.range(3))
    assert str(flow.mode) == "connect: the session is one of Spark Connect"
    assert flow.schema == remote.range(3).schema


def test_arrow_needs_a_classic_session(remote: "SparkSession") -> None:
    with pytest.raises(ModeUnavailable, match="Use mode='connect'"):
        from_dataframe(remote.range(3), mode="arrow")


def test_connect_needs_a_session_of_spark_connect(spark: "SparkSession") -> None:
    with pytest.raises(ModeUnavailable, match=r"reactive-aio\[connect\].* use mode='arrow'"):
        from_dataframe(spark.range(3), mode="connect")


def test_a_client_without_a_name_is_read_as_rows(
    remote: "SparkSession", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_internals, "_CONNECT_NAMES", ("to_table_as_stream",))
    with caplog.at_level(logging.WARNING, "reactive_aio.spark"):
        flow = from_dataframe(remote.range(3))
    assert str(flow.mode) == (
        "rows: this version of PySpark has no SparkConnectClient.to_table_as_stream"
    )
    assert "in mode 'rows'" in caplog.text
    with pytest.raises(ModeUnavailable, match=r"to_table_as_stream\. Use mode='rows'"):
        from_dataframe(remote.range(3), mode="connect")
    with pytest.raises(ModeUnavailable, match="rows='batch' needs Arrow"):
        from_dataframe(remote.range(3), rows="batch")


def test_a_streaming_dataframe_is_refused(remote: "SparkSession") -> None:
    df = remote.readStream.format("rate").load()
    with pytest.raises(UnsupportedDataFrame, match="streaming"):
        from_dataframe(df)


# As in most programs: one kind of session, from pyspark.sql's own builder.
PROGRAM = """
import asyncio, sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession, functions
from reactive_aio.spark import from_dataframe

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
numbers = from_dataframe(spark.range(9), rows="tuple").where(functions.col("id") > 5)
flow = numbers.select("id", functions.col("id") * 2)
print(flow.mode.mode, asyncio.run(flow.to_list(limit=9)))
spark.stop()
"""


@pytest.mark.thorough
def test_a_program_of_its_own_needs_no_jvm(connect_port: int) -> None:
    command = [sys.executable, "-c", PROGRAM, f"sc://127.0.0.1:{connect_port}"]
    without = {**os.environ, "PATH": "", "JAVA_HOME": "/nowhere"}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=50, check=False, env=without
    )
    assert ran.stdout == "connect [(6, 12), (7, 14), (8, 16)]\n", ran.stderr


# -- rows and demand ------------------------------------------------------------------------------
async def test_every_row_comes_once_and_in_order(flowing: Flowing, server: Server) -> None:
    flow = await flowing(lambda s: s.range(0, 30_000, 1, 7), batch=64)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    await probe.end()
    assert [row.id for row in probe.elements] == [*range(30_000)]
    await server.freed()


async def test_a_slow_subscriber_gets_every_row(flowing: Flowing) -> None:
    flow = await flowing(lambda s: s.range(0, 1000, 1, 2), batch=64)
    probe = AsyncSubscriberProbe[Any](UNBOUNDED)
    flow.subscribe(probe)
    await probe.end()
    assert len(probe.elements) == 1000
    assert probe.overlaps == 0


async def test_nothing_runs_without_demand(flowing: Flowing, server: Server) -> None:
    flow = await flowing(four_by_ten)
    before = len(await server.jobs())
    probe = SubscriberProbe[Any]().subscribed_to(flow)
    await asyncio.sleep(SETTLING_TIME)
    assert len(await server.jobs()) == before
    assert flow_threads() == []
    probe.cancel()


@pytest.mark.parametrize("mode", ["connect"])
async def test_batches_are_fetched_when_their_first_row_is_requested(
    flowing: Flowing, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = list[Any]()
    parts: Any = connect.BatchOperation._parts

    def counted(self: connect.BatchOperation) -> Iterator[Any]:
        for part in parts(self):
            fetched.append(part)
            yield part

    monkeypatch.setattr(connect.BatchOperation, "_parts", counted)
    flow = await flowing(four_by_ten)
    probe = SubscriberProbe[Any]().subscribed_to(flow)
    for demand, batches in [(1, 1), (9, 1), (1, 2), (9, 2), (20, 4)]:
        seen = len(probe.elements)
        probe.request(demand)
        await wait_for_elements(probe, seen + demand)
        assert len(fetched) == batches
    probe.cancel()


@pytest.mark.parametrize("mode", ["connect"])
async def test_the_server_computes_ahead_of_demand(flowing: Flowing, server: Server) -> None:
    """The protocol has no demand, as docs/spark.md says."""
    flow = await flowing(four_by_ten)
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_for_elements(probe, 1)

    async def all_computed() -> bool:
        return (await server.jobs())[0][0] == 4

    await wait_until(all_computed)
    assert len(probe.elements) == 1
    probe.cancel()
    await server.freed()


async def test_bound_reports_the_rows_of_a_batch(flowing: Flowing, mode: str) -> None:
    flow = await flowing(four_by_ten, batch=8)
    assert flow.bound().total == (9999 + 8 if mode == "connect" else 8)


@pytest.mark.parametrize("mode", ["connect"])
async def test_batches_have_the_requested_number_of_rows(
    flowing: Flowing, remote: "SparkSession"
) -> None:
    import pyarrow

    make: Make = lambda s: s.range(0, 25, 1, 1).selectExpr(  # noqa: E731
        "id", "timestamp'2024-07-01 00:00:00' as moment", "array(id, null) as several"
    )
    flow = await flowing(make, rows="batch", batch=10)
    batches = await flow.to_list(limit=3)
    assert [batch.num_rows for batch in batches] == [10, 10, 5]
    expected = await asyncio.to_thread(lambda: cast("Any", make(remote)).toArrow())
    untyped: Any = pyarrow
    assert untyped.Table.from_batches(batches).equals(expected)


@pytest.mark.parametrize("mode", ["connect"])
async def test_nested_values_are_right_in_every_slice_of_a_batch(
    flowing: Flowing, remote: "SparkSession"
) -> None:
    make: Make = lambda s: s.range(0, 7, 1, 1).selectExpr(  # noqa: E731
        "array(timestamp'2024-07-01 00:00:00' + make_dt_interval(cast(id as int)), null) as times",
        "map(id, array(named_struct('a', id)), id + 1, null) as mapping",
        "if(id % 3 = 1, null, named_struct('b', id, 'c', array(id))) as inner",
    )
    flow = await flowing(make, batch=2)
    expected = await asyncio.to_thread(lambda: make(remote).collect())
    assert await flow.to_list(limit=7) == expected


# -- push-down ------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["connect"])
async def test_a_take_computes_the_first_partitions_only(flowing: Flowing, server: Server) -> None:
    flow = (await flowing(lambda s: s.range(0, 640, 1, 64).selectExpr("id"))).take(5)
    assert [row.id for row in await flow.to_list(limit=9)] == [*range(5)]
    assert (await server.jobs())[0][0] == 1


@pytest.mark.parametrize("mode", ["connect"])
async def test_a_long_take_is_streamed(flowing: Flowing) -> None:
    """Spark collects the rows of a limit before it sends the first one."""
    flow = (await flowing(four_by_ten)).take(20_000)
    assert "Limit" not in await asyncio.to_thread(flow.explain)
    assert len(await flow.to_list(limit=40)) == 40


def test_an_older_server_gets_no_limit(remote: "SparkSession") -> None:
    df = remote.range(9)
    session = connect.ConnectSession.of(df)
    assert session.has_ordered_limit
    assert session.limited(df, 3) is not df
    assert replace(session, has_ordered_limit=False).limited(df, 3) is df


async def test_the_job_has_the_tags_of_the_thread(
    remote: "SparkSession", mode: str, server: Server
) -> None:
    def build() -> Any:
        remote.addTag("mine")
        try:
            return cast("Any", from_dataframe)(four_by_ten(remote), mode=mode)
        finally:
            remote.removeTag("mine")

    await (await asyncio.to_thread(build)).run()
    _, tags = (await server.jobs())[0]
    assert any(tag.endswith("mine") for tag in tags), tags
    assert await asyncio.to_thread(remote.getTags) == set()


# -- terminal signals and cancellation ------------------------------------------------------------
@pytest.mark.parametrize("demand", [1, 15], ids=["paused", "waiting for a row"])
async def test_cancelling_frees_the_server_at_once(
    flowing: Flowing, server: Server, demand: int
) -> None:
    probe = SubscriberProbe[Any](demand).subscribed_to(await flowing(endless_second_half))
    await wait_for_elements(probe, min(demand, 10))
    assert await server.active()
    began = time.perf_counter()
    probe.cancel()
    assert time.perf_counter() - began < 10, "cancel() does not wait for the job"
    await server.freed()
    assert not probe.is_terminated


async def test_break_frees_the_server(flowing: Flowing, server: Server) -> None:
    async for row in await flowing(endless_second_half):
        if row.id == 8:
            break
    await server.freed()


async def test_cancelling_the_task_frees_the_server(flowing: Flowing, server: Server) -> None:
    flow = await flowing(endless_second_half)
    task = asyncio.create_task(flow.run())
    await wait_until(server.active)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.freed()


async def test_aclose_waits_until_the_operation_has_ended(flowing: Flowing, server: Server) -> None:
    flow = await flowing(endless_second_half)
    async with flow.stream(prefetch=16) as rows:
        async for row in rows:
            if row.id == 9:
                break
    await server.freed()


@pytest.mark.parametrize("wait", [0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1])
async def test_cancelling_while_the_job_starts(
    flowing: Flowing, server: Server, wait: float
) -> None:
    probe = SubscriberProbe[Any](1).subscribed_to(await flowing(endless_second_half))
    await asyncio.sleep(wait)
    probe.cancel()
    await server.freed()
    await asyncio.sleep(SETTLING_TIME)
    await server.freed()  # a job that was started after the cancellation would never end


async def test_cancelling_one_subscription_leaves_the_other(
    flowing: Flowing, server: Server
) -> None:
    flow = await flowing(lambda s: endless_second_half(s).where("id > 9"))
    one, other = (SubscriberProbe[Any](1).subscribed_to(flow) for _ in range(2))

    async def count_is(count: int) -> bool:
        return len(await server.active()) == count

    await wait_until(lambda: count_is(2))
    one.cancel()
    await wait_until(lambda: count_is(1))
    await asyncio.sleep(SETTLING_TIME)
    assert len(await server.active()) == 1
    assert not other.is_terminated
    other.cancel()
    await server.freed()


FAILURES: list[tuple[str, type[Exception], str]] = [
    ("1 / (id - 5)", errors.ArithmeticException, "[DIVIDE_BY_ZERO]"),
    ("cast(concat('x', id) as int)", errors.NumberFormatException, "[CAST_INVALID_INPUT]"),
    ("raise_error('oh')", errors.SparkRuntimeException, "[USER_RAISED_EXCEPTION] oh"),
]


@pytest.mark.usefixtures("expects_error_logs")  # PySpark's own, when logging is on
@pytest.mark.parametrize(("sql", "kind", "words"), FAILURES)
async def test_the_error_has_pysparks_type(
    flowing: Flowing, server: Server, sql: str, kind: type[Exception], words: str
) -> None:
    flow = await flowing(lambda s: s.range(9).selectExpr(sql))
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(flow)
    await probe.end()
    assert isinstance(probe.error, kind)
    assert str(probe.error).startswith(words)
    await server.freed()


@pytest.mark.usefixtures("expects_error_logs")
async def test_an_operation_that_is_interrupted_elsewhere_is_told(
    flowing: Flowing, remote: "SparkSession", server: Server
) -> None:
    probe = SubscriberProbe[Any](15).subscribed_to(await flowing(endless_second_half))
    await wait_for_elements(probe, 10)
    await asyncio.to_thread(remote.interruptAll)
    await probe.end()
    assert isinstance(probe.error, JobCancelled)
    assert "OPERATION_CANCELED" in str(probe.error)
    await server.freed()


@pytest.fixture
def another(connect_port: int, remote: object) -> "Iterator[SparkSession]":
    """A session that a test may stop."""
    from pyspark.sql.connect.session import SparkSession

    session: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{connect_port}").create()
    yield session
    session.stop()
    end_releases()


def end_releases() -> None:
    """End the threads in which PySpark releases results at a server.

    Stopping a session does that, unless one of them is calling a server that is gone.
    """
    from pyspark.sql.connect.client import reattach

    fetching: Any = reattach.ExecutePlanResponseReattachableIterator
    wait([future for each in fetching._instances for future in each.release_futures], timeout=10)
    gc.collect()
    fetching.shutdown_threadpool_if_idle()


@pytest.mark.usefixtures("expects_error_logs")
async def test_a_stopped_session_is_an_error(
    another: "SparkSession", mode: Any, server: Server
) -> None:
    flow = await asyncio.to_thread(lambda: from_dataframe(endless_second_half(another), mode=mode))
    probe = SubscriberProbe[Any](15).subscribed_to(flow)
    await wait_for_elements(probe, 10)
    await asyncio.to_thread(another.stop)
    await probe.end()
    assert isinstance(probe.error, SparkSessionLost)
    assert "make a new session" in str(probe.error)
    again = SubscriberProbe[Any](1).subscribed_to(flow)
    await again.end()
    assert isinstance(again.error, SparkSessionLost)
    assert "has been stopped" in str(again.error)
    with pytest.raises(SparkSessionLost):
        await asyncio.to_thread(lambda: from_dataframe(another.range(3)))
    await server.freed()


@pytest.mark.usefixtures("expects_error_logs")
async def test_a_session_that_is_being_stopped_is_an_error(
    another: "SparkSession", mode: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark closes its channel before `is_stopped` is set."""
    flow = await asyncio.to_thread(lambda: from_dataframe(endless_second_half(another), mode=mode))
    probe = SubscriberProbe[Any](15).subscribed_to(flow)
    await wait_for_elements(probe, 10)
    with monkeypatch.context() as patched:
        patched.setattr(type(another.client), "is_closed", property(lambda _: False))
        await asyncio.to_thread(another.stop)
        await probe.end()
    assert isinstance(probe.error, SparkSessionLost)
    assert "has been stopped" in str(probe.error)
    await server.freed()


def test_a_server_may_cancel_operations_before_it_forgets_the_session(
    another: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cancelled(Exception):
        def getCondition(self) -> str:
            return "OPERATION_CANCELED"

    answers = iter(["", "", "INVALID_HANDLE.SESSION_CLOSED"])

    def lost(_: object) -> str:
        return next(answers)

    monkeypatch.setattr(spark_errors, "_loss_of_connect_session", lost)
    with (
        pytest.raises(SparkSessionLost, match="has been stopped"),
        spark_errors.explained(another.range(3)),
    ):
        raise Cancelled("cancelled")


@pytest.mark.parametrize(
    "words", ["Cannot invoke RPC on closed channel!", "Cannot invoke RPC: Channel closed!"]
)
def test_every_message_of_grpc_about_a_closed_channel_is_understood(
    another: "SparkSession", monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    def closed(_: object) -> Any:
        raise ValueError(words)

    monkeypatch.setattr(type(another), "conf", property(closed))
    with (
        pytest.raises(SparkSessionLost, match="has been stopped"),
        spark_errors.explained(another.range(3)),
    ):
        raise ValueError(words)


def test_batches_without_columns_are_counted(remote: "SparkSession") -> None:
    flow = from_dataframe(remote.range(0, 5, 1, 1).select(), rows="batch", batch=2)
    batches = asyncio.run(flow.to_list())
    assert [(each.num_rows, each.num_columns) for each in batches] == [(2, 0), (2, 0), (1, 0)]
