"""A row that does not fit a schema is named, with its column."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

import pytest
from pyspark.sql import Row

from reactive_aio.spark import RowMismatch, RowRejected
from reactive_aio.spark.executors.row_encoder import RowEncoder
from reactive_aio.spark.rejected_rows import table_of

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("schema", "row", "column", "words"),
    [
        ("n long, a array<int>", (1, [1, "x"]), "a", "type array<int> cannot hold"),
        ("n long, b byte", (1, 300), "b", "300 (int)"),
        ("n long, d long", (1, 2**70), "d", "too large"),
        ("n long, t long not null", (1, None), "t", "type bigint, never null"),
        ("n long, s struct<x: int>", {"n": 1, "s": {"x": "y"}}, "s", "'y'"),
        ("n long, s string", 7, None, "a tuple, Row or dict of 2 values"),
        ("n long, s string", "ab", None, "a tuple, Row or dict of 2 values"),
        ("n long, s string", b"ab", None, "a tuple, Row or dict of 2 values"),
    ],
)
def test_the_row_and_the_column_are_named(
    schema: str, row: Any, column: str | None, words: str
) -> None:
    from pyspark.sql.types import StructType

    columns = cast("StructType", cast("Any", StructType).fromDDL(schema))
    good: Any = {name: 1 if name == "t" else None for name in columns.names}
    elements = [good if isinstance(row, dict) else tuple(good.values())] * 9
    assert table_of(elements, columns, function="f", first=100).num_rows == 9
    with pytest.raises(RowRejected) as raised:
        table_of([*elements[:4], row, *elements], columns, function="f", first=100)
    assert (raised.value.row, raised.value.column) == (104, column)
    assert str(raised.value).startswith("f: row 104 (counted from 0) does not fit the schema: ")
    assert words in str(raised.value)
    assert raised.value.__cause__ is not None


INEXACT: list[tuple[str, Any, str]] = [
    ("long", 19.99, "float is not a whole number"),
    ("array<int>", [1, None, 1.5], "float is not a whole number"),
    ("struct<n: int>", {"n": 1.5}, "float is not a whole number"),
    ("struct<n: int>", (1.5,), "float is not a whole number"),
    ("struct<n: int>", Row(n=1.5), "float is not a whole number"),
    ("map<string, int>", {"a": 1.5}, "float is not a whole number"),
    ("map<int, string>", {1.5: "a"}, "float is not a whole number"),
    ("date", 5, "int is not a datetime.date"),
    ("array<struct<on: map<date, int>>>", [{"on": {5: 1}}], "int is not a datetime.date"),
    ("interval day to second", 5, "int is not a datetime.timedelta"),
    ("decimal(5, 2)", 1.5, "float is not a decimal.Decimal"),
    ("timestamp", date(2024, 2, 29), "date is not a datetime.datetime"),
    ("timestamp_ntz", datetime(2024, 2, 29, tzinfo=UTC), "with a time zone"),
    ("binary", "x", "str is not bytes"),
    ("array<decimal(5, 2)>", (Decimal(1),), "a list is needed"),
    ("struct<a: int, b: int>", (1,), "a tuple of 2 values is needed"),
]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("kind", "value", "words"), INEXACT)
def test_no_value_is_changed_to_fit(kind: str, value: Any, words: str) -> None:
    from pyspark.sql.types import StructType

    columns = cast("StructType", cast("Any", StructType).fromDDL(f"n long, v {kind}"))
    rows = [(1, None), (2, value)]
    with pytest.raises(RowRejected, match=words) as rejected:
        table_of(rows, columns, function="f", first=0)
    assert (rejected.value.row, rejected.value.column) == (1, "v")
    with pytest.raises(RowMismatch, match=f"row 1 of the output .* column 'v' .*{words}"):
        list(RowEncoder(columns, 100).encode(rows))


@pytest.mark.usefixtures("spark")
def test_rows_of_each_kind_may_be_mixed() -> None:
    from pyspark.sql.types import StructType

    columns = cast("StructType", cast("Any", StructType).fromDDL("n int, v struct<m: int>"))
    rows: list[Any] = [(1, (1,)), Row(n=2, v=Row(m=2)), [3, {"m": 3}], {"n": 4}, (5, Point(5))]
    found = table_of(rows, columns, function="f", first=0).to_pylist()
    assert found == [{"n": n, "v": None if n == 4 else {"m": n}} for n in range(1, 6)]


class Point:
    def __init__(self, m: int) -> None:
        self.m = m
