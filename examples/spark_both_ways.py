# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[spark]"]
# ///
"""Rows out of Spark, through asynchronous work, and back into Spark.

    python examples/spark_both_ways.py

Spark filters, since `where` is pushed down to it. Its rows are read on demand while sixteen lookups
run at a time; the result is a DataFrame again, which Spark groups.
"""

import asyncio

from pyspark.sql import SparkSession

from reactive_aio.spark import from_dataframe, local_session, to_dataframe

COUNTRIES = ("AT", "BR", "CH", "DE")
SCHEMA = "customer long, country string, amount long"


async def look_up(row: tuple[int, int]) -> tuple[int, str, int]:
    """Ask another service for the country of a customer."""
    customer, amount = row
    await asyncio.sleep(0.001)
    return customer, COUNTRIES[customer % len(COUNTRIES)], amount


def main(spark: SparkSession) -> None:
    """Enrich the large orders, and print the sums of the countries."""
    orders = spark.range(1000).selectExpr("id as customer", "id as amount")
    large = from_dataframe(orders, rows="tuple").where("amount >= 500")
    enriched = large.map_async(look_up, concurrency=16)
    result = asyncio.run(to_dataframe(enriched, spark, SCHEMA))
    for row in result.groupBy("country").sum("amount").orderBy("country").collect():
        print(row["country"], row["sum(amount)"])


if __name__ == "__main__":
    session = local_session()
    main(session)
    session.stop()
