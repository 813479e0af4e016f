"""Rows become Arrow batches of every type, and one that does not fit is named."""

import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
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

from reactive_aio.spark import RowMismatch, RowRejected
from reactive_aio.spark.conversion import RowConversion
from reactive_aio.spark.rows import cut, row_converter

NOW: Final = datetime(2024, 2, 29, 12, 30, 0, 250)
INNER: Final = StructType([StructField("a", LongType()), StructField("b", StringType())])
untyped: Any = pyarrow


def schema(*fields: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields])


PAIR: Final = schema(("n", LongType()), ("text", StringType()))


def encoded(rows: list[Any], columns: StructType) -> list[Any]:
    return conversion(columns).batches(rows)


def conversion(columns: StructType) -> RowConversion:
    """As in a worker."""
    return RowConversion("f", columns, counted="of the output", rejected=RowMismatch)


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
    found = encoded([(0, "-"), batch, untyped.Table.from_batches([batch]), (9, "-")], PAIR)
    assert [each.num_rows for each in found] == [1, 3, 3, 1]
    parts = [part for each in found for part in cut(each, 2, 1 << 20)]
    assert [each.num_rows for each in parts] == [1, 2, 1, 2, 1, 1]
    assert [n for n, _ in decoded(parts, PAIR)] == [0, 1, 2, 3, 1, 2, 3, 9]
    assert [each.num_rows for each in cut(batch, 9, batch.nbytes // 3)] == [1, 1, 1]


def test_timestamps_of_a_record_batch_have_the_time_zone_of_the_session() -> None:
    moments = StructType([StructField("s", StructType([StructField("t", TimestampType())]))])
    columns = schema(
        ("t", TimestampType()), ("a", ArrayType(TimestampType())),
        ("m", MapType(StringType(), TimestampType())), ("s", moments.fields[0].dataType),
        ("n", TimestampNTZType()),
    )  # fmt: skip
    naive, kind = untyped.timestamp("us"), untyped.map_(untyped.string(), untyped.timestamp("us"))
    given = untyped.RecordBatch.from_pydict(
        {
            "t": untyped.array([None, NOW], naive),
            "a": untyped.array([[], [NOW, None]], untyped.list_(naive)),
            "m": untyped.array([None, [("k", NOW)]], kind),
            "s": untyped.array([None, {"t": NOW}], untyped.struct([("t", naive)])),
            "n": untyped.array([None, NOW], naive),
        }
    )
    for batch, row in ((given, 1), (given.slice(1), 0)):
        [made] = RowConversion("f", columns, "Asia/Kolkata").batches([batch])
        found = made.to_pylist()[row]
        moments_found = [found["t"], found["a"][0], found["m"][0][1], found["s"]["t"]]
        assert {str(each) for each in moments_found} == {"2024-02-29 07:00:00.000250+00:00"}
        assert found["n"] == NOW


def test_a_fold_says_which_of_two_hours_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        twice, skipped = datetime(2024, 10, 27, 2, 30), datetime(2024, 3, 31, 2, 30)
        rows = [(twice,), (twice.replace(fold=1),), (skipped,)]
        [batch] = encoded(rows, schema(("t", TimestampType())))
        hours = [each["t"].hour for each in batch.to_pylist()]
        assert hours == [0, 1, 1]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_columns_of_a_record_batch_are_found_by_name_and_cast() -> None:
    arrays = {"text": ["a"], "n": untyped.array([1], untyped.int16())}
    assert decoded(encoded([untyped.RecordBatch.from_pydict(arrays)], PAIR), PAIR) == [(1, "a")]


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        (
            (1,),
            None,
            r"it has 1 values, .*tuple, Row or dict of 2 values .*\(n, text\), not \(1,\)",
        ),
        ({"n": 1, "text": "a", "txt": "b"}, None, "the key 'txt' is no column .* n, text"),
        ("ab", None, r"str is not a tuple, Row or dict.*, not 'ab' \(str\)"),
        (None, None, "NoneType is not a tuple, Row or dict"),
        (("1", "a"), "n", r"column 'n' of type bigint cannot hold '1' \(str\): .*Convert it in"),
        ((1.5, "a"), "n", r"cannot hold 1.5 \(float\): float is not a whole number"),
        ((True, "a"), "n", r"cannot hold True \(bool\): bool is not a whole number"),
        ((2**63, "a"), "n", r"column 'n' of type bigint cannot hold 9223372036854775808"),
    ],
)
def test_a_row_that_does_not_fit_is_named(row: Any, column: str | None, message: str) -> None:
    worker, driver = conversion(PAIR), RowConversion("g", PAIR)
    for each, kind, place in (
        (worker, RowMismatch, "f: row 2 of the output does not fit the schema: "),
        (driver, RowRejected, r"g: row 2 \(counted from 0\) does not fit the schema: "),
    ):
        each.batches([(0, "a")])
        with pytest.raises(kind, match=place + f".*{message}|" + place + message) as raised:
            each.batches([(1, "b"), row])
        assert (raised.value.row, raised.value.column) == (2, column)
        assert raised.value.__cause__ is not None


