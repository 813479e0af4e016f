"""An ingestion that is killed stores each row once, and repeats what was not committed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests.harness.servers import PostgresServer

from .ingest_driver import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
ROWS = 1_000_000
KILLS = 5
SECONDS = 240.0  # for one run, on a busy machine
IN_FLIGHT = 8  # partitions that a crash may repeat: being computed, read, written or committed
TABLES = """
create table numbers (id bigint primary key, square bigint not null, writes int not null);
create unlogged table incoming (id bigint, square bigint);
"""


def committed(checkpoint: Path) -> set[int]:
    file = checkpoint / "partitions.jsonl"
    return {int(line) for line in file.read_text().splitlines()[1:]} if file.exists() else set()


async def query(database: str, sql: str) -> Any:
    untyped: Any = asyncpg
    connection = await untyped.connect(database)
    try:
        return await connection.execute(sql) if ";" in sql else await connection.fetchrow(sql)
    finally:
        await connection.close()


class Program:
    """The program that is killed, with its JVM."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "tests.spark.ingest_driver", *arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, text=True
        )

    def kill_when(self, checkpoint: Path, count: int) -> None:
        """Kill it when *count* partitions are committed."""
        until = time.monotonic() + SECONDS
        while len(committed(checkpoint)) < count:
            assert self.process.poll() is None, "it was to be killed before its end"
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def output(self) -> str:
        output, _ = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0
        return output


def test_each_row_is_stored_once_by_a_program_that_is_killed(
    spark: "SparkSession", postgres_server: PostgresServer, tmp_path: Path
) -> None:
    path, checkpoint = str(tmp_path / "data"), tmp_path / "checkpoint"
    spark.range(0, ROWS, 1, 8).selectExpr("id", "id * id as square").write.parquet(path)
    database = postgres_server.database()
    arguments = (database, path, str(checkpoint))
    asyncio.run(query(database, TABLES))
    uncommitted = set[int]()
    for kill in range(KILLS):
        done = committed(checkpoint)
        Program(*arguments).kill_when(checkpoint, len(done) + PARTITIONS // (KILLS + 1))
        after = committed(checkpoint)
        assert done < after, kill
        uncommitted |= {*range(PARTITIONS)} - after
    Program(*arguments).output()
    assert committed(checkpoint) == {*range(PARTITIONS)}
    row = asyncio.run(
        query(database, "select count(*), sum(square), sum(writes) as writes from numbers")
    )
    found: Any = json.loads(Program(*arguments, "check").output())
    assert (row["count"], row["sum"]) == (ROWS, sum(number**2 for number in range(ROWS)))
    assert {int(partition) for partition in found} <= uncommitted
    assert row["writes"] - ROWS <= KILLS * IN_FLIGHT * ROWS // PARTITIONS
