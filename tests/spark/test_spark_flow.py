"""Push-down: the operators of a SparkFlow, and explain()."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import pytest

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.spark import SparkFlow, from_dataframe, read_mode
from reactive_aio.spark._internals import arrow_schema
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import Trace, wait_released

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_aio import Flow
    from reactive_aio.spark.read_mode import ReadMode

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_factories=["asyncio"])]

Change = Callable[[SparkFlow[Any]], "Flow[Any]"]


@pytest.fixture(params=["arrow", "rows", "connect"])
def mode(request: pytest.FixtureRequest) -> "ReadMode":
    return cast("ReadMode", request.param)


def functions_of(session: "SparkSession") -> Any:
    """Return ``pyspark.sql.functions``, or those of Spark Connect."""
    connect = type(session).__module__.startswith("pyspark.sql.connect")
    return import_module(f"pyspark.sql.{'connect.' if connect else ''}functions")


async def read(session: "SparkSession", mode: "ReadMode", change: Change) -> list[Any]:
    """Read rows 0 to 19 of two partitions, after *change*, which calls the JVM."""

    def build() -> "Flow[Any]":
        df = session.range(0, 20, 1, 2).selectExpr("id", "id % 3 as rest")
        return change(from_dataframe(df, mode=mode, rows="tuple"))

    return await (await asyncio.to_thread(build)).to_list(limit=20)


async def test_where_takes_sql_and_columns(session: "SparkSession", mode: "ReadMode") -> None:
    functions = functions_of(session)

    found = await read(
        session, mode, lambda flow: flow.where("id > 15").where(functions.col("rest") == 0)
    )
    assert found == [(18, 0)]


async def test_select_makes_other_columns(session: "SparkSession", mode: "ReadMode") -> None:
    functions = functions_of(session)

    def change(flow: SparkFlow[Any]) -> SparkFlow[Any]:
        changed = flow.where("id < 2").select("id * 2 as twice", functions.col("rest"))
        assert changed.schema.names == ["twice", "rest"]
        assert flow.schema.names == ["id", "rest"], "the flow itself is unchanged"
        return changed

    assert await read(session, mode, change) == [(0, 0), (2, 1)]


async def test_limit_and_sample(session: "SparkSession", mode: "ReadMode") -> None:
    assert len(await read(session, mode, lambda flow: flow.limit(7))) == 7
    some = await read(session, mode, lambda flow: flow.sample_fraction(0.5, seed=1))
    assert 0 < len(some) < 20
    assert some == await read(session, mode, lambda flow: flow.sample_fraction(0.5, seed=1))


async def test_a_spark_flow_has_the_operators_of_every_flow(
    session: "SparkSession", mode: "ReadMode"
) -> None:
    def change(flow: SparkFlow[Any]) -> "Flow[Any]":
        return flow.where("id < 4").filter(lambda row: row[1] > 0).map(lambda row: row[0])

    assert await read(session, mode, change) == [1, 2]


@pytest.mark.parametrize("word", ["where", "select"])
async def test_a_python_function_is_refused(spark: "SparkSession", word: str) -> None:
    flow = await asyncio.to_thread(lambda: from_dataframe(spark.range(3)))
    with pytest.raises(TypeError, match=rf"{word}: a column or SQL .* use (filter|map)\(\)"):
        getattr(flow, word)(lambda row: row.id > 1)  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]


async def test_an_unknown_column_raises_at_once(spark: "SparkSession") -> None:
    from pyspark.errors import AnalysisException

    flow = await asyncio.to_thread(lambda: from_dataframe(spark.range(3)))
    with pytest.raises(AnalysisException, match="missing"):
        await asyncio.to_thread(flow.where, "missing > 1")


async def test_without_an_unfit_column_the_mode_is_arrow(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_odd(schema: Any) -> Any:
        if "odd" in schema.names:
            raise TypeError("no such type")
        return arrow_schema(schema)

    def build() -> tuple[str, str]:
        flow = from_dataframe(spark.sql("select 1 as fine, 2 as odd"))
        return flow.mode.mode, flow.select("fine").mode.mode

    monkeypatch.setattr(read_mode, "arrow_schema", refuse_odd)
    assert await asyncio.to_thread(build) == ("rows", "arrow")


# -- take -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["arrow", "rows"])
async def test_spark_computes_no_more_than_is_taken(trace: Trace) -> None:
    """The eleventh row of the partition would take ten minutes."""
    traced = await trace(
        lambda s: s.range(0, 40, 1, 2).selectExpr(
            "id", "if(id % 20 < 10, '', reflect('java.lang.Thread', 'sleep', 600000L)) as slept"
        )
    )
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(traced.flow.take(10))
    await probe.end()
    assert [row.id for row in probe.elements] == [*range(10)]
    await wait_released(traced)


async def test_the_first_rows_are_taken_in_order(session: "SparkSession", mode: "ReadMode") -> None:
    assert await read(session, mode, lambda flow: flow.take(3)) == [(0, 0), (1, 1), (2, 2)]
    several = await read(session, mode, lambda flow: flow.where("id > 8").take(3))
    assert several == [(9, 0), (10, 1), (11, 2)]
    assert len(await read(session, mode, lambda flow: flow.take(2**40))) == 20


@pytest.mark.parametrize(
    ("count", "kind", "words"),
    [("5", TypeError, "must be an int"), (-1, ValueError, "at least 0"),
     (2**31, ValueError, "at most 2147483647")],
)  # fmt: skip
async def test_a_number_that_spark_cannot_take_is_refused(
    spark: "SparkSession", count: Any, kind: type[Exception], words: str
) -> None:
    df = await asyncio.to_thread(spark.range, 3)
    flow = await asyncio.to_thread(from_dataframe, df)
    with pytest.raises(kind, match=f"limit: count .*{words}"):
        flow.limit(count)
    with pytest.raises(ValueError, match="from_dataframe: batch must be at most 2147483647"):
        await asyncio.to_thread(lambda: from_dataframe(df, batch=2**31))


async def test_batches_have_thousands_of_rows(spark: "SparkSession") -> None:
    def build() -> "Flow[Any]":
        return from_dataframe(spark.range(0, 10_000, 1, 2), rows="batch")

    batches = await (await asyncio.to_thread(build)).to_list(limit=9)
    assert [batch.num_rows for batch in batches] == [4096, 904] * 2


async def test_batches_are_taken_whole(spark: "SparkSession") -> None:
    def build() -> "Flow[Any]":
        return from_dataframe(spark.range(0, 20, 1, 2), rows="batch").take(1)

    (batch,) = await (await asyncio.to_thread(build)).to_list(limit=2)
    assert batch.num_rows == 10


@pytest.mark.parametrize("mode", ["arrow", "rows"])
async def test_take_works_without_the_partition_limit(
    spark: "SparkSession", mode: "ReadMode", monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise AttributeError("LocalLimit")

    monkeypatch.setattr("reactive_aio.spark.dataframe.limit_partitions", missing)
    assert await read(spark, mode, lambda flow: flow.take(2)) == [(0, 0), (1, 1)]


# -- explain --------------------------------------------------------------------------------------
async def test_explain_shows_sparks_plan_and_where_the_flow_begins(spark: "SparkSession") -> None:
    def build() -> list[str]:
        flow = from_dataframe(spark.range(3)).where("id > 1").take(2).map(str)
        return flow.explain().splitlines()

    first, mode, title, *plan = await asyncio.to_thread(build)
    assert first == "island (one loop, pushed): from_dataframe → take(2) → map(str)"
    assert mode == "    arrow: Spark, PyArrow and every column allow it"
    assert title == "    == Physical Plan =="
    assert any("LocalLimit 2" in line for line in plan)
    assert any("Filter (id" in line for line in plan)
    assert plan[-1].startswith("holds at most 4095 elements")
