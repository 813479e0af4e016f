"""Columns of a batch, read without a copy, and the number of rows of a batch."""

import time
from collections.abc import Iterable
from typing import Any, Final

import pyarrow
import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from reactive_aio.spark._internals import arrow_schema
from reactive_aio.spark.rows import batch_sizes, columns_of, decoder

NUMBERS: Final[list[tuple[DataType, list[Any]]]] = [
    (ByteType(), [1, -128, 127]),
    (ShortType(), [1, -32768, 32767]),
    (IntegerType(), [1, -(2**31), 2**31 - 1]),
    (LongType(), [1, -(2**63), 2**63 - 1]),
    (FloatType(), [0.5, float("-inf"), 1.5]),
    (DoubleType(), [0.1, float("inf"), 1e300]),
]


def typed(*kinds: DataType) -> StructType:
    return StructType([StructField(f"c{place}", kind) for place, kind in enumerate(kinds)])


@pytest.mark.parametrize("nulls", [False, True], ids=["full", "with nulls"])
@pytest.mark.parametrize("part", [slice(0, 3), slice(1, 3), slice(3, 3)], ids=repr)
@pytest.mark.parametrize(("kind", "numbers"), NUMBERS, ids=repr)
def test_a_slice_of_a_batch_has_its_own_numbers(
    kind: DataType, numbers: list[Any], part: slice, *, nulls: bool
) -> None:
    """They are read from the buffer of the whole batch, at the offset of the slice."""
    schema = typed(kind)
    expected = [None, *numbers[1:]] if nulls else numbers
    untyped: Any = pyarrow
    batch = untyped.record_batch([expected], schema=arrow_schema(schema))
    (column,) = columns_of(schema)(batch.slice(part.start, part.stop - part.start))
    assert [*column] == expected[part]
    assert [type(each) for each in column] == [type(each) for each in expected[part]]


@pytest.mark.parametrize(
    ("columns", "kind", "requested", "sizes"),
    [
        ((LongType(), DoubleType(), StringType()), "tuple", None, (1024, 8192)),
        ((LongType(), DoubleType(), StringType()), "dict", None, (1024, 4096)),
        ([LongType()] * 8, "tuple", None, (1024, 4096)),
        ([LongType()] * 8, "row", None, (1024, 2048)),
        ([LongType()] * 99, "dict", None, (1024, 1024)),
        ([LongType()] * 3000, "tuple", None, (87, 87)),
        ((LongType(), DecimalType(9, 2)), "tuple", None, (1024, 1024)),
        ([ArrayType(LongType())], "tuple", None, (1024, 1024)),
        ([DecimalType(9, 2)], "batch", None, (4096, 4096)),
        ([LongType()], "tuple", 7, (7, 7)),
        ((), "tuple", None, (1024, 8192)),
    ],
)
def test_the_size_of_a_batch_depends_on_the_cost_of_its_values(
    columns: Iterable[DataType], kind: Any, requested: int | None, sizes: tuple[int, int]
) -> None:
    assert batch_sizes(typed(*columns), kind, requested) == sizes


# -- large batches ---------------------------------------------------------------------------------
def message(schema: StructType, *columns: list[Any]) -> Any:
    """A record batch as Spark sends it."""
    untyped: Any = pyarrow
    return untyped.record_batch([*columns], schema=arrow_schema(schema)).serialize()


def test_a_large_batch_becomes_rows_part_by_part() -> None:
    schema = typed(LongType(), StringType())
    texts = [f"{number}" * (1 << 18) for number in range(60)]  # 27 MiB
    decoded = decoder(schema, "tuple")(bytes(message(schema, [*range(60)], texts)))
    assert (decoded.elements, decoded.rows) == (60, 60)
    counts, found = list[int](), list[Any]()
    for rows, count in decoded.parts:
        counts.append(count)
        found += rows
    assert max(counts) < 15
    assert sum(counts) == 60
    assert found == [*zip(range(60), texts, strict=True)]


@pytest.mark.parametrize(("kind", "elements"), [("tuple", 3), ("batch", 1)])
def test_a_small_batch_is_one_part(kind: Any, elements: int) -> None:
    schema = typed(LongType())
    decoded = decoder(schema, kind)(bytes(message(schema, [1, 2, 3])))
    [(rows, count)] = decoded.parts
    assert (len([*rows]), count, decoded.elements, decoded.rows) == (
        elements,
        elements,
        elements,
        3,
    )


@pytest.mark.parametrize("kind", ["tuple", "batch"])
def test_a_batch_without_rows_has_no_part(kind: Any) -> None:
    schema = typed(LongType())
    decoded = decoder(schema, kind)(bytes(message(schema, [])))
    assert ([*decoded.parts], decoded.elements, decoded.rows) == ([], 0, 0)


# -- times that Python cannot hold -----------------------------------------------------------------
YEAR_10000 = 253402300800000000 + 86400000000  # microseconds since 1970, in every zone
YEAR_0 = -62135596800000001 - 86400000000


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("kind", [TimestampType(), TimestampNTZType()], ids=repr)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("value", [YEAR_10000, YEAR_0])
def test_a_time_outside_of_the_years_1_to_9999_is_a_value_error(
    monkeypatch: pytest.MonkeyPatch, zone: str, kind: DataType, nested: bool, value: int
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    schema = typed(LongType(), ArrayType(kind) if nested else kind)
    untyped: Any = pyarrow
    numbers = untyped.array([0, None, value], untyped.int64())
    times = numbers.cast(arrow_schema(typed(kind)).field(0).type)
    if nested:
        times = untyped.ListArray.from_arrays([0, 1, 2, 3], times)
    batch = untyped.record_batch([[1, 2, 3], times], schema=arrow_schema(schema))
    try:
        with pytest.raises(ValueError, match=rf"column 'c1': {value:,} microseconds since 1970"):
            columns_of(schema)(batch)
        assert len(columns_of(schema)(batch.slice(0, 2))[1]) == 2
    finally:
        monkeypatch.undo()
        time.tzset()
