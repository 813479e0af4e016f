"""Rows of Arrow record batches, equal to those of ``DataFrame.collect()`` for every type.

For most types ``to_pylist`` returns the right values, and is fast. For the others (a timestamp is
naive and local in PySpark, a map is a dict, a struct a Row, …) a converter is built once for the
type. It works on whole columns, nested ones as well: the elements of all lists of a column are one
column.
"""

import mmap
import os
import re
import time
from collections import namedtuple
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from functools import partial
from importlib import import_module
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from ._internals import arrow_schema
from .arrow.reading_state import BatchSizes
from .spark_version import pyspark_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType, StructType, UserDefinedType

RowKind = Literal["tuple", "dict", "row", "batch"]
ROW_KINDS: Final = ("tuple", "dict", "row", "batch")


class Decoded(NamedTuple):
    """The elements of a record batch, in parts: a part of a large one is made when it is due."""

    parts: Iterator[tuple[Iterator[Any], int]]
    """Some of the elements, and their number."""
    elements: int
    """The number of all of them."""
    rows: int


Decode = Callable[[Any], Decoded]
"""Makes the elements of the bytes of a record batch."""

DEFAULT_BATCH: Final = 1024
"""Rows of a record batch as long as the size of a row is unknown."""
_LARGEST_BATCH: Final = 4096
_PART_BYTES: Final = 4 << 20  # of a record batch that become rows at a time, about
_ROWS_PER_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_VALUES: Final = 16_384  # of a record batch, at most, if it has more rows than DEFAULT_BATCH
_MOST_VALUES: Final = 1 << 18
"""Values of a record batch at most, also where it has fewer rows for that.

All of them are objects until their rows are handed over. Of 3,000 columns, a value takes 0.16 µs in
batches of 60 to 120 rows, and 0.25 in batches of 174, which the processor's cache does not hold
(`benchmarks/spark/wide.py`).
"""
Column = Any
"""A ``pyarrow.Array``. PyArrow has no types."""
Convert = Callable[[Column], list[Any]]

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
# Types without a Python value in PySpark, and the variable that makes it an int, if any.
_NO_VALUE: Final = {
    "YearMonthIntervalType": "PYSPARK_YM_INTERVAL_LEGACY",
    "CalendarIntervalType": "",
}


# -- record batches --------------------------------------------------------------------------------
def rows_per_batch(session: Any) -> int | None:
    """Return how many rows Spark sends together in a session; None if it has no limit. Asks it."""
    rows = int(session.conf.get(_ROWS_PER_BATCH) or 0)
    return rows if rows > 0 else None


