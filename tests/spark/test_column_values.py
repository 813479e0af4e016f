"""Rows equal those of collect(), for every type of Spark SQL."""

import asyncio
import math
import os
import pickle
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from reactive_aio.spark import UnsupportedDataFrame, from_dataframe
from reactive_aio.spark.rows import UnreadableType, columns_of, row_converter, unreadable_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark

MOMENT = "timestamp'2013-07-01 10:00:00.123456'"
VALUES = {
    "null": "null",
    "boolean": "true",
    "byte": "1Y",
    "short": "-1S",
    "int": "2147483647",
    "long": "-9223372036854775807L",
    "float": "cast(1.5 as float)",
    "nan": "cast('nan' as float)",
    "infinity": "cast('-infinity' as double)",
    "double": "1e300D",
    "decimal": "1.50BD",
    "longest decimal": "cast('12345678901234567890123456789012345.678' as decimal(38,3))",
    "string": "'naïve \U0001f600'",
    "empty string": "''",
    "collated string": "'x' collate UNICODE_CI",
    "binary": "X'00ff'",
    "date": "date'2013-01-31'",
    "first date": "date'0001-01-01'",
    "last date": "date'9999-12-31'",
    "timestamp": MOMENT,
    "timestamp before 1970": "timestamp'1800-01-01 00:00:00.000001'",
    "timestamp in summer": "timestamp'2024-07-01 00:00:00'",
    "timestamp that happens twice": "timestamp'2013-11-03 05:30:00 UTC'",
    "timestamp_ntz": "timestamp_ntz'1900-01-01 10:00:00.1'",
    "last timestamp_ntz": "timestamp_ntz'9999-12-31 23:59:59.999999'",
    "time": "time'10:11:12.123456'",
    "day-time interval": "interval '-1 02:03:04.5' day to second",
    "array": "array(1, null, 3)",
    "empty array": "slice(array(1), 1, 0)",
    "array of timestamps": f"array({MOMENT}, null)",
    "array of arrays": f"array(array({MOMENT}), null, slice(array({MOMENT}), 1, 0))",
    "array of structs": "array(named_struct('a', 1), null)",
    "map": "map('k', 1, 'l', null)",
    "empty map": "cast(map() as map<string, int>)",
    "map of maps": f"map('k', map(date'2013-01-01', {MOMENT}))",
    "struct": "named_struct('a', 1, 'b', named_struct('c', 'x', 'd', null))",
    "struct without fields": "struct()",
    "struct with a name twice": "named_struct('a', 1, 'a', 2)",
    "struct with a method's name": "named_struct('count', 1, 'index', 2, '__class__', 3)",
    "array of maps of structs": f"array(map('k', array(named_struct('a', {MOMENT}))))",
    "variant": """parse_json('{"a": [1, null]}')""",
    "array of variants": "array(parse_json('1'), null)",
    "array of nothing": "array()",
    "array of arrays of nothing": "array(array(), null)",
    "map of nothing": "map()",
    "array of maps of nothing": "array(map(), null)",
    "map to nothing": "map('k', null)",
    "map to maps of nothing": "map('k', map())",
    "struct of nothing": "named_struct('a', null, 'b', array())",
    "geometry": "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
    "geography": "st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')",
}
OF_NOTHING = [name for name in VALUES if "nothing" in name]
"""Columns of which PySpark cannot make Arrow tables."""


@pytest.fixture(params=["arrow", "rows", "connect"])
def mode(request: pytest.FixtureRequest) -> "ReadMode":
    return cast("ReadMode", request.param)


# Types of Spark 4 that need a setting.
PREVIEW = ("spark.sql.timeType.enabled", "spark.sql.geospatial.enabled")


def plain(value: Any) -> Any:
    """Return a value in a form that shows every difference of types, names and NaN."""
    from pyspark.sql import Row
    from pyspark.sql.types import Geography, Geometry, VariantVal

    kind: type[Any] = value.__class__  # not isinstance(), which would narrow the type
    if issubclass(kind, float) and math.isnan(value):
        return "nan"
    if issubclass(kind, Row):
        names = getattr(value, "__fields__", [])
        return ("Row", names, [plain(each) for each in value])
    if issubclass(kind, list):
        return [plain(each) for each in value]
    if issubclass(kind, dict):
        return {key: plain(each) for key, each in value.items()}
    if issubclass(kind, VariantVal | Geometry | Geography):
        return (kind, vars(value))
    return (kind, value)


