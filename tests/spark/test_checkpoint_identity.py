"""A checkpoint is valid for the same rows in the same partitions, and for no others."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions

from reactive_aio.delivery import deliveries
from reactive_aio.spark import (
    Checkpoint,
    CheckpointMismatch,
    UnsupportedDataFrame,
    from_dataframe,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])


# -- the input and the query -----------------------------------------------------------------------
@ONE_LOOP
async def test_other_input_is_refused(spark: "SparkSession", tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")

    def write() -> "DataFrame":
        spark.range(0, 1000, 1, 2).write.parquet(path)
        return spark.read.parquet(path).repartition(10)

    numbers = await asyncio.to_thread(write)

    def build(change: Callable[["DataFrame"], "DataFrame"]) -> Any:
        return from_dataframe(change(numbers), checkpoint=tmp_path / "checkpoint")

    await (await asyncio.to_thread(build, lambda df: df)).take(1).run()
    await (await asyncio.to_thread(build, lambda df: df)).take(1).run()
    other = await asyncio.to_thread(build, lambda df: df.where("id > 1"))
    with pytest.raises(CheckpointMismatch, match="the query is another one"):
        await other.run()

    def append() -> Any:
        spark.range(3).write.mode("append").parquet(path)
        return from_dataframe(
            spark.read.parquet(path).repartition(10), checkpoint=tmp_path / "checkpoint"
        )

    with pytest.raises(CheckpointMismatch, match="the input has changed since"):
        await (await asyncio.to_thread(append)).run()


def test_files_that_have_changed_are_noticed_by_the_same_flow(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Spark lists the files of a DataFrame once, and would take others for the same."""
    file = tmp_path / "lines" / "a.txt"
    file.parent.mkdir()
    file.write_text("a\n")
    lines = spark.read.text(str(file.parent))

    def build(checkpoint: str) -> Any:
        return from_dataframe(lines, rows="tuple", checkpoint=tmp_path / checkpoint)

    def read(flow: Any) -> list[Any]:
        return asyncio.run(deliveries(flow).ack_after(lambda row: row).to_list())

    first = build("first")
    assert read(first) == [("a",)]
    file.write_text("other\nlines\n")
    with pytest.raises(CheckpointMismatch, match="the input has changed since"):
        read(first)
    assert read(build("second")) == [("other",), ("lines",)], "its checkpoint names these files"
    file.unlink()
    with pytest.raises(CheckpointMismatch, match="the input has changed since"):
        read(first)


# Each pair is a query, and another one that Spark describes in nearly the same words.
QUERIES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "numbers in a literal": (lambda df: df.where("s = '#1'"), lambda df: df.where("s = '#2'")),
    "literals with commas": (
        lambda df: df.where("s in ('a', 'b')"),
        lambda df: df.where("s in ('a,b')"),
    ),
    "the type of a literal": (
        lambda df: df.selectExpr("1 as n"),
        lambda df: df.selectExpr("'1' as n"),
    ),
    "bytes": (lambda df: df.selectExpr("s", "X'00'"), lambda df: df.selectExpr("s", "X'01'")),
    "options of a function": (
        lambda df: df.selectExpr("from_csv(s, 'a int', map('sep', '#1')) as x"),
        lambda df: df.selectExpr("from_csv(s, 'a int', map('sep', '#2')) as x"),
    ),
    "columns of one name": (
        lambda df: df.alias("a").crossJoin(df.alias("b")).select("a.s"),
        lambda df: df.alias("a").crossJoin(df.alias("b")).select("b.s"),
    ),
}


@pytest.fixture
def words(spark: "SparkSession", tmp_path: Path) -> "DataFrame":
    path = str(tmp_path / "words")
    spark.sql("select concat('#', id) as s from range(0, 4, 1, 2)").write.parquet(path)
    return spark.read.parquet(path)


def take_nothing(df: "DataFrame", checkpoint: Path) -> None:
    """Make the checkpoint, or look whether it is of this query."""
    asyncio.run(from_dataframe(df, checkpoint=checkpoint).run())


@pytest.mark.parametrize("name", QUERIES)
def test_another_query_is_refused(words: "DataFrame", tmp_path: Path, name: str) -> None:
    query, other = QUERIES[name]
    take_nothing(query(words), tmp_path)
    take_nothing(query(words), tmp_path)
    with pytest.raises(CheckpointMismatch, match="the query is another one"):
        take_nothing(other(words), tmp_path)


