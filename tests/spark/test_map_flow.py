"""map_flow and for_each_partition in Spark's own workers."""

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import PythonException
from pyspark.sql import Row

from reactive_aio.spark import (
    PipelineNotPicklable,
    UnsupportedDataFrame,
    for_each_partition,
    from_dataframe,
    map_flow,
    spark_task,
)
from tests.harness.outages import frozen, is_gone

from .conftest import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow

pytestmark = pytest.mark.spark

SCHEMA = "id long, text string"


@pytest.fixture(params=["classic", "connect"])
def session(
    request: pytest.FixtureRequest, spark: "SparkSession", remote: "SparkSession"
) -> "SparkSession":
    """A session of each kind."""
    return spark if request.param == "classic" else remote


def numbers(session: "SparkSession", count: int = 40, partitions: int = 2) -> "DataFrame":
    return session.range(0, count, 1, partitions)


def rows_of(df: "DataFrame") -> list[Any]:
    return cast("list[Any]", df.collect())


def doubled(rows: "Flow[Row]") -> "Flow[tuple[Any, ...]]":
    return rows.filter(lambda row: row.id % 3 == 0).map(lambda row: (row.id, f"{row.id * 2}"))


def looked_up(rows: "Flow[Row]") -> "Flow[dict[str, Any]]":
    async def look_up(row: Row) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"text": f"{row.id * 2}", "id": row.id}

    return rows.map_async(look_up, concurrency=8)


@pytest.mark.parametrize("pipeline", [doubled, pytest.param(looked_up, marks=pytest.mark.thorough)])
def test_the_result_is_that_of_the_same_flow_on_one_loop(
    pipeline: "Callable[[Flow[Row]], Flow[Any]]", session: "SparkSession"
) -> None:
    df = numbers(session)
    result = map_flow(df, pipeline, SCHEMA)
    assert result.schema.simpleString() == "struct<id:bigint,text:string>"
    found = rows_of(result)
    alone = asyncio.run(pipeline(from_dataframe(df)).to_list())
    assert found == [
        Row(id=row["id"], text=row["text"])
        if isinstance(row, dict)
        else Row(id=row[0], text=row[1])
        for row in alone
    ]


def test_an_error_names_partition_element_and_flow(session: "SparkSession") -> None:
    def failing(rows: "Flow[Row]") -> "Flow[Any]":
        return rows.boundary(4).map(lambda row: (1 // (row.id - 33),))

    with pytest.raises(PythonException) as caught:
        rows_of(map_flow(numbers(session), failing, "n long"))
    message = str(caught.value)
    assert "ZeroDivisionError" in message
    assert "the rows of a partition → boundary(4) → >>map(<lambda>)<<" in message
    assert "with the element Row(id=33)" in message
    assert re.search(r"in map_flow: partition 1, attempt 0 \(stage \d+, task \d+\)", message)


def test_a_row_that_does_not_fit_is_named(spark: "SparkSession") -> None:
    def wrong(rows: "Flow[Row]") -> "Flow[Any]":
        return rows.map(lambda row: (str(row.id), "x"))

    words = r"row 0 of the output .* column 'id' of type bigint cannot hold '0' \(str\)"
    with pytest.raises(PythonException, match=words):
        rows_of(map_flow(numbers(spark, partitions=1), wrong, SCHEMA))


@pytest.mark.thorough
def test_accumulators_count_and_broadcasts_are_read(spark: "SparkSession") -> None:
    seen = spark.sparkContext.accumulator(0)
    names = spark.sparkContext.broadcast({n: f"name {n}" for n in range(40)})

    async def name(row: Row) -> tuple[int, str]:
        seen.add(1)
        return (row.id, names.value[row.id])

    result = map_flow(numbers(spark), lambda rows: rows.map_async(name, concurrency=3), SCHEMA)
    assert rows_of(result)[7] == Row(id=7, text="name 7")
    assert seen.value == 40
    names.destroy()


def test_columns_with_the_same_name_are_distinguished(spark: "SparkSession") -> None:
    df = spark.sql("select 1 as n, 2 as n, 3 as N")
    result = map_flow(
        df, lambda rows: rows.map(lambda row: (sum(row), row.__fields__)), "n int, f array<string>"
    )
    assert rows_of(result) == [Row(n=6, f=["n", "n", "N"])]
    batches = map_flow(
        df, lambda rows: rows.map(lambda b: (b.schema.names,)), "f array<string>", rows="batch"
    )
    assert rows_of(batches) == [Row(f=["n", "n", "N"])]
    with pytest.raises(UnsupportedDataFrame, match=r"map_flow\(rows='dict'\): .* named 'n'"):
        map_flow(df, lambda rows: rows, "n int", rows="dict")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "found"),
    [("row", "Row()"), ("tuple", "()"), ("dict", "{}"), ("batch", "(3, 0)")],
)
def test_rows_without_columns_are_counted(session: "SparkSession", kind: Any, found: str) -> None:
    def text(row: Any) -> tuple[str]:
        return (str((row.num_rows, row.num_columns) if kind == "batch" else row),)

    df = numbers(session, 6).select()
    result = map_flow(df, lambda rows: rows.boundary(2).map(text), "s string", rows=kind)
    assert rows_of(result) == [Row(s=found)] * (2 if kind == "batch" else 6)
    results = asyncio.run(for_each_partition(df, lambda rows: rows))
    assert [each.elements for each in results] == [3, 3]


