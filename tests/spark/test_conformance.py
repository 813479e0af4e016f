"""The bridge keeps the laws of a publisher, whatever runs at the other end of it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reactive_aio.spark import from_dataframe
from reactive_aio.tck import Outcome, Subject, Terms, check
from tests.conformance.test_library import LOOPS, Loop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# A job takes its time to start, and must not be taken for silence.
TERMS = Terms(come=60.0, stuck=30.0, longest=120.0)
QUIET = 0.1


def bridge(spark: "SparkSession") -> Subject:
    return Subject(
        name="from_dataframe",
        publisher=lambda n: from_dataframe(spark.range(0, n, 1, 1)),
        failing_publisher=lambda: from_dataframe(spark.sql("select raise_error('no') as x")),
        infinite_publisher=lambda: from_dataframe(spark.range(0, 10**13, 1, 1)),
        quiet=QUIET,
    )


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_bridge_conforms(spark: "SparkSession", loop: Loop) -> None:
    report = check(replace(bridge(spark), **loop), terms=TERMS)
    assert not report.having(Outcome.FAIL), str(report)
    assert report.having(Outcome.PASS)