def batch_sizes(schema: "StructType", kind: RowKind, requested: int | None) -> BatchSizes:
    """Return how many rows a record batch of *schema* may have: *requested*, or the best size.

    All values but numbers are made before the first element of a batch, and its elements are handed
    over together: both delay other work on the loop. And each batch costs some tens of
    microseconds, however small it is.
    """
    if requested is not None:
        return BatchSizes(requested, requested)
    if kind == "batch":  # no values are made
        return BatchSizes(_LARGEST_BATCH, _LARGEST_BATCH)
    columns = max(1, len(schema.fields))
    least = max(1, min(DEFAULT_BATCH, _MOST_VALUES // columns))
    if not all(type(field.dataType).__name__ in _CHEAP for field in schema.fields):
        return BatchSizes(least, least)
    by_columns = min(_LARGEST_BATCH, _VALUES // columns)
    if kind == "tuple":  # which takes half of the time of another row
        by_columns *= 2
    return BatchSizes(least, max(least, by_columns))


def read_schema(df: "DataFrame") -> "StructType":
    """Return the schema by which the rows of *df* are made. Calls the JVM.

    ``collect()`` makes a bytearray of a binary value where a setting of the session, or a PySpark
    before 4.1, says so.
    """
    schema = df.schema
    if not any(type(kind).__name__ == "BinaryType" for kind in types_in(schema)):
        return schema
    default = "true" if pyspark_version() >= (4, 1) else "false"
    is_bytes = df.sparkSession.conf.get(_BINARY_AS_BYTES, default) == "true"
    if is_bytes:
        return schema
    from .byte_arrays import with_byte_arrays

    return cast("StructType", with_byte_arrays(schema))


def decoder(schema: "StructType", kind: RowKind) -> Decode:
    """Return the function that decodes record batches of *schema* into elements of *kind*."""
    import pyarrow

    untyped: Any = pyarrow
    buffer, read = untyped.py_buffer, untyped.ipc.read_record_batch
    arrow, elements = arrow_schema(schema), elements_of(schema, kind)

    def decode(frame: Any) -> Decoded:
        batch = read(buffer(frame), arrow)
        if len(frame) <= _PART_BYTES:
            return elements(batch, batch.num_rows)
        decoded = elements(batch, max(1, batch.num_rows * _PART_BYTES // len(frame)))
        return Decoded(_released(frame, decoded.parts), decoded.elements, decoded.rows)

    return decode


def _released(frame: Any, parts: Iterator[Any]) -> Iterator[Any]:
    """Yield *parts*; the memory of what was read of a file is given back after each."""
    for part in parts:
        yield part
        if isinstance(frame, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            frame.madvise(mmap.MADV_DONTNEED)  # the file has what was read


def elements_of(schema: "StructType", kind: RowKind) -> "Callable[[Any, int], Decoded]":
    """Return the function that makes elements of *kind* of a record batch of *schema*.

    They are its rows, some at a time, or the batch itself, with the names of *schema*.
    """
    names = schema.names
    if kind != "batch":
        convert = row_converter(schema, kind)

        def rows(batch: Any, most: int) -> Decoded:
            parts = ((convert(part), part.num_rows) for part in cut(batch, most) if part.num_rows)
            return Decoded(parts, batch.num_rows, batch.num_rows)

        return rows

    def whole(batch: Any, _: int) -> Decoded:
        if not names:
            batch = batch.select([])
        elif batch.schema.names != names:
            batch = batch.rename_columns(names)
        count = 1 if batch.num_rows else 0
        return Decoded(iter(((iter((batch,)), 1),) * count), count, batch.num_rows)

    return whole


def cut(batch: Any, rows: int, size: int | None = None) -> list[Any]:
    """Return slices of a record batch, of at most *rows* rows and about *size* bytes each."""
    step = min(rows, batch.num_rows)
    # The bytes of a slice take microseconds for each column; those of whole buffers are quick.
    if size is not None and batch.get_total_buffer_size() > size and batch.nbytes > size:
        step = min(step, batch.num_rows * size // batch.nbytes)
    if step == batch.num_rows:
        return [batch]
    return [batch.slice(start, max(1, step)) for start in range(0, batch.num_rows, max(1, step))]


def row_converter(schema: "StructType", kind: RowKind) -> Callable[[Any], Iterator[Any]]:
    """Return the function that makes rows of *kind* from a record batch of *schema*.

    Where *schema* has no columns, those of the batch are ignored: see `with_a_column`.
    """
    columns, names = columns_of(schema), schema.names
    make_row = _row_maker(names) if kind == "row" else None

    def convert(batch: Any) -> Iterator[Any]:
        tuples = _tuples(columns(batch) if names else (), batch.num_rows)
        if kind == "dict":
            return map(dict, map(zip, repeat(names), tuples))
        return tuples if make_row is None else map(make_row, tuples)

    return convert


def with_a_column(df: "DataFrame") -> "DataFrame":
    """Return *df*, with a constant column if it has none: Spark would send no number of rows."""
    return df if df.columns else df.selectExpr("0 as placeholder")


def _tuples(columns: Sequence[Sequence[Any]], count: int) -> Iterator[tuple[Any, ...]]:
    return zip(*columns, strict=True) if columns else repeat((), count)


def from_spark_row(kind: RowKind) -> "Callable[[Row], Any] | None":
    """Return the function that converts PySpark's Row to *kind*; None where it stays a Row."""
    from pyspark.sql import Row

    if kind == "tuple":
        return tuple
    return Row.asDict if kind == "dict" else None


def _row_maker(names: Sequence[str]) -> "Callable[[tuple[Any, ...]], Row]":
    """Return the function that makes Rows with the fields *names*.

    Their class holds the names, so a Row is as small as a tuple. It is equal to PySpark's Row, has
    the same ``repr``, and is pickled as one.
    """
    from pyspark.sql import Row

    # The descriptors of a named tuple read an index of any tuple, without calling Python.
    fields = namedtuple("fields", [f"field_{number}" for number in range(len(names))])  # type: ignore[misc]
    attributes: dict[str, Any] = {"__slots__": (), "__fields__": [*names]}
    for number, name in enumerate(names):
        if not name.startswith("__") and not hasattr(Row, name):
            attributes.setdefault(name, vars(fields)[f"field_{number}"])
    return partial(cast("Any", tuple).__new__, type("Row", (Row,), attributes))


# -- columns ---------------------------------------------------------------------------------------
class UnreadableType(Exception):
    """A type whose values cannot be made from Arrow."""


class ValueOutOfRange(ValueError):
    """A date or a timestamp that Python's datetime cannot hold."""


def columns_of(schema: "StructType") -> Callable[[Any], list[Sequence[Any]]]:
    """Return the function that converts a record batch of *schema* into its columns.

    Raises `UnreadableType` for a type that it does not know.
    """
    converters = [_column_of(field.dataType) for field in schema.fields]

    def columns(batch: Any) -> list[Sequence[Any]]:
        made = list[Sequence[Any]]()
        try:
            for convert, column in zip(converters, batch.columns, strict=True):
                made.append(convert(column))
        except ValueOutOfRange as error:
            name = schema.names[len(made)]
            raise ValueOutOfRange(f"column {name!r}: {error}") from error.__cause__
        return made

    return columns


def unreadable_column(schema: "StructType") -> str | None:
    """Name the first column that PySpark has no Python values for, in any mode."""
    for field in schema.fields:
        for kind in types_in(field.dataType):
            variable = _NO_VALUE.get(type(kind).__name__)
            if variable is not None and os.environ.get(variable or "-") != "1":
                return f"column {field.name!r} of type {field.dataType.simpleString()}"
    return None


def unreadable(schema: "StructType") -> Iterator[str]:
    """Yield why rows of *schema* cannot be made: for lack of a value in PySpark, or of a way."""
    if (column := unreadable_column(schema)) is not None:
        yield column
    try:
        columns_of(schema)
    except UnreadableType as error:
        yield str(error)


def has_user_defined_type(schema: "StructType") -> bool:
    """Whether a column, or a value inside one, is of a type that a program has defined."""
    from pyspark.sql.types import UserDefinedType

    return any(isinstance(kind, UserDefinedType) for kind in types_in(schema))


def types_in(kind: "DataType") -> "Iterator[DataType]":
    """Yield a type and all types inside it."""
    yield kind
    for name in ("elementType", "keyType", "valueType"):
        if (inner := getattr(kind, name, None)) is not None:
            yield from types_in(inner)
    for field in getattr(kind, "fields", ()):
        yield from types_in(field.dataType)


def _column_of(kind: "DataType") -> Callable[[Column], Sequence[Any]]:
    """Return a converter to a list, or to a view of numbers that become objects with their row."""
    found = _NUMBERS.get(type(kind).__name__)
    if found is None:
        return _list_of(kind)
    code, size = found

    def view(column: Column) -> Sequence[Any]:
        count = len(column)
        if not count or column.null_count:
            return _plain_list(column)
        start = column.offset * size
        whole: Any = memoryview(column.buffers()[1])
        values: Sequence[Any] = whole[start : start + count * size].cast(code)
        return values

    return view


# -- a converter for each type; None where to_pylist returns the right values ------------------
def _converter(kind: "DataType") -> Convert | None:
    from pyspark.sql.types import UserDefinedType

    if isinstance(kind, UserDefinedType):
        return _user_defined(kind)
    name = type(kind).__name__
    if name in _UNCHANGED:
        return None
    make = _MAKERS.get(name)
    if make is None:
        raise UnreadableType(f"there is no way from Arrow to the type {kind.simpleString()}")
    return make(kind)


def _list_of(kind: "DataType") -> Convert:
    return _converter(kind) or _plain_list


def _plain_list(column: Column) -> list[Any]:
    try:
        return cast("list[Any]", column.to_pylist())
    except UnicodeDecodeError:
        return _with_replacements(column)


def _with_replacements(column: Column) -> list[Any]:
    """Return the strings of a column, of lists as well, of which some are not UTF-8.

    Spark keeps whatever bytes a file has; ``collect()`` returns U+FFFD for those that are not.
    """
    if hasattr(column, "offsets"):
        (values,), spans = _lists(column, column.values)
        made = _plain_list(values)
        return _with_nulls(column, [made[start:end] for start, end in spans])
    values = column.cast("binary").to_pylist()
    return [None if each is None else _as_java_decodes(each) for each in values]


def _as_java_decodes(text: bytes) -> str:
    """Decode UTF-8; an encoded surrogate is one mistake to Java, and three to Python."""
    return _SURROGATE.sub(_REPLACEMENT, text).decode(errors="replace")


@contextmanager
def _in_range(unit: str, values: Sequence[int | None]) -> Generator[None, None, None]:
    """Raise `ValueOutOfRange` for what the conversion of *values* raises."""
    try:
        yield
    except (OverflowError, OSError, ValueError) as error:
        known = [each for each in values if each is not None]
        furthest = max(known, key=abs)
        raise ValueOutOfRange(
            f"{furthest:,} {unit} since 1970 are outside of the years 1 to 9999, which Python's "
            "datetime can hold. Select other rows in the query, or cast the column to a string."
        ) from error


def _date(_: "DataType") -> Convert:
    def convert(column: Column) -> list[Any]:
        make, days = date.fromordinal, column.view("int32").to_pylist()
        with _in_range("days", days):
            return [None if day is None else make(day + _EPOCH_DAY) for day in days]

    return convert


def _since_epoch(_: "DataType") -> Convert:
    """A timestamp without a time zone."""

    def convert(column: Column) -> list[Any]:
        whole = column.view("int64").to_pylist()
        with _in_range("microseconds", whole):
            return [None if each is None else _EPOCH + timedelta(0, 0, each) for each in whole]

    return convert


def _timestamp(kind: "DataType") -> Convert:
    """A timestamp, naive and in the time zone of this process, as in PySpark."""
    if time.tzname == ("UTC", "UTC"):
        return _since_epoch(kind)

    def convert(column: Column) -> list[Any]:
        whole = column.view("int64").to_pylist()
        with _in_range("microseconds", whole):
            return [None if each is None else _local(each) for each in whole]

    return convert


def _local(microseconds: int) -> datetime:
    seconds, fraction = divmod(microseconds, 1_000_000)
    moment = datetime.fromtimestamp(seconds)
    return moment.replace(microsecond=fraction) if fraction else moment


def _byte_arrays(_: "DataType") -> Convert:
    return lambda column: [None if each is None else bytearray(each) for each in column.to_pylist()]


def _array(kind: Any) -> Convert | None:
    element = _converter(kind.elementType)
    if element is None:
        return None

    def convert(column: Column) -> list[Any]:
        (values,), spans = _lists(column, column.values)
        made = element(values)
        return _with_nulls(column, [made[start:end] for start, end in spans])

    return convert


def _map(kind: Any) -> Convert:
    if type(kind.keyType).__name__ == "NullType":  # no value is a key, so every map is empty
        return lambda column: _with_nulls(column, [{} for _ in range(len(column))])
    key, value = _list_of(kind.keyType), _list_of(kind.valueType)

    def convert(column: Column) -> list[Any]:
        (all_keys, all_values), spans = _lists(column, column.keys, column.items)
        keys, values = key(all_keys), value(all_values)
        made = [dict(zip(keys[start:end], values[start:end], strict=True)) for start, end in spans]
        return _with_nulls(column, made)

    return convert


def _lists(column: Column, *children: Column) -> "tuple[list[Column], Iterator[tuple[int, int]]]":
    """Return the values of all lists of the column, and the start and end of each list in them.

    A slice of a column has the values of the whole column.
    """
    offsets = column.offsets.to_pylist() if len(column) else [0]
    first, last = offsets[0], offsets[-1]
    values = [each.slice(first, last - first) for each in children]
    return values, pairwise([offset - first for offset in offsets])


def _struct(kind: Any) -> Convert:
    fields = [_list_of(field.dataType) for field in kind.fields]
    make_row = _row_maker(kind.names)

    def convert(column: Column) -> list[Any]:
        children = [field(column.field(place)) for place, field in enumerate(fields)]
        return _with_nulls(column, list(map(make_row, _tuples(children, len(column)))))

    return convert


def _struct_class(module: str, name: str, *fields: str) -> Callable[[Any], Convert]:
    """Return a converter to a class of PySpark whose values Arrow carries as structs."""

    def make(_: "DataType") -> Convert:
        kind = getattr(import_module(module), name)

        def convert(column: Column) -> list[Any]:
            children = [map(_to_bytearray, column.field(field).to_pylist()) for field in fields]
            return _with_nulls(column, list(map(kind, *children)))

        return convert

    return make


def _to_bytearray(value: Any) -> Any:
    """Return bytes inside such a value as the bytearray that ``collect()`` returns."""
    return bytearray(value) if isinstance(value, bytes) else value


def _user_defined(kind: "UserDefinedType") -> Convert:
    values = _list_of(kind.sqlType())

    def convert(column: Column) -> list[Any]:
        make = kind.deserialize
        return [None if each is None else make(each) for each in values(column)]

    return convert


def _with_nulls(column: Column, values: list[Any]) -> list[Any]:
    """Return *values* with None where the column is null; Arrow leaves other values there."""
    if not column.null_count:
        return values
    valid = column.is_valid().to_pylist()
    return [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]


_UNCHANGED: Final = frozenset(
    f"{name}Type"
    for name in (
        "Null", "Boolean", "Byte", "Short", "Integer", "Long", "Float", "Double", "Decimal",
        "String", "Char", "Varchar", "Binary", "Time", "DayTimeInterval",
    )
)  # fmt: skip
_NUMBERS: Final = {  # the format code of memoryview, and the size in bytes
    "ByteType": ("b", 1), "ShortType": ("h", 2), "IntegerType": ("i", 4), "LongType": ("q", 8),
    "FloatType": ("f", 4), "DoubleType": ("d", 8),
}  # fmt: skip
# Types whose values are made in some 20 ns; for other types a value takes a microsecond.
_CHEAP: Final = frozenset(
    (*_NUMBERS, "NullType", "BooleanType", "StringType", "CharType", "VarcharType", "BinaryType")
)
_BINARY_AS_BYTES: Final = "spark.sql.execution.pyspark.binaryAsBytes"
_SQL_TYPES: Final = "pyspark.sql.types"
_MAKERS: Final[dict[str, Callable[[Any], Convert | None]]] = {
    "ByteArrayType": _byte_arrays,
    "DateType": _date,
    "TimestampType": _timestamp,
    "TimestampNTZType": _since_epoch,
    "ArrayType": _array,
    "MapType": _map,
    "StructType": _struct,
    "VariantType": _struct_class(_SQL_TYPES, "VariantVal", "value", "metadata"),
    "GeometryType": _struct_class(_SQL_TYPES, "Geometry", "wkb", "srid"),
    "GeographyType": _struct_class(_SQL_TYPES, "Geography", "wkb", "srid"),
}
