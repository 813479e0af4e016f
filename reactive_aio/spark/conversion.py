"""Arrow record batches of what a flow delivers to Spark: one conversion, wherever the rows go.

`to_dataframe`, `write_parquet`, `append_table`, `serve_flow` and `map_flow` take a value for what
``createDataFrame`` takes it for, and refuse one that a column would hold with a loss: PyArrow alone
makes 1 of 1.5, and a date of a number of days. Columns are converted as a whole, and the values
inside of arrays, maps and structs are columns too, so that a value means the same at any depth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import cached_property, partial
from itertools import accumulate, chain, groupby
from numbers import Integral, Real
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, cast, runtime_checkable

from .._core.compiler.inline import describe
from ..errors import ReactiveError
from ._internals import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

Values = Sequence[Any]
"""The values of a column, or of a row."""
Column = Any
"""A ``pyarrow.Array``. PyArrow has no types."""
Convert = Callable[[Values], Column]
"""Makes a column; raises for values that do not fit."""

_FEW: Final = 256
"""Rows whose values are moved into columns together: few enough for the processor's cache."""
_LARGEST: Final = 2**31 - 1
"""The largest offset in an array of lists."""
_MICROSECONDS: Final = 1_000_000
_REMEDY: Final = "Convert it in the flow, or change the type of the column in the schema."


class RowRejected(ReactiveError, ValueError):
    """A row that does not fit the schema that it is written with.

    *row* is its number, counted from 0 at the first element of the flow; *column* the name of the
    column, or None if the row as a whole does not fit. The cause is the error of the value.
    """

    def __init__(self, message: str, row: int, column: str | None) -> None:
        super().__init__(message)
        self.row: int = row
        self.column: str | None = column

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.row, self.column)


class RowMismatch(RowRejected, TypeError):
    """A row that a flow delivered in a worker does not fit the schema; *row* counts its output."""


class _TooLarge(Exception):
    """A column has more bytes than one of Arrow's arrays."""


