"""Terminal operators that end in Spark: to_dataframe, write_parquet, append_table."""

import asyncio
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow
import pytest

import reactive_aio as rx
from reactive_aio.errors import TooManyElements
from reactive_aio.spark import (
    RowRejected,
    WriteResult,
    append_table,
    from_dataframe,
    to_dataframe,
    write_parquet,
    writing,
)
from reactive_aio.spark.writing import CommitOptions, Writer, write

from .conftest import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow

# On one loop: the operators they consist of are tested on all of them.
ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])
pytestmark = [pytest.mark.spark, pytest.mark.timeout(120), ONE_LOOP]

SCHEMA = "id long, name string"
untyped: Any = pyarrow


@pytest.fixture(autouse=True)
async def no_thread_is_left() -> AsyncIterator[None]:
    yield
    await wait_until(
        lambda: not [each for each in threading.enumerate() if "reactive" in each.name]
    )


def rows(count: int) -> "Flow[tuple[int, str]]":
    return rx.range(count).map(lambda number: (number, f"n{number}"))


UNWRITABLE: list[tuple[str, dict[str, Any], str]] = [
    (SCHEMA, {"partition_by": ["day"]}, "partition_by names 'day', .* the columns are id, name"),
    (SCHEMA, {"partition_by": ["ID", "name"]}, "partition_by names all columns"),
    (
        "id long, s struct<a: int>",
        {"partition_by": ["s"]},
        "partition_by names 's', which is struct",
    ),
    ("id long, s struct<a: int, A: int>", {}, "two columns or fields named 'a', if the case"),
    ("id long, s array<struct<>>", {}, "a struct without fields"),
    (SCHEMA, {"mode": "error"}, "exists, and mode='error'"),
]


@pytest.mark.parametrize(("schema", "options", "words"), UNWRITABLE)
async def test_what_files_cannot_have_is_refused_before_the_first_row(
    spark: "SparkSession", tmp_path: Path, schema: str, options: dict[str, Any], words: str
) -> None:
    requested = list[int]()
    flow = rows(3).do_on_request(requested.append)
    with pytest.raises((ValueError, FileExistsError), match=words):
        await write_parquet(flow, spark, tmp_path, schema, **options)
    assert not requested


@pytest.fixture
def dynamic(spark: "SparkSession") -> Iterator[None]:
    """Lets the session overwrite only those folders of which there are rows."""
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


@pytest.mark.usefixtures("dynamic")
async def test_overwriting_replaces_all_folders(spark: "SparkSession", tmp_path: Path) -> None:
    """As the first commit of a partition of a source does, whatever the session wants."""
    options: dict[str, Any] = {"partition_by": ["name"]}
    await write_parquet(rx.just((1, "a"), (2, "b")), spark, tmp_path, SCHEMA, **options)
    await write_parquet(rx.just((3, "a")), spark, tmp_path, SCHEMA, mode="overwrite", **options)
    found = await asyncio.to_thread(lambda: spark.read.parquet(str(tmp_path)).collect())
    assert [row.id for row in found] == [3]


Save = Callable[["DataFrame", str], object]


class SavedBy(Writer):
    """Calls a function to save."""

    def __init__(self, save: Save, session: "SparkSession") -> None:
        super().__init__("test", session, SCHEMA)
        self._save = save

    def save(self, df: "DataFrame", mode: str, folder: str) -> None:
        self._save(df, mode)


async def saved_by(
    save: Save, flow: "Flow[Any]", session: "SparkSession", *, batch: int
) -> WriteResult:
    options = CommitOptions.checked("test", batch, 1 << 20, None, "append")
    return await write(flow, SavedBy(save, session), options)


async def collected(df: "DataFrame") -> list[Any]:
    return sorted(map(tuple, await asyncio.to_thread(df.collect)))


