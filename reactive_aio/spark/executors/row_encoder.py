"""Arrow batches of the rows that a flow delivers in a worker; errors name row and column."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

from ..._core.compiler.error_notes import short_text
from ...errors import ReactiveError
from .._internals import arrow_schema, table_of_rows
from ..batch_fitting import fitted
from ..value_checks import reason_of, value_check

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

Column = Any
"""A ``pyarrow.Array``. PyArrow has no types."""
Values = Sequence[Any]
"""A row, or what is in a column."""

_DIRECT: Final = frozenset(
    f"{name}Type"
    for name in (
        "Null", "Boolean", "Byte", "Short", "Integer", "Long", "Float", "Double", "String",
        "Binary", "Date", "DayTimeInterval",
    )
)  # fmt: skip
"""Types whose values PyArrow converts by itself; the others take PySpark's converter."""
_FEW: Final = 512
"""Rows whose values are moved into columns together: few enough for the processor's cache."""


class RowMismatch(ReactiveError, TypeError):
    """A row that a flow delivered in a worker does not fit the schema of the DataFrame."""


class RowEncoder:
    """Encodes the output of one partition: rows by position or by name, and record batches."""

    def __init__(self, schema: "StructType", most: int) -> None:
        import pyarrow

        self._pyarrow: Any = pyarrow
        self._fields = schema.fields
        self._names: list[str] = schema.names
        self._arrow: Any = arrow_schema(schema)
        self._checks = [value_check(field.dataType) for field in schema.fields]
        self._most = most
        self._batch_types: tuple[type, ...] = (self._pyarrow.RecordBatch, self._pyarrow.Table)
        self._encoded = 0  # rows before

    def encode(self, rows: Sequence[Any]) -> Iterator[Any]:
        """Yield record batches of *rows*, of which there is at least one."""
        if not any(issubclass(kind, self._batch_types) for kind in set(map(type, rows))):
            yield self._batch_of_rows(rows)
            self._encoded += len(rows)
            return
        for is_batch, group in groupby(rows, self._is_batch):
            if not is_batch:
                yield from self.encode(list(group))
                continue
            for batch in group:
                yield from self._cut(fitted(batch, self._arrow, self._misfit))
                self._encoded += batch.num_rows

    def _is_batch(self, row: object) -> bool:
        return isinstance(row, self._batch_types)

    def _row(self, at: int) -> str:
        return f"row {self._encoded + at} of the output"

    # -- rows -------------------------------------------------------------------------------------
    def _batch_of_rows(self, rows: Sequence[Any]) -> Any:
        rows = self._by_position(rows)
        if not self._fields:
            whole = self._pyarrow.array([{}] * len(rows), self._pyarrow.struct([]))
            return self._pyarrow.RecordBatch.from_struct_array(whole)
        values = _columns(rows, len(self._fields))
        columns = [self._column(position, each) for position, each in enumerate(values)]
        return self._pyarrow.RecordBatch.from_arrays(columns, schema=self._arrow)

    def _by_position(self, rows: Sequence[Any]) -> Sequence[Values]:
        """Return the rows as tuples or lists that have a value for each column."""
        kinds = set(map(type, rows))
        if not all(issubclass(kind, (tuple, list)) for kind in kinds):
            readers = {kind: self._reader(kind) for kind in kinds}
            rows = [readers[type(row)](at, row) for at, row in enumerate(rows)]
        width = len(self._names)
        if set(map(len, rows)) != {width}:
            at = next(i for i, row in enumerate(rows) if len(row) != width)
            raise RowMismatch(
                f"{self._row(at)} has {len(rows[at])} values, and the schema {width} columns "
                f"({', '.join(self._names)}): {short_text(rows[at])}"
            )
        return rows

    def _reader(self, kind: type) -> Callable[[int, Any], Values]:
        """Return the function that makes a tuple of a row of *kind*."""
        if issubclass(kind, (tuple, list)):
            return lambda _, row: cast("Values", row)
        if not issubclass(kind, Mapping):
            return self._refuse
        names = self._names

        def read(at: int, row: Mapping[str, Any]) -> Values:
            try:
                values = [row[name] for name in names]
            except KeyError as error:
                raise self._missing_key(at, row, error.args[0]) from None
            if len(row) > len(values):
                unknown = ", ".join(repr(name) for name in row if name not in names)
                raise RowMismatch(
                    f"{self._row(at)} has keys that are not columns of the schema: {unknown}"
                )
            return values

        return read

    def _missing_key(self, at: int, row: Mapping[str, Any], name: str) -> RowMismatch:
        return RowMismatch(
            f"{self._row(at)} has no key {name!r}, which is a column of the schema; its keys are "
            f"{', '.join(map(repr, row))}. Give None for a value that is missing."
        )

    def _refuse(self, at: int, row: object) -> Values:
        raise RowMismatch(
            f"{self._row(at)} is {short_text(row)} ({type(row).__name__}), which is not a row: "
            "the flow has to deliver tuples, Rows, dicts or pyarrow.RecordBatch; for one column, "
            "end it with map(lambda x: (x,))"
        )

    # -- columns ----------------------------------------------------------------------------------
    def _column(self, position: int, values: Values) -> Column:
        field = self._fields[position]
        try:
            column = self._convert(position, values)
        except Exception as error:
            for at, value in enumerate(values):
                try:
                    self._convert(position, (value,))
                except Exception as reason:
                    raise self._mismatch(field, value, at, reason) from error
            raise
        if not field.nullable and column.null_count:
            at = column.is_valid().to_pylist().index(False)
            raise self._mismatch(field, values[at], at, ValueError("the column is NOT NULL"))
        return column

    def _convert(self, position: int, values: Values) -> Column:
        field, target = self._fields[position], self._arrow.field(position).type
        kind = type(field.dataType).__name__
        if kind in _DIRECT:
            if (check := self._checks[position]) is not None:
                check(values)
            return self._pyarrow.array(values, target)
        from pyspark.sql.types import StructField, StructType

        one_column = StructType([StructField("value", field.dataType)])
        table = table_of_rows([(value,) for value in values], one_column)
        column = table.column(0).combine_chunks()
        return column if column.type == target else column.cast(target)

    def _mismatch(
        self, field: "StructField", value: object, at: int, reason: Exception
    ) -> RowMismatch:
        return RowMismatch(
            f"{self._row(at)} does not fit the schema: column {field.name!r} is "
            f"{field.dataType.simpleString()}, and the value is {short_text(value)} "
            f"({type(value).__name__}): {type(reason).__name__}: "
            f"{reason_of(reason, field.dataType)}. Convert the value in the flow, or change the "
            "type of the column in the schema given to map_flow."
        )

    # -- record batches ---------------------------------------------------------------------------
    def _misfit(self, at: int, _: str | None, text: str) -> RowMismatch:
        return RowMismatch(f"{self._row(at)} {text}")

    def _cut(self, batch: Any) -> Iterator[Any]:
        """Yield record batches of at most as many rows as one may have."""
        for start in range(0, batch.num_rows, self._most):
            part = batch.slice(start, self._most)
            if hasattr(part, "to_batches"):
                yield from part.to_batches()
            else:
                yield part


def _columns(rows: Sequence[Values], width: int) -> list[list[Any]]:
    """Return the values of *rows* by column."""
    if set(map(type, rows)) == {tuple}:
        return [list(map(itemgetter(position), rows)) for position in range(width)]
    # A Row is slow to index, and as fast as any tuple to iterate.
    columns: list[list[Any]] = [[] for _ in range(width)]
    for start in range(0, len(rows), _FEW):
        few = zip(*rows[start : start + _FEW], strict=True)
        for column, values in zip(columns, few, strict=True):
            column.extend(values)
    return columns