@dataclass(eq=False)
class RowConversion:
    """Converts the elements of one flow, in their order."""

    function: str
    schema: "StructType"
    zone: str = "UTC"
    """The time zone of timestamps in record batches that have none: that of the session."""
    counted: str = "(counted from 0)"
    """What follows the number of a row in errors."""
    rejected: type[RowRejected] = RowRejected
    rows: int = 0
    """How many rows were converted."""

    @cached_property
    def arrow(self) -> Any:
        """The ``pyarrow.Schema`` of the record batches."""
        return arrow_schema(self.schema)

    @cached_property
    def _never_null(self) -> list[tuple[int, Any]]:
        return [(at, field) for at, field in enumerate(self.arrow) if not field.nullable]

    @cached_property
    def _converters(self) -> list[Convert]:
        fields = self.schema.fields
        return [
            _converter(each.dataType, self.arrow.field(at).type) for at, each in enumerate(fields)
        ]

    def batches(self, elements: Values) -> list[Any]:
        """Return record batches of rows, of record batches and tables, or of both."""
        import pyarrow

        untyped: Any = pyarrow
        kinds = untyped.RecordBatch, untyped.Table
        if not any(issubclass(each, kinds) for each in set(map(type, elements))):
            return self._batches_of_rows(elements) if elements else []
        made = list[Any]()
        for is_batch, group in groupby(elements, lambda each: isinstance(each, kinds)):
            for each in group if is_batch else ([*group],):
                made += self._batches_of(each) if is_batch else self._batches_of_rows(each)
        return made

    def _batches_of(self, given: Any) -> list[Any]:
        import pyarrow

        is_batch = isinstance(given, cast("Any", pyarrow).RecordBatch)
        made = list[Any]()
        for each in [given] if is_batch else given.to_batches():
            made.append(self._fitted(each))
            self.rows += each.num_rows
        return made

    def _rejected(self, at: int, column: str | None, text: str) -> RowRejected:
        row = self.rows + at
        return self.rejected(f"{self.function}: row {row:,} {self.counted} {text}", row, column)

    # -- rows -------------------------------------------------------------------------------------
    def _batches_of_rows(self, rows: Values) -> list[Any]:
        import pyarrow

        fields = self.schema.fields
        if not fields:
            self._columns(rows)
            made = self._without_columns(len(rows))
        else:
            try:
                columns = [*map(self._column, range(len(fields)), self._columns(rows))]
            except _TooLarge:
                if len(rows) == 1:
                    raise self._rejected(0, None, "has a value of more than 2 GiB") from None
                half = len(rows) // 2
                return self._batches_of_rows(rows[:half]) + self._batches_of_rows(rows[half:])
            untyped: Any = pyarrow
            made = untyped.RecordBatch.from_arrays(columns, schema=self.arrow)
        self.rows += len(rows)
        return [made]

    def _without_columns(self, rows: int) -> Any:
        import pyarrow

        untyped: Any = pyarrow
        return untyped.RecordBatch.from_struct_array(
            untyped.Array.from_buffers(untyped.struct([]), rows, [None], children=[])
        )

    def _columns(self, rows: Values) -> list[list[Any]]:
        try:
            return _by_column(rows, self.schema.names)
        except Exception:
            for at, row in enumerate(rows):
                try:
                    _by_column((row,), self.schema.names)
                except Exception as error:
                    raise self._rejected(at, None, self._not_a_row(row, error)) from error
            raise

    def _not_a_row(self, row: object, error: Exception) -> str:
        text = f"does not fit the schema: {error}"
        if isinstance(row, Mapping):
            return text
        names = self.schema.names
        remedy = (
            "; for one column, end the flow with map(lambda x: (x,))" if len(names) == 1 else ""
        )
        return (
            f"{text}. A tuple, Row or dict of {len(names)} values is needed ({', '.join(names)}), "
            f"not {describe(row)} ({type(row).__name__}){remedy}"
        )

    def _column(self, position: int, values: Values) -> Column:
        field, convert = self.schema.fields[position], self._converters[position]
        try:
            column = _not_null(convert, field.nullable)(values)
        except _TooLarge:
            raise
        except Exception as error:
            self._raise_for_value(field, convert, values, error)
        return column

    def _raise_for_value(
        self, field: "StructField", convert: Convert, values: Values, cause: Exception
    ) -> NoReturn:
        """Raise for the first value that does not fit: the error of a column does not name it."""
        single = _not_null(convert, field.nullable)
        for at, value in enumerate(values):
            try:
                single((value,))
            except Exception as error:
                expected = field.dataType.simpleString() + (
                    "" if field.nullable else ", never null"
                )
                raise self._rejected(
                    at,
                    field.name,
                    f"does not fit the schema: column {field.name!r} of type {expected} cannot "
                    f"hold {describe(value)} ({type(value).__name__}): {error}. {_REMEDY}",
                ) from error
        raise cause

    # -- record batches ---------------------------------------------------------------------------
    def _fitted(self, batch: Any) -> Any:
        """Return a record batch with the columns of the schema, which are found by their names."""
        if not self.schema.fields:
            return self._without_columns(batch.num_rows)
        fitted = batch
        if not batch.schema.equals(self.arrow):
            names, needed = batch.schema.names, self.arrow.names
            if sorted(names) != sorted(needed):
                raise self._rejected(
                    0,
                    None,
                    f"is in a batch with the columns {', '.join(names)}, and the schema has "
                    f"{', '.join(needed)}; select or rename them in the flow",
                )
            columns = [self._cast(batch.column(each.name), each) for each in self.arrow]
            import pyarrow

            untyped: Any = pyarrow
            fitted = untyped.RecordBatch.from_arrays(columns, schema=self.arrow)
        for position, field in self._never_null:
            column = fitted.column(position)
            if column.null_count:
                at = column.is_valid().to_pylist().index(False)
                text = f"does not fit the schema: column {field.name!r} is NOT NULL, and is null"
                raise self._rejected(at, field.name, text)
        return fitted

    def _cast(self, column: Column, field: Any) -> Column:
        try:
            if column.type == field.type:
                return column
            return _in_zone(column, field.type, self.zone).cast(field.type)
        except Exception as error:
            raise self._rejected(
                0,
                field.name,
                f"is in a batch whose column {field.name!r} is {column.type}, and the schema "
                f"has {field.type}: {error}",
            ) from error