# -- to_dataframe ------------------------------------------------------------------------------
async def test_the_elements_become_a_dataframe(spark: "SparkSession") -> None:
    df = await to_dataframe(rows(25_000), spark, SCHEMA)
    assert (await asyncio.to_thread(lambda: df.schema.simpleString())) == (
        "struct<id:bigint,name:string>"
    )
    found = await collected(df)
    assert found == [(number, f"n{number}") for number in range(25_000)]


async def test_rows_may_be_dicts_and_record_batches(spark: "SparkSession") -> None:
    dicts = rx.just({"id": 1, "name": "a"}, {"name": None, "id": 2})
    assert await collected(await to_dataframe(dicts, spark, SCHEMA)) == [(1, "a"), (2, None)]
    source = await asyncio.to_thread(
        lambda: spark.range(0, 100, 1, 2).selectExpr("id", "'x' as name")
    )
    flow = await asyncio.to_thread(lambda: from_dataframe(source, rows="batch", batch=30))
    df = await to_dataframe(flow, spark, SCHEMA)
    assert await collected(df) == [(number, "x") for number in range(100)]


async def test_record_batches_are_fitted_one_by_one(spark: "SparkSession") -> None:
    whole = untyped.RecordBatch.from_pydict({"id": [1], "name": ["a"]})
    narrow = untyped.array([2], untyped.int8())
    other = untyped.RecordBatch.from_pydict({"name": untyped.array([None]), "id": narrow})
    df = await to_dataframe(rx.just(whole, other, (3, "c"), whole), spark, SCHEMA)
    assert await collected(df) == [(1, "a"), (1, "a"), (2, None), (3, "c")]


@pytest.mark.parametrize(
    ("columns", "column", "words"),
    [
        ({"id": [1.5], "name": ["a"]}, "id", "column 'id' is double, and the schema has int64"),
        ({"id": [1], "text": ["a"]}, None, "columns id, text, and the schema has id, name"),
        ({"id": [None], "name": ["a"]}, "id", "column 'id' is NOT NULL, and is null"),
    ],
)
async def test_a_record_batch_that_does_not_fit_is_rejected(
    spark: "SparkSession", columns: dict[str, Any], column: str | None, words: str
) -> None:
    flow = rx.just((1, "a"), untyped.RecordBatch.from_pydict(columns))
    with pytest.raises(RowRejected, match=words) as rejected:
        await to_dataframe(flow, spark, "id long not null, name string")
    assert (rejected.value.row, rejected.value.column) == (1, column)


async def test_timestamps_of_a_record_batch_have_the_time_zone_of_the_session(
    spark: "SparkSession",
) -> None:
    noon = datetime(2024, 7, 1, 12)
    batch = untyped.RecordBatch.from_pydict({"at": [noon]})
    create, table = cast("Any", spark).createDataFrame, untyped.Table.from_batches([batch])
    expected = await asyncio.to_thread(lambda: create(table, "at timestamp").collect())
    df = await to_dataframe(rx.just(batch), spark, "at timestamp")
    assert await asyncio.to_thread(df.collect) == expected


async def test_rows_without_columns_are_counted(spark: "SparkSession") -> None:
    source = await asyncio.to_thread(lambda: spark.range(4).select())
    batches = await asyncio.to_thread(lambda: from_dataframe(source, rows="batch"))
    flows: list[Flow[Any]] = [
        rx.just((), (), dict[str, Any](), list[Any]()),
        batches,
    ]
    for flow in flows:
        df = await to_dataframe(flow, spark, "")
        assert await asyncio.to_thread(df.count) == 4


