"""The elements of a Spark flow: tuples, dicts or Rows, made from the columns of a batch."""

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Literal, cast

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = (
    "ROW_KINDS",
    "MakeRows",
    "RowKind",
    "count_rows",
    "from_spark_row",
    "row_maker",
    "spark_row_maker",
)

RowKind = Literal["tuple", "dict", "row", "batch"]
ROW_KINDS: Final = ("tuple", "dict", "row", "batch")

MakeRows = Callable[[Sequence[Sequence[Any]], int], Iterator[Any]]
"""Makes an iterator of rows from columns and their length; a row is made when it is taken."""


def row_maker(kind: RowKind, names: Sequence[str]) -> MakeRows:
    """Return the function that makes rows of *kind*."""
    match kind:
        case "dict":
            return _dict_maker(names)
        case "row":
            return spark_row_maker(names)
        case _:
            return _make_tuples


def count_rows(batches: Sequence[Any]) -> int:
    """Return the number of rows in record batches."""
    return sum(batch.num_rows for batch in batches)


def _make_tuples(columns: Sequence[Sequence[Any]], count: int) -> Iterator[tuple[Any, ...]]:
    return zip(*columns, strict=True) if columns else repeat((), count)


def _dict_maker(names: Sequence[str]) -> MakeRows:
    """Return the function that makes dicts; nested values are those of ``collect()``."""

    def make_dicts(columns: Sequence[Sequence[Any]], count: int) -> Iterator[dict[str, Any]]:
        return map(dict, map(zip, repeat(names), _make_tuples(columns, count)))

    return make_dicts


def spark_row_maker(names: Sequence[str]) -> MakeRows:
    """Return the function that makes Rows with the fields *names*."""
    make = partial(cast("Any", tuple).__new__, _row_class(names))

    def make_rows(columns: Sequence[Sequence[Any]], count: int) -> "Iterator[Row]":
        return map(make, _make_tuples(columns, count))

    return make_rows


def from_spark_row(kind: RowKind) -> "Callable[[Row], Any] | None":
    """Return the function that converts PySpark's Row to *kind*; None where it stays a Row."""
    from pyspark.sql import Row

    if kind == "tuple":
        return tuple
    return Row.asDict if kind == "dict" else None


def _row_class(names: Sequence[str]) -> "type[Row]":
    """Return a Row class that holds the field names: an instance is then as small as a tuple.

    An instance is equal to PySpark's Row, has the same ``repr``, and is pickled as one.
    """
    from pyspark.sql import Row

    # The descriptors of a named tuple read an index of any tuple, without calling Python.
    fields = namedtuple("fields", [f"field_{number}" for number in range(len(names))])  # type: ignore[misc]
    attributes: dict[str, Any] = {"__slots__": (), "__fields__": [*names]}
    for number, name in enumerate(names):
        if not name.startswith("__") and not hasattr(Row, name):
            attributes.setdefault(name, vars(fields)[f"field_{number}"])
    return cast("type[Row]", type("Row", (Row,), attributes))