def test_a_dict_may_lack_keys_and_has_no_others() -> None:
    columns = schema(("s", INNER), ("text", StringType()))
    assert decoded(encoded([{"s": {"a": 1}}], columns), columns) == [(Row(a=1, b=None), None)]
    for row in ({"s": {"a": 1, "c": 2}}, {"s": None, "tekst": "x"}):
        with pytest.raises(RowMismatch, match=r"the key '(c|tekst)' is no column"):
            encoded([row], columns)


class Point:
    def __init__(self, m: int) -> None:
        self.m = m


def test_rows_and_structs_of_each_kind_may_be_mixed() -> None:
    columns = schema(("n", LongType()), ("v", StructType([StructField("m", LongType())])))
    whole = SimpleNamespace(n=5, v=Point(5))
    rows: list[Any] = [(1, (1,)), Row(n=2, v=Row(m=2)), [3, {"m": 3}], {"n": 4}, whole]
    found = decoded(encoded(rows, columns), columns)
    assert found == [(n, None if n == 4 else Row(m=n)) for n in range(1, 6)]
    with pytest.raises(RowMismatch, match="Point is not a tuple, Row or dict"):
        encoded([Point(1)], columns)


def test_none_in_a_column_that_is_not_null_is_named() -> None:
    columns = StructType([StructField("n", LongType(), nullable=False)])
    assert decoded(encoded([(1,)], columns), columns) == [(1,)]
    with pytest.raises(RowMismatch, match=r"row 1 .* column 'n' .* None .* NOT NULL"):
        encoded([(1,), (None,)], columns)
    inside = StructType([StructField("a", ArrayType(columns))])
    assert decoded(encoded([([None, (1,)],)], inside), inside) == [([None, Row(n=1)],)]
    with pytest.raises(RowMismatch, match=r"column 'a' .* NOT NULL"):
        encoded([([None, {}],)], inside)


@pytest.mark.parametrize("text", [untyped.string(), untyped.large_string()])
def test_null_in_a_record_batch_of_a_column_that_is_not_null_is_named(text: Any) -> None:
    columns = StructType([StructField("s", StringType(), nullable=False)])
    batch = untyped.RecordBatch.from_pydict({"s": untyped.array(["x", None], text)})
    with pytest.raises(RowMismatch, match=r"row 2 of the output .* column 's' is NOT NULL"):
        encoded([("a",), batch], columns)


def test_a_record_batch_that_does_not_fit_is_named() -> None:
    encoder = conversion(PAIR)
    encoder.batches([(0, "a")])
    with pytest.raises(RowMismatch, match=r"row 1 .* columns n, txt, and the schema has n, text"):
        encoder.batches([untyped.RecordBatch.from_pydict({"n": [1], "txt": ["a"]})])
    with pytest.raises(RowMismatch, match="column 'n' is string, and the schema has int64"):
        encoder.batches([untyped.RecordBatch.from_pydict({"n": ["x"], "text": ["a"]})])
