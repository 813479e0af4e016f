"""A checkpoint is valid for the same rows in the same partitions, and for no others."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio.delivery import deliveries
from reactive_aio.spark import (
    Checkpoint,
    CheckpointMismatch,
    UnsupportedDataFrame,
    from_dataframe,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])


# -- the input and the query -----------------------------------------------------------------------
@ONE_LOOP
async def test_other_input_is_refused(spark: "SparkSession", tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")

    def write() -> "DataFrame":
        spark.range(0, 1000, 1, 2).write.parquet(path)
        return spark.read.parquet(path).repartition(10)

    numbers = await asyncio.to_thread(write)

    def build(change: Callable[["DataFrame"], "DataFrame"]) -> Any:
        return from_dataframe(change(numbers), checkpoint=tmp_path / "checkpoint")

    await (await asyncio.to_thread(build, lambda df: df)).take(1).run()
    await (await asyncio.to_thread(build, lambda df: df)).take(1).run()
    other = await asyncio.to_thread(build, lambda df: df.where("id > 1"))
    with pytest.raises(CheckpointMismatch, match="the query is another one"):
        await other.run()

    def append() -> Any:
        spark.range(3).write.mode("append").parquet(path)
        return from_dataframe(
            spark.read.parquet(path).repartition(10), checkpoint=tmp_path / "checkpoint"
        )

    with pytest.raises(CheckpointMismatch, match="the input has changed since"):
        await (await asyncio.to_thread(append)).run()


def test_the_identity_is_the_same_in_another_session(spark: "SparkSession", tmp_path: Path) -> None:
    """Spark numbers expressions, and the numbers are others each time."""
    for session in (spark, spark.newSession()):
        df = session.range(0, 9, 1, 3).selectExpr("id as n", "(select max(id) from range(3)) as m")
        asyncio.run(from_dataframe(df, checkpoint=tmp_path).run())
    header = json.loads((tmp_path / "partitions.jsonl").read_text().splitlines()[0])
    assert header.keys() == {"query", "input", "layout"}
    assert "partitions 3, parallelism 2" in header["layout"]


# -- what cannot be repeated -----------------------------------------------------------------------
UNREPEATABLE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rand": (lambda df: df.selectExpr("rand() as x"), "not deterministic: Project .*rand"),
    "inside": (lambda df: df.where("id > rand() * 9").select("id"), "not deterministic: Filter"),
    "limit": (lambda df: df.limit(3), "takes any rows"),
}
UNSTABLE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "order": (lambda df: df.orderBy("id"), "drawn from a sample .*orderBy"),
    "group": (lambda df: df.groupBy("id").count(), "merges its partitions.*adaptive.enabled=false"),
}


@pytest.mark.parametrize("name", UNREPEATABLE)
def test_a_query_with_other_rows_the_next_time_is_refused(
    spark: "SparkSession", tmp_path: Path, name: str
) -> None:
    change, words = UNREPEATABLE[name]
    with pytest.raises(UnsupportedDataFrame, match=words):
        from_dataframe(change(spark.range(9)), checkpoint=tmp_path)
    flow = from_dataframe(spark.range(9), checkpoint=tmp_path)
    with pytest.raises(UnsupportedDataFrame, match="not deterministic"):
        flow.select("rand() as x")


@ONE_LOOP
@pytest.mark.parametrize("name", UNSTABLE)
async def test_partitions_that_spark_chooses_each_time_are_refused(
    spark: "SparkSession", tmp_path: Path, name: str
) -> None:
    change, words = UNSTABLE[name]

    def build() -> Any:
        df = change(spark.range(9).selectExpr("id % 3 as id"))
        return from_dataframe(df, checkpoint=tmp_path)

    flow = await asyncio.to_thread(build)
    with pytest.raises(UnsupportedDataFrame, match=words):
        await flow.run()


def test_an_unknown_input_needs_the_name_of_its_version(
    spark: "SparkSession", tmp_path: Path
) -> None:
    untyped: Any = spark
    df = untyped.createDataFrame([(1,), (2,)], "n long")
    with pytest.raises(UnsupportedDataFrame, match=r"the data that LogicalRDD.*snapshot='…'"):
        from_dataframe(df, checkpoint=tmp_path)
    flow = from_dataframe(df, checkpoint=Checkpoint(tmp_path, snapshot="monday"), rows="tuple")

    async def read() -> list[int]:
        rows = await deliveries(flow).ack_after(lambda row: row).to_list()
        return [row[0] for row in rows]

    assert sorted(asyncio.run(read())) == [1, 2]
    assert asyncio.run(read()) == []
