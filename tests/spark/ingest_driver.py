"""The program of test_crashes.py: copies a DataFrame into PostgreSQL, and goes on where it was.

Run with the address of the database, the path of the data and the checkpoint, and with a fourth
argument to print which rows were written more than once, by partition.
"""

import asyncio
import json
import sys
from typing import Any

import asyncpg

from reactive_aio.delivery import deliveries
from reactive_aio.spark import from_dataframe, local_session

PARTITIONS = 60
UPSERT = """
insert into numbers select id, square, 1 from incoming
on conflict (id) do update set square = excluded.square, writes = numbers.writes + 1
"""


def data(path: str) -> Any:
    spark = local_session(cores=2, quick=True, niceness=0)
    return spark.read.parquet(path).repartition(PARTITIONS)


async def ingest(df: Any, database: str, checkpoint: str) -> None:
    untyped: Any = asyncpg
    flow = deliveries(from_dataframe(df, rows="tuple", checkpoint=checkpoint), limit=50_000)
    connection = await untyped.connect(database)

    async def write(rows: list[tuple[int, int]]) -> None:
        async with connection.transaction():
            await connection.execute("truncate incoming")
            await connection.copy_records_to_table("incoming", records=rows)
            await connection.execute(UPSERT)

    try:
        await flow.buffer(10_000).ack_after(write).run()
    finally:
        await connection.close()


async def repeated(df: Any, database: str) -> dict[int, int]:
    """Return how many rows of each partition were written more than once."""
    untyped: Any = asyncpg
    connection = await untyped.connect(database)
    twice = {row["id"] for row in await connection.fetch("select id from numbers where writes > 1")}
    await connection.close()
    # With all columns: Spark divides rows by their content.
    divided = df.selectExpr("*", "spark_partition_id()")
    counts: dict[int, int] = {}
    async for number, _, partition in from_dataframe(divided, rows="tuple"):
        if number in twice:
            counts[partition] = counts.get(partition, 0) + 1
    return counts


def main(database: str, path: str, checkpoint: str, *check: str) -> None:
    df = data(path)
    if check:
        json.dump(asyncio.run(repeated(df, database)), sys.stdout)
    else:
        asyncio.run(ingest(df, database, checkpoint))


if __name__ == "__main__":
    main(*sys.argv[1:])
