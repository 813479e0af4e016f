"""The program of test_map_flow_stream.py that is killed: a stream through map_flow into files."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reactive_aio.spark import local_session, map_flow, spark_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Row, SparkSession

    from reactive_aio import Flow


def doubling(name: str) -> "Callable[[Flow[Row]], Flow[Any]]":
    """Return a pipeline that notes its calls, and fails for the row that a file names."""

    async def double(row: "Row") -> tuple[int, int, int | None]:
        await asyncio.sleep(0.001)  # a request
        folder = Path(name)
        with (folder / "calls").open("a", buffering=1) as file:
            file.write(f"{row.id}\n")
        broken = folder / "broken"
        if broken.exists() and int(broken.read_text()) == row.id:
            raise LookupError(f"the service has no answer for {row.id}")
        return (row.id, 2 * row.id, spark_task().batch_id)

    return lambda rows: rows.map_async(double, concurrency=4)


def ingest(spark: "SparkSession", folder: Path, kind: str) -> None:
    """Read what is in the folder and was not read before."""
    reader = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    incoming = reader.json(str(folder / "in"))
    doubled = map_flow(incoming, doubling(str(folder)), "id long, twice long, batch long")
    writer = doubled.writeStream.format(kind).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.start(str(folder / "out"))
    try:
        query.awaitTermination()
    finally:
        query.stop()


def main(folder: str, kind: str) -> None:
    ingest(local_session(cores=2, quick=True, niceness=0), Path(folder), kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
