"""The pipeline of examples/flights_ingest.py, in this process; tests/examples runs the program."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flights_data as data
import pytest
from flights_ingest import pipeline
from flights_screen import Figures
from flights_store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_factories=["asyncio"])]

ROWS = 2000
PARTITIONS = 4


async def ingest(flights: "DataFrame", folder: Path, batches: int) -> Figures:
    """Fill the database, whose disk is full after *batches*."""
    figures, written = Figures(), 0
    async with Store.opened(folder / "flights.sqlite", data.airports()) as store:

        async def write(batch: Any) -> None:
            nonlocal written
            if written == batches:
                raise OSError("the disk is full")
            await store.write(batch)
            written += 1

        checkpoint, report = folder / "checkpoint", figures.report
        flow = await asyncio.to_thread(pipeline, flights, checkpoint, store.locate, write, report)
        async for batch in flow:
            figures.written(batch.num_rows)
            figures.look(flow)
    return figures


@pytest.mark.thorough
async def test_a_main_job_that_failed_goes_on_where_it_was(
    spark: "SparkSession", tmp_path: Path
) -> None:
    def prepare() -> "DataFrame":
        data.unpack(tmp_path / "data", ROWS)
        return data.delays(spark.newSession(), tmp_path / "data", PARTITIONS)

    flights = await asyncio.to_thread(prepare)
    checkpoint = tmp_path / "checkpoint" / "partitions.jsonl"
    with pytest.raises(OSError, match="the disk is full"):
        await ingest(flights, tmp_path, batches=2)
    done = (await asyncio.to_thread(checkpoint.read_text)).splitlines()[1:]
    figures = await ingest(flights, tmp_path, batches=PARTITIONS)
    assert figures.spark.resumed == len(done) > 0
    assert figures.spark.done == PARTITIONS - len(done)
    again = await ingest(flights, tmp_path, batches=0)
    assert (again.rows, again.spark.resumed) == (0, PARTITIONS)
    async with Store.opened(tmp_path / "flights.sqlite", []) as store:
        found = await store.totals()
    assert found == await asyncio.to_thread(data.totals, flights)
