"""A row that does not fit a schema is named, with its column."""

from typing import Any, cast

import pytest

from reactive_aio.spark import RowRejected
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