# -- rows and structs -----------------------------------------------------------------------------
def _by_column(rows: Values, names: Sequence[str]) -> list[list[Any]]:
    """Return the values of rows, or of structs, by column. Raises unless all rows fit *names*."""
    kinds = set(map(type, rows))
    if not all(issubclass(kind, (tuple, list)) for kind in kinds):
        readers = {kind: _reader(kind, names) for kind in kinds}
        rows = [readers[type(row)](row) for row in rows]
    width = len(names)
    if not set(map(len, rows)) <= {width}:
        wrong = next(len(row) for row in rows if len(row) != width)
        raise ValueError(f"it has {wrong} values, and {width} are needed")
    columns: list[list[Any]] = [[] for _ in range(width)]
    for start in range(0, len(rows), _FEW):
        few = zip(*rows[start : start + _FEW], strict=True)
        for column, values in zip(columns, few, strict=False):
            column.extend(values)
    return columns


def _reader(kind: type, names: Sequence[str]) -> Callable[[Any], Values]:
    """Return the function that reads rows of *kind* by position."""
    if issubclass(kind, (tuple, list)):
        return lambda row: cast("Values", row)
    known = frozenset(names)

    def read_mapping(row: Mapping[str, Any]) -> Values:
        if not known.issuperset(row):
            unknown = [key for key in row if key not in known]
            raise ValueError(
                f"the key {', '.join(map(repr, unknown))} is no column or field of the schema, "
                f"which has {', '.join(names)}; a dict may lack keys, and has no others"
            )
        return [*map(row.get, names)]

    def read_object(row: object) -> Values:
        try:
            attributes = vars(row)
            return [attributes[name] for name in names]
        except (TypeError, KeyError):
            raise TypeError(
                f"{type(row).__name__} is not a tuple, Row or dict, nor an object with attributes "
                f"of these names: {', '.join(names)}"
            ) from None

    return read_mapping if issubclass(kind, Mapping) else read_object


# -- the converter of a type ----------------------------------------------------------------------
def _converter(kind: "DataType", target: Any) -> Convert:
    """Return the function that makes columns of *kind*, which Arrow carries as *target*."""
    from pyspark.sql.types import UserDefinedType

    if isinstance(kind, UserDefinedType):
        return _user_defined(kind, _converter(kind.sqlType(), target))
    name = type(kind).__name__
    if name in _NESTED:
        return _NESTED[name](kind, target)
    if name in _OBJECTS:
        return partial(_objects, target, *_OBJECTS[name])
    if name == "DecimalType":
        return partial(_decimals, kind, target)
    prepare = _PREPARED.get(name)
    allowed, needed = _TAKEN.get(name, ((), ""))

    def convert(values: Values) -> Column:
        kinds = set(map(type, values))
        if allowed:
            _require_types(kinds, allowed, needed)
        return _plain(target, values if prepare is None else prepare(kinds, values))

    return convert


def _plain(target: Any, values: Values) -> Column:
    import pyarrow

    untyped: Any = pyarrow
    made = untyped.array(values, target)
    if isinstance(made, untyped.ChunkedArray):
        raise _TooLarge
    return made


def _require_types(kinds: set[type], allowed: tuple[type, ...], needed: str) -> None:
    for kind in kinds:
        if kind is not NoneType and (not issubclass(kind, allowed) or kind is bool):
            raise TypeError(f"{kind.__name__} is not {needed}")


def _not_null(convert: Convert, nullable: bool, absent: int = 0) -> Convert:
    """Return *convert*, with an error for a null besides *absent* ones, unless it is *nullable*."""
    if nullable:
        return convert

    def convert_all(values: Values) -> Column:
        made = convert(values)
        if made.null_count > absent:
            raise ValueError("null, where the schema says NOT NULL")
        return made

    return convert_all


# -- single values --------------------------------------------------------------------------------
_WHOLE: Final = ((Integral,), "a whole number")
_REAL: Final = ((Real,), "a float or a whole number")
_TAKEN: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "ByteType": _WHOLE,
    "ShortType": _WHOLE,
    "IntegerType": _WHOLE,
    "LongType": _WHOLE,
    "FloatType": _REAL,
    "DoubleType": _REAL,
    "BinaryType": ((bytes, bytearray, memoryview), "bytes or a bytearray"),
    "DateType": ((date,), "a datetime.date"),
    "TimeType": ((time,), "a datetime.time"),
    "TimestampType": ((datetime,), "a datetime.datetime"),
    "TimestampNTZType": ((datetime,), "a datetime.datetime"),
    "DayTimeIntervalType": ((timedelta,), "a datetime.timedelta"),
    "NullType": ((NoneType,), "None"),
}


