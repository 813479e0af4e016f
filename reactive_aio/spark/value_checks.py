"""Which Python values a column takes, where PyArrow would take more and change them.

PyArrow makes 1 of 1.5, and a date of a number of days, also inside of arrays, maps and structs;
``createDataFrame`` refuses both. So do these checks, which look at the types of the values of a
whole column. PySpark's converter refuses some other values with an assertion that says nothing;
the checks name the type that is needed.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import chain, repeat
from numbers import Integral
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

Check = Callable[[Sequence[Any]], None]
"""Raises for the values of a column that do not fit."""

_WHOLE: Final = ((Integral,), "a whole number")
_VALUES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "ByteType": _WHOLE,
    "ShortType": _WHOLE,
    "IntegerType": _WHOLE,
    "LongType": _WHOLE,
    "DecimalType": ((Decimal,), "a decimal.Decimal"),
    "BinaryType": ((bytes, bytearray, memoryview), "bytes or a bytearray"),
    "DateType": ((date,), "a datetime.date"),
    "TimeType": ((time,), "a datetime.time"),
    "TimestampType": ((datetime,), "a datetime.datetime"),
    "DayTimeIntervalType": ((timedelta,), "a datetime.timedelta"),
}


def value_check(kind: "DataType") -> Check | None:
    """Return the check of a column of *kind*; None if it takes every value that is converted."""
    name = type(kind).__name__
    if name in _VALUES:
        return partial(_require_types, *_VALUES[name])
    make = _MAKERS.get(name)
    return None if make is None else make(kind)


def reason_of(error: Exception, kind: "DataType") -> str:
    """Return the text of an error of a value; PySpark's assertions have none."""
    return str(error) or f"a list is needed inside of {kind.simpleString()}"


def row_check(schema: "DataType") -> Check:
    """Return the check of rows, which are tuples, Rows, lists or dicts."""
    check = _struct_check(schema)

    def check_rows(rows: Sequence[Any]) -> None:
        _require_types((tuple, list, dict), "a tuple, Row or dict", rows)
        if any(issubclass(kind, list) for kind in set(map(type, rows))):
            rows = [tuple(cast("Any", row)) if isinstance(row, list) else row for row in rows]
        check(rows)

    return check_rows


def _require_types(allowed: tuple[type, ...], needed: str, values: Sequence[Any]) -> None:
    for kind in set(map(type, values)):
        if kind is not NoneType and not issubclass(kind, allowed):
            raise TypeError(f"{kind.__name__} is not {needed}")


def _wall_clock_check(_: "DataType") -> Check:
    """Of timestamps without a time zone."""

    def check(values: Sequence[Any]) -> None:
        _require_types((datetime,), "a datetime.datetime", values)
        if any(each is not None and each.tzinfo is not None for each in values):
            raise TypeError("a datetime with a time zone is not one without")

    return check


def _array_check(kind: Any) -> Check:
    element = value_check(kind.elementType)

    def check(values: Sequence[Any]) -> None:
        _require_types((Iterable,), "a list", values)  # PyArrow takes arrays of NumPy as well
        if element is not None:
            element([*chain.from_iterable(each for each in values if each is not None)])

    return check


def _map_check(kind: Any) -> Check:
    key, value = value_check(kind.keyType), value_check(kind.valueType)

    def check(values: Sequence[Any]) -> None:
        _require_types((dict,), "a dict", values)
        maps = [each for each in values if each is not None]
        if key is not None:
            key([*chain.from_iterable(maps)])
        if value is not None:
            value([*chain.from_iterable(each.values() for each in maps)])

    return check


def _struct_check(kind: Any) -> Check:
    width = len(kind.fields)
    found = ((at, each.name, value_check(each.dataType)) for at, each in enumerate(kind.fields))
    fields = [(at, name, check) for at, name, check in found if check is not None]

    def check(values: Sequence[Any]) -> None:
        kinds, dicts = set(map(type, values)), list[dict[str, Any]]()
        if not all(issubclass(kind, tuple) for kind in kinds):
            others = [each for each in values if each is not None and not isinstance(each, tuple)]
            dicts = [*map(_fields_of, others)]
            values = [each for each in values if isinstance(each, tuple)]
        if not set(map(len, values)) <= {width}:
            raise ValueError(f"a tuple of {width} values is needed")
        for at, name, check_field in fields:
            if kinds == {tuple}:
                check_field([*map(itemgetter(at), values)])
            else:
                check_field([*map(_item, values, repeat(at))])
                check_field([each.get(name) for each in dicts])

    return check


def _fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a struct that is not a tuple: a dict, or any object."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    try:
        return cast("dict[str, Any]", vars(value))
    except TypeError:
        raise TypeError(f"{type(value).__name__} is not a tuple, Row or dict") from None


_item: Final = cast("Callable[[Any, int], Any]", cast("Any", tuple).__getitem__)
"""Reads a Row like any tuple; its own ``__getitem__`` is slow."""
_MAKERS: Final[dict[str, Callable[[Any], Check]]] = {
    "TimestampNTZType": _wall_clock_check,
    "ArrayType": _array_check,
    "MapType": _map_check,
    "StructType": _struct_check,
}
