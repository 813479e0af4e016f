"""Write to a disk that is full, as a program: for its JVM as well, no file may be long.

It prints, as JSON, the error, what was acknowledged, and what the same session reads after it.
"""

import asyncio
import json
import os
import sys
from typing import Any

from reactive_aio import range as numbers
from reactive_aio.delivery import deliveries
from reactive_aio.spark import from_dataframe, local_session, write_parquet

from .lost_sessions import SETTINGS

SMALL, BATCH = 200, 100
LONGEST_FILE = 2 << 20


def row(number: int) -> tuple[int, str]:
    """A row, of which a batch is a file that is too long unless the number is small."""
    return (number, os.urandom(16 if number < SMALL else LONGEST_FILE // 50).hex())


async def main(folder: str) -> dict[str, Any]:
    spark = local_session(cores=2, quick=True, niceness=0, config=SETTINGS)
    acknowledged: list[int] = []
    rows = deliveries(numbers(10 * SMALL), ack=acknowledged.append).map(row)
    try:
        async with asyncio.timeout(60):
            await write_parquet(rows, spark, folder, "id long, text string", batch=BATCH)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    else:
        text = "it completed"
    written = await asyncio.to_thread(lambda: from_dataframe(spark.read.parquet(folder)))
    found = sorted([row["id"] async for row in written])
    return {"text": text, "acknowledged": sorted(acknowledged), "found": found}


if __name__ == "__main__":
    json.dump(asyncio.run(main(sys.argv[1])), sys.stdout)