def _texts(kinds: set[type], values: Values) -> Values:
    """Return strings, of any values: ``createDataFrame`` writes ``str(value)``, booleans as SQL."""
    if kinds <= {str, NoneType}:
        return values
    return [each if each is None or type(each) is str else _text(each) for each in values]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moments(_: set[type], values: Values) -> Values:
    """Return the microseconds since 1970 of datetimes; one without a time zone is local.

    A local time that was skipped counts as later, as in ``createDataFrame``; of one that happened
    twice ``fold`` says which it is, as in the values of ``collect()``.
    """
    return [
        None
        if each is None
        else int(each.replace(microsecond=0).timestamp()) * _MICROSECONDS + each.microsecond
        for each in values
    ]


def _without_zone(_: set[type], values: Values) -> Values:
    if any(each is not None and each.tzinfo is not None for each in values):
        raise TypeError("one with a time zone is not one without")
    return values


_PREPARED: Final[dict[str, Callable[[set[type], Values], Values]]] = {
    "StringType": _texts,
    "TimestampType": _moments,
    "TimestampNTZType": _without_zone,
    "TimeType": _without_zone,
}


def _decimals(kind: Any, target: Any, values: Values) -> Column:
    """Convert decimals, which Spark rounds half up to the digits of a column."""
    _require_types(set(map(type, values)), (Decimal,), "a decimal.Decimal")
    try:
        return _plain(target, values)
    except Exception:  # PyArrow refuses digits that do not fit, also where they can be rounded
        unit = Decimal(1).scaleb(-kind.scale)
        context = Context(prec=kind.precision, rounding=ROUND_HALF_UP, traps=[InvalidOperation])
        return _plain(target, [_rounded(each, unit, context) for each in values])


def _rounded(value: Decimal | None, unit: Decimal, context: Context) -> Decimal | None:
    if value is None or value.is_nan():  # a null in Spark, whose decimals are all numbers
        return None
    try:
        return value.quantize(unit, context=context)
    except InvalidOperation:
        places = -cast("int", unit.as_tuple().exponent)
        raise ValueError(
            f"it has more digits than {context.prec}, of which {places} are after the point"
        ) from None


_OBJECTS: Final = {
    "VariantType": ("VariantVal", "value", "metadata"),
    "GeometryType": ("Geometry", "srid", "wkb"),
    "GeographyType": ("Geography", "srid", "wkb"),
}
"""Types whose values are of a class of PySpark, which Arrow carries as structs of attributes."""


def _objects(target: Any, needed: str, first: str, second: str, values: Values) -> Column:
    for kind in set(map(type, values)):
        if kind is not NoneType and kind.__name__ != needed:
            raise TypeError(f"{kind.__name__} is not a {needed}")
    found = [
        None if each is None else {first: getattr(each, first), second: getattr(each, second)}
        for each in values
    ]
    return _plain(target, found)


def _user_defined(kind: Any, convert: Convert) -> Convert:
    def convert_all(values: Values) -> Column:
        for each in values:
            if each is not None and getattr(each, "__UDT__", None) != kind:
                raise TypeError(f"{type(each).__name__} is not of the type {kind.typeName()}")
        return convert([None if each is None else kind.serialize(each) for each in values])

    return convert_all


# -- values with values inside --------------------------------------------------------------------
def _arrays(kind: Any, target: Any) -> Convert:
    element = _not_null(_converter(kind.elementType, target.value_type), kind.containsNull)

    def convert(values: Values) -> Column:
        lists = [() if each is None else _items(each) for each in values]
        return _nested(target, values, [element([*chain.from_iterable(lists)])], lists)

    return convert


@runtime_checkable
class _Array(Protocol):
    """An array of NumPy, which need not be installed, or of the module ``array``."""

    def tolist(self) -> object: ...


def _items(value: Any) -> Values:
    """Return the elements of a list, a tuple or an array of Python or NumPy."""
    if isinstance(value, list) or type(value) is tuple:
        return cast("Values", value)
    if isinstance(value, _Array) and isinstance(found := value.tolist(), list):
        return cast("Values", found)
    raise TypeError(f"a list is needed, not {type(value).__name__}")


