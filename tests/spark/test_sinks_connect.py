"""The way into Spark over Spark Connect: the same words, on a session behind a wire."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import reactive_aio as rx
from reactive_aio.spark import Written

from .conftest import until
from .test_sinks import SCHEMA, cancelling_cancels_the_commit, collected, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])
pytestmark = [pytest.mark.spark, pytest.mark.timeout(120), ONE_LOOP]


@pytest.fixture(autouse=True)
async def no_thread_is_left() -> AsyncIterator[None]:
    yield
    await until(lambda: not [each for each in threading.enumerate() if "reactive" in each.name])


async def test_the_elements_become_a_dataframe(remote: "SparkSession") -> None:
    df = await rows(3000).to_dataframe(remote, SCHEMA)
    assert await collected(df) == [(number, f"n{number}") for number in range(3000)]
    assert await collected(await rx.empty().to_dataframe(remote, SCHEMA)) == []


async def test_rows_are_written_in_commits(remote: "SparkSession", tmp_path: Path) -> None:
    path = tmp_path / "rows"
    written = await rows(250).write_parquet(remote, path, SCHEMA, batch=100)
    assert written == Written(rows=250, commits=3)
    found = await asyncio.to_thread(lambda: remote.read.parquet(str(path)))
    assert await collected(found) == [(number, f"n{number}") for number in range(250)]


async def test_a_table_is_made_and_appended_to(remote: "SparkSession") -> None:
    name = "appended_over_connect"
    try:
        await rows(3).append_table(remote, name, SCHEMA)
        await rows(2).append_table(remote, name, SCHEMA)
        assert len(await collected(await asyncio.to_thread(remote.table, name))) == 5
    finally:
        await asyncio.to_thread(lambda: remote.sql(f"drop table if exists {name}").collect())


async def test_cancelling_cancels_the_commit_under_way(
    spark: "SparkSession", remote: "SparkSession", tmp_path: Path
) -> None:
    await cancelling_cancels_the_commit(spark, remote, tmp_path)
