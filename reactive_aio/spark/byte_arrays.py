"""ByteArrayType: binary values as ``collect()`` makes them where a setting asks for a bytearray.

It imports PySpark, and so is imported when it is needed.
"""

from typing import Any, cast

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructField, StructType


class ByteArrayType(BinaryType):
    """A binary column whose values are read as bytearrays."""


def with_byte_arrays(kind: Any) -> DataType:
    """Return the same type, in which binary values are bytearrays."""
    change = with_byte_arrays
    if isinstance(kind, BinaryType):
        return ByteArrayType()
    if isinstance(kind, ArrayType):
        return ArrayType(change(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(change(kind.keyType), change(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType(
            [StructField(each.name, change(each.dataType), each.nullable) for each in kind.fields]
        )
    return cast("DataType", kind)