def _maps(kind: Any, target: Any) -> Convert:
    import pyarrow

    is_map = cast("Any", pyarrow).types.is_map(target)
    entry = target.field(0).type if is_map else target.value_type
    key = _not_null(_converter(kind.keyType, entry.field(0).type), nullable=False)
    value = _not_null(_converter(kind.valueType, entry.field(1).type), kind.valueContainsNull)

    def convert(values: Values) -> Column:
        for each in values:
            if each is not None and not isinstance(each, dict):
                raise TypeError(f"{type(each).__name__} is not a dict")
        maps: list[dict[Any, Any]] = [{} if each is None else each for each in values]
        keys = [*chain.from_iterable(maps)]
        items = [*chain.from_iterable(each.values() for each in maps)]
        entries = _nested(entry, keys, [key(keys), value(items)])
        return _nested(target, values, [entries], maps)

    return convert


def _structs(kind: Any, target: Any) -> Convert:
    names = kind.names
    absent = (None,) * len(names)
    converters = [
        _converter(each.dataType, target.field(at).type) for at, each in enumerate(kind.fields)
    ]
    nullable = [each.nullable for each in kind.fields]

    def convert(values: Values) -> Column:
        rows = [absent if each is None else each for each in values]
        missing = sum(each is None for each in values)
        children = [
            _not_null(convert_field, may_be_null, missing)(column)
            for convert_field, may_be_null, column in zip(
                converters, nullable, _by_column(rows, names), strict=True
            )
        ]
        return _nested(target, values, children)

    return convert


def _nested(target: Any, values: Values, parts: list[Column], lists: Any = None) -> Column:
    """Return a column of *values* that consists of *parts*: fields, or what is in *lists*."""
    import pyarrow

    untyped: Any = pyarrow
    buffers = [None]
    if any(each is None for each in values):
        buffers = [untyped.array([each is not None for each in values]).buffers()[1]]
    if lists is not None:
        offsets = [*accumulate(map(len, lists), initial=0)]
        if offsets[-1] > _LARGEST:
            raise _TooLarge
        buffers.append(untyped.array(offsets, untyped.int32()).buffers()[1])
    return untyped.Array.from_buffers(target, len(values), buffers, children=parts)


_NESTED: Final[dict[str, Callable[[Any, Any], Convert]]] = {
    "ArrayType": _arrays,
    "MapType": _maps,
    "StructType": _structs,
}


# -- timestamps of record batches -----------------------------------------------------------------
def _in_zone(column: Column, target: Any, zone: str) -> Column:
    """Return *column*, where timestamps without a time zone are in *zone* if *target* has one."""
    import pyarrow
    from pyarrow import compute

    untyped: Any = pyarrow
    kind = column.type
    if untyped.types.is_timestamp(kind):
        is_local = kind.tz is None and getattr(target, "tz", None) is not None
        return cast("Any", compute).assume_timezone(column, zone) if is_local else column
    if "timestamp[" not in str(kind) or type(kind) is not type(target):
        return column
    if untyped.types.is_struct(kind):
        within = [column.field(at) for at in range(min(kind.num_fields, target.num_fields))]
    elif untyped.types.is_map(kind):
        within = [column.keys, column.items]
        target = target.field(0).type
    else:
        within = [column.values]
    parts = [_in_zone(each, target.field(at).type, zone) for at, each in enumerate(within)]
    return _with_parts(column, kind, parts)


def _with_parts(column: Column, kind: Any, parts: list[Column]) -> Column:
    """Return a struct, a map or a list with other *parts*."""
    import pyarrow

    untyped: Any = pyarrow
    make = untyped.Array.from_buffers
    if untyped.types.is_struct(kind):
        fields = [field.with_type(part.type) for field, part in zip(kind, parts, strict=True)]
        valid = column.is_valid().buffers()[1]
        return make(untyped.struct(fields), len(column), [valid], children=parts)
    if untyped.types.is_map(kind):
        made = untyped.map_(*(part.type for part in parts))
        entries = made.field(0).type
        parts = [make(entries, len(parts[0]), [None], children=parts)]
    else:
        build = untyped.large_list if untyped.types.is_large_list(kind) else untyped.list_
        made = build(parts[0].type)
    return make(made, len(column), column.buffers()[:2], offset=column.offset, children=parts)