def table(spark: "SparkSession") -> "DataFrame":
    """Every type in a column, each with a null above and below it."""
    for key in PREVIEW:
        spark.conf.set(key, "true")
    columns = [f"if(id = 1, {value}, null) as `{name}`" for name, value in VALUES.items()]
    return spark.range(0, 3, 1, 1).selectExpr(*columns)


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kathmandu"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of this process, which Spark's session need not share."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_every_value_equals_that_of_collect(
    session: "SparkSession", mode: "ReadMode"
) -> None:
    def build() -> tuple[Any, Any]:
        df = table(session)
        return from_dataframe(df, mode=mode), df.collect()

    flow, expected = await asyncio.to_thread(build)
    assert flow.mode.mode == mode
    found = await flow.to_list(limit=3)
    for name in VALUES:
        assert [plain(row[name]) for row in found] == [plain(row[name]) for row in expected], name


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_user_defined_type_is_deserialized(
    session: "SparkSession", mode: "ReadMode"
) -> None:
    def build() -> tuple[Any, Any]:
        from pyspark.ml.linalg import Vectors, VectorUDT
        from pyspark.sql.types import ArrayType, StructField, StructType
        from pyspark.testing.objects import ExamplePoint, ExamplePointUDT

        schema = StructType(
            [
                StructField("point", ExamplePointUDT()),
                StructField("vector", VectorUDT()),
                StructField("points", ArrayType(ExamplePointUDT())),
            ]
        )
        one = cast("Any", ExamplePoint)(1.0, 2.0)
        rows = [(one, Vectors.dense(1, 2), [one, None]), (None, Vectors.sparse(3, {1: 2.0}), None)]
        df = cast("Any", session).createDataFrame(rows, schema)
        return from_dataframe(df, mode=mode), df.collect()

    flow, expected = await asyncio.to_thread(build)
    assert await flow.to_list(limit=2) == expected