async def test_types_that_a_program_has_defined_are_written(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql.types import ArrayType, LongType, StructType

    schema = StructType().add("id", LongType()).add("v", VectorUDT())
    schema = schema.add("all", ArrayType(VectorUDT()))
    vector = Vectors.dense(1, 2)
    expected = [(1, vector, [vector, Vectors.sparse(3, {1: 2.0})]), (2, None, None)]
    df = await to_dataframe(rx.from_iterable(expected), spark, schema)
    assert await collected(df) == expected
    batches = await asyncio.to_thread(lambda: from_dataframe(df, rows="batch"))
    path = str(tmp_path / "vectors")
    assert (await write_parquet(batches, spark, path, schema)).rows == 2
    written = await asyncio.to_thread(lambda: spark.read.parquet(path))
    assert await collected(written) == expected
    with pytest.raises(RowRejected, match=r"row 1 .* column 'id'"):
        await to_dataframe(rx.just(expected[0], (1.5, None, None)), spark, schema)


async def test_a_flow_without_elements_becomes_an_empty_dataframe(spark: "SparkSession") -> None:
    assert await collected(await to_dataframe(rx.empty(), spark, SCHEMA)) == []


async def test_more_rows_than_the_limit_raise(spark: "SparkSession") -> None:
    with pytest.raises(TooManyElements, match="limit=10 rows"):
        await to_dataframe(rows(11), spark, SCHEMA, limit=10)
    assert len(await collected(await to_dataframe(rows(10), spark, SCHEMA, limit=10))) == 10


# -- write_parquet -----------------------------------------------------------------------------
async def test_rows_are_written_in_commits(spark: "SparkSession", tmp_path: Path) -> None:
    path = tmp_path / "rows"
    written = await write_parquet(rows(250), spark, path, SCHEMA, batch=100)
    assert written == WriteResult(rows=250, commits=3)
    assert str(written) == "250 rows in 3 commits"
    found = await asyncio.to_thread(lambda: spark.read.parquet(str(path)))
    assert await collected(found) == [(number, f"n{number}") for number in range(250)]
    assert len(await asyncio.to_thread(lambda: [*path.glob("*.parquet")])) == 3


async def test_a_small_batch_is_written_after_the_given_time(
    spark: "SparkSession", tmp_path: Path
) -> None:
    path = str(tmp_path / "rows")
    more = asyncio.Event()

    async def slow() -> AsyncIterator[tuple[int, str]]:
        yield 1, "a"
        await more.wait()
        yield 2, "b"

    task = asyncio.create_task(
        write_parquet(rx.from_aiter(slow), spark, path, SCHEMA, batch=1000, within=0.05)
    )
    await wait_until(lambda: asyncio.to_thread(lambda: [*(tmp_path / "rows").glob("_SUCCESS")]), 30)
    found = await asyncio.to_thread(lambda: spark.read.parquet(path))
    assert await collected(found) == [(1, "a")]
    more.set()
    assert await task == WriteResult(rows=2, commits=2)


@pytest.mark.thorough
async def test_overwrite_replaces_existing_files(spark: "SparkSession", tmp_path: Path) -> None:
    path = tmp_path / "rows"
    await write_parquet(rows(5), spark, path, SCHEMA)
    await write_parquet(rows(4), spark, path, SCHEMA, batch=2, mode="overwrite")
    found = await asyncio.to_thread(lambda: spark.read.parquet(str(path)))
    assert len(await collected(found)) == 4
    await write_parquet(rx.empty(), spark, path, SCHEMA, mode="overwrite")
    found = await asyncio.to_thread(lambda: spark.read.parquet(str(path)))
    assert await collected(found) == []


async def test_a_commit_has_so_many_bytes_and_a_row_as_well(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows"
    flow = rx.range(20).map(lambda number: (number, "x" * 1000))
    written = await write_parquet(flow, spark, path, SCHEMA, batch_bytes=5500)
    assert written == WriteResult(rows=20, commits=4)
    batch = untyped.RecordBatch.from_pydict({"id": [*range(20)], "name": ["x" * 1000] * 20})
    written = await write_parquet(rx.just(batch), spark, path, SCHEMA, batch_bytes=11_000)
    assert written == WriteResult(rows=20, commits=2)
    monkeypatch.setattr(writing, "LARGEST_COMMIT", 2000)
    long = rx.just((1, "a"), (2, "x" * 3000))
    with pytest.raises(RowRejected, match=r"row 1 .* bytes, and a row may have at most") as raised:
        await write_parquet(long, spark, path, SCHEMA, batch_bytes=1500)
    assert raised.value.row == 1


async def test_a_flow_that_fails_leaves_whole_commits(
    spark: "SparkSession", tmp_path: Path
) -> None:
    path = tmp_path / "rows"

    def no(row: tuple[int, str]) -> tuple[int, str]:
        if row[0] == 7:
            raise ValueError("no")
        return row

    with pytest.raises(ValueError, match="no") as raised:
        await write_parquet(rows(10).map(no), spark, path, SCHEMA, batch=3)
    assert any("had committed 6 rows in 2 commits" in note for note in raised.value.__notes__)
    found = await asyncio.to_thread(lambda: spark.read.parquet(str(path)))
    assert len(await collected(found)) == 6


async def test_a_row_that_does_not_fit_is_not_written(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with pytest.raises(RowRejected, match=r"write_parquet: row 1 .* str is not a whole number"):
        await write_parquet(rx.just((1, "a"), ("x", "b")), spark, tmp_path / "rows", SCHEMA)
    assert not await asyncio.to_thread((tmp_path / "rows").exists)


async def test_the_row_is_counted_from_the_first_element(
    spark: "SparkSession", tmp_path: Path
) -> None:
    flow = rows(7).map(lambda row: row if row[0] != 5 else (5, None, "more"))
    with pytest.raises(RowRejected, match=r"row 5 .* 2 values is needed \(id, name\)") as raised:
        await write_parquet(flow, spark, tmp_path / "rows", SCHEMA, batch=3)
    assert (raised.value.row, raised.value.column) == (5, None)
    assert any("had committed 3 rows" in note for note in raised.value.__notes__)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.row, str(again)) == (5, str(raised.value))


async def test_a_cancellation_says_what_was_committed(spark: "SparkSession") -> None:
    saved = list[str]()
    free = threading.Event()

    def save(df: "DataFrame", mode: str) -> None:
        saved.append(mode)
        if len(saved) == 3:
            free.wait(20)

    task = asyncio.create_task(saved_by(save, rows(9), spark, batch=2))
    await wait_until(lambda: len(saved) == 3)
    task.cancel()
    await asyncio.sleep(0)
    free.set()
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    assert any("had committed 4 rows in 2 commits" in each for each in raised.value.__notes__)


async def test_cancelling_cancels_the_running_commit(spark: "SparkSession", tmp_path: Path) -> None:
    await cancelling_cancels_the_commit(spark, spark, tmp_path)


async def cancelling_cancels_the_commit(
    spark: "SparkSession", session: "SparkSession", folder: Path
) -> None:
    """An endless write of *session* is cancelled; *spark* lists the running jobs."""
    path = folder / "rows"

    def save(df: "DataFrame", mode: str) -> None:
        many = df.selectExpr("id", "explode(sequence(id, id + 1000000)) as n")
        more = many.selectExpr("id", "explode(sequence(n, n + 1000000)) as m").where("m < 0")
        more.write.mode(mode).parquet(str(path))

    task = asyncio.create_task(saved_by(save, rows(5), session, batch=5))
    tracker = await asyncio.to_thread(spark.sparkContext.statusTracker)
    await wait_until(lambda: asyncio.to_thread(tracker.getActiveJobsIds))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def idle() -> bool:
        return not await asyncio.to_thread(tracker.getActiveJobsIds)

    await wait_until(idle)
    assert await asyncio.to_thread(lambda: [*path.glob("*.parquet")]) == []


@pytest.mark.thorough
async def test_the_flow_waits_while_spark_writes(spark: "SparkSession") -> None:
    sent = list[int]()
    free = threading.Event()

    def save(df: "DataFrame", mode: str) -> None:
        free.wait(20)

    flow = rows(1000).do_on_next(lambda row: sent.append(row[0]))
    task = asyncio.create_task(saved_by(save, flow, spark, batch=10))
    await wait_until(lambda: len(sent) >= 10)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(sent) <= 20, "two batches at most"
    free.set()
    assert (await task).rows == 1000


# -- append_table ------------------------------------------------------------------------------
async def test_a_table_is_created_and_appended_to(
    spark: "SparkSession", request: pytest.FixtureRequest
) -> None:
    name = f"t_{abs(hash(request.node.name))}"
    try:
        await append_table(rows(3), spark, name, SCHEMA)
        await append_table(rows(2), spark, name, SCHEMA)
        assert len(await collected(await asyncio.to_thread(spark.table, name))) == 5
    finally:
        await asyncio.to_thread(spark.sql, f"drop table if exists {name}")


TABLES = {
    "partitioned": "using parquet partitioned by (name)", "orc": "using orc", "csv": "using csv",
    "buckets": "using parquet clustered by (id) into 4 buckets",
}  # fmt: skip


async def test_a_table_that_exists_is_appended_to_by_its_own_definition(
    spark: "SparkSession",
) -> None:
    for kind, definition in TABLES.items():
        table = f"t_{kind}"
        await asyncio.to_thread(spark.sql, f"drop table if exists {table}")
        try:
            create = f"create table {table} (id long, name string) {definition}"
            await asyncio.to_thread(spark.sql, create)
            flow = rx.just(("x", 1), {"ID": 2, "name": "y"}, ("z", 3))
            written = await append_table(flow, spark, table, "name string, ID long", batch=2)
            assert written == WriteResult(3, 2)
            df = await asyncio.to_thread(spark.table, table)
            assert await collected(df) == [(1, "x"), (2, "y"), (3, "z")]
        finally:
            await asyncio.to_thread(spark.sql, f"drop table if exists {table}")


async def test_a_table_with_other_columns_and_a_view_are_refused_at_once(
    spark: "SparkSession",
) -> None:
    def refused(element: int) -> Any:
        pytest.fail("it was requested")

    flow = rx.just(1).map(refused)
    try:
        await asyncio.to_thread(spark.sql, "create table t_other (id long, name string) using csv")
        await asyncio.to_thread(lambda: spark.range(1).createOrReplaceTempView("t_view"))
        for table, schema, words in (
            ("t_other", "id long, nmae string", "columns id, nmae, and the table .* id, name"),
            ("t_other", "id int, name string", "column 'id' is int .* bigint in the table"),
            ("t_view", "id long", "'t_view' is a temporary view"),
        ):
            with pytest.raises(ValueError, match=words):
                await append_table(flow, spark, table, schema)
    finally:
        await asyncio.to_thread(spark.sql, "drop table if exists t_other")
        await asyncio.to_thread(lambda: spark.catalog.dropTempView("t_view"))


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"batch": 0}, ValueError, "batch must be at least 1"),
    ({"batch_bytes": 2**30 + 1}, ValueError, r"batch_bytes must be at most .* less than 2 GiB"),
    ({"files": 0}, ValueError, "files must be at least 1"),
    ({"files": 2**31}, ValueError, "files must be at most 2147483647"),
    ({"within": -1}, ValueError, "within must be more than 0"),
    ({"mode": "ignore"}, ValueError, "mode must be one of"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), WRONG)
async def test_wrong_arguments_raise_at_once(
    spark: "SparkSession", arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        await write_parquet(rx.empty(), spark, "nowhere", SCHEMA, **arguments)


@pytest.mark.parametrize(("table", "kind"), [(5, TypeError), (None, TypeError), ("", ValueError)])
async def test_the_name_of_a_table_is_a_text(
    spark: "SparkSession", table: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="append_table: table must"):
        await append_table(rows(3), spark, table, SCHEMA)