@pytest.mark.parametrize(
    ("option", "value"), [("sep", ";"), ("header", "true"), ("dateFormat", "yyyy")]
)
def test_files_that_are_parsed_otherwise_are_another_query(
    spark: "SparkSession", tmp_path: Path, option: str, value: str
) -> None:
    spark.sql("select '1,2;3' as line from range(4)").write.text(str(tmp_path / "csv"))

    def read(**options: str) -> "DataFrame":
        return spark.read.schema("a string").options(**options).csv(str(tmp_path / "csv"))

    take_nothing(read(), tmp_path)
    take_nothing(read(accessToken="one"), tmp_path)  # a credential may be another one each time
    with pytest.raises(CheckpointMismatch, match="the query is another one"):
        take_nothing(read(**{option: value}), tmp_path)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "false")],
)
def test_a_setting_that_decides_rows_makes_another_query(
    spark: "SparkSession", words: "DataFrame", tmp_path: Path, setting: str, value: str
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    df = session.read.parquet(str(tmp_path / "words")).selectExpr("date(s) as day")
    take_nothing(df.where("day is null and false"), tmp_path)
    session.conf.set(setting, value)
    with pytest.raises(CheckpointMismatch, match="the query is another one"):
        take_nothing(df.where("day is null and false"), tmp_path)


def test_another_kind_of_join_divides_rows_otherwise(
    spark: "SparkSession", words: "DataFrame", tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "2")  # as many as the files have

    def join() -> "DataFrame":
        files = session.read.parquet(str(tmp_path / "words"))
        return files.join(session.range(9).selectExpr("concat('#', id) as s"), "s")

    take_nothing(join(), tmp_path)
    take_nothing(join(), tmp_path)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    with pytest.raises(CheckpointMismatch, match=r"otherwise \(physical plan .*; now physical pl"):
        take_nothing(join(), tmp_path)


SAME: dict[str, str] = {
    "a subquery": "select id as n, (select max(id) from range(3)) as m from view",
    "a view": "select * from view where id > 1",
    "a common table": "with a as (select * from view) select * from a x join a y on x.id = y.id",
    "a lambda": "select transform(array(id), x -> x + 1) from view",
    "bytes": "select X'ff' from view",
    "a literal with a number": "select '#1', '#2', '#10', '#20' from view",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SAME)
def test_the_identity_is_the_same_in_another_session(
    spark: "SparkSession", tmp_path: Path, name: str
) -> None:
    """Spark numbers expressions, and the numbers are others each time."""
    untyped: Any = functions
    for session in (spark.newSession(), spark.newSession()):
        session.range(0, 9, 1, 3).createOrReplaceTempView("view")
        session.conf.set("spark.sql.adaptive.enabled", "false")
        df: Any = session.sql(SAME[name])
        df = df.observe("rows", untyped.count("*"))  # which has a number as well
        take_nothing(df, tmp_path)
    header = json.loads((tmp_path / "partitions.jsonl").read_text().splitlines()[0])
    assert header.keys() == {"query", "input", "layout"}
    assert "partitions 3, parallelism 2" in header["layout"]


# -- what cannot be repeated -----------------------------------------------------------------------
UNREPEATABLE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rand": (lambda df: df.selectExpr("rand() as x"), "not deterministic: Project .*rand"),
    "inside": (lambda df: df.where("id > rand() * 9").select("id"), "not deterministic: Filter"),
    "limit": (lambda df: df.limit(3), "takes any rows"),
    "now": (lambda df: df.where("now() > timestamp_seconds(id)"), "another value the next time"),
    "clock": (lambda df: df.selectExpr("id + unix_timestamp() as x"), "another value the next tim"),
    "user": (lambda df: df.where("current_user() = 'x'"), "current_user.*another value the next"),
    "below": (
        lambda df: df.where("id in (select day(current_date()) from range(1))"),
        "another value the next time.*current_date",
    ),
    "today": (
        lambda df: df.where("cast('today' as date) > date'2020-01-01'"),
        "a cast of 'today'.*another value the next time",
    ),
    "yesterday": (
        lambda df: df.where("exists (select cast('yesterday' as date) from range(1))"),
        "a cast of 'today'.*another value the next time",
    ),
    "cache": (lambda df: df.selectExpr("id * 2 as id").cache(), r"cache\(\).*unpersist"),
    "order": (
        lambda df: df.selectExpr("id % 3 as id").orderBy("id"),
        "drawn from a sample .*orderBy",
    ),
    "group": (
        lambda df: df.groupBy(df.id % 3).count(),
        "merges its partitions.*adaptive.enabled=false",
    ),
}


@pytest.mark.parametrize("name", UNREPEATABLE)
def test_a_query_with_other_rows_the_next_time_is_refused(
    spark: "SparkSession", tmp_path: Path, name: str
) -> None:
    change, words = UNREPEATABLE[name]
    df = change(spark.range(9))
    with pytest.raises(UnsupportedDataFrame, match=words):
        from_dataframe(df, checkpoint=tmp_path)
    df.unpersist()
    flow = from_dataframe(spark.range(9), checkpoint=tmp_path)
    with pytest.raises(UnsupportedDataFrame, match="not deterministic"):
        flow.select("rand() as x")


def test_an_unknown_input_needs_the_name_of_its_version(
    spark: "SparkSession", tmp_path: Path
) -> None:
    untyped: Any = spark
    df = untyped.createDataFrame([(1,), (2,)], "n long")
    with pytest.raises(UnsupportedDataFrame, match=r"the data that LogicalRDD.*snapshot='…'"):
        from_dataframe(df, checkpoint=tmp_path)
    flow = from_dataframe(df, checkpoint=Checkpoint(tmp_path, snapshot="monday"), rows="tuple")

    async def read() -> list[int]:
        rows = await deliveries(flow).ack_after(lambda row: row).to_list()
        return [row[0] for row in rows]

    assert sorted(asyncio.run(read())) == [1, 2]
    assert asyncio.run(read()) == []
