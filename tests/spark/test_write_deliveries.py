"""A flow of deliveries ends in files: acknowledged when written, and without duplicates."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import reactive_aio as rx
from reactive_aio.delivery import DeliveryFlow, deliveries
from reactive_aio.spark import RowRejected, WriteResult, from_dataframe, write_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])
pytestmark = [pytest.mark.spark, pytest.mark.timeout(120), ONE_LOOP]


def ingestion(spark: "SparkSession", folder: Path) -> DeliveryFlow[tuple[int]]:
    """Forty rows in four partitions, of which at most 25 are unacknowledged."""
    path = str(folder / "input")
    if not (folder / "input").exists():
        spark.range(0, 40, 1, 1).write.parquet(path)
    df = spark.read.parquet(path).repartition(4)
    return deliveries(from_dataframe(df, rows="tuple", checkpoint=folder / "progress"), limit=25)


@pytest.mark.thorough
async def test_an_ingestion_that_dies_and_resumes_writes_each_row_once(
    spark: "SparkSession", tmp_path: Path
) -> None:
    out, seen = tmp_path / "out", list[int]()

    def dies(row: tuple[int]) -> tuple[int, str]:
        seen.append(row[0])
        if len(seen) == 27:
            raise OSError("the service is gone")
        return (row[0], "x")

    first = await asyncio.to_thread(ingestion, spark, tmp_path)
    with pytest.raises(OSError, match="the service is gone") as raised:
        await write_parquet(first.map(dies), spark, out, "id long, text string", batch=4)
    assert any("write_parquet had committed" in note for note in raised.value.__notes__)
    part = await asyncio.to_thread(lambda: spark.read.parquet(str(out)).count())
    assert 0 < part < 40

    again = await asyncio.to_thread(ingestion, spark, tmp_path)
    result = await write_parquet(again.map(dies), spark, out, "id long, text string", batch=4)
    assert 0 < result.rows <= 40
    df = await asyncio.to_thread(lambda: spark.read.parquet(str(out)))
    rows = await asyncio.to_thread(df.collect)
    assert sorted(row.id for row in rows) == [*range(40)]
    assert {row.source_partition for row in rows} == {0, 1, 2, 3}
    done = await asyncio.to_thread(ingestion, spark, tmp_path)
    assert await write_parquet(done, spark, out, "id long") == WriteResult(0, 0)


async def test_an_element_of_several_partitions_is_refused(
    spark: "SparkSession", tmp_path: Path
) -> None:
    flow = await asyncio.to_thread(ingestion, spark, tmp_path)
    mixed = flow.buffer(25).flat_map(lambda rows: rows)
    with pytest.raises(ValueError, match="made of several partitions of the source"):
        await write_parquet(mixed, spark, tmp_path / "out", "id long")
    with pytest.raises(ValueError, match="the schema has a column 'source_partition'"):
        await write_parquet(flow, spark, tmp_path / "out", "SOURCE_PARTITION long")
    with pytest.raises(ValueError, match="mode= must be 'append', not 'overwrite'"):
        await write_parquet(flow, spark, tmp_path / "out", "id long", mode="overwrite")


async def test_elements_are_acknowledged_when_their_commit_is_done(
    spark: "SparkSession", tmp_path: Path
) -> None:
    out, acked, buried = tmp_path / "out", list[Any](), list[Any]()

    async def ack(element: Any) -> None:
        files = await asyncio.to_thread(lambda: [*out.glob("*.parquet")])
        assert files, "nothing is acknowledged before it is written"
        acked.append(element)

    source = deliveries(rx.just(1, "wrong", 3, 4), ack)
    flow = source.nack_on_error(1, dead_letter=lambda value, error: buried.append((value, error)))
    result = await write_parquet(flow.map(lambda n: (n,)), spark, out, "n long")
    assert (result.rows, sorted(map(str, acked))) == (3, ["1", "3", "4", "wrong"])
    ((value, error),) = buried
    assert value == "wrong"
    assert isinstance(error, RowRejected)
    with pytest.raises(RowRejected, match=r"write_parquet: row 1 .* cannot hold 'wrong'"):
        await write_parquet(source.map(lambda n: (n,)), spark, tmp_path / "other", "n long")
