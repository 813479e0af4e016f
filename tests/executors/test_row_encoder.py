"""Rows become Arrow batches of every type, and one that does not fit is named."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow
import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from reactive_aio.spark import RowMismatch
from reactive_aio.spark.executors.row_encoder import RowEncoder
from reactive_aio.spark.rows import row_converter

NOW: Final = datetime(2024, 2, 29, 12, 30, 0, 250)
INNER: Final = StructType([StructField("a", LongType()), StructField("b", StringType())])
untyped: Any = pyarrow


def schema(*fields: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields])


PAIR: Final = schema(("n", LongType()), ("text", StringType()))


def encoded(rows: list[Any], columns: StructType, most: int = 1000) -> list[Any]:
    return [*RowEncoder(columns, most).encode(rows)]


def decoded(batches: list[Any], columns: StructType) -> list[Any]:
    convert = row_converter(columns, "tuple")
    return [row for batch in batches for row in convert(batch)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (BooleanType(), True), (IntegerType(), -(2**31)), (LongType(), 2**63 - 1),
        (DoubleType(), 0.1), (StringType(), "é"), (BinaryType(), b"\0\xff"), (NullType(), None),
        (DateType(), date(2024, 2, 29)), (TimestampType(), NOW), (TimestampNTZType(), NOW),
        (DecimalType(10, 2), Decimal("1.25")), (DayTimeIntervalType(), timedelta(1, 2, 3)),
        (ArrayType(TimestampType()), [NOW, None]), (ArrayType(LongType()), []),
        (MapType(StringType(), LongType()), {"a": 1, "b": None}), (INNER, Row(a=1, b="x")),
    ],
    ids=lambda value: value.simpleString() if isinstance(value, DataType) else "",
)  # fmt: skip
def test_values_of_every_type_survive(kind: DataType, value: Any) -> None:
    columns = schema(("value", kind))
    rows = [(value,), (None,), (value,)]
    found = decoded(encoded(rows, columns), columns)
    if isinstance(kind, BinaryType):
        found = [(each and bytes(each),) for (each,) in found]
    assert found == rows


def test_rows_may_be_tuples_lists_rows_and_dicts() -> None:
    rows = [(1, "a"), [2, "b"], Row(n=3, text="c"), {"text": "d", "n": 4}]
    expected = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert decoded(encoded(rows, PAIR), PAIR) == expected
    for row, same in zip(rows, expected, strict=True):
        assert decoded(encoded([row], PAIR), PAIR) == [same]


def test_many_rows_of_pyspark_become_one_batch() -> None:
    rows = [Row(n=n, text=str(n)) for n in range(1300)]
    [batch] = encoded(rows, PAIR)
    assert decoded([batch], PAIR) == [tuple(row) for row in rows]


def test_rows_without_columns_are_counted() -> None:
    [batch] = encoded([(), ()], StructType([]))
    assert (batch.num_rows, batch.num_columns) == (2, 0)


def test_record_batches_are_passed_on_and_cut() -> None:
    batch = untyped.RecordBatch.from_pydict({"n": [1, 2, 3], "text": ["a", "b", "c"]})
    found = encoded([(0, "-"), batch, untyped.Table.from_batches([batch]), (9, "-")], PAIR, most=2)
    assert [each.num_rows for each in found] == [1, 2, 1, 2, 1, 1]
    assert [n for n, _ in decoded(found, PAIR)] == [0, 1, 2, 3, 1, 2, 3, 9]


def test_columns_of_a_record_batch_are_found_by_name_and_cast() -> None:
    arrays = {"text": ["a"], "n": untyped.array([1], untyped.int16())}
    assert decoded(encoded([untyped.RecordBatch.from_pydict(arrays)], PAIR), PAIR) == [(1, "a")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1,), r"row 2 of the output has 1 values, and the schema 2 columns \(n, text\): \(1,\)"),
        ({"n": 1}, "row 2 of the output has no key 'text', .* its keys are 'n'. Give None"),
        ({"n": 1, "text": "a", "txt": "b"}, "row 2 .* keys that are not columns .*: 'txt'"),
        ("ab", r"row 2 of the output is 'ab' \(str\), which is not a row: .*map\(lambda x: \(x,\)"),
        (
            ("1", "a"),
            "row 2 of the output does not fit the schema: column 'n' is bigint, and the value is "
            r"'1' \(str\): .*Convert the value in the flow, or change the type of the column",
        ),
        ((1.5, "a"), r"column 'n' is bigint, and the value is 1.5 \(float\): .*not a whole number"),
        ((1, 2), r"row 2 .* column 'text' is string, and the value is 2 \(int\)"),
        ((2**63, "a"), r"row 2 .* column 'n' is bigint, and the value is 9223372036854775808"),
    ],
)
def test_a_row_that_does_not_fit_is_named(row: Any, message: str) -> None:
    encoder = RowEncoder(PAIR, 1000)
    list(encoder.encode([(0, "a")]))
    with pytest.raises(RowMismatch, match=message):
        list(encoder.encode([(1, "b"), row]))


def test_a_value_that_pyspark_converts_is_named_as_well() -> None:
    columns = schema(("when", TimestampType()), ("list", ArrayType(LongType())))
    with pytest.raises(RowMismatch, match=r"row 1 .* column 'when' is timestamp, .* 'now'"):
        encoded([(NOW, []), ("now", [])], columns)
    with pytest.raises(RowMismatch, match=r"row 0 .* column 'list' is array<bigint>"):
        encoded([(NOW, ["a"])], columns)


def test_none_in_a_column_that_is_not_null_is_named() -> None:
    columns = StructType([StructField("n", LongType(), nullable=False)])
    assert decoded(encoded([(1,)], columns), columns) == [(1,)]
    with pytest.raises(RowMismatch, match=r"row 1 .* column 'n' .* None .* is NOT NULL"):
        encoded([(1,), (None,)], columns)


@pytest.mark.parametrize("text", [untyped.string(), untyped.large_string()])
def test_null_in_a_record_batch_of_a_column_that_is_not_null_is_named(text: Any) -> None:
    columns = StructType([StructField("s", StringType(), nullable=False)])
    batch = untyped.RecordBatch.from_pydict({"s": untyped.array(["x", None], text)})
    with pytest.raises(RowMismatch, match=r"row 2 of the output .* column 's' is NOT NULL"):
        encoded([("a",), batch], columns)


def test_a_record_batch_that_does_not_fit_is_named() -> None:
    encoder = RowEncoder(PAIR, 1000)
    list(encoder.encode([(0, "a")]))
    with pytest.raises(RowMismatch, match=r"row 1 .* columns n, txt, and the schema has n, text"):
        list(encoder.encode([untyped.RecordBatch.from_pydict({"n": [1], "txt": ["a"]})]))
    with pytest.raises(RowMismatch, match="column 'n' is string, and the schema has int64"):
        list(encoder.encode([untyped.RecordBatch.from_pydict({"n": ["x"], "text": ["a"]})]))
