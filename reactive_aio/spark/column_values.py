"""The Python values of Arrow columns, equal to those of ``DataFrame.collect()`` for every type.

For most types ``to_pylist`` returns them, and is fast. For the others (a timestamp is naive and
local in PySpark, a map is a dict, a struct a Row, …) a converter is built once for the type. It
works on whole columns, nested ones as well: the elements of all lists of a column are one column.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

from .rows import spark_row_maker

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType, UserDefinedType

__all__ = ("UnreadableType", "columns_of", "is_cheap", "unreadable_column")

Column = Any
"""A ``pyarrow.Array``. PyArrow has no types."""
Convert = Callable[[Column], list[Any]]

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
# Types without a Python value in PySpark, and the variable that makes it an int, if any.
_NO_VALUE: Final = {
    "YearMonthIntervalType": "PYSPARK_YM_INTERVAL_LEGACY",
    "CalendarIntervalType": "",
}


class UnreadableType(Exception):
    """A type whose values cannot be made from Arrow."""


def columns_of(schema: "StructType") -> Callable[[Any], list[Sequence[Any]]]:
    """Return the function that converts a record batch of *schema* into its columns.

    Raises `UnreadableType` for a type that it does not know.
    """
    converters = [_column_of(field.dataType) for field in schema.fields]

    def columns(batch: Any) -> list[Sequence[Any]]:
        return [convert(column) for convert, column in zip(converters, batch.columns, strict=True)]

    return columns


def is_cheap(kind: "DataType") -> bool:
    """Whether a value is made in some 20 ns; for other types it takes a microsecond."""
    return type(kind).__name__ in _CHEAP


def unreadable_column(schema: "StructType") -> str | None:
    """Name the first column that PySpark has no Python values for, in any mode."""
    for field in schema.fields:
        for kind in _parts(field.dataType):
            variable = _NO_VALUE.get(type(kind).__name__)
            if variable is not None and os.environ.get(variable or "-") != "1":
                return f"column {field.name!r} of type {field.dataType.simpleString()}"
    return None


def _parts(kind: "DataType") -> "Iterator[DataType]":
    """Yield a type and all types inside it."""
    yield kind
    for name in ("elementType", "keyType", "valueType"):
        if (inner := getattr(kind, name, None)) is not None:
            yield from _parts(inner)
    for field in getattr(kind, "fields", ()):
        yield from _parts(field.dataType)


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
    return cast("list[Any]", column.to_pylist())


def _date(_: "DataType") -> Convert:
    def convert(column: Column) -> list[Any]:
        make, days = date.fromordinal, column.view("int32").to_pylist()
        return [None if day is None else make(day + _EPOCH_DAY) for day in days]

    return convert


def _since_epoch(_: "DataType") -> Convert:
    """A timestamp without a time zone."""

    def convert(column: Column) -> list[Any]:
        whole = column.view("int64").to_pylist()
        return [None if each is None else _EPOCH + timedelta(0, 0, each) for each in whole]

    return convert


def _timestamp(kind: "DataType") -> Convert:
    """A timestamp, naive and in the time zone of this process, as in PySpark."""
    if time.tzname == ("UTC", "UTC"):
        return _since_epoch(kind)

    def convert(column: Column) -> list[Any]:
        whole = column.view("int64").to_pylist()
        return [None if each is None else _local(each) for each in whole]

    return convert


def _local(microseconds: int) -> datetime:
    seconds, fraction = divmod(microseconds, 1_000_000)
    moment = datetime.fromtimestamp(seconds)
    return moment.replace(microsecond=fraction) if fraction else moment


def _array(kind: Any) -> Convert | None:
    element = _converter(kind.elementType)
    if element is None:
        return None

    def convert(column: Column) -> list[Any]:
        values = element(column.values)
        return _with_nulls(column, [values[start:end] for start, end in _spans(column)])

    return convert


def _map(kind: Any) -> Convert:
    key, value = _list_of(kind.keyType), _list_of(kind.valueType)

    def convert(column: Column) -> list[Any]:
        keys, values = key(column.keys), value(column.items)
        made = [
            dict(zip(keys[start:end], values[start:end], strict=True))
            for start, end in _spans(column)
        ]
        return _with_nulls(column, made)

    return convert


def _spans(column: Column) -> "Iterator[tuple[int, int]]":
    """Yield the start and end of each list of the column among the values of all lists."""
    return pairwise(column.offsets.to_pylist() if len(column) else ())


def _struct(kind: Any) -> Convert:
    fields = [_list_of(field.dataType) for field in kind.fields]
    rows = spark_row_maker(kind.names)

    def convert(column: Column) -> list[Any]:
        children = [field(column.field(place)) for place, field in enumerate(fields)]
        return _with_nulls(column, list(rows(children, len(column))))

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
_CHEAP: Final = frozenset(
    (*_NUMBERS, "NullType", "BooleanType", "StringType", "CharType", "VarcharType", "BinaryType")
)
_SQL_TYPES: Final = "pyspark.sql.types"
_MAKERS: Final[dict[str, Callable[[Any], Convert | None]]] = {
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
