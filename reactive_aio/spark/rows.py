"""What an element of a Spark flow is: a tuple, a dict or a Row, made of columns by the batch."""

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Literal, cast

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = (
    "KINDS",
    "Kind",
    "MakeRows",
    "batched_rows",
    "conversion",
    "dict_maker",
    "maker",
    "row_maker",
    "tuples",
)

Kind = Literal["tuple", "dict", "row", "batch"]
KINDS: Final = ("tuple", "dict", "row", "batch")

MakeRows = Callable[[Sequence[Sequence[Any]], int], Iterator[Any]]
"""Columns and their length in, rows out; lazily, so that what is not asked for is not made."""


def maker(kind: Kind, names: Sequence[str]) -> MakeRows:
    """What makes rows of the given kind."""
    match kind:
        case "dict":
            return dict_maker(names)
        case "row":
            return row_maker(names)
        case _:
            return tuples


def batched_rows(batches: Sequence[Any]) -> int:
    """How many rows are in record batches."""
    return sum(batch.num_rows for batch in batches)


def tuples(columns: Sequence[Sequence[Any]], count: int) -> Iterator[tuple[Any, ...]]:
    """Rows as plain tuples."""
    return zip(*columns, strict=True) if columns else repeat((), count)


def dict_maker(names: Sequence[str]) -> MakeRows:
    """Make what makes dicts; what is nested in them stays what it is in collect()."""

    def dicts(columns: Sequence[Sequence[Any]], count: int) -> Iterator[dict[str, Any]]:
        return map(dict, map(zip, repeat(names), tuples(columns, count)))

    return dicts


def row_maker(names: Sequence[str]) -> MakeRows:
    """Make what makes Rows."""
    make = partial(cast("Any", tuple).__new__, _row_class(names))

    def rows(columns: Sequence[Sequence[Any]], count: int) -> "Iterator[Row]":
        return map(make, tuples(columns, count))

    return rows


def conversion(kind: Kind) -> "Callable[[Row], Any] | None":
    """What makes an element of a Row of PySpark's, if anything is to be done."""
    from pyspark.sql import Row

    if kind == "tuple":
        return tuple
    return Row.asDict if kind == "dict" else None


def _row_class(names: Sequence[str]) -> "type[Row]":
    """A Row that knows its names by its class: an instance is a tuple, and costs little more.

    It is equal to PySpark's, shows itself as that does, and is one again when it was pickled.
    """
    from pyspark.sql import Row

    # A named tuple's own descriptors read a place of any tuple, without calling Python.
    places = namedtuple("places", [f"place_{number}" for number in range(len(names))])  # type: ignore[misc]
    attributes: dict[str, Any] = {"__slots__": (), "__fields__": [*names]}
    for number, name in enumerate(names):
        if not name.startswith("__") and not hasattr(Row, name):
            attributes.setdefault(name, vars(places)[f"place_{number}"])
    return cast("type[Row]", type("Row", (Row,), attributes))
