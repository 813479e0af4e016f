"""Both ways between flows and a cluster, where the executors' Python workers call this process."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import reactive_aio as rx
from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import (
    activate,
    from_stream,
    register,
    serve_flow,
    serve_writes,
    to_dataframe,
    write_parquet,
)
from reactive_aio.testing.probes import SubscriberProbe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow

T = TypeVar("T")

ROWS = 3000
SCHEMA = "id long, name string"


class BothWays:
    """Reads and writes in every way; each returns the number of rows and the sum of their ids."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self._spark = spark
        self._table = str(folder / "table")
        self._folder = folder
        self._rows: Flow[tuple[int, str]] = rx.range(ROWS).map(lambda n: (n, f"n{n}"))

    async def run(self) -> dict[str, list[int]]:
        """Return the number of rows, and the sum of their ids, for each way."""
        await self._in_thread(lambda: register(self._spark))
        return {
            "to_dataframe": await self._to_dataframe(),
            "write_parquet": await self._write_parquet(),
            "spark.read": await self._read(),
            "spark.readStream": await self._read_stream(),
            "df.write": await self._write(),
            "df.writeStream": await self._write_stream(),
            "from_stream": await self._from_stream(),
        }

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run *work* on a thread on which the session is active."""

        def run() -> T:
            activate(self._spark)
            return work()

        return await asyncio.to_thread(run)

    async def _total(self, make: "Callable[[], DataFrame]") -> list[int]:
        def total() -> list[int]:
            return list(cast("Any", make()).selectExpr("count(id)", "sum(id)").first())

        return await self._in_thread(total)

    async def _to_dataframe(self) -> list[int]:
        df = await to_dataframe(self._rows, self._spark, SCHEMA)
        return await self._total(lambda: df)

    async def _write_parquet(self) -> list[int]:
        await write_parquet(self._rows, self._spark, self._table, SCHEMA, batch=ROWS // 3)
        return await self._total(lambda: self._spark.read.parquet(self._table))

    async def _read(self) -> list[int]:
        async with serve_flow(self._rows, SCHEMA) as served:
            reader = self._spark.read.format("reactive").options(**served.options)
            return await self._total(lambda: reader.load())

    async def _read_stream(self) -> list[int]:
        found: list[int] = []

        def take(df: "DataFrame", _: int) -> None:
            found.extend(row.id for row in df.collect())

        def run(options: dict[str, str]) -> None:
            reader = self._spark.readStream.format("reactive").options(**options)
            writer = reader.option("maxRows", str(ROWS // 3)).load().writeStream
            writer = writer.foreachBatch(take).option("checkpointLocation", self._checkpoint("in"))
            writer.trigger(availableNow=True).start().awaitTermination()

        async with serve_flow(self._rows, SCHEMA) as served:
            await self._in_thread(lambda: run(served.options))
        return [len(found), sum(found)]

    async def _write(self) -> list[int]:
        async with serve_writes(rows="tuple") as served:
            df = await self._in_thread(lambda: self._spark.range(0, ROWS, 1, 4))
            writing = asyncio.create_task(served.write(df))
            found = [row[0] async for row in served.rows]
            await writing
        return [len(found), sum(found)]

    async def _write_stream(self) -> list[int]:
        def run(options: dict[str, str]) -> None:
            writer = self._stream().writeStream.format("reactive").options(**options)
            writer = writer.option("checkpointLocation", self._checkpoint("out"))
            writer.trigger(availableNow=True).start().awaitTermination()

        async with serve_writes(rows="tuple") as served:
            probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(served.rows)
            await self._in_thread(lambda: run(served.options))
            probe.cancel()  # earlier, it would fail the query
        found = [row[0] for row in probe.elements]
        return [len(found), sum(found)]

    async def _from_stream(self) -> list[int]:
        flow = await self._in_thread(
            lambda: from_stream(self._stream(), checkpoint=self._checkpoint("from"), rows="tuple")
        )
        found = [row[0] for _, row in await flow.take(ROWS).to_list()]
        return [len(found), sum(found)]

    def _stream(self) -> "DataFrame":
        return self._spark.readStream.schema(SCHEMA).parquet(self._table)

    def _checkpoint(self, name: str) -> str:
        return str(self._folder / f"checkpoint-{name}")
