"""Errors of Spark arrive as on_error, typed, with Spark's own message first."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import errors

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import JobCancelled, from_dataframe
from reactive_aio.spark.spark_version import pyspark_version
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import Make, Trace, flow_threads, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark


def failing_function(spark: "SparkSession") -> "DataFrame":
    def fail(number: int) -> int:
        raise ValueError(f"not {number}")

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark about pandas
        spark.udf.register("fail", fail, "long")
    return spark.range(1).selectExpr("fail(id)")


FAILURES: list[tuple[Make, type[Exception], str]] = [
    (lambda s: s.range(9).selectExpr("1 / (id - 5)"), errors.ArithmeticException,
     "[DIVIDE_BY_ZERO]"),
    (lambda s: s.range(1).selectExpr("cast(concat('x', id) as int)"), errors.NumberFormatException,
     "[CAST_INVALID_INPUT]"),
    (lambda s: s.sql("select raise_error('oh')"), errors.SparkRuntimeException,
     "[USER_RAISED_EXCEPTION] oh"),
    (failing_function, errors.PythonException, "[PYTHON_EXCEPTION]"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "words"), FAILURES)
async def test_the_error_has_pysparks_type(
    trace: Trace, make: Make, kind: type[Exception], words: str
) -> None:
    from py4j.protocol import Py4JJavaError

    traced = await trace(make)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await probe.end()
    error = probe.error
    assert isinstance(error, kind)
    assert str(error).startswith(words)  # on the loop: printing it calls no JVM
    assert isinstance(error, errors.PySparkException)
    assert error.getCondition() == words[1:].partition("]")[0]
    assert isinstance(error.__cause__, Py4JJavaError | errors.PySparkException), "as it was raised"


async def test_an_error_before_the_first_job_has_pysparks_type(trace: Trace) -> None:
    traced = await trace(lambda s: s.sql("select cast('x' as int)"))  # folded when planned
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await probe.end()
    assert isinstance(probe.error, errors.NumberFormatException)
    assert str(probe.error).startswith("[CAST_INVALID_INPUT]")
    assert probe.error.__cause__ is not None


@pytest.mark.thorough
async def test_a_python_function_that_raises_is_quoted(trace: Trace) -> None:
    traced = await trace(failing_function)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await probe.end()
    assert "ValueError: not 0" in str(probe.error)


async def test_rows_before_the_error_are_delivered(trace: Trace) -> None:
    traced = await trace(lambda s: s.range(0, 20, 1, 2).selectExpr("1 / (id - 15)"))
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow)
    await probe.end()
    assert len(probe.elements) == 10


CANCELLED: list[Make] = [
    lambda s: s.range(0, 10**13, 1, 2).selectExpr("sum(id % 7)"),
    lambda s: s.range(0, 10**13, 1, 1).where("id % 7 = 8"),  # without a job before that of the rows
]


@pytest.mark.parametrize("make", CANCELLED, ids=["a shuffle", "rows"])
async def test_a_job_that_is_cancelled_elsewhere_is_told(
    spark: "SparkSession", trace: Trace, make: Make
) -> None:
    traced = await trace(make)
    probe = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await wait_until(traced.active)
    await asyncio.to_thread(spark.sparkContext.cancelJobGroup, traced.group)
    await probe.end()
    assert isinstance(probe.error, JobCancelled)
    assert "[SPARK_JOB_CANCELLED]" in str(probe.error)
    assert "subscribe again" in str(probe.error)
    await wait_until(lambda: not flow_threads())


@pytest.mark.skipif(pyspark_version() < (4, 0), reason="a classic session cannot interrupt")
@pytest.mark.parametrize("tag", ["", "mine"])
async def test_a_flow_that_its_session_interrupts_is_told(
    spark: "SparkSession", mode: "ReadMode", tag: str
) -> None:
    """All queries, or those of a tag, which belongs to one thread."""

    def make() -> "Flow[Row]":
        spark.addTag("mine")
        return from_dataframe(spark.range(0, 10**13, 1, 1).where("id % 7 = 8"), mode=mode)

    def interrupt() -> None:
        (partial(spark.interruptTag, tag) if tag else spark.interruptAll)()

    run = asyncio.get_running_loop().run_in_executor
    with ThreadPoolExecutor(1) as thread:
        probe = SubscriberProbe[Any](1).subscribed_to(await run(thread, make))
        tracker = await asyncio.to_thread(spark.sparkContext.statusTracker)
        await wait_until(lambda: asyncio.to_thread(tracker.getActiveJobsIds))
        await run(thread, interrupt)
        await probe.end()
    assert isinstance(probe.error, JobCancelled)
