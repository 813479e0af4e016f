"""Terminal operators that end in Spark, over Spark Connect."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import reactive_aio as rx
from reactive_aio.spark import (
    SparkSessionLost,
    WriteResult,
    append_table,
    to_dataframe,
    write_parquet,
)

from .conftest import connected, wait_until
from .test_terminals import SCHEMA, cancelling_cancels_the_commit, collected, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])
pytestmark = [pytest.mark.spark, pytest.mark.timeout(120), ONE_LOOP]


@pytest.fixture(autouse=True)
async def no_thread_is_left() -> AsyncIterator[None]:
    yield
    await wait_until(
        lambda: not [each for each in threading.enumerate() if "reactive" in each.name]
    )


async def test_the_elements_become_a_dataframe(remote: "SparkSession") -> None:
    df = await to_dataframe(rows(3000), remote, SCHEMA)
    assert await collected(df) == [(number, f"n{number}") for number in range(3000)]
    assert await collected(await to_dataframe(rx.empty(), remote, SCHEMA)) == []


async def test_rows_are_written_in_commits(remote: "SparkSession", tmp_path: Path) -> None:
    path = tmp_path / "rows"
    written = await write_parquet(rows(250), remote, path, SCHEMA, batch=100)
    assert written == WriteResult(rows=250, commits=3)
    found = await asyncio.to_thread(lambda: remote.read.parquet(str(path)))
    assert await collected(found) == [(number, f"n{number}") for number in range(250)]


async def test_a_table_is_created_and_appended_to(remote: "SparkSession") -> None:
    name = "appended_over_connect"
    try:
        await append_table(rows(3), remote, name, SCHEMA)
        await append_table(rows(2), remote, name, SCHEMA)
        assert len(await collected(await asyncio.to_thread(remote.table, name))) == 5
    finally:
        await asyncio.to_thread(lambda: remote.sql(f"drop table if exists {name}").collect())


async def test_cancelling_cancels_the_running_commit(
    spark: "SparkSession", remote: "SparkSession", tmp_path: Path
) -> None:
    await cancelling_cancels_the_commit(spark, remote, tmp_path)


async def test_a_stopped_session_is_named(spark: "SparkSession") -> None:
    session = await asyncio.to_thread(connected, spark)
    await asyncio.to_thread(session.stop)
    with pytest.raises(SparkSessionLost, match="has been stopped"):
        await to_dataframe(rows(3), session, SCHEMA)