KINDS: dict[str, Any] = {
    "tuple": [(0, "a"), (1, "a")],
    "dict": [{"id": 0, "name": "a"}, {"id": 1, "name": "a"}],
    "row": [(0, "a"), (1, "a")],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_rows_have_the_requested_kind(
    session: "SparkSession", mode: "ReadMode", kind: Any
) -> None:
    def build() -> Any:
        df = session.range(0, 2, 1, 1).selectExpr("id", "'a' as name")
        return cast("Any", from_dataframe)(df, mode=mode, rows=kind)

    rows = await (await asyncio.to_thread(build)).to_list(limit=2)
    assert rows == KINDS[kind]
    if kind == "tuple":
        assert type(rows[0]) is tuple


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_row_is_pysparks(spark: "SparkSession") -> None:
    from pyspark.sql import Row

    def build() -> Any:
        df = spark.range(1).selectExpr("id", "2 as count", "3 as `a b`", "4 as id")
        return from_dataframe(df, mode="arrow")

    row = await (await asyncio.to_thread(build)).first()
    assert isinstance(row, Row)
    assert (row.id, row["a b"], row["count"]) == (0, 3, 2)
    assert callable(row.count), "a tuple's own method, as in a Row"
    assert repr(row) == "Row(id=0, count=2, a b=3, id=4)"
    again = pickle.loads(pickle.dumps(row))
    assert (again, type(again)) == (row, Row)
    assert row.asDict() == {"id": 4, "count": 2, "a b": 3}
    with pytest.raises(AttributeError):
        _ = row.missing


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_batches_are_those_of_to_arrow(spark: "SparkSession") -> None:
    import pyarrow

    def build() -> tuple[Any, Any]:
        # toArrow() itself fails on a null of a struct, so of what is nested only lists.
        df = table(spark).select("int", "string", "timestamp", "decimal", "array of arrays")
        return from_dataframe(df, rows="batch", batch=2), cast("Any", df).toArrow()

    flow, expected = await asyncio.to_thread(build)
    batches = await flow.to_list(limit=2)
    assert [batch.num_rows for batch in batches] == [2, 1]
    untyped: Any = pyarrow
    found = untyped.Table.from_batches(batches)
    assert found.equals(expected)


NESTED = {
    "array": "transform(sequence(1, id), each -> date_add(date'2000-01-01', int(each)))",
    "map": "map_from_entries(array(struct(id, timestamp_seconds(id))))",
    "struct": "named_struct('a', id, 'b', named_struct('c', array(timestamp_seconds(id))))",
    "structs": "array(named_struct('a', id), null, named_struct('a', -id))",
    "variant": "parse_json(cast(id as string))",
    "null": "if(id % 3 = 0, null, named_struct('a', id))",
}


@pytest.mark.parametrize("name", NESTED)
def test_a_slice_of_a_batch_has_the_rows_of_the_slice(spark: "SparkSession", name: str) -> None:
    """Spark Connect sends large batches, of which a part at a time becomes rows."""
    df: Any = spark.range(0, 7, 1, 1).selectExpr(f"{NESTED[name]} as value")
    expected = [plain(row.value) for row in df.collect()]
    batch = asyncio.run(from_dataframe(df, rows="batch").first())
    convert = row_converter(df.schema, "row")
    for start, stop in [(0, 7), (2, 5), (6, 7), (3, 3)]:
        rows = [plain(row.value) for row in convert(batch.slice(start, stop - start))]
        assert rows == expected[start:stop], (start, stop)


OUT_OF_RANGE = {
    "timestamp": "timestamp_micros(-62135596800000001 - 172800000000)",
    "date": "date_add(date'9999-12-31', 1)",
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_time_that_python_cannot_hold_is_a_value_error(
    session: "SparkSession", mode: "ReadMode", name: str
) -> None:
    def build() -> Any:
        odd = f"if(id = 1, {OUT_OF_RANGE[name]}, null) as odd"
        return from_dataframe(session.range(0, 2, 1, 1).selectExpr("id", odd), mode=mode)

    flow = await asyncio.to_thread(build)
    with pytest.raises(ValueError, match=r"range|years 1 to 9999") as raised:
        await flow.to_list(limit=2)
    if mode != "rows":  # where PySpark converts the values
        assert str(raised.value).startswith("column 'odd': ")
        assert "cast the column to a string" in str(raised.value)


# Hexadecimal bytes, and what Java makes of them.
NOT_UTF_8: Final = {
    "636166E9": "caf\ufffd", "E18041": "\ufffdA", "F0808041": "\ufffd\ufffd\ufffdA",
    "EDA08041": "\ufffdA", "EDA041": "\ufffdA", "EDB080EDB0": "\ufffd\ufffd", "C3A9": "é",
}  # fmt: skip


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_bytes_that_are_not_utf_8_are_replaced_as_by_collect(
    session: "SparkSession", mode: "ReadMode"
) -> None:
    def build() -> Any:
        odd = [f"(cast(X'{text}' as string))" for text in NOT_UTF_8]
        df = session.sql(f"select s from values {', '.join([*odd, '(null)'])} as t(s)").coalesce(1)
        nested = df.selectExpr("s", "array(array(s, 'é'), null) a", "struct(s) t", "map('k', s) m")
        return from_dataframe(nested, mode=mode, rows="tuple")

    flow = await asyncio.to_thread(build)
    expected = [*NOT_UTF_8.values(), None]
    assert await flow.to_list() == [
        (s, [[s, "é"], None], (s,), {"k": s}) for s in expected
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["interval '1-2' year to month", "make_interval(1, 2, 3)"])
@pytest.mark.parametrize("form", ["{}", "array(named_struct('a', map('k', {})))"])
def test_a_type_without_a_python_value_is_refused(
    session: "SparkSession", kind: str, form: str, mode: "ReadMode"
) -> None:
    df = session.sql(f"select 1 as fine, {form.format(kind)} as odd")
    with pytest.raises(UnsupportedDataFrame, match=r"column 'odd' of type .*interval.* Cast it"):
        from_dataframe(df, mode=mode)


def test_a_legacy_variable_allows_months(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = spark.sql("select interval '1-2' year to month as odd").schema
    assert unreadable_column(schema)
    monkeypatch.setitem(os.environ, "PYSPARK_YM_INTERVAL_LEGACY", "1")
    assert unreadable_column(schema) is None


def test_an_unknown_type_is_refused(spark: "SparkSession") -> None:
    from pyspark.sql.types import AtomicType, StructField, StructType

    class NewType(AtomicType):
        pass

    with pytest.raises(UnreadableType, match="new"):
        columns_of(StructType([StructField("x", NewType())]))


def test_dicts_need_unique_column_names(spark: "SparkSession") -> None:
    df = spark.sql("select 1 as a, 2 as b, 3 as a")
    with pytest.raises(UnsupportedDataFrame, match="two columns named 'a'"):
        from_dataframe(df, rows="dict")
