"""Errors of Spark arrive as on_error, typed, with Spark's own message first."""

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import errors

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import Make, Trace, flow_threads, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


async def test_a_job_that_is_cancelled_elsewhere_fails(spark: "SparkSession", trace: Trace) -> None:
    traced = await trace(lambda s: s.range(0, 10**13, 1, 2).selectExpr("sum(id % 7)"))
    probe = SubscriberProbe[Any](1).subscribed_to(traced.flow)
    await wait_until(traced.active)
    await asyncio.to_thread(spark.sparkContext.cancelJobGroup, traced.group)
    await probe.end()
    assert isinstance(probe.error, errors.PySparkException)
    assert "[SPARK_JOB_CANCELLED]" in str(probe.error)
    await wait_until(lambda: not flow_threads())


# A session can be lost once per process, so this is a program of its own.
LOST = """
import asyncio, json, os, sys
from reactive_aio.spark import SparkSessionLost, from_dataframe, local_session
from reactive_aio.testing.probes import SubscriberProbe

def session():
    return local_session(cores=2, quick=True)

async def lose(flow, how, demand=1, after=0):
    probe = SubscriberProbe(demand).subscribed_to(flow)
    while len(probe.elements) < after:
        await asyncio.sleep(0.01)
    if after == 0:
        await asyncio.sleep(1)  # the job is running
    await asyncio.to_thread(how)
    probe.request(100)
    async with asyncio.timeout(20):
        await probe.end()
    return [type(probe.error).__name__, str(probe.error), len(probe.elements)]

def endless(spark):
    return spark.range(0, 10**13, 1, 2).selectExpr("sum(id % 7)")

def refused(df):
    try:
        from_dataframe(df)
    except SparkSessionLost as error:
        return str(error)

results = {}
spark = session()
results["stopped while a job runs"] = asyncio.run(lose(from_dataframe(endless(spark)), spark.stop))
spark = session()
results["stopped between partitions"] = asyncio.run(
    lose(from_dataframe(spark.range(0, 40, 1, 4)), spark.stop, after=1))
spark = session()
df = spark.range(3)
flow = from_dataframe(df)
spark.stop()
results["stopped before from_dataframe"] = refused(df)
results["stopped before the first row"] = asyncio.run(lose(flow, lambda: None))
spark = session()
df = endless(spark)
kill = lambda: os.kill(spark.sparkContext._gateway.proc.pid, 9)
results["killed"] = asyncio.run(lose(from_dataframe(df), kill))
json.dump(results, sys.stdout)
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_error_of_a_lost_session_names_cause_and_remedy() -> None:
    command = [sys.executable, "-W", "ignore", "-c", LOST]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert ran.returncode == 0, ran.stderr
    results = json.loads(ran.stdout)
    for case in ("stopped while a job runs", "stopped between partitions",
                 "stopped before the first row"):  # fmt: skip
        kind, words, _ = results[case]
        assert kind == "SparkSessionLost", (case, words)
        assert "has been stopped" in words
        assert "make a new session" in words
    assert results["stopped between partitions"][2] == 10, "the partition that was computed"
    assert "has been stopped" in results["stopped before from_dataframe"]
    assert results["killed"][0] == "SparkSessionLost", results["killed"]
    assert "JVM" in results["killed"][1]
