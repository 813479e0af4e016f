"""Rows of any size are read in bounded memory, and many flows with few threads."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reactive_aio.spark import from_dataframe
from reactive_aio.spark.connect import LARGEST_PART
from reactive_aio.spark.rows import cut
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import flow_threads, wait_for_elements, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark
ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])
ROOT = Path(__file__).parents[2]
MIB = 1 << 20


def large(spark: "SparkSession", rows: int) -> "DataFrame":
    """Rows of 6 MiB, all in one partition."""
    return spark.range(0, rows, 1, 1).selectExpr("id", f"repeat(char(65 + id), {6 * MIB}) as text")


# -- a record batch in a file ----------------------------------------------------------------------
@pytest.mark.thorough
@ONE_LOOP
@pytest.mark.parametrize("kind", ["tuple", "batch"])
async def test_large_rows_are_the_same(spark: "SparkSession", kind: Any) -> None:
    def build() -> Any:
        untyped: Any = from_dataframe
        return untyped(large(spark, 4), rows=kind)

    found = list[tuple[int, int, str]]()
    async for element in await asyncio.to_thread(build):
        rows = (
            [element] if kind == "tuple" else [tuple(row.values()) for row in element.to_pylist()]
        )
        found += [(number, len(text), text[0] + text[-1]) for number, text in rows]
    assert found == [(number, 6 * MIB, 2 * chr(65 + number)) for number in range(4)]


@ONE_LOOP
async def test_large_rows_wait_for_demand(spark: "SparkSession") -> None:
    def build() -> Any:
        return from_dataframe(large(spark, 4), rows="tuple")

    probe = SubscriberProbe[Any]().subscribed_to(await asyncio.to_thread(build))
    for count in range(1, 4):
        probe.request(1)
        await wait_for_elements(probe, count)
        await wait_until(lambda: not flow_threads())
        assert len(probe.elements) == count
    probe.cancel()
    await wait_until(lambda: not flow_threads())


@pytest.mark.parametrize(("size", "sizes"), [(10, [4, 4, 1]), (3 * MIB, [2, 2, 2, 2, 1])])
def test_rows_of_connect_are_made_of_a_few_megabytes(size: int, sizes: list[int]) -> None:
    import pyarrow

    untyped: Any = pyarrow
    batch = untyped.record_batch({"text": ["x" * size] * 9})
    assert [part.num_rows for part in cut(batch, 4, LARGEST_PART)] == sizes


# -- threads ---------------------------------------------------------------------------------------
@pytest.fixture(params=["arrow", "rows", "connect"])
def mode(request: pytest.FixtureRequest) -> "ReadMode":
    mode: ReadMode = request.param
    return mode


@pytest.mark.thorough
@ONE_LOOP
async def test_flows_that_wait_for_demand_hold_no_thread(
    session: "SparkSession", mode: "ReadMode"
) -> None:
    def build() -> list[Any]:
        df = session.range(0, 40, 1, 4)
        return [from_dataframe(df, mode=mode, rows="tuple") for _ in range(10)]

    probes = [
        SubscriberProbe[Any](1).subscribed_to(flow) for flow in await asyncio.to_thread(build)
    ]
    for probe in probes:
        await wait_for_elements(probe, 1)
    await wait_until(lambda: not flow_threads())
    for probe in probes:
        probe.request(40)  # one more: some modes see the end by it
    for probe in probes:
        assert await probe.end()
        assert [row[0] for row in probe.elements] == [*range(40)]
    await wait_until(lambda: not flow_threads())


# -- extremes, each in a program of its own --------------------------------------------------------
def run(*arguments: str) -> Any:
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.extremes", *arguments]
    # Otherwise glibc keeps what it gets back, and the memory of a process says nothing.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(MIB)}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment,
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["arrow", "rows", "connect"])
def test_strings_of_ten_megabytes_take_less_than_a_hundred(mode: str) -> None:
    result = run("memory", mode)
    assert result["rows"] == 50
    assert result["megabytes"] < 100, result


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["arrow", "rows"])
def test_two_hundred_idle_flows_have_less_than_forty_threads(mode: str) -> None:
    result = run("threads", mode)
    assert result["threads"] < 40, result
    assert result["seconds until quiet"] < 5, result
    assert result["rows"] == 200


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["arrow", "rows"])
def test_two_hundred_queries_that_are_cancelled_leave_quiet_in_five_seconds(mode: str) -> None:
    result = run("cancels", mode)
    assert result["seconds until quiet"] < 5, result


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["arrow", "rows", "write"])
def test_a_jvm_without_memory_is_named(mode: str) -> None:
    kind, words = run("out of memory", mode)
    assert kind == "SparkSessionLost"
    assert "ran out of memory" in words
    assert "spark.driver.memory larger" in words


def test_no_thread_is_left() -> None:
    assert not [each for each in threading.enumerate() if "reactive_aio" in each.name]
