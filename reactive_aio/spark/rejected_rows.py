"""Which row of a flow does not fit a schema, and in which column.

PySpark and PyArrow convert whole batches, and their errors name neither. So a batch that fails is
searched: halves of it first, then the columns of the row.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .._core.compiler.inline import describe
from ..errors import ReactiveError
from ._internals import arrow_schema, can_convert_rows, table_of_rows
from .batch_fitting import fitted
from .read_mode import ModeUnavailable
from .value_checks import reason_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class RowRejected(ReactiveError, ValueError):
    """A row that does not fit the schema that it is written with.

    *row* is its number, counted from 0 at the first element of the flow; *column* the name of the
    column, or None if the row as a whole does not fit. The cause is the error of PySpark or Arrow.
    """

    def __init__(self, message: str, row: int, column: str | None) -> None:
        super().__init__(message)
        self.row: int = row
        self.column: str | None = column

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.row, self.column)


def require_converter(function: str) -> None:
    """Raise unless this PySpark can make Arrow tables of rows."""
    if not can_convert_rows():
        raise ModeUnavailable(
            f"{function}() needs PySpark 4.0 or newer, whose converter makes Arrow tables of rows "
            "and checks them: pip install 'pyspark>=4.0'"
        )


def table_of(rows: Sequence[Any], schema: "StructType", *, function: str, first: int) -> Any:
    """Return a ``pyarrow.Table`` of *rows*, of which the first one has the number *first*.

    Raises `RowRejected` for the first row that does not fit *schema*.
    """
    try:
        return table_of_rows(rows, schema)
    except Exception as error:
        position = _first_failing(rows, schema)
        if position is None:  # each half fits: the rows are too many, or too large
            raise
        raise _rejected(rows[position], schema, function, first + position) from error


def fit_batch(batch: Any, schema: "StructType", *, function: str, first: int) -> Any:
    """Return a ``pyarrow.Table`` of a record batch, with the columns and types of *schema*.

    Raises `RowRejected` with the number of its first row, *first*, or of a row that is null.
    """

    def rejected(at: int, column: str | None, text: str) -> RowRejected:
        where = f"{function}: row {first + at:,} (counted from 0)"
        return RowRejected(f"{where} {text}", first + at, column)

    import pyarrow

    table = cast("Any", pyarrow).Table.from_batches([batch])
    return fitted(table, arrow_schema(schema), rejected, keeps_timestamps=True)


def _fails(rows: Sequence[Any], schema: "StructType") -> bool:
    return _error_of(partial(table_of_rows, rows, schema)) is not None


def _error_of(convert: Callable[[], object]) -> Exception | None:
    try:
        convert()
    except Exception as error:
        return error
    return None


def _first_failing(rows: Sequence[Any], schema: "StructType") -> int | None:
    """Return the position of the first row that fails, or None if no part of *rows* does."""
    start, stop = 0, len(rows)
    while stop - start > 1:
        middle = (start + stop) // 2
        if _fails(rows[start:middle], schema):
            stop = middle
        else:
            start = middle
    return start if start < stop and _fails(rows[start:stop], schema) else None


def _rejected(row: Any, schema: "StructType", function: str, number: int) -> RowRejected:
    where = f"{function}: row {number:,} (counted from 0)"
    values = _values(row, schema)
    if values is None:
        return RowRejected(
            f"{where} does not fit the schema: a tuple, Row or dict of {len(schema.fields)} values "
            f"is needed ({', '.join(schema.names)}), not {describe(row)} ({type(row).__name__})",
            number,
            None,
        )
    for field, value in zip(schema.fields, values, strict=True):
        from pyspark.sql.types import StructType

        column = StructType([field])
        error = _error_of(partial(table_of_rows, [(value,)], column))
        if error is not None:
            expected = field.dataType.simpleString() + ("" if field.nullable else ", never null")
            return RowRejected(
                f"{where} does not fit the schema: column {field.name!r} of type {expected} cannot "
                f"hold {describe(value)} ({type(value).__name__}): "
                f"{reason_of(error, field.dataType)}",
                number,
                field.name,
            )
    error = _error_of(partial(table_of_rows, [row], schema))
    return RowRejected(f"{where} does not fit the schema: {error}", number, None)


def _values(row: Any, schema: "StructType") -> Sequence[Any] | None:
    """Return the values of a row by column, or None if it does not have one for each."""
    if isinstance(row, dict):
        by_name = cast("dict[str, Any]", row)
        return [by_name.get(name) for name in schema.names]
    if not isinstance(row, tuple | list):
        return None
    values = cast("Sequence[Any]", row)
    return values if len(values) == len(schema.fields) else None
