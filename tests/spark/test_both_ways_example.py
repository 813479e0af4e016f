"""The example that reads rows from Spark and gives others back, with the session of the tests."""

from typing import TYPE_CHECKING

import pytest

from tests.examples.test_programs import program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]

both_ways = program("spark_both_ways")


@pytest.mark.thorough
def test_rows_are_enriched_and_grouped(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    both_ways.main(spark)
    expected = dict.fromkeys(both_ways.COUNTRIES, 0)
    for amount in range(500, 1000):
        expected[both_ways.COUNTRIES[amount % 4]] += amount
    assert capsys.readouterr().out.splitlines() == [
        f"{country} {amount}" for country, amount in expected.items()
    ]
