"""A task that Spark runs again while its rows are sent to a flow."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(180)]

# A local session has one attempt for a task unless its master says otherwise, so it is a separate
# program.
PROGRAM = """
import asyncio
from reactive_aio.spark import local_session, register, serve_writes

spark = local_session(cores=2, config={
    "spark.master": "local[2,4]",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
})

def dies_once(batches):
    from pyspark import TaskContext

    context = TaskContext.get()
    for number, batch in enumerate(batches):
        if number == 3 and context.attemptNumber() == 0 and context.partitionId() % 2 == 0:
            raise RuntimeError("a task that dies once")
        yield batch

async def main():
    register(spark)
    df = spark.range(0, 2000, 1, 4).mapInArrow(dies_once, "id long")
    async with serve_writes(rows="tuple", batch=50) as served:
        writing = asyncio.create_task(served.write(df))
        rows = await served.rows.to_list()
        await writing
    print(len(rows), sorted(rows) == [(number,) for number in range(2000)])

asyncio.run(main())
spark.stop()
"""


def test_the_rows_of_a_repeated_task_arrive_once() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["2000", "True"]