class Marks:
    """Files by which a worker notifies the test of what it has done."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def set(self, name: str) -> None:
        Path(self._folder, f"{name}-{os.getpid()}").touch()

    def named(self, name: str) -> list[str]:
        return [path.name for path in Path(self._folder).glob(f"{name}-*")]

    async def wait_for(self, name: str) -> None:
        async def is_set() -> bool:
            return bool(await asyncio.to_thread(self.named, name))

        await wait_until(is_set)


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path)


def endless(marks: Marks) -> "Callable[[Flow[Row]], Flow[Any]]":
    async def wait(row: Row) -> tuple[int]:
        marks.set("begins")
        try:
            await asyncio.sleep(0.001 if row.id < 9 else 3600)
        finally:
            marks.set("ends")
        return (row.id,)

    return lambda rows: rows.map_async(wait, concurrency=2).do_on_cancel(
        lambda: marks.set("cancelled")
    )


async def test_a_limit_cancels_the_flow(spark: "SparkSession", marks: Marks) -> None:
    def limited() -> list[Any]:
        return rows_of(map_flow(numbers(spark, 100, 1), endless(marks), "id long").limit(1))

    assert await asyncio.to_thread(limited) == [Row(id=0)]
    await marks.wait_for("cancelled")


async def test_cancelling_the_job_ends_its_worker(spark: "SparkSession", marks: Marks) -> None:
    df = await asyncio.to_thread(numbers, spark, 100, 1)
    task = asyncio.create_task(for_each_partition(df, endless(marks)))
    await marks.wait_for("begins")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [name] = await asyncio.to_thread(marks.named, "begins")
    # Spark kills it after spark.python.task.killTimeout, so that no cleanup runs.
    await wait_until(lambda: is_gone(int(name.rpartition("-")[2])))


@pytest.mark.thorough
@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_worker_that_is_frozen_is_waited_for_no_longer_than_the_caller_says(
    spark: "SparkSession", marks: Marks
) -> None:
    df = await asyncio.to_thread(numbers, spark, 100, 1)
    task = asyncio.create_task(for_each_partition(df, endless(marks)))
    await marks.wait_for("begins")
    [name] = await asyncio.to_thread(marks.named, "begins")
    worker = int(name.rpartition("-")[2])
    with frozen(worker):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await task
        await wait_until(lambda: is_gone(worker))
    assert len(await for_each_partition(df, doubled)) == 1


@pytest.mark.thorough
async def test_a_sink_runs_in_each_partition(session: "SparkSession") -> None:
    df = await asyncio.to_thread(numbers, session, 40, 3)

    async def count(rows: "Flow[Row]") -> int:
        return await rows.buffer(4).for_each(lambda _: None)

    async def nothing(rows: "Flow[Row]") -> None:
        await rows.run()

    results = await for_each_partition(df, lambda rows: rows.filter(lambda row: row.id % 2))
    assert [(each.partition, each.attempt, each.elements) for each in results] == [
        (0, 0, 6), (1, 0, 7), (2, 0, 7),
    ]  # fmt: skip
    assert [each.elements for each in await for_each_partition(df, count)] == [4, 4, 4]
    assert [each.elements for each in await for_each_partition(df, nothing)] == [0, 0, 0]


@pytest.mark.thorough
async def test_a_sink_has_to_return_a_flow_or_a_number(spark: "SparkSession") -> None:
    df = await asyncio.to_thread(numbers, spark)

    async def text(rows: "Flow[Row]") -> str:
        return "x"

    for wrong, message in (
        (text, "returned str; it has to return a number"),
        (str, "a flow, or be"),
    ):
        with pytest.raises((PythonException, TypeError), match=message):
            await for_each_partition(df, cast("Any", wrong))


@pytest.mark.thorough
def test_the_tasks_of_a_worker_share_a_resource(spark: "SparkSession", marks: Marks) -> None:
    @asynccontextmanager
    async def open_client() -> AsyncGenerator[int]:
        marks.set(f"opened.{spark_task().attempt_id}")
        yield os.getpid()

    client = map_flow.resources(open_client)

    async def look_up(row: Row) -> tuple[int, int]:
        return (row.id, await client())

    def pipeline(rows: "Flow[Row]") -> "Flow[Any]":
        return rows.map_async(look_up, concurrency=4)

    found = rows_of(map_flow(numbers(spark, 40, 8), pipeline, "id long, pid long"))
    processes = {row.pid for row in found}
    assert len(marks.named("opened.*")) == len(processes)
    assert len(processes) < 8, "eight tasks on two slots"


# -- streaming -------------------------------------------------------------------------------------
def micro_batches(spark: "SparkSession", folder: Path) -> "DataFrame":
    """A streaming DataFrame of two micro-batches."""
    for file in range(2):
        (folder / f"{file}.json").write_text(f'{{"id": {file}}}\n{{"id": {file + 10}}}\n')
        os.utime(folder / f"{file}.json", (file + 1, file + 1))
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    return source.json(str(folder))


@pytest.mark.thorough
def test_a_streaming_query_is_mapped_and_knows_its_micro_batch(
    spark: "SparkSession", tmp_path: Path
) -> None:
    async def look_up(row: Row) -> tuple[int, int | None]:
        await asyncio.sleep(0)
        return (row.id, spark_task().batch_id)

    (tmp_path / "in").mkdir()
    stream = map_flow(
        micro_batches(spark, tmp_path / "in"),
        lambda rows: rows.map_async(look_up, concurrency=2), "id long, batch long",
    )  # fmt: skip
    seen: list[Any] = []

    def collect(df: "DataFrame", batch: int) -> None:
        seen.extend((batch, *row) for row in df.collect())
        # A micro-batch is a DataFrame like any other.
        results = asyncio.run(for_each_partition(df, lambda rows: rows))
        seen.append(sum(each.elements for each in results))

    query = (
        stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).foreachBatch(collect).start()
    )  # fmt: skip
    assert query.awaitTermination(60)
    assert seen == [(0, 0, 0), (0, 10, 0), 2, (1, 1, 1), (1, 11, 1), 2]


# -- mistakes --------------------------------------------------------------------------------------
def test_a_pipeline_that_cannot_be_sent_is_refused_at_once(spark: "SparkSession") -> None:
    lock = threading.Lock()
    with pytest.raises(PipelineNotPicklable, match=r"refers to 'lock' \(lock\)"):
        map_flow(numbers(spark), lambda rows: rows.do_on_next(lambda _: lock.locked()), SCHEMA)
    df = numbers(spark)
    with pytest.raises(PipelineNotPicklable, match=r"refers to 'df' \(DataFrame\)"):
        map_flow(df, lambda rows: rows.map(lambda _: df), SCHEMA)


def test_wrong_arguments_are_refused(spark: "SparkSession") -> None:
    async def coroutine(rows: "Flow[Row]") -> Any:
        return rows

    df, wrong = numbers(spark), cast("Any", map_flow)
    with pytest.raises(TypeError, match="coroutine is a coroutine function; give a function of a"):
        wrong(df, coroutine, SCHEMA)
    with pytest.raises(ValueError, match="rows must be one of tuple, dict, row, batch, not 'list'"):
        wrong(df, doubled, SCHEMA, rows="list")
    with pytest.raises(UnsupportedDataFrame, match=r"map_flow\(\) needs a pyspark.sql.DataFrame"):
        wrong([1], doubled, SCHEMA)
    months = spark.sql("select interval 3 months as m")
    with pytest.raises(UnsupportedDataFrame, match=r"cannot read column 'm' .* use rows='batch'"):
        wrong(months, doubled, SCHEMA)
