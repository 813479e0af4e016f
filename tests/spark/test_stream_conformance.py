"""The laws for publishers that never end, applied to streaming queries."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockBuster

from reactive_aio.spark import from_micro_batches, from_stream
from reactive_aio.tck import Candidate, Outcome, Timeouts, check
from tests.conformance.test_library import LOOPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_aio import Flow

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# A query starts slowly, which must not count as silence.
TIMEOUTS = Timeouts(response=60.0, stall=30.0, law=120.0)


class Queries:
    """The laws call these on their loop, where making a DataFrame blocks for a moment."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def infinite(self) -> "Flow[Any]":
        return from_stream(self._endless(), checkpoint=None, rows="tuple")

    def batches(self) -> "Flow[Any]":
        return from_micro_batches(self._endless(), checkpoint=None)

    def _endless(self) -> Any:
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50)
        return source.option("numPartitions", 2).load()


@pytest.fixture
def queries(spark: "SparkSession", blocking_calls_fail: BlockBuster) -> Queries:
    names = {"infinite", "batches", "_endless"}
    for function in blocking_calls_fail.functions.values():
        function.can_block_in("spark/test_stream_conformance.py", names)
    return Queries(spark)


# On one loop: from_dataframe, which reads the rows, is tested on all of them.
@pytest.mark.thorough
def test_rows_of_a_streaming_query_conform(queries: Queries) -> None:
    # Without laws for flows of a given length: each of them would start a query.
    judge(Candidate(name="from_stream", infinite_publisher=queries.infinite, quiet_period=0.1))


# The other laws read a hundred micro-batches, for half a minute.
@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(("1.1", "1.8", "3.4"), id="some rules"),
        pytest.param((), id="all rules", marks=pytest.mark.thorough),
    ],
)
def test_micro_batches_conform(queries: Queries, rules: tuple[str, ...]) -> None:
    judge(
        Candidate(name="from_micro_batches", infinite_publisher=queries.batches, quiet_period=0.1),
        rules,
    )


def judge(candidate: Candidate, rules: tuple[str, ...] = ()) -> None:
    report = check(replace(candidate, **LOOPS["asyncio"]), rules=rules, timeouts=TIMEOUTS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS)
